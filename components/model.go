package components

import (
	"fmt"
	"strings"
)

// Model is the set of rules by which a module is predicted.
type Model uint8

// The models. NoModel is the zero value: in a request it leaves the choice to
// the input, and a world that has it is placed by lanes and dependencies
// alone.
const (
	NoModel    Model = iota
	Reference        // the documented simulator
	Calibrated       // fitted to measured profiles
	Replay           // the durations the input brought
	Cores            // operators on a grid of cores; no flag chooses it
)

var modelNames = [...]string{NoModel: "none", Reference: "reference", Calibrated: "calibrated", Replay: "replay", Cores: "cores"}

// String returns the name that flags, reports and traces use.
func (m Model) String() string { return modelNames[min(int(m), len(modelNames)-1)] }

// ParseModel returns the model that a person may choose by this name; "" is
// NoModel.
func ParseModel(name string) (Model, error) {
	for m := Reference; m <= Replay; m++ {
		if name == m.String() {
			return m, nil
		}
	}
	if name == "" {
		return NoModel, nil
	}
	return NoModel, fmt.Errorf("%q is not %s", name, strings.Join(modelNames[Reference:Replay], ", ")+" or "+Replay.String())
}

// Loops is how often a loop body counts in a latency.
type Loops uint8

// The loop modes. LoopsUnset is the zero value: in a request it leaves the
// choice to the input, and elsewhere it counts as Once.
const (
	LoopsUnset Loops = iota
	Once             // a body counts once, as in the documented simulator
	Trips            // a body counts as often as its trip count says
)

// String returns the name that flags, reports and attributes use.
func (l Loops) String() string {
	if l == Trips {
		return "trips"
	}
	return "once"
}

// ParseLoops returns the loop mode of this name; "" is LoopsUnset.
func ParseLoops(name string) (Loops, error) {
	switch name {
	case "":
		return LoopsUnset, nil
	case "once":
		return Once, nil
	case "trips":
		return Trips, nil
	}
	return LoopsUnset, fmt.Errorf("%q is not once or trips", name)
}
