package zonelog

import "testing"

// The two ids printed in the article on the profiler and the one in the
// vendor's documentation.
func TestZoneHash16(t *testing.T) {
	for text, want := range map[string]uint16{
		"l1_to_l1,./kernel.cpp,43,KERNEL_PROFILER":        6001,
		"read_dram_to_l1,./kernel.cpp,23,KERNEL_PROFILER": 65230,
		"TEST-FULL,./kernel.cpp,10,KERNEL_PROFILER":       36986,
	} {
		if got := ZoneHash16(text); got != want {
			t.Errorf("ZoneHash16(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestLineOfRow(t *testing.T) {
	l := &DeviceLog{Skips: []LineSkip{{0, 3}, {10, 5}}}
	for row, want := range map[uint32]uint64{0: 3, 9: 12, 10: 15, 11: 16} {
		if got := l.LineOfRow(row); got != want {
			t.Errorf("LineOfRow(%d) = %d, want %d", row, got, want)
		}
	}
}

func TestDiagnosticsKeepFirstPlace(t *testing.T) {
	var d, e Diagnostics
	d.Add("b", 2, 9, "nine")
	d.Add("a", 1, 0, "")
	e.Add("b", 3, 4, "four")
	d.Merge(&e, 2)
	all := d.All()
	if len(all) != 2 || all[0].Code != "a" || all[1].Count != 5 || all[1].Line != 6 || all[1].Detail != "four" {
		t.Fatalf("got %+v", all)
	}
}
