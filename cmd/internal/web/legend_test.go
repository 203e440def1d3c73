package web

import (
	"slices"
	"testing"
)

// The legend has the causes that events have, however many there could be.
func TestLegendHasWhatOccurs(t *testing.T) {
	d := &Dataset{Causes: []string{"start", "lane", "flow", "output", "anti"}, Sections: []Section{{Rows: []Row{
		{Cause: []uint8{0, 1, 3}}, {}, {Cause: []uint8{5}}}}}}
	if got := occurring(d); !slices.Equal(got, []string{"start", "flow", "anti"}) {
		t.Errorf("occurring are %v", got)
	}
	if got := occurring(&Dataset{Causes: []string{"flow"}}); got == nil || len(got) != 0 {
		t.Errorf("nothing occurs, got %v", got)
	}
}

// TestWork adds up a page by hand: 10 + 20 ns of MATMUL, 40 ns of COPY, and 90
// ns of WAIT, which is drawn pale and so comes last. Kinds that do not occur
// and the second section do not count.
func TestWork(t *testing.T) {
	d := &Dataset{Kinds: []string{"NONE", "WAIT", "MATMUL", "COPY"}, Quiet: []bool{false, true, false, false}, Sections: []Section{
		{Rows: []Row{{Start: []uint64{0, 10, 100}, End: []uint64{10, 30, 190}, Kind: []uint16{2, 2, 1}}, {Start: []uint64{5}, End: []uint64{45}, Kind: []uint16{3}}}},
		{Rows: []Row{{Start: []uint64{0}, End: []uint64{1000}, Kind: []uint16{0}}}}}}
	want := []Work{{3, 1, 40}, {2, 2, 30}, {1, 1, 90}}
	if got := work(d, count(d)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := work(&Dataset{}, nil); len(got) != 0 {
		t.Errorf("%v of nothing", got)
	}
}
