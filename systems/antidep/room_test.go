package antidep

import (
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/systems/index"
)

// scatter makes a module whose instructions read and write random pieces of
// SBUF and PSUM, some of them again and again, with one loop.
func scatter(rng *rand.Rand) *components.Module {
	m := components.NewModule("scatter", "test")
	m.AddCoreLanes(0)
	n := 4 + rng.IntN(30)
	m.Instr.Grow(n)
	loop := 1 + rng.IntN(n-3)
	end := loop + 2 + rng.IntN(n-loop-1)
	var edges components.EdgeSet
	touch := map[int][]components.AccessPattern{}
	for i := range n {
		m.Instr.Opcode.Set(i, components.OpcodeTensorCopy)
		m.Instr.Engine.Set(i, components.DVE)
		m.Instr.Lane.Set(i, components.LaneDVE)
		if i == loop {
			m.Instr.Opcode.Set(i, components.OpcodeLoop)
			m.Instr.Flags.Set(i, components.FlagLoop)
		}
		for _, role := range []components.OperandRole{components.RoleIn, components.RoleOut} {
			p := components.AccessPattern{Role: role, Memory: components.MemSBUF, DType: components.Uint8, Address: uint64(rng.IntN(6)) * 20,
				Steps: []int64{1, 1}, Counts: []uint64{128, 10 + 10*uint64(rng.IntN(3))}}
			if rng.IntN(3) == 0 {
				p.Memory = components.MemPSUM
			}
			if i != loop {
				m.Operands.Add(p)
				touch[i] = append(touch[i], p)
			}
		}
		m.Operands.EndRow()
		for j := range i {
			if i != loop && j != loop && (j > loop && j < end) == (i > loop && i < end) && rng.IntN(3) == 0 {
				edges.Add(components.InstrID(i), components.InstrID(j), components.Anti)
			}
		}
	}
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Blocks.Add(0, uint32(f), uint32(loop+1), components.InstrID(loop+1), 3)
	m.Blocks.End.Set(1, uint32(end))
	m.Functions.EndBlock.Set(f, 2)
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	return m
}

// needsSlowly fills an array of bytes for every row.
func needsSlowly(m *components.Module, t *Table, copies []int) map[string]uint64 {
	type span struct{ first, last int }
	lives := map[Buffer]span{}
	for i := range m.Instr.Len() {
		lo, hi := m.Operands.Range(components.InstrID(i))
		for o := lo; o < hi; o++ {
			b := bufferOf(m, components.InstrID(i), m.Operands.At(o))
			l, ok := lives[b]
			if !ok {
				l.first = i
			}
			l.last = i
			lives[b] = l
		}
	}
	first, end := int(m.Blocks.First.At(1)), int(m.Blocks.End.At(1))
	out := map[string]uint64{}
	for i := range m.Instr.Len() {
		used := map[string]map[uint64]bool{"SBUF": {}, "PSUM": {}}
		sum := map[string]uint64{}
		for b, l := range lives {
			if l.first < first && l.last >= first && l.last < end {
				l.last = end - 1
			}
			if i < l.first || i > l.last {
				continue
			}
			name := memoryName(b.Memory)
			lo, hi := uint64(1<<62), uint64(0)
			for o := range m.Operands.Len() {
				p := m.Operands.At(o)
				if bufferOf(m, 0, p) == b {
					x, y := p.Span()
					lo, hi = min(lo, x), max(hi, y)
				}
			}
			for a := lo; a < hi; a++ {
				used[name][a] = true
			}
			for k, buf := range t.Buffers {
				if buf == b {
					sum[name] += uint64(copies[k]-1) * b.Bytes(m)
				}
			}
		}
		for name := range used {
			out[name] = max(out[name], uint64(len(used[name]))+sum[name])
		}
	}
	return out
}

func TestRoomAgainstBytesOfArrays(t *testing.T) {
	full, part := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(7, seed))
		m := scatter(rng)
		tab, err := Buffers(ctx, m, index.AntiEdges(&components.World{Module: m}), 1)
		if err != nil {
			t.Fatal(err)
		}
		room := NewRoom(m, tab)
		has := uint64(100 + rng.IntN(4000))
		size := func(components.Memory) uint64 { return has }
		check := func(copies []int) (fits bool) {
			want := needsSlowly(m, tab, copies)
			fits = true
			for _, n := range room.Need(copies, size) {
				if n.Bytes != want[n.Memory] {
					t.Fatalf("seed %d: %v needs %d of %s, want %d", seed, copies, n.Bytes, n.Memory, want[n.Memory])
				}
				fits = fits && n.Bytes <= has
			}
			return fits
		}
		n := 2 + rng.IntN(4)
		all := room.Copies(n)
		order := make([]uint32, len(tab.Buffers))
		for k := range order {
			order[k] = uint32(k)
		}
		base := check(room.Copies(1))
		fitting := check(all)
		some := room.Fit(n, order, size)
		if base && !check(some) {
			t.Fatalf("seed %d: %v were said to fit", seed, some)
		}
		for k, c := range some {
			if c > all[k] || fitting && c != all[k] {
				t.Fatalf("seed %d: %v of %v", seed, some, all)
			}
			// One copy more of any buffer does not fit.
			if c < all[k] && base {
				some[k]++
				if check(some) {
					t.Fatalf("seed %d: there was room for %v", seed, some)
				}
				some[k]--
			}
		}
		if fitting {
			full++
		} else if base {
			part++
		}
	}
	if full < 20 || part < 20 {
		t.Fatalf("%d fit, %d in part: the test shows nothing", full, part)
	}
}
