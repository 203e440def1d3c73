package summary

import (
	"slices"

	"perfsim/components"
)

// Moved is an event whose placed start differs from the one its input had.
type Moved struct {
	Name    string `json:"name"` // name of the event
	Lane    string `json:"lane"`
	InputNS uint64 `json:"input_start_ns"` // start in the input
	HereNS  uint64 `json:"start_ns"`
}

// Replay compares the placement with the starts the input had.
type Replay struct {
	Events int     `json:"events"`
	Same   int     `json:"same_start"` // events that start where the input has them
	Moved  []Moved `json:"moved"`      // in program order
}

// CompareStarts lists every event of a placed world whose start in run A
// differs from the start the input had, which is measured from its earliest
// event.
func CompareStarts(w *components.World) Replay {
	m := w.Module
	in := m.Instr.MeasuredStart.Slice()
	r := Replay{Events: len(in), Moved: []Moved{}}
	if len(in) == 0 {
		return r
	}
	first := slices.Min(in)
	for i, s := range in {
		start, _ := w.Events.Span(m, components.InstrID(i), components.RunA)
		if start == s-first {
			r.Same++
			continue
		}
		r.Moved = append(r.Moved, Moved{m.InstrName(components.InstrID(i)), m.LaneName(m.Instr.Lane.At(i)), s - first, start})
	}
	return r
}
