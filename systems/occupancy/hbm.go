package occupancy

import (
	"cmp"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// hbmOf makes the space of the device memory. A tensor is held from its first
// write to its last access; an input from the start and an output to the end of
// its function. While a function runs, what its caller holds at the call is held
// too; its parameters are the caller's.
func hbmOf(t *components.Timeline) Space {
	m := t.World.Module
	s := Space{Name: "HBM", Unit: "bytes"}
	fns, known := functions(t)
	if !known {
		s.Absent = "the input has no access patterns or sizes of tensors in device memory"
		return s
	}
	var series []Level
	at, best := -1, uint64(0)
	for f := range fns {
		x := &fns[f]
		levels, peak, when := curve(union(m, x.lives))
		x.levels = levels
		for _, c := range x.calls {
			if callee := &fns[c.callee]; c.callee > f { // callers come first; no function calls itself
				if base := ecs.AddSat(x.base, levelAt(levels, c.at)); base >= callee.base {
					callee.base, callee.caller, callee.calledAt = base, f, c.at
				}
			}
		}
		if total := ecs.AddSat(x.base, peak); total > best {
			best, at, s.At = total, f, when
		}
		if len(levels) == 0 || levels[0].NS > x.from {
			series = append(series, Level{x.from, x.base})
		}
		for _, l := range levels {
			series = append(series, Level{l.NS, ecs.AddSat(x.base, l.Bytes)})
		}
	}
	s.Peak = best
	slices.SortStableFunc(series, func(a, b Level) int { return cmp.Compare(a.NS, b.NS) })
	if n := len(series); n > 0 && series[n-1].Bytes > 0 {
		series = append(series, Level{max(t.End(), series[n-1].NS), 0})
	}
	s.Series = thin(series, t.End())
	for when := s.At; at >= 0; when, at = fns[at].calledAt, fns[at].caller {
		for _, l := range fns[at].lives {
			if l.from <= when && when < l.to {
				s.Tensors = addTensor(s.Tensors, m, l)
			}
		}
	}
	sortTensors(s.Tensors)
	return s
}

// function is the memory of one function.
type function struct {
	from, to uint64 // its blocks on the axis
	lives    []life
	levels   []Level
	calls    []call
	base     uint64 // what its callers hold meanwhile
	caller   int    // -1 for none
	calledAt uint64
}

type call struct {
	callee int
	at     uint64
}

// functions collects the lives of the tensors in device memory by function.
func functions(t *components.Timeline) (fns []function, known bool) {
	m := t.World.Module
	byName := map[string]int{}
	for f := range m.Functions.Len() {
		byName[m.FunctionName(f)] = f
	}
	fns = make([]function, m.Functions.Len())
	called := make([]bool, len(fns))
	held := make([]map[uint32]*life, len(fns))
	for f := range fns {
		fns[f].from, fns[f].caller = ^uint64(0), -1
		held[f] = map[uint32]*life{}
	}
	for n, b := range t.Blocks {
		f := int(m.Blocks.Function.At(b))
		x := &fns[f]
		x.from = min(x.from, t.Offset[n])
		x.to = max(x.to, t.Offset[n]+max(t.World.Blocks[b].Extent(components.RunA), t.World.Blocks[b].Extent(components.RunB)))
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			id := components.InstrID(i)
			if !t.Has(0, id) {
				continue
			}
			start, end := t.Span(0, id)
			if m.Instr.Opcode.At(int(i)) == components.OpcodeCall {
				if callee, ok := byName[m.Symbols.String(m.Instr.Func.Get(int(i)))]; ok && callee != f {
					x.calls = append(x.calls, call{callee, start})
					called[callee] = true
				}
			}
			lo, hi := m.Operands.Range(id)
			for r := lo; r < hi; r++ {
				where := m.Operands.Where.At(r)
				if where == 0 || !m.Operands.Memory.At(r).InDRAM() || m.Locations.Bytes.Get(int(where)-1) == 0 {
					continue
				}
				write := m.Operands.Role.At(r) == components.RoleOut
				l := held[f][where]
				if l == nil {
					l = &life{from: start, to: end, bytes: m.Locations.Bytes.At(int(where) - 1), by: components.NoInstr, where: where}
					if !write {
						l.from = x.from // it was there
					}
					held[f][where] = l
				}
				if write && l.by == components.NoInstr {
					l.by = id
				}
				l.from, l.to = min(l.from, start), max(l.to, end)
			}
		}
	}
	unread(m, fns, called, held)
	for f := range fns {
		x := &fns[f]
		for where, l := range held[f] {
			known = true
			switch kindOf(m, where) {
			case "input":
				if called[f] {
					continue // its caller's
				}
				l.from, l.to = x.from, max(x.to, l.to)
			case "output":
				l.to = max(x.to, l.to)
			}
			l.to = max(l.to, l.from+1) // calls take no time of their own
			x.lives = append(x.lives, *l)
		}
		slices.SortFunc(x.lives, func(a, b life) int { return cmp.Compare(a.where, b.where) })
		x.lives = apart(m, x.lives)
	}
	return fns, known
}

// unread adds the inputs that no instruction touches to the function that no
// other calls: there they come before what it touches last.
func unread(m *components.Module, fns []function, called []bool, held []map[uint32]*life) {
	entry := slices.Index(called, false)
	if entry < 0 {
		return
	}
	last := uint32(0)
	for where := range held[entry] {
		last = max(last, where)
	}
	if len(fns) == 1 {
		last = uint32(m.Locations.Len())
	}
	touched := make([]bool, last+1)
	for f := range held {
		for where := range held[f] {
			if where <= last {
				touched[where] = true
			}
		}
	}
	for where := uint32(1); where <= last; where++ {
		k := int(where) - 1
		if !touched[where] && m.Locations.Memory.At(k).InDRAM() && m.Locations.Bytes.Get(k) > 0 && kindOf(m, where) == "input" {
			held[entry][where] = &life{from: fns[entry].from, to: fns[entry].to, bytes: m.Locations.Bytes.At(k), by: components.NoInstr, where: where}
		}
	}
}

// apart joins the lives of locations that share memory: those of one alias set
// are held as one, as large as the largest.
func apart(m *components.Module, list []life) []life {
	set := map[uint32]int{}
	out := list[:0]
	for _, l := range list {
		a := m.Locations.Alias.Get(int(l.where) - 1)
		if k, ok := set[a]; ok && a != 0 {
			out[k].from, out[k].to, out[k].bytes = min(out[k].from, l.from), max(out[k].to, l.to), max(out[k].bytes, l.bytes)
			continue
		}
		set[a] = len(out)
		out = append(out, l)
	}
	return out
}

// levelAt returns what is held at a time.
func levelAt(levels []Level, at uint64) uint64 {
	k, found := slices.BinarySearchFunc(levels, at, func(l Level, at uint64) int { return cmp.Compare(l.NS, at) })
	if !found {
		k--
	}
	if k < 0 {
		return 0
	}
	return levels[k].Bytes
}
