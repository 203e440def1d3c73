package kineto

import (
	"errors"

	"perfsim/components"
)

// absolute is the least time, in ns, by which a trace whose other times lie
// beyond it shows that its clock does not start at 0.
const absolute = int64(3600e9)

var errNoSlices = errors.New("the trace has no slices (events with ph X, or B and E)")

// module chooses how the events become instructions.
func (t *trace) module() (*components.Module, error) {
	t.dropLostTimes()
	t.summaries()
	if len(t.events) == 0 && len(t.begins) == 0 {
		return nil, errNoSlices
	}
	var err error
	if t.devices > 0 {
		err = t.device()
	} else {
		err = t.plain()
	}
	if err != nil {
		return nil, err
	}
	t.notes()
	return t.b.Measured()
}

// dropLostTimes drops slices whose start and duration are both 0 in a trace
// whose clock does not start there: the exporter lost their times.
func (t *trace) dropLostTimes() {
	if len(t.zero) == 0 {
		return
	}
	lost := true
	for i := range t.events {
		if e := &t.events[i]; (e.start != 0 || e.end != 0) && e.start < absolute {
			lost = false
			break
		}
	}
	if !lost || len(t.zero) == len(t.events) {
		return
	}
	t.zeroTimes = len(t.zero)
	kept := t.events[:0]
	t.devices = 0
	for i := range t.events {
		if e := t.events[i]; e.start != 0 || e.end != 0 {
			kept = append(kept, e)
			if e.cat == catDevice {
				t.devices++
			}
		}
	}
	t.events = kept
}

func (t *trace) note(code, text string, n int) {
	if n > 0 {
		t.b.M.Note(code, text, n)
	}
}

// notes names what was in the input and is not in the module.
func (t *trace) notes() {
	t.note("string-time", "times written as strings", t.stringTimes)
	t.note("bad-time", "events whose time is missing, no number, or out of range: left out", t.badTimes)
	t.note("no-duration", "complete events without a duration: left out", t.noDur)
	t.note("negative-duration", "complete events with a negative duration, as unfinished ones have: left out", t.negative)
	t.note("lost-time", "slices with time and duration 0 in a trace whose clock starts elsewhere: left out", t.zeroTimes)
	t.note("no-object", "elements of the events that are no objects: left out", t.noObject)
	t.note("no-phase", "elements without a ph: left out", t.noPhase)
	t.note("skipped-events", "counters, instants, asynchronous and object events: not used", t.skipped)
}
