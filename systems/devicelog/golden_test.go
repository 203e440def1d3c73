package devicelog

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

func values(res []Result, name string) string {
	for _, r := range res {
		if r.Analysis.Name == name {
			var out []string
			for _, s := range r.Series {
				for _, d := range s.Values {
					out = append(out, fmt.Sprint(d.Cycles))
				}
			}
			return strings.Join(out, " ")
		}
	}
	return "no such analysis"
}

// The oracle of the golden set 9041d4d7: duration of every launch, from the
// vendor's rule and from ours, which agree where the log has ends.
func TestGoldenDurations(t *testing.T) {
	for _, tc := range []struct {
		set, log           string
		fw, kernel, br, nc string
		oursFW, oursNC     string // where the vendor finds no launch and we do
	}{
		{"9041d4d7", "multi_core_multi_launch", "3931 3921", "739 729", "85 76", "52 42", "", ""},
		{"9041d4d7", "matmul", "29472691", "29469196", "29469196", "29305836", "", ""},
		{"9041d4d7", "wormhole_single_core", "5321", "3582", "3582", "2626", "", ""},
		// BRISC alone: launches exist, the other processor has nothing.
		{"9041d4d7", "missing_NCRISC", "3265 3265", "64 64", "64 64", "", "", ""},
		// No firmware start of BRISC: no launch for the vendor, although NCRISC
		// is whole; ours takes the launches from NCRISC.
		{"9041d4d7", "missing_BRISC", "", "", "", "", "1105 1105", "30 30"},
		{"9041d4d7", "missing_all_defualt_markers", "", "", "", "", "", ""},
		{"9041d4d7", "circular_trace_order", "", "", "", "", "1105", "30"},
		// add_two_ints in its other two shapes: without names, and with the
		// columns exchanged and put right by the reader.
		{"09ef5bc6", "add_two_ints", "3871 3871", "720 720", "64 64", "30 30", "", ""},
		{"399015d2", "add_two_ints", "3871 3871", "720 720", "64 64", "30 30", "", ""},
		{"09ef5bc6", "large.csv.gz", "29372693", "29369245", "29369245", "29205690", "", ""},
		{"399015d2", "large.csv.gz", "29372693", "29369245", "29369245", "29205690", "", ""},
	} {
		t.Run(tc.set+"/"+tc.log, func(t *testing.T) {
			name := tc.log
			if !strings.HasSuffix(name, ".gz") {
				name += ".csv"
			}
			l := load(t, profilelog.Options{}, lfs, tc.set, "logs", "profile_log_device_"+name)
			s := setup202402()
			topo := newTopology(l)
			var diags zonelog.Diagnostics
			for _, x := range []struct {
				rule   Rule
				vendor bool
			}{{Merged, true}, {Merged, false}, {ByRun, false}} {
				ls := findLaunches(l, topo, 0, x.rule, &diags)
				res := analyze(l, topo, ls, &s, x.vendor)
				fw, kernel, nc := tc.fw, tc.kernel, tc.nc
				if x.rule == ByRun && tc.oursFW != "" {
					fw, kernel, nc = tc.oursFW, tc.oursNC, tc.oursNC
				}
				for _, c := range []struct{ name, want string }{{"FW_START->FW_END", fw}, {"KERNEL_START->KERNEL_END", kernel},
					{"BR_KERNEL_START->BR_KERNEL_END", tc.br}, {"NC_KERNEL_START->NC_KERNEL_END", nc}} {
					if got := values(res, c.name); got != c.want {
						t.Errorf("rule %d, vendor %v, %s: %q, want %q", x.rule, x.vendor, c.name, got, c.want)
					}
				}
			}
		})
	}
}

