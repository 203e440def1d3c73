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
		t.Errorf("nothing occurs, told %v", got)
	}
}
