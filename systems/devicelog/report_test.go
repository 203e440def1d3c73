package devicelog

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// The public sample of the C++ report, Blackhole at 1350 MHz.
func sampleReport(t *testing.T) *profilelog.OpsTable {
	tab, err := profilelog.ReadOpsFile(datadir.Path(t, "tenstorrent", "tenstorrent__tt-metal", "cpp_device_perf_report.EXCERPT.csv"))
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// Every duration of the sample that has its cycles beside it.
func TestReportNanoseconds(t *testing.T) {
	tab := sampleReport(t)
	n := 0
	for i := range tab.Ops {
		for _, c := range []string{"FW", "KERNEL", "KERNEL DM"} {
			ns := "DEVICE " + c + " DURATION [ns]"
			if c == "KERNEL DM" {
				ns = "DEVICE KERNEL DURATION DM START [ns]"
			}
			a, _ := strconv.ParseUint(tab.Cell(i, "DEVICE "+c+" START CYCLE"), 10, 64)
			b, _ := strconv.ParseUint(tab.Cell(i, "DEVICE "+c+" END CYCLE"), 10, 64)
			got, ok := roundNS(b-a, 1350)
			if want := tab.Cell(i, ns); !ok || strconv.FormatUint(got, 10) != want {
				t.Errorf("row %d %s: %d cycles give %d ns, the report has %s", i+1, c, b-a, got, want)
			}
			n++
		}
	}
	if n != 111 {
		t.Errorf("%d values compared, the sample has 111", n)
	}
}

// A device log built from the sample's cycles gives back its columns,
// op-to-op included, and the exact gap beside the rounded one.
func TestReportOpToOp(t *testing.T) {
	tab := sampleReport(t)
	var buf bytes.Buffer
	w, err := profilelog.NewWriter(&buf, "V11", "blackhole", 1350, 110)
	if err != nil {
		t.Fatal(err)
	}
	const untraced = 27
	put := func(i int, risc, zone string, typ zonelog.MarkerType, at string) {
		cyc, err := strconv.ParseUint(tab.Cell(i, at), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		o := &tab.Ops[i]
		if err := w.Write(&profilelog.Row{Lane: zonelog.ZoneLane{Device: 3, X: 1, Y: 2, Risc: risc}, Timer: 7, Time: cyc,
			Run: zonelog.LogRun{HostID: o.CallCount, TraceID: -1, TraceCounter: -1}, Name: zone, Type: typ, Line: 1, File: "f.cc"}); err != nil {
			t.Fatal(err)
		}
	}
	const s, e = zonelog.MarkerStart, zonelog.MarkerEnd
	for i := range untraced {
		put(i, "BRISC", "BRISC-FW", s, "DEVICE FW START CYCLE")
		put(i, "BRISC", "BRISC-KERNEL", s, "DEVICE KERNEL DM START CYCLE")
		put(i, "BRISC", "BRISC-KERNEL", e, "DEVICE KERNEL DM END CYCLE")
		put(i, "BRISC", "BRISC-FW", e, "DEVICE FW END CYCLE")
		put(i, "TRISC_0", "TRISC-KERNEL", s, "DEVICE KERNEL START CYCLE")
		put(i, "TRISC_0", "TRISC-KERNEL", e, "DEVICE KERNEL END CYCLE")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	l, err := profilelog.Read(context.Background(), bytes.NewReader(buf.Bytes()), profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	rows := Report(l, topo, []*Launches{findLaunches(l, topo, 0, ByRun, &diags)})
	if len(rows) != untraced {
		t.Fatalf("%d launches, want %d; %v", len(rows), untraced, diags.All())
	}
	var out bytes.Buffer
	if err := WriteReport(&out, rows, true); err != nil {
		t.Fatal(err)
	}
	mine, err := profilelog.ReadOps(&out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		for _, c := range []string{"GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "AVAILABLE WORKER CORE COUNT", "DEVICE FW DURATION [ns]", "DEVICE FW START CYCLE",
			"DEVICE FW END CYCLE", "DEVICE KERNEL DURATION [ns]", "DEVICE KERNEL START CYCLE", "DEVICE KERNEL END CYCLE", "DEVICE KERNEL DURATION DM START [ns]",
			"DEVICE KERNEL DM START CYCLE", "DEVICE KERNEL DM END CYCLE", "OP TO OP LATENCY [ns]", "OP TO OP LATENCY BR/NRISC START [ns]"} {
			if a, b := mine.Cell(i, c), tab.Cell(i, c); a != b {
				t.Errorf("row %d, %s: %q, the report has %q", i+1, c, a, b)
			}
		}
	}
	// By hand for row 2: 2569338139981 - 2569131982067 = 206157914 cycles,
	// 152709565.926 ns at 1350 MHz; the rounded column says 152718254.
	if a, b, c := mine.Cell(1, "OP TO OP EXACT [cycles]"), mine.Cell(1, "OP TO OP EXACT [ns]"), mine.Cell(1, "OP TO OP LATENCY [ns]"); a != "206157914" || b != "152709565.926" || c != "152718254" {
		t.Errorf("gap of row 2: %s cycles, %s ns, rounded %s", a, b, c)
	}
}

func TestVendorOpToOpEdges(t *testing.T) {
	for _, tc := range []struct {
		prev, start, end uint64
		mhz              float64
		want             uint64
		ok               bool
	}{
		{100, 200, 300, 1000, 100, true},
		{100, 100, 101, 1000, 0, true},
		{201, 200, 300, 1000, 0, false}, // overlap
		{100, 200, 200, 1000, 0, false}, // no length
		{100, 200, 300, 0, 0, false},    // no clock
	} {
		if v, ok := vendorOpToOp(tc.prev, tc.start, tc.end, tc.mhz); v != tc.want || ok != tc.ok {
			t.Errorf("%+v: %d, %v", tc, v, ok)
		}
	}
}

// logOf reads rows given as "risc x zone s|e time host" words.
func logOf(t testing.TB, rows ...string) *zonelog.DeviceLog {
	t.Helper()
	var buf bytes.Buffer
	w, err := profilelog.NewWriter(&buf, "V10", "wormhole_b0", 1000, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		var risc, zone, phase string
		var x, dev int32
		var time uint64
		var host int64
		if _, err := fmt.Sscan(strings.ReplaceAll(r, "/", " "), &dev, &risc, &x, &zone, &phase, &time, &host); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		typ := zonelog.MarkerStart
		if phase == "e" {
			typ = zonelog.MarkerEnd
		}
		h := zonelog.ZoneHash16(zone)
		w.Write(&profilelog.Row{Lane: zonelog.ZoneLane{Device: dev, X: x, Y: 1, Risc: risc}, Timer: uint32(h), Time: time, Name: zone, Type: typ, Line: 5, File: "k.cc",
			Run: zonelog.LogRun{HostID: host, TraceID: -1, TraceCounter: -1}})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	l, err := profilelog.Read(context.Background(), &buf, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
