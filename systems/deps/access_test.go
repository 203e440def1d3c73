package deps

import (
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs/proptest"
)

// bytesOf enumerates what a pattern touches in device memory.
func bytesOf(o *components.AccessPattern) map[int64]bool {
	out := map[int64]bool{}
	size := int64(o.DType.Size())
	var walk func(k int, at int64)
	walk = func(k int, at int64) {
		if k == len(o.Counts) {
			for b := range size {
				out[at+b] = true
			}
			return
		}
		for c := range int64(o.Counts[k]) {
			walk(k+1, at+c*o.Steps[k]*size)
		}
	}
	walk(0, int64(o.Address))
	return out
}

func meet(a, b access) bool {
	return a.space == b.space && a.p0 < b.p1 && b.p0 < a.p1 && a.lo < b.hi && b.lo < a.hi
}

// Patterns that share a byte of device memory are accesses that meet, however
// tensors lie and whatever shapes their accesses have.
func TestRowsAreSafe(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		n := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(rt, label) }
		s := newSketch()
		var where []uint32
		for range n("tensors", 1, 3) {
			mem := components.MemDRAM
			if n("input", 0, 2) == 0 {
				mem = components.MemOutput
			}
			where = append(where, s.location(mem, uint64(n("addr", 0, 6))*64, 200, 1, 0, 0, 0))
		}
		pitch := int64(n("pitch", 4, 20))
		var ops []components.AccessPattern
		for range n("accesses", 2, 6) {
			w := rapid.SampledFrom(where).Draw(rt, "tensor")
			o := components.AccessPattern{Role: in, Kind: components.OperandPhysical, DType: components.BFloat16, Memory: s.m.Locations.Memory.At(int(w) - 1), Where: w,
				Address: s.m.Locations.Addr.At(int(w)-1) + 2*uint64(n("offset", 0, 40))}
			switch n("shape", 0, 3) {
			case 0:
				o.Steps, o.Counts = []int64{1}, []uint64{uint64(n("n", 1, 20))}
			case 1:
				o.Steps, o.Counts = []int64{pitch, 1}, []uint64{uint64(n("rows", 1, 4)), uint64(n("n", 1, 6))}
			case 2:
				o.Steps, o.Counts = []int64{int64(n("s", 0, 9)), int64(n("t", 0, 5))}, []uint64{uint64(n("a", 1, 4)), uint64(n("b", 1, 4))}
			case 3:
				o.Steps, o.Counts = []int64{pitch, 3, 1}, []uint64{uint64(n("a", 1, 3)), 2, uint64(n("b", 1, 3))}
			}
			ops = append(ops, o)
			s.instr(components.OpcodeDMACopy, 0, o)
		}
		m := s.finish(rt)
		opt := Options{Bin: uint64(n("bin", 1, 4))}
		c := &collector{m: m, opt: &opt}
		c.collect(0, uint32(s.rows))
		if len(c.list) != len(ops) {
			rt.Fatalf("%d accesses of %d patterns", len(c.list), len(ops))
		}
		for i := range ops {
			for j := range i {
				if ops[i].Memory != ops[j].Memory || ops[i].Memory == components.MemOutput && ops[i].Where != ops[j].Where {
					continue
				}
				// A pattern that leaves its tensor is none of the tensor's business.
				inside := true
				for _, k := range []int{i, j} {
					l := int(ops[k].Where) - 1
					_, hi := ops[k].Span()
					inside = inside && hi <= m.Locations.Addr.At(l)+m.Locations.Bytes.At(l)
				}
				shared := false
				a, b := bytesOf(&ops[i]), bytesOf(&ops[j])
				for x := range a {
					shared = shared || b[x]
				}
				if inside && shared && !meet(c.list[i], c.list[j]) {
					rt.Fatalf("%+v\nand %+v share a byte, but are %+v and %+v", ops[i], ops[j], c.list[i], c.list[j])
				}
			}
		}
	})
}

// Tiles side by side do not meet; overlapping ones do.
func TestTiles(t *testing.T) {
	s := newSketch()
	y := s.location(components.MemOutput, 0, 2*1024*256, 1, 0, 0, 0)
	tile := func(row, col, cols int) components.AccessPattern {
		return components.AccessPattern{Role: out, Kind: components.OperandPhysical, DType: components.BFloat16, Memory: components.MemOutput, Where: y,
			Address: uint64(row*1024+col) * 2, Steps: []int64{1024, 1}, Counts: []uint64{128, uint64(cols)}}
	}
	s.instr(components.OpcodeDMACopy, 0, tile(0, 0, 512))
	s.instr(components.OpcodeDMACopy, 0, tile(0, 512, 512))
	s.instr(components.OpcodeDMACopy, 0, tile(128, 0, 512))
	s.instr(components.OpcodeDMACopy, 0, tile(64, 256, 512))
	m := s.finish(t)
	rebuild(t, m, Default())
	got, _ := edgesOf(m)
	want := map[[2]uint32]components.EdgeKind{{3, 0}: components.Output, {3, 1}: components.Output, {3, 2}: components.Output}
	if d := diffEdges(got, want); d != "" {
		t.Error(d)
	}
}

// Partitions beyond the bound on strips are rounded outwards, never inwards.
func TestManyStrips(t *testing.T) {
	s := newSketch()
	y := s.location(components.MemOutput, 0, 1<<40, 1, 0, 0, 0)
	for i := range 3000 {
		s.instr(components.OpcodeDMACopy, 0, components.AccessPattern{Role: out, Kind: components.OperandPhysical, DType: components.Uint8, Memory: components.MemOutput,
			Where: y, Address: uint64(i*3) << 20, Steps: []int64{1 << 20, 1}, Counts: []uint64{2, 100}})
	}
	m := s.finish(t)
	opt := Default()
	c := &collector{m: m, opt: &opt}
	c.collect(0, uint32(s.rows))
	for i, a := range c.list {
		if a.p0 > uint32(i*3) || a.p1 < uint32(i*3+2) {
			t.Fatalf("access %d: rows %d to %d", i, a.p0, a.p1)
		}
	}
	if n := len(c.bounds()[0]); n > maxStrips+1 {
		t.Errorf("%d strips", n)
	}
}
