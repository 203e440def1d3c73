package kineto

import (
	"errors"
	"math"

	"perfsim/components"
	"perfsim/io/internal/timeline"
)

// Thread is a lane of a trace that another format holds.
type Thread struct{ Process, ProcessName, ID, Name string }

// SliceKind is the type of a slice.
type SliceKind uint8

// The kinds of slices.
const (
	OtherSlice  SliceKind = iota // host work, or an operator on a lane of its own
	DeviceSlice                  // work of a device's stream
	CallSlice                    // a call that launches work or waits for it
)

// Slice is a span of time on a thread.
type Slice struct {
	Thread      int   // index into the threads
	Start, Dur  int64 // ns
	Name        string
	Op          string // the operator it belongs to, "" for none
	Scope       string // its path in the program, "" for none
	Correlation uint64 // joins a call and the work that it launched, 0 for none
	Kind        SliceKind
}

// FromSlices makes the module that the Chrome trace of the same slices gives.
func FromSlices(name, format string, threads []Thread, list []Slice) (*components.Module, error) {
	t := newTrace(timeline.New(name, format))
	t.decimal = true
	for _, th := range threads {
		t.threads = append(t.threads, thread{pid: th.Process, tid: th.ID, name: th.Name})
		t.process[th.Process] = th.ProcessName
	}
	sym := t.b.M.Symbols
	for i := range list {
		s := &list[i]
		switch {
		case s.Thread < 0 || s.Thread >= len(threads):
			return nil, errors.New("a slice is on a thread that does not exist")
		case s.Dur < 0:
			t.negative++
			continue
		case s.Start > math.MaxInt64/4 || s.Dur > math.MaxInt64/4 || s.Start < -math.MaxInt64/4:
			t.badTimes++
			continue
		}
		e := event{start: s.Start, end: s.Start + s.Dur, corr: s.Correlation, name: sym.InternString(s.Name), thread: uint32(s.Thread), stream: -1, waitStream: -1}
		if s.Op != "" {
			e.op = sym.InternString(s.Op)
		}
		if s.Scope != "" {
			e.scope = sym.InternString(s.Scope)
		}
		switch s.Kind {
		case DeviceSlice:
			t.devices++
			e.cat, e.stream = catDevice, int32(s.Thread)
			e.collective = isCollective([]byte(s.Name))
		case CallSlice:
			e.cat = catCall
		}
		t.events = append(t.events, e)
	}
	return t.module()
}
