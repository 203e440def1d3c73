package systems

import (
	"context"
	"fmt"
	"path/filepath"

	"perfsim/systems/compare"
	"perfsim/systems/tracklayout"
)

// What a side of a comparison is.
const (
	SideAuto      = "auto" // measured where the input has measured times
	SideMeasured  = "measured"
	SidePredicted = "predicted"
)

// Side says what one side of a comparison is.
type Side struct {
	What string // SideAuto, SideMeasured or SidePredicted
	Name string // of the input: a path
	// Request predicts it; Loaded is set.
	Request
}

// Sides makes the timelines of both sides. one says that they are of one input:
// A is then its measurement, where it has one, and B its prediction. predictions
// says that two predictions are worth comparing, since machine or model differ.
func Sides(ctx context.Context, a, b *Side, one, predictions bool) (first, second *compare.Side, err error) {
	measuredA := a.What == SideMeasured || a.What == SideAuto && a.Loaded.Module.HasMeasurement()
	measuredB := b.What == SideMeasured || b.What == SideAuto && b.Loaded.Module.HasMeasurement() && !one
	if one && a.What == SideAuto && b.What == SideMeasured {
		measuredA = false
	}
	if one && !measuredA && !measuredB && !predictions {
		return nil, nil, fmt.Errorf("%s has no measured times to compare the prediction with; name a second input, or another machine or model for B (--machine-b, --model-b)", a.Name)
	}
	if a.Loaded == b.Loaded {
		// Both sides then have the same rows, those of transfers too.
		if err := a.Loaded.Prepare(ctx, a.Jobs); err != nil {
			return nil, nil, err
		}
	}
	if first, err = a.timeline(ctx, measuredA); err != nil {
		return nil, nil, err
	}
	second, err = b.timeline(ctx, measuredB)
	return first, second, err
}

// timeline makes the timeline of one side.
func (s *Side) timeline(ctx context.Context, measured bool) (*compare.Side, error) {
	name := ShortName(s.Name)
	if measured {
		if !s.Loaded.Module.HasMeasurement() {
			return nil, fmt.Errorf("%s has no measured times", name)
		}
		return s.Loaded.measuredSide(name+", "+tracklayout.MeasuredName(s.Loaded.Module), &s.Settings)
	}
	r, err := Simulate(ctx, s.Request)
	if err == nil {
		err = r.CheckTimes(name)
	}
	if err != nil {
		return nil, err
	}
	if r.World.Replayed() {
		return r.Side(name + ", " + tracklayout.ReplayedRun), nil
	}
	return r.Side(fmt.Sprintf("%s, predicted (%s, %s)", name, r.World.Machine.Name, r.World.Config.Model)), nil
}

// ShortName is a file's name without folder and endings.
func ShortName(path string) string {
	name := filepath.Base(path)
	for ext := filepath.Ext(name); ext != "" && ext != name; ext = filepath.Ext(name) {
		name = name[:len(name)-len(ext)]
	}
	return name
}

// CheckSide reports whether what names something that a side can be.
func CheckSide(what string) error {
	switch what {
	case SideAuto, SideMeasured, SidePredicted:
		return nil
	}
	return fmt.Errorf("%q is not measured, predicted or auto", what)
}
