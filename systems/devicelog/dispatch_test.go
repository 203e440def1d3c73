package devicelog

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// dispatchLog is a dispatch core at 9,9 that sends two programs to the worker
// core 1,1. Each row: processor, time, zone, type, meta data.
const dispatchLog = `ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID,  zone name, type, source line, source file, meta data
0,9,9,BRISC,1,1000,0,0,BRISC-FW,ZONE_START,10,k.cc,
0,9,9,BRISC,2,1010,0,0,CQ-DISPATCH,ZONE_START,20,k.cc,
0,9,9,BRISC,3,1011,7,0,WID,TS_DATA,21,k.cc,{"workers_runtime_id":1024}
0,9,9,BRISC,3,1012,8,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_CMD_WRITE_LINEAR"}
0,9,9,BRISC,2,1030,0,0,CQ-DISPATCH,ZONE_END,20,k.cc,
0,9,9,BRISC,2,1040,0,0,CQ-DISPATCH,ZONE_START,20,k.cc,
0,9,9,BRISC,3,1042,8,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_NOTIFY_SUBORDINATE_GO_SIGNAL"}
0,9,9,BRISC,2,1060,0,0,CQ-DISPATCH,ZONE_END,20,k.cc,
0,9,9,BRISC,2,1100,0,0,CQ-DISPATCH,ZONE_START,20,k.cc,
0,9,9,BRISC,3,1101,7,0,WID,TS_DATA,21,k.cc,{"workers_runtime_id":2048}
0,9,9,BRISC,3,1102,8,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_CMD_WAIT"}
0,9,9,BRISC,2,1190,0,0,CQ-DISPATCH,ZONE_END,20,k.cc,
0,9,9,BRISC,1,1200,0,0,BRISC-FW,ZONE_END,10,k.cc,
0,9,9,NCRISC,4,1005,0,0,NCRISC-FW,ZONE_START,10,k.cc,
0,9,9,NCRISC,5,1050,0,0,CQ-DISPATCH-SUBORDINATE,ZONE_START,30,k.cc,
0,9,9,NCRISC,3,1051,0,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_CMD_SEND_GO_SIGNAL"}
0,9,9,NCRISC,5,1075,0,0,CQ-DISPATCH-SUBORDINATE,ZONE_END,30,k.cc,
0,9,9,NCRISC,5,1150,0,0,CQ-DISPATCH-SUBORDINATE,ZONE_START,30,k.cc,
0,9,9,NCRISC,3,1151,0,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_CMD_SEND_GO_SIGNAL"}
0,9,9,NCRISC,5,1190,0,0,CQ-DISPATCH-SUBORDINATE,ZONE_END,30,k.cc,
0,9,9,NCRISC,4,1210,0,0,NCRISC-FW,ZONE_END,10,k.cc,
0,1,1,BRISC,1,1080,0,1024,BRISC-FW,ZONE_START,10,k.cc,
0,1,1,BRISC,1,1095,0,1024,BRISC-FW,ZONE_END,10,k.cc,
`