// wormhole_multi_core: kernel starts fill the buffer and no kernel end was
// kept. The vendor's script subtracts a start from a start; ours gives none.
func TestNoEndsNoDuration(t *testing.T) {
	l := load(t, profilelog.Options{}, lfs, "9041d4d7", "logs", "profile_log_device_wormhole_multi_core.csv")
	s := setup202402()
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	ls := findLaunches(l, topo, 0, ByRun, &diags)
	if got := values(analyze(l, topo, ls, &s, false), "KERNEL_START->KERNEL_END"); got != "" {
		t.Errorf("kernel duration %s from a log without a kernel end", got)
	}
	if got := values(analyze(l, topo, ls, &s, true), "KERNEL_START->KERNEL_END"); got == "" {
		t.Error("the vendor's script does give a number here")
	}
	// The same from the golden full_buffer logs, rebuilt from their rows:
	// 1, 2, 13 custom markers, 4, and no 3. NCRISC starts 1369 cycles after
	// BRISC, which is what the golden calls the kernel duration.
	text := "Chip clock is at 1.2 GHz\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\n" +
		"0, 0, 0, NCRISC, 1, 1000\n0, 0, 0, NCRISC, 2, 2369\n0, 0, 0, BRISC, 1, 500\n0, 0, 0, BRISC, 2, 1000\n0, 0, 0, BRISC, 9, 7960709\n"
	l = readText(t, text)
	topo = newTopology(l)
	ls = findLaunches(l, topo, 0, Merged, &diags)
	if got := values(analyze(l, topo, ls, &s, true), "KERNEL_START->KERNEL_END"); got != "1369" {
		t.Errorf("vendor %q, want 1369", got)
	}
	if got := values(analyze(l, topo, ls, &s, false), "KERNEL_START->KERNEL_END"); got != "" {
		t.Errorf("ours %q, want none", got)
	}
}

// very_long_launch_delta, rebuilt small: core 2 takes part in the second
// launch only. Matching by ordinal of each core would join its only launch
// to the first of core 1.
func TestLaunchesByRunNotOrdinal(t *testing.T) {
	for _, host2 := range []string{"2", "1"} { // told apart by id, and by time where the id repeats
		l := logOf(t,
			"0/BRISC/1/BRISC-FW/s/1000/1", "0/BRISC/1/BRISC-FW/e/2000/1",
			"0/BRISC/1/BRISC-FW/s/900000/"+host2, "0/BRISC/1/BRISC-FW/e/901000/"+host2,
			"0/BRISC/2/BRISC-FW/s/900010/"+host2, "0/BRISC/2/BRISC-FW/e/901500/"+host2)
		topo := newTopology(l)
		var diags zonelog.Diagnostics
		s := setup202402()
		ls := findLaunches(l, topo, 0, ByRun, &diags)
		if got := values(analyze(l, topo, ls, &s, false), "FW_START->FW_END"); got != "1000 1500" {
			t.Errorf("durations %q, want 1000 1500", got)
		}
		if len(ls.List) != 2 || ls.List[0].Cores != 1 || ls.List[1].Cores != 2 || !ls.List[1].Complete {
			t.Errorf("launches %+v", ls.List)
		}
	}
}

// Two programs on disjoint cores at the same time: one launch to the
// vendor's first rule, two by their identity.
func TestOverlappingLaunches(t *testing.T) {
	l := logOf(t,
		"0/BRISC/1/BRISC-FW/s/100/1", "0/BRISC/1/BRISC-FW/e/300/1",
		"0/BRISC/2/BRISC-FW/s/200/2", "0/BRISC/2/BRISC-FW/e/400/2")
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	if n := len(findLaunches(l, topo, 0, Merged, &diags).List); n != 1 {
		t.Errorf("merged rule: %d launches", n)
	}
	ls := findLaunches(l, topo, 0, ByRun, &diags)
	if len(ls.List) != 2 {
		t.Fatalf("%d launches", len(ls.List))
	}
	busy := Busy(l, topo, []*Launches{ls})
	if busy[0].Union != 300 || busy[0].Sum != 400 || busy[0].Span != 300 {
		t.Errorf("busy %+v: the union of 100..300 and 200..400 is 300, the sum 400", busy[0])
	}
}

