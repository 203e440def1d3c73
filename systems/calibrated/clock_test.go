package calibrated

import (
	"slices"
	"testing"
)

// Windows of 10 ns; 5 ns of use give full rate in the next. Use in the windows
// from 0 and 10, none from 20 on: full rate from 10 to 30, slow from 30 on, and
// again after use in the window from 50.
func TestGovernorKeepsFullWindows(t *testing.T) {
	g := governor{c: &GovernorConstants{Window: 10, Threshold: .5}, keep: true}
	for _, x := range []struct {
		at   float64
		full bool
		use  float64
	}{{1, false, 6}, {12, true, 5}, {25, true, 0}, {38, false, 4}, {52, false, 8}, {61, true, 1}, {75, false, 0}} {
		if full, _ := g.at(x.at); full != x.full {
			t.Errorf("at %v ns the clock is full: %v", x.at, full)
		}
		g.streamed(x.use, 1)
	}
	if want := []Window{{10, 30}, {60, 70}}; !slices.Equal(g.kept, want) {
		t.Errorf("full from %v, want %v", g.kept, want)
	}
}
