package components

import "perfsim/ecs"

// TimelineEvent is one event as exporters write it.
type TimelineEvent struct {
	Process int
	Lane    uint16
	Instr   InstrID
	Start   uint64 // ns on the common axis
	Dur     uint64 // as drawn
	Full    uint64 // to its end
	Idle    uint64 // how long the lane had nothing to do before
}

// Merge calls f with all events in the order of starts; of equal starts the
// earlier process, instruction and lane come first. It stops at the first
// error of f.
func (t *Timeline) Merge(f func(*TimelineEvent) error) error {
	h := ecs.Heap[*merging]{Less: earlier}
	for p := range t.Processes {
		for l, rows := range t.Lanes(p) {
			if len(rows) > 0 {
				m := &merging{t: t, process: p, lane: uint16(l), rows: rows}
				m.load()
				h.Push(m)
			}
		}
	}
	for h.Len() > 0 {
		m := h.Top()
		e := m.event
		if err := f(&e); err != nil {
			return err
		}
		if m.at++; m.at == len(m.rows) {
			h.Pop()
			continue
		}
		m.load()
		h.Replace(m)
	}
	return nil
}

// merging is a lane on its way through a merge.
type merging struct {
	t       *Timeline
	process int
	lane    uint16
	rows    []InstrID
	at      int
	end     uint64 // of everything so far
	event   TimelineEvent
}

func (m *merging) load() {
	start, dur, full := m.t.Drawn(m.process, m.rows, m.at)
	m.event = TimelineEvent{Process: m.process, Lane: m.lane, Instr: m.rows[m.at], Start: start, Dur: dur, Full: full, Idle: start - min(start, m.end)}
	m.end = max(m.end, start+full)
}

// earlier orders lanes by their next events.
func earlier(a, b *merging) bool {
	x, y := &a.event, &b.event
	switch {
	case x.Start != y.Start:
		return x.Start < y.Start
	case x.Process != y.Process:
		return x.Process < y.Process
	case x.Instr != y.Instr:
		return x.Instr < y.Instr
	}
	return x.Lane < y.Lane
}
