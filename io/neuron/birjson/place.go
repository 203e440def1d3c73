package birjson

import (
	"cmp"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// allocation adds the locations of one allocation to the module and to the
// function's view.
func (g *merger) allocation(o *parsed, a *alloc) error {
	f := g.fns[g.fn]
	v := f.view
	if v == nil {
		v = &locationView{first: uint32(g.m.Locations.Len())}
		v.names.nameOf = func(i uint32) []byte { return v.own[i] }
		v.sets.nameOf = func(i uint32) []byte { return v.tensor[i] }
		f.view = v
	}
	t := &g.m.Locations
	set := o.bytes(a.name)
	tensor, err := g.in.intern(set)
	if err != nil {
		return err
	}
	set = g.m.Symbols.Bytes(tensor)
	first := true
	for i := a.locs.lo; i < a.locs.hi; i++ {
		l := &o.locs[i]
		name, err := g.in.intern(o.bytes(l.name))
		if err != nil {
			return err
		}
		id := uint32(len(v.own))
		own := slices.Clone(o.bytes(l.name))
		v.own = append(v.own, own)
		v.tensor = append(v.tensor, slices.Clone(set))
		v.mem = append(v.mem, l.mem)
		v.addr = append(v.addr, l.addr)
		v.bytes = append(v.bytes, l.bytes)
		v.base = append(v.base, l.base)
		v.bank = append(v.bank, l.bank)
		if hash := hashName(own); len(own) > 0 {
			if _, ok := v.names.find(own, hash); ok {
				g.note("duplicate-location", string(own), 1)
			} else {
				v.names.add(id, hash)
			}
		}
		if first && len(set) > 0 {
			first = false
			hash := hashName(set)
			if _, ok := v.sets.find(set, hash); !ok {
				v.sets.add(id, hash)
			}
		}
		t.Name.Append(name)
		t.Tensor.Append(tensor)
		t.Memory.Append(l.mem)
		t.Addr.Append(l.addr)
		t.Bytes.Append(l.bytes)
		t.Parts.Append(l.parts)
		t.Base.Append(l.base)
		t.Bank.Append(l.bank)
		t.Alias.Append(0)
		t.Kind.Append(a.kind)
	}
	for _, al := range o.alias {
		if al.loc >= a.locs.lo && al.loc < a.locs.hi {
			row := uint32(t.Len()) - (a.locs.hi - al.loc)
			f.alias = append(f.alias, aliasRef{row, slices.Clone(o.bytes(al.name)), al.at})
		}
	}
	return nil
}

// aliasSets joins locations that overlap.
type aliasSets struct{ parent map[uint32]uint32 }

func (s *aliasSets) root(x uint32) uint32 {
	for {
		p, ok := s.parent[x]
		if !ok || p == x {
			return x
		}
		if q, ok := s.parent[p]; ok {
			s.parent[x] = q
		}
		x = p
	}
}

func (s *aliasSets) join(a, b uint32) {
	if s.parent == nil {
		s.parent = map[uint32]uint32{}
	}
	a, b = s.root(a), s.root(b)
	// The smaller row is the root, so that sets are numbered the same
	// whichever way round the input names the pair.
	s.parent[max(a, b)] = min(a, b)
	s.parent[min(a, b)] = min(a, b)
}

// joinAliases resolves the aliases of all functions and numbers the sets in
// the order of their first location.
func (g *merger) joinAliases() {
	for _, f := range g.fns {
		for _, a := range f.alias {
			id, ok := f.view.find(a.name, nil)
			if !ok {
				g.note("unknown-alias", string(a.name), 1)
				continue
			}
			g.aliases.join(a.loc, f.view.first+uint32(id))
		}
	}
	rows := make([]uint32, 0, len(g.aliases.parent))
	for r := range g.aliases.parent {
		rows = append(rows, r)
	}
	slices.Sort(rows)
	number := map[uint32]uint32{}
	for _, r := range rows {
		root := g.aliases.root(r)
		if number[root] == 0 {
			number[root] = uint32(len(number) + 1)
		}
		g.m.Locations.Alias.Set(int(r), number[root])
	}
}

// findLate gives operands their locations that were not known when they were
// read: allocations behind the blocks, or of another function.
func (g *merger) findLate(names map[string]int) {
	m := g.m
	t := &m.Operands
	for i := 0; i < len(g.late); {
		row := g.late[i].row
		found := false
		given := g.late[i].given
		for ; i < len(g.late) && g.late[i].row == row; i++ {
			l := &g.late[i]
			fn := l.fn
			if len(l.owner) > 0 {
				f, ok := names[string(l.owner)]
				if !ok {
					g.note("unknown-location", string(l.name), 1)
					continue
				}
				fn = f
			}
			v := g.fns[fn].view
			id, ok := v.find(l.name, l.set)
			if !ok {
				name := l.name
				if len(name) == 0 {
					name = l.set
				}
				g.note("unknown-location", string(name), 1)
				continue
			}
			op := t.At(int(l.op))
			if err := locate(&op, v.mem[id], v.start(id), v.bytes[id], v.base[id], l.offset); err != nil {
				g.note("unknown-location", string(l.name), 1)
				continue
			}
			t.Where.Set(int(l.op), v.first+uint32(id)+1)
			t.Memory.Set(int(l.op), op.Memory)
			t.Address.Set(int(l.op), op.Address)
			t.Base.Set(int(l.op), op.Base)
			found = true
		}
		if found {
			g.rederive(components.InstrID(row), given)
		}
	}
	g.late = nil
}

// rederive works out the geometry of a row again, but for what was given.
func (g *merger) rederive(i components.InstrID, given givenSet) {
	t := &g.m.Instr
	r := int(i)
	d := derive(t.Opcode.At(r), operandsOf(g.m, i, nil))
	if given&givenElems == 0 {
		t.Elems.Set(r, d.elems)
	}
	if given&givenParts == 0 {
		t.Parts.Set(r, d.parts)
	}
	if given&givenDType == 0 {
		t.DType.Set(r, d.dtype)
	}
	if given&givenBanks == 0 {
		t.Banks.Set(r, d.banks)
	}
	if given&givenFlags == 0 {
		t.Flags.Set(r, t.Flags.At(r)&^operandFlags|d.flags)
	}
	if given&givenOutElems == 0 {
		lazy(&t.OutElems, uint32(i), d.outElems)
	}
	if given&givenDMABytes == 0 {
		lazy(&t.DMABytes, uint32(i), d.dmaBytes)
	}
	if given&givenDMARow == 0 {
		lazy(&t.DMARow, uint32(i), d.dmaRow)
	}
}

// operandsOf appends the operands of an instruction to dst.
func operandsOf(m *components.Module, i components.InstrID, dst []components.AccessPattern) []components.AccessPattern {
	lo, hi := m.Operands.Range(i)
	for r := lo; r < hi; r++ {
		dst = append(dst, m.Operands.At(r))
	}
	return dst
}

// dma adds a DMA block, under its name.
func (g *merger) dma(o *parsed, d *dmaBlock) error {
	name, err := g.in.intern(o.bytes(d.name))
	g.dmas = append(g.dmas, dmaEntry{name, *d})
	return err
}

// trigger gives every DMATrigger the transfer that its DMA blocks make.
func (g *merger) trigger(queues []queueInfo) error {
	t := &g.m.Instr
	byName := make(map[ecs.Symbol]int, len(g.dmas))
	for i, d := range g.dmas {
		if _, ok := byName[d.name]; !ok {
			byName[d.name] = i
		}
	}
	for _, tr := range g.triggers {
		var sum dmaBlock
		sum.dtype = components.NoDType
		found := false
		queue := -1
		for _, r := range tr.refs {
			i, ok := byName[r]
			if !ok {
				g.note("unknown-dma-block", g.m.Symbols.String(r), 1)
				continue
			}
			d := &g.dmas[i]
			if !found {
				sum = d.dmaBlock
				queue = i
			} else {
				sum.bytes += min(d.bytes, 1<<62-sum.bytes)
				sum.row = min(sum.row, d.row)
				sum.parts = max(sum.parts, d.parts)
			}
			found = true
		}
		if !found {
			continue
		}
		if sum.parts > 0 {
			sum.elems = uint32(min(sum.bytes/uint64(sum.parts)/uint64(max(sum.dtype.Size(), 1)), 1<<32-1))
		}
		i := int(tr.row)
		t.Elems.Set(i, sum.elems)
		t.Parts.Set(i, sum.parts)
		t.DType.Set(i, sum.dtype)
		t.Flags.Set(i, t.Flags.At(i)|sum.flags)
		lazy(&t.DMABytes, tr.row, sum.bytes)
		lazy(&t.DMARow, tr.row, sum.row)
		if t.Queue.Get(i) == 0 { // the trigger itself names none
			q, _ := slices.BinarySearchFunc(queues, queue+1, func(q queueInfo, n int) int { return cmp.Compare(q.blocks, n) })
			if q < len(queues) && queues[q].name != "" {
				id, err := g.queue([]byte(queues[q].name), t.Engine.At(i))
				if err != nil {
					return err
				}
				lazy(&t.Queue, tr.row, id)
			}
		}
	}
	return nil
}
