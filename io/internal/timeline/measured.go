package timeline

import "perfsim/components"

// OpWait is the opcode of instructions that stand for waiting whose reason
// the trace does not have.
const OpWait = "Wait"

// Measured makes the module of rows whose starts were recorded. Rows of one
// lane should not overlap. Dependencies that the recorded times contradict
// (the producer ends after the consumer starts) are left out and counted in a
// note.
//
// The earliest an instruction can start is the largest end over its lane's
// previous instruction and its producers. Where its recorded start is later,
// an instruction Wait of the difference is put on a lane of waits next to its
// own lane, behind the one of those that ended last and before the
// instruction: what launches, schedulers and unrecorded work took stays in the
// replay and can be distinguished from work.
func (b *Builder) Measured() (*components.Module, error) {
	rows := b.Rows
	order := byStart(rows)
	rank := make([]uint32, len(rows))
	for n, i := range order {
		rank[i] = uint32(n)
	}
	var origin uint64
	if len(order) > 0 {
		origin = rows[order[0]].Start
	}
	off, edges := b.preds()

	e := newEmitter(b)
	m := b.M
	lanes := m.Lanes.Len()
	laneEnd, laneLast := make([]uint64, lanes), make([]int64, lanes)
	waitLane := make([]int, lanes)
	for l := range lanes {
		laneLast[l], waitLane[l] = -1, -1
	}
	ends := make([]uint64, len(rows)) // when the replay ends each row
	opWait, nameWait := m.Opcode(OpWait), m.Symbols.InternString("wait")
	var contradicted, waits, late int
	for _, i := range order {
		r := &rows[i]
		ready, binding := laneEnd[r.Lane], laneLast[r.Lane]
		kept := edges[off[i]:off[i]]
		for _, x := range edges[off[i]:off[i+1]] {
			p := b.Deps.producer[x]
			if rows[p].End > r.Start || rank[p] >= rank[i] {
				contradicted++
				continue
			}
			kept = append(kept, x)
			if ends[p] > ready || ends[p] == ready && binding < 0 {
				ready, binding = ends[p], int64(e.last[p])
			}
		}
		at := r.Start - origin
		wait := int64(-1)
		if at > ready {
			if waitLane[r.Lane] < 0 {
				l, err := b.Lane(m.LaneName(r.Lane) + " (waits)")
				if err != nil {
					return nil, err
				}
				waitLane[r.Lane] = int(l)
			}
			first, last := e.emit(&Row{Start: ready, End: at, Name: nameWait, Opcode: opWait, Lane: uint16(waitLane[r.Lane]), Ref: r.Ref}, ready, true)
			if binding >= 0 {
				e.edges.Add(first, components.InstrID(binding), components.Flow)
			}
			wait = int64(last)
			ready = at
			waits++
		}
		if ready > at {
			late++
		}
		first, last := e.emit(r, at, true)
		if wait >= 0 {
			e.edges.Add(first, components.InstrID(wait), components.Flow)
		}
		for _, x := range kept {
			e.edges.Add(first, components.InstrID(e.last[b.Deps.producer[x]]), b.Deps.kind[x])
		}
		e.last[i] = uint32(last)
		ends[i] = ready + (r.End - r.Start)
		laneEnd[r.Lane], laneLast[r.Lane] = ends[i], int64(last)
	}
	if waits > 0 {
		m.Note("unexplained-wait", "starts later than the order and the dependencies in the trace explain: the difference is a Wait instruction beside the lane", waits)
	}
	if contradicted > 0 {
		m.Note("contradicted-dependency", "dependencies that the recorded times contradict, because the producer ends after its consumer starts: left out", contradicted)
	}
	if late > 0 {
		m.Note("late-replay", "instructions that overlap others of their lane: the replay starts them later than recorded", late)
	}
	return e.finish()
}
