package nki

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/components/nkirecord"
)

// tile is one block of one tensor in one iteration, or a tensor in device
// memory.
type tile struct {
	tensor      int32 // index in the record; negative for tiles of ours
	mem         components.Memory
	bytes       int64 // of a partition; of all in device memory
	parts       int32
	dtype       components.DType
	retyped     bool // operands have the tile's own type: see broadcast
	first, last int32
	addr        int64
	part        int32
	fixed       bool // addressed by the kernel
	state       uint8
	core        uint8
}

// The states of a tile with an initial value.
const (
	written  uint8 = 1 << iota // something wrote it
	memsetIt                   // the last write was no matmul
)

// ref is one access of a row.
type ref struct {
	tile uint32
	role components.OperandRole
	p    int32
	f    int64
	pat  *nkirecord.Pattern
}

// row is one instruction before it enters the module.
type row struct {
	op     components.Opcode
	engine components.Engine
	any    bool // the engine is ours to choose
	core   uint8
	flags  components.Flags
	form   int32 // for source line and names; -1 for none
	refs   uint32
	queue  uint16
}

// region is a part of a PSUM tile that matmuls add up in.
type region struct {
	tile uint32
	p    int32
	f    int64
}

// expander writes a record out.
type expander struct {
	rec    *nkirecord.Record
	m      *components.Module
	opt    Options
	tiles  []tile
	rows   []row
	refs   []ref
	live   [][]uint32 // by tensor and block: tile plus one
	inLoop [][]int32  // tensors allocated in a loop
	index  []int64    // by loop: the iteration
	open   map[region]bool
	folded map[region]bool // loop reductions that have begun
	ones   map[components.DType]uint32
	ident  map[components.DType]uint32
	core   uint8
	pats   map[patKey]*nkirecord.Pattern
	sync   []syncPoint
	dram   map[int32]uint32
	single []bool // tensors with one buffer for all iterations
	hoist  hoist
	once   []bool // tensors whose loads are made once; nil for none
	parts  map[onceKey]uint32
	left   int // executions that the hoists saved
	p      *nkirecord.Program
}

type patKey struct {
	dtype    components.DType
	parts, n int
}

// syncPoint is a place where cores meet: a barrier or an exchange.
type syncPoint struct {
	row  int // it comes before this row of its core's list
	form *nkirecord.Form
	send ref
	recv ref
	src  int32 // form number
}

func newExpander(rec *nkirecord.Record, m *components.Module, opt Options) *expander {
	x := &expander{rec: rec, m: m, opt: opt, open: map[region]bool{}, folded: map[region]bool{}, ones: map[components.DType]uint32{},
		ident: map[components.DType]uint32{}, pats: map[patKey]*nkirecord.Pattern{}, dram: map[int32]uint32{}}
	x.inLoop = make([][]int32, rec.Loops)
	for i := range rec.Tensors {
		if l := rec.Tensors[i].Loop; l >= 0 && int(l) < rec.Loops {
			x.inLoop[l] = append(x.inLoop[l], int32(i))
		}
	}
	x.index = make([]int64, rec.Loops)
	x.single = make([]bool, len(rec.Tensors))
	return x
}

// program writes one program out.
func (x *expander) program(ctx context.Context, p *nkirecord.Program) error {
	x.p = p
	x.core = uint8(p.Core)
	x.live = make([][]uint32, len(x.rec.Tensors))
	clear(x.open)
	clear(x.folded)
	clear(x.ones)
	clear(x.ident)
	x.hoist = hoist{}
	if x.opt.LoadOnce {
		x.once, x.parts = once(x.rec, p), map[onceKey]uint32{}
	}
	if x.opt.Hoist {
		x.hoist = invariant(x.rec, p)
	}
	ends := matching(p.Steps)
	return x.run(ctx, ends, 0, len(p.Steps))
}

// matching returns for every loop begin the place of its end.
func matching(steps []nkirecord.Step) map[int]int {
	ends := map[int]int{}
	var stack []int
	for i, s := range steps {
		switch s.Form {
		case nkirecord.LoopBegin:
			stack = append(stack, i)
		case nkirecord.LoopEnd:
			ends[stack[len(stack)-1]] = i
			stack = stack[:len(stack)-1]
		}
	}
	return ends
}

func (x *expander) run(ctx context.Context, ends map[int]int, lo, hi int) error {
	for i := lo; i < hi; i++ {
		s := &x.p.Steps[i]
		if s.Form >= 0 {
			if x.again(i) {
				x.left++
				continue
			}
			if err := x.instruction(s); err != nil {
				return err
			}
			continue
		}
		end := ends[i]
		for k := range s.Trips {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.index[s.First] = int64(k)
			for _, t := range x.inLoop[s.First] {
				clear(x.live[t])
			}
			if err := x.run(ctx, ends, i+1, end); err != nil {
				return err
			}
		}
		i = end
	}
	return nil
}

// value returns a number for the current iteration.
func (x *expander) value(v *nkirecord.Value) int64 {
	n := v.C
	for _, t := range x.p.Terms[v.First : v.First+v.N] {
		n += t.K * x.index[t.Loop]
	}
	return n
}

