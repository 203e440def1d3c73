package systems

import (
	"errors"
	"math"

	"perfsim/components"
	"perfsim/systems/nki"
)

// errBeyond is the end of a prediction that no number of 64 bits holds. Sums
// and products saturate, so the largest number is not a time.
var errBeyond = errors.New("the latency is beyond 2^64 ns (584 years): trip counts or calls multiply to it")

// beyond returns errBeyond where a run of the placed world saturated.
func beyond(w *World) error {
	if w.Latency(components.RunA) == math.MaxUint64 || w.Latency(components.RunB) == math.MaxUint64 {
		return errBeyond
	}
	return nil
}

// remarks notes how the figures were made, where a reader has to know it.
func remarks(w *World) {
	m := w.Module
	if w.NoRunB != "" {
		m.Note(components.NoteNoRunB, "no run without anti-dependencies: "+w.NoRunB, 1)
	}
	if m.Format == nki.Format {
		nki.Caution(m, w.Summary.Busy(m.Lanes.Len()), w.Latency(components.RunA))
	}
}
