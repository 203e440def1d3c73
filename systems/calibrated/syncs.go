package calibrated

import (
	"slices"
	"sort"

	"perfsim/components"
	"perfsim/ecs"
)

// noWait marks a wait that is not one.
const noWait = -1 << 62

// increment is one raise of a semaphore, in program order of who raises it.
type increment struct {
	row   uint32
	after int64 // value behind it
}

// raiser has the operations of the program on one semaphore.
type raiser struct {
	incs   []increment
	group  uint16
	mixed  bool // raised from several sequencers, lowered or set: no order of values
	total  int64
	setTos []int64
}

// readSyncs resolves the semaphores of the module.
func (p *program) readSyncs() {
	t := &p.m.Syncs
	off := t.Offsets.Slice()
	if t.Op.Len() == 0 {
		return
	}
	p.syncs = true
	type key struct {
		core  uint16
		space uint8
		id    uint32
	}
	ids := map[key]uint32{}
	p.sem = make([]uint32, t.Op.Len())
	op, space, id, value := t.Op.Slice(), t.Space.Slice(), t.ID.Slice(), t.Value.Slice()
	var raisers []raiser
	for i := range p.m.Instr.Len() {
		core := p.groups[p.group[i]].core
		for s := off[i]; s < off[i+1]; s++ {
			k := key{core, space[s], id[s]}
			at, ok := ids[k]
			if !ok {
				at = uint32(len(ids))
				ids[k] = at
				raisers = append(raisers, raiser{})
			}
			p.sem[s] = at
			r := &raisers[at]
			switch op[s] {
			case components.SetInc:
				r.mixed = r.mixed || len(r.incs) > 0 && r.group != p.group[i]
				r.group = p.group[i]
				r.total += value[s]
				r.incs = append(r.incs, increment{uint32(i), r.total})
			case components.SetDec, components.SetTo:
				r.mixed = true
				if op[s] == components.SetTo {
					r.setTos = append(r.setTos, value[s])
				}
			}
		}
	}
	p.sems = len(ids)
	p.wait[0] = slices.Clone(value)
	for s, w := range op {
		if !w.IsWait() {
			continue
		}
		r := &raisers[p.sem[s]]
		reachable := len(r.incs) > 0 && r.total >= value[s] || slices.Contains(r.setTos, value[s]) || value[s] <= 0
		if !reachable {
			p.wait[0][s] = noWait
		}
	}
	p.wait[1] = slices.Clone(p.wait[0])
	for i := range p.m.Instr.Len() {
		for s := off[i]; s < off[i+1]; s++ {
			if op[s] == components.WaitGE && p.wait[0][s] != noWait {
				p.wait[1][s] = p.withoutAnti(uint32(i), &raisers[p.sem[s]], p.wait[0][s])
			}
		}
	}
}

// withoutAnti is the value instruction i has to wait for when
// anti-dependencies are left out: up to the last raise that another kind of
// dependency on the same sequencer needs.
func (p *program) withoutAnti(i uint32, r *raiser, value int64) int64 {
	if r.mixed || len(r.incs) == 0 {
		return value
	}
	needed, any := int64(noWait), false
	for _, w := range p.m.Edges.Preds.Row(int(i)) {
		q := w & ecs.TargetMask
		if p.group[q] != r.group {
			continue
		}
		any = true
		if uint8(w>>ecs.ClassShift) == components.ClassAnti {
			continue
		}
		k := sort.Search(len(r.incs), func(k int) bool { return r.incs[k].row >= q })
		if k < len(r.incs) {
			needed = max(needed, r.incs[k].after)
		}
	}
	if !any {
		return value // waits for more than the edges say
	}
	return min(value, needed)
}