// tileOf returns the tile of a block of a tensor.
func (x *expander) tileOf(tensor int32, block int64) (uint32, error) {
	t := &x.rec.Tensors[tensor]
	if t.Memory.InDRAM() {
		if id, ok := x.dram[tensor]; ok {
			return id, nil
		}
		id := x.add(tile{tensor: tensor, mem: t.Memory, bytes: t.Bytes(), parts: 1, dtype: t.DType})
		x.dram[tensor] = id
		return id, nil
	}
	if x.live[tensor] == nil {
		x.live[tensor] = make([]uint32, t.Blocks())
	}
	if block < 0 || block >= int64(len(x.live[tensor])) {
		return 0, fmt.Errorf("block %d of tensor %q, which has %d", block, t.Name, len(x.live[tensor]))
	}
	slot := &x.live[tensor][block]
	if *slot == 0 {
		n := tile{tensor: tensor, mem: t.Memory, bytes: t.Bytes(), parts: int32(t.Parts()), dtype: t.DType, core: x.core}
		if len(t.Addr) > 0 {
			a := t.Addr[min(int(block), len(t.Addr)-1)]
			n.fixed, n.part, n.addr = true, int32(a[0]), a[1]
		}
		*slot = x.add(n) + 1
	}
	return *slot - 1, nil
}

func (x *expander) add(t tile) uint32 {
	t.first, t.last = -1, -1
	x.tiles = append(x.tiles, t)
	return uint32(len(x.tiles) - 1)
}

// operands reads the accesses of a step.
func (x *expander) operands(f *nkirecord.Form, s *nkirecord.Step, out []ref) ([]ref, error) {
	at := s.First
	vals := x.p.Values
	for k := range len(f.Outs) + len(f.Ins) {
		r := ref{role: components.RoleOut}
		if k < len(f.Outs) {
			r.pat = &f.Outs[k]
		} else {
			r.role, r.pat = components.RoleIn, &f.Ins[k-len(f.Outs)]
		}
		tensor := int32(vals[at].C)
		var err error
		if x.rec.Tensors[tensor].Memory.InDRAM() {
			r.f = x.value(&vals[at+1])
			at += 2
			r.tile, err = x.tileOf(tensor, 0)
		} else {
			b := x.block(tensor, &vals[at+1])
			r.p, r.f = int32(x.value(&vals[at+2])), x.value(&vals[at+3])
			at += 4
			r.tile, err = x.tileOf(tensor, b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.source(f), err)
		}
		out = append(out, r)
	}
	return out, nil
}

// source is the kernel line of a form.
func (x *expander) source(f *nkirecord.Form) string {
	name := "?"
	if int(f.File) < len(x.rec.Files) && f.File >= 0 {
		name = x.rec.Files[f.File]
	}
	return fmt.Sprintf("%s:%d", name, f.Line)
}

// put appends a row.
func (x *expander) put(r row, refs ...ref) {
	r.refs = uint32(len(x.refs))
	r.core = x.core
	i := int32(len(x.rows))
	for _, a := range refs {
		t := &x.tiles[a.tile]
		if t.first < 0 {
			t.first = i
		}
		t.last = i
		if a.role == components.RoleOut {
			t.state |= written
			if r.engine == components.PE {
				t.state &^= memsetIt
			} else {
				t.state |= memsetIt
				if t.mem == components.MemPSUM {
					x.close(a.tile)
				}
			}
		}
	}
	x.refs = append(x.refs, refs...)
	x.rows = append(x.rows, r)
}

// close ends the accumulation groups of a tile that something else wrote.
func (x *expander) close(t uint32) {
	for k := range x.open {
		if k.tile == t {
			delete(x.open, k)
		}
	}
}

// flat returns a pattern of n elements in parts partitions.
func (x *expander) flat(d components.DType, parts, n int) *nkirecord.Pattern {
	k := patKey{dtype: d, parts: parts, n: n}
	p, ok := x.pats[k]
	if !ok {
		p = &nkirecord.Pattern{DType: d, Parts: parts, Step: 1, Dims: [][2]int64{{1, int64(n)}}}
		x.pats[k] = p
	}
	return p
}

// initial writes the initial value of a tile before its first access, unless
// that access overwrites it or is a matmul.
func (x *expander) initial(f int32, refs []ref, matmul bool) {
	for i := range refs {
		r := &refs[i]
		t := &x.tiles[r.tile]
		if t.tensor < 0 || t.state&written != 0 || t.mem.InDRAM() || x.rec.Tensors[t.tensor].Fill < 0 {
			continue
		}
		if r.role == components.RoleOut {
			whole := int64(r.pat.Parts)*r.pat.Elems()*int64(r.pat.DType.Size()) >= int64(t.parts)*t.bytes
			if matmul || whole || t.mem == components.MemPSUM {
				continue
			}
		}
		flags := components.Flags(0)
		if x.rec.Tensors[t.tensor].Fill == 0 {
			flags = components.FlagZeroConst
		}
		d := t.dtype
		x.put(row{op: components.OpcodeMemset, engine: components.Pool, any: true, flags: flags, form: f},
			ref{tile: r.tile, role: components.RoleOut, pat: x.flat(d, int(t.parts), int(t.bytes)/max(d.Size(), 1))})
	}
}