// One unmatched marker never discards the report: every rule and analysis
// works on what is left, and says what the vendor's script would have died of.
func TestDamagedLaunches(t *testing.T) {
	rows := []string{
		"0/BRISC/1/BRISC-FW/e/50/9",                                                                      // orphan end
		"0/BRISC/1/BRISC-FW/s/100/1", "0/BRISC/1/BRISC-KERNEL/s/110/1", "0/BRISC/1/BRISC-KERNEL/e/190/1", // no firmware end
		"0/BRISC/1/BRISC-FW/s/300/2", "0/BRISC/1/BRISC-KERNEL/s/310/2", "0/BRISC/1/BRISC-KERNEL/e/380/2", "0/BRISC/1/BRISC-FW/e/390/2",
	}
	l := logOf(t, rows...)
	topo := newTopology(l)
	s := setupCurrent()
	for _, rule := range []Rule{ByRun, Merged, HostID} {
		var diags zonelog.Diagnostics
		ls := findLaunches(l, topo, 0, rule, &diags)
		got := values(analyze(l, topo, ls, &s, false), "device_kernel_duration")
		if !strings.HasSuffix(got, "70") {
			t.Errorf("rule %d: kernel durations %q", rule, got)
		}
		if _, ok := diags.Find(diagOrphanFWEnd); !ok {
			t.Errorf("rule %d: orphan end not reported", rule)
		}
		if _, ok := diags.Find(diagVendorFails); ok != (rule != ByRun) {
			t.Errorf("rule %d: vendor's failure reported: %v", rule, ok)
		}
	}
}

// op2op, per core and across processors, worked out by hand.
func TestCurrentSetup(t *testing.T) {
	l := logOf(t,
		"3/BRISC/1/BRISC-FW/s/100/1027", "3/BRISC/1/BRISC-KERNEL/s/120/1027", "3/BRISC/1/BRISC-KERNEL/e/200/1027", "3/BRISC/1/BRISC-FW/e/230/1027",
		"3/TRISC_0/1/TRISC-KERNEL/s/115/1027", "3/TRISC_0/1/TRISC-KERNEL/e/210/1027",
		"3/BRISC/2/BRISC-FW/s/102/1027", "3/BRISC/2/BRISC-KERNEL/s/130/1027", "3/BRISC/2/BRISC-KERNEL/e/180/1027", "3/BRISC/2/BRISC-FW/e/190/1027",
		"3/BRISC/1/BRISC-FW/s/400/2051", "3/BRISC/1/BRISC-KERNEL/s/420/2051", "3/BRISC/1/BRISC-KERNEL/e/450/2051", "3/BRISC/1/BRISC-FW/e/460/2051")
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	s := setupCurrent()
	ls := findLaunches(l, topo, 0, HostID, &diags)
	res := analyze(l, topo, ls, &s, true)
	for name, want := range map[string]string{
		"op2op":                             "210",      // core 1: last kernel end 210 to kernel start 420; core 2 has one launch
		"device_kernel_first_to_last_start": "15 ",      // 115 to 130; one start alone has no span
		"device_kernel_duration_per_core":   "95 50 30", // 115..210, 130..180, 420..450
		"device_fw_duration":                "130 60",   // 100..230, 400..460
		"device_kernel_duration":            "95 30",    // 115..210, 420..450
		"device_kernel_duration_dm_start":   "90 30",    // 120..210
		"device_brisc_kernel_duration":      "80 30",
		"device_trisc0_kernel_duration":     "95",
		"device_ncrisc_kernel_duration":     "",
		"device_compute_cb_wait_front":      "",
	} {
		if got := values(res, name); got != strings.TrimSpace(want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, r := range res {
		if r.Analysis.Name == "device_kernel_duration" {
			if r.Stats.Count != 2 || r.Stats.Average != 62.5 || r.Stats.Median != 62.5 || r.Stats.Range != 65 {
				t.Errorf("stats %+v", r.Stats)
			}
		}
	}
}