func readLog(t testing.TB, text string) *zonelog.DeviceLog {
	t.Helper()
	l, err := profilelog.Read(context.Background(), strings.NewReader(text), profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDispatch(t *testing.T) {
	l := readLog(t, dispatchLog)
	s := setupCurrent()
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	ls := findLaunches(l, topo, 0, ByRun, &diags)
	ls.setDispatch(l, topo, false, &diags)
	ours := analyze(l, topo, ls, &s, false)
	// A command begins with its zone: 1010 to 1060 and 1100 to 1190; the go
	// signals 1050 to 1075 and 1150 to 1190.
	for name, want := range map[string]string{"dispatch_total_cq_cmd_op_time": "50 90", "dispatch_go_send_wait_time": "25 40"} {
		if got := values(ours, name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	// The vendor's script counts a command from behind the last end, and so
	// from the firmware's start: that of BRISC for the first command (1000 to
	// 1060). It names the go signal from the firmware start too (1005 to
	// 1075), and takes the end of the firmware as a command of the program
	// that is still open (1100 to 1200, 1150 to 1210).
	v := NewVendor(l, s)
	for name, want := range map[string]string{"dispatch_total_cq_cmd_op_time": "60 100", "dispatch_go_send_wait_time": "70 60"} {
		if got := values(v.Devices[0].Results, name); got != want {
			t.Errorf("the vendor's %s is %s, not %s", name, got, want)
		}
	}
	var b bytes.Buffer
	if err := v.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"({'id': 2, 'zone_name': 'CQ_DISPATCH_CMD_WRITE_LINEAR', 'type': 'ZONE_END', 'src_line': 20, 'src_file': 'k.cc', 'run_host_id': 0, 'meta_data': ''}, 1030, 0, 'BRISC')"`,
		`"duration_type": "({'id': 1, 'zone_name': 'CQ_DISPATCH_CMD_WRITE_LINEAR', 'type': 'ZONE_START', 'src_line': 10, `,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the JSON lacks %s", want)
		}
	}
	if _, bad := v.Diags.Find(diagVendorFails); bad {
		t.Error("the script is said to fail")
	}
	for k := range l.Keys {
		if strings.HasPrefix(l.Keys[k].Name, "CQ_") {
			t.Error("the log itself was renamed")
		}
	}
}

// A program without a go signal is measured all the same, and the vendor's
// failure is told.
func TestDispatchWithoutGoSignal(t *testing.T) {
	text := strings.Replace(dispatchLog, `0,9,9,NCRISC,3,1151,0,0,CMD,TS_DATA,22,k.cc,{"dispatch_command_type":"CQ_DISPATCH_CMD_SEND_GO_SIGNAL"}`+"\n", "", 1)
	p, err := New(context.Background(), "x", readLog(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range p.Analyses {
		if a.Stats != nil {
			got[a.Name] = fmt.Sprint(a.Stats.Count, a.Stats.Sum)
		}
	}
	if got["dispatch_total_cq_cmd_op_time"] != "2 140" || got["dispatch_go_send_wait_time"] != "1 25" {
		t.Errorf("%v", got)
	}
	found := false
	for _, d := range p.Diags {
		found = found || d.Code == diagVendorFails && strings.Contains(d.Detail, "fewer go signals")
	}
	if !found {
		t.Error("not told that the vendor's script fails")
	}
}

func TestMetaField(t *testing.T) {
	for _, x := range []struct{ meta, key, want string }{
		{`{"workers_runtime_id":1024}`, "workers_runtime_id", "1024"},
		{`{'workers_runtime_id': 1024}`, "workers_runtime_id", "1024"},
		{`{"a":1;"workers_runtime_id":7;"b":2}`, "workers_runtime_id", "7"},
		{`{"dispatch_command_type":"X Y"}`, "dispatch_command_type", "X Y"},
		{`{"dispatch_command_type"}`, "dispatch_command_type", ""},
		{`workers_runtime_id:5}`, "workers_runtime_id", ""},
		{``, "workers_runtime_id", ""},
		{`{"dispatch_command_type":"X`, "dispatch_command_type", ""},
	} {
		if got, ok := metaField(x.meta, x.key); got != x.want && ok {
			t.Errorf("%s of %s is %q", x.key, x.meta, got)
		}
	}
}

// Core order and iteration marks of the scripts of 2025, as the script
// itself computes them: values of a run of its rules on this log by hand.
func TestVendorCurrentShape(t *testing.T) {
	l := logOf(t,
		"0/BRISC/2/BRISC-FW/s/100/1024", "0/BRISC/2/BRISC-KERNEL/s/110/1024", "0/BRISC/2/BRISC-KERNEL/e/150/1024", "0/BRISC/2/BRISC-FW/e/160/1024",
		"0/BRISC/2/BRISC-FW/s/200/2048", "0/BRISC/2/BRISC-KERNEL/s/210/2048", "0/BRISC/2/BRISC-KERNEL/e/250/2048", "0/BRISC/2/BRISC-FW/e/260/2048",
		"0/BRISC/1/BRISC-FW/s/90/1024", "0/BRISC/1/BRISC-KERNEL/s/115/1024", "0/BRISC/1/BRISC-KERNEL/e/120/1024", "0/BRISC/1/BRISC-FW/e/161/1024")
	v := NewVendor(l, setupCurrent())
	for _, r := range v.Devices[0].Results {
		if r.Analysis.Name == "device_kernel_duration_per_core" {
			// Core 1 appears first, at 90.
			if got := fmt.Sprint(r.Series[0].Values[0].Cycles, r.Series[0].Values[1].Cycles); got != "5 40" {
				t.Errorf("cores in the order %s", got)
			}
		}
	}
	var b bytes.Buffer
	if err := v.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	i := strings.Index(text, `"end_iter_mark"`)
	if i < 0 || !strings.Contains(text[i:i+400], "}, 200)") || strings.Count(text, `"start_iter_mark"`) != 1 {
		t.Errorf("the marks of the iteration are missing or wrong: %d", i)
	}
}
