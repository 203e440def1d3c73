package nki

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/nkirecord"
	"perfsim/ecs"
	"perfsim/systems/cost"
	"perfsim/systems/deps"
	"perfsim/systems/sched"
)

// Format is the format name of modules made from kernels.
const Format = "nki"

// Lower turns a record into a module for a machine.
func Lower(ctx context.Context, rec *nkirecord.Record, mach *machine.Machine, opt Options) (*components.Module, error) {
	opt.resolve(rec.Generation == "new", mach.Arch)
	m := components.NewModule(rec.Kernel, Format)
	m.Arch = mach.Name
	x := newExpander(rec, m, opt)
	var cores []coreRows
	for i := range rec.Programs {
		p := &rec.Programs[i]
		lo := len(x.rows)
		x.sync = nil
		if err := x.program(ctx, p); err != nil {
			return nil, err
		}
		cores = append(cores, coreRows{core: p.Core, lo: lo, hi: len(x.rows), sync: x.sync})
	}
	if len(x.rows) == 0 {
		return nil, fmt.Errorf("%s: the kernel has no instructions", rec.File)
	}
	use := x.allocate()
	if use.spilled > 0 {
		use = x.allocateSpilling(cores)
	}
	order, exchanges, err := x.merge(cores)
	if err != nil {
		return nil, err
	}
	numCores := 1
	for _, c := range cores {
		numCores = max(numCores, c.core+1)
	}
	b := &builder{x: x, m: m, rec: rec, mach: mach, cores: numCores}
	b.tables()
	b.fill(order, exchanges)
	b.engines()
	b.finish()
	b.notes(use)
	if err := b.dependencies(ctx); err != nil {
		return nil, err
	}
	if err := m.CheckJobs(ctx, max(opt.Jobs, 1)); err != nil {
		return nil, err
	}
	return b.schedule(ctx, opt)
}

// coreRows are the rows of one program and where it meets other cores.
type coreRows struct {
	core, lo, hi int
	sync         []syncPoint
}

// exchange is a transfer between cores; it comes before the row `at` of order.
type exchange struct {
	dst, src ref
	form     int32
	core     uint8 // that sends
}

// merge puts the rows of several cores into one order: up to the first point
// where they meet, then that point, and so on. An entry of the order that is
// negative is exchange -1-entry.
func (x *expander) merge(cores []coreRows) (order []int32, ex []exchange, err error) {
	byCore := map[int][]coreRows{}
	var ids []int
	for _, c := range cores {
		if byCore[c.core] == nil {
			ids = append(ids, c.core)
		}
		byCore[c.core] = append(byCore[c.core], c)
	}
	slices.Sort(ids)
	type cursor struct {
		rows []int32
		sync []syncPoint
		at   int
	}
	cur := make([]cursor, len(ids))
	for i, id := range ids {
		for _, c := range byCore[id] {
			base := len(cur[i].rows)
			for r := c.lo; r < c.hi; r++ {
				cur[i].rows = append(cur[i].rows, int32(r))
			}
			for _, s := range c.sync {
				s.row = s.row - c.lo + base
				cur[i].sync = append(cur[i].sync, s)
			}
		}
	}
	n := 0
	for i := range cur {
		n = max(n, len(cur[i].sync))
	}
	alone := len(ids) == 1
	for k := 0; k <= n; k++ {
		for i := range cur {
			c := &cur[i]
			end := len(c.rows)
			if k < len(c.sync) {
				end = c.sync[k].row
			}
			order = append(order, c.rows[c.at:max(end, c.at)]...)
			c.at = max(end, c.at)
		}
		for i := range cur {
			c := &cur[i]
			if k >= len(c.sync) || c.sync[k].form.Op != "SendRecv" {
				continue
			}
			s := c.sync[k]
			to := slices.Index(ids, s.form.Attrs.To)
			if alone || to < 0 || to == i || k >= len(cur[to].sync) || cur[to].sync[k].form.Op != "SendRecv" {
				// The partner is not recorded: the core's own half stands for both.
				ex = append(ex, exchange{dst: s.recv, src: s.send, form: s.src, core: uint8(ids[i])})
			} else {
				ex = append(ex, exchange{dst: cur[to].sync[k].recv, src: s.send, form: s.src, core: uint8(ids[i])})
			}
			order = append(order, int32(-len(ex)))
		}
	}
	return order, ex, nil
}

// builder fills the module's tables.
type builder struct {
	x     *expander
	m     *components.Module
	rec   *nkirecord.Record
	mach  *machine.Machine
	cores int
	any   []bool  // by row: the engine is ours to choose
	forms []int32 // by row; -1 for none
	where []uint32
	srcs  []ecs.Symbol
	funcs []ecs.Symbol
}

// tables adds lanes, queues, locations and the names of forms.
func (b *builder) tables() {
	m, x := b.m, b.x
	for c := range b.cores {
		m.AddCoreLanes(uint16(c))
	}
	for _, q := range queues {
		m.Queues.Name.Append(m.Symbols.InternString(q.name))
		m.Queues.Engine.Append(q.engine)
		m.Queues.Depth.Append(0)
	}
	b.srcs = make([]ecs.Symbol, len(b.rec.Forms))
	b.funcs = make([]ecs.Symbol, len(b.rec.Forms))
	for i := range b.rec.Forms {
		f := &b.rec.Forms[i]
		if f.File >= 0 && int(f.File) < len(b.rec.Files) {
			b.srcs[i] = m.Symbols.InternString(fmt.Sprintf("%s:%d", filepath.Base(b.rec.Files[f.File]), f.Line))
		}
		if name := cmp.Or(f.Attrs.Func, f.Attrs.Op0); name != "" {
			b.funcs[i] = m.Symbols.InternString(name)
		}
	}
	b.where = make([]uint32, len(x.tiles))
	t := &m.Locations
	names := make([]ecs.Symbol, len(b.rec.Tensors))
	used := map[string]bool{}
	// unique returns n, or n with a number where another location has it: a
	// kernel may give two buffers one name, by which BIR JSON distinguishes
	// them.
	unique := func(n string) ecs.Symbol {
		name := n
		for k := 2; used[name]; k++ {
			name = fmt.Sprintf("%s#%d", n, k)
		}
		used[name] = true
		return m.Symbols.InternString(name)
	}
	for i := range x.tiles {
		ti := &x.tiles[i]
		if ti.first < 0 {
			continue
		}
		var name ecs.Symbol
		kind := uint8(7)
		if ti.tensor < 0 {
			name = unique("constant")
		} else {
			r := &b.rec.Tensors[ti.tensor]
			if names[ti.tensor] == 0 {
				n := r.Name
				if n == "" {
					n = fmt.Sprintf("%s%d", map[components.Memory]string{components.MemSBUF: "sb", components.MemPSUM: "ps", components.MemDRAM: "hbm"}[r.Memory], ti.tensor)
				}
				names[ti.tensor] = unique(n)
			}
			name, kind = names[ti.tensor], tensorKind(r.Kind)
		}
		t.Name.Append(name)
		t.Tensor.Append(name)
		t.Memory.Append(ti.mem)
		t.Addr.Append(uint64(ti.addr))
		t.Bytes.Append(uint64(ti.bytes))
		t.Parts.Append(uint16(ti.parts))
		t.Base.Append(uint16(ti.part))
		bank := int16(0)
		if ti.mem == components.MemPSUM {
			bank = int16(ti.addr / bankBytes)
		}
		t.Bank.Append(bank)
		t.Alias.Append(0)
		t.Kind.Append(kind)
		b.where[i] = uint32(t.Len())
	}
}

// tensorKind is the ordinal of a tensor kind.
func tensorKind(k string) uint8 {
	switch k {
	case "ExternalInput":
		return 0
	case "ExternalOutput":
		return 3
	case "Const":
		return 6
	}
	return 7
}

// fill writes the rows.
func (b *builder) fill(order []int32, ex []exchange) {
	m, x := b.m, b.x
	n := len(order)
	in := &m.Instr
	in.Grow(n)
	for _, c := range []ecs.AnyColumn{&in.OutElems, &in.DMARow, &in.DMABytes, &in.Queue, &in.Source, &in.Func} {
		c.SetLen(n)
	}
	b.any, b.forms = make([]bool, n), make([]int32, n)
	var ops []components.AccessPattern
	for i, o := range order {
		var r row
		var refs []ref
		if o < 0 {
			e := ex[-o-1]
			r = row{op: components.OpcodeDMACopy, engine: components.SP, flags: components.FlagHWDGE, form: e.form, core: e.core, queue: queueDynamic}
			e.dst.role, e.src.role = components.RoleOut, components.RoleIn
			refs = []ref{e.dst, e.src}
		} else {
			r = x.rows[o]
			end := uint32(len(x.refs))
			if int(o)+1 < len(x.rows) {
				end = x.rows[o+1].refs
			}
			refs = x.refs[r.refs:end]
		}
		ops = ops[:0]
		for k := range refs {
			ops = append(ops, b.pattern(&refs[k]))
		}
		// Inputs come first in the table, as in BIR.
		for k := range ops {
			if ops[k].Role == components.RoleIn {
				m.Operands.Add(ops[k])
			}
		}
		for k := range ops {
			if ops[k].Role == components.RoleOut {
				m.Operands.Add(ops[k])
			}
		}
		m.Operands.EndRow()
		g := components.GeometryOf(r.op, ops)
		in.Opcode.Set(i, r.op)
		in.Engine.Set(i, r.engine)
		in.Lane.Set(i, uint16(r.core)*components.LanesPerCore+laneOf(r.op, r.engine))
		in.Flags.Set(i, r.flags|g.Flags)
		in.Elems.Set(i, g.Elems)
		in.Parts.Set(i, g.Parts)
		in.DType.Set(i, g.DType)
		in.OutElems.Set(i, g.OutElems)
		in.Banks.Set(i, g.Banks)
		in.DMABytes.Set(i, g.DMABytes)
		in.DMARow.Set(i, g.DMARow)
		if r.flags&components.FlagCollective != 0 { // what one rank puts in
			in.DMABytes.Set(i, bytesIn(ops))
		}
		in.Queue.Set(i, r.queue)
		if r.form >= 0 {
			in.Source.Set(i, b.srcs[r.form])
			in.Func.Set(i, b.funcs[r.form])
		}
		b.any[i], b.forms[i] = r.any, r.form
	}
}

// bytesIn is the bytes of all inputs.
func bytesIn(ops []components.AccessPattern) (n uint64) {
	for k := range ops {
		if o := &ops[k]; o.Role == components.RoleIn {
			each := uint64(max(o.DType.Size(), 1))
			for _, c := range o.Counts {
				each *= c
			}
			n += each
		}
	}
	return n
}

func laneOf(op components.Opcode, e components.Engine) uint16 {
	switch {
	case op == components.OpcodeCollectiveCompute:
		return components.LaneCC0
	case op.IsDMA():
		return components.LaneDMA
	}
	return uint16(e)
}

// pattern is an access with its address.
func (b *builder) pattern(r *ref) components.AccessPattern {
	t := &b.x.tiles[r.tile]
	d := r.pat.DType
	if t.retyped {
		d = t.dtype
	}
	size := int64(max(d.Size(), 1))
	o := components.AccessPattern{Role: r.role, Kind: components.OperandPhysical, DType: d, Memory: t.mem, Where: b.where[r.tile],
		Address: uint64(t.addr + r.f*size)}
	if t.mem.InDRAM() {
		dims := r.pat.Dims
		o.Steps, o.Counts = append(o.Steps, dims[0][0]), append(o.Counts, uint64(dims[0][1]))
		joined(&o, dims[1:])
		return o
	}
	o.Base = uint16(t.part + r.p)
	o.Steps = append(o.Steps, t.bytes/size*int64(max(r.pat.Step, 0)))
	o.Counts = append(o.Counts, uint64(max(r.pat.Parts, 1)))
	joined(&o, r.pat.Dims)
	return o
}

// joined appends dims, neighbours that are contiguous as one.
func joined(o *components.AccessPattern, dims [][2]int64) {
	first := len(o.Steps)
	for _, d := range dims {
		if d[1] == 1 {
			continue
		}
		if k := len(o.Steps) - 1; k >= first && o.Steps[k] == d[0]*d[1] {
			o.Steps[k] = d[0]
			o.Counts[k] *= uint64(d[1])
			continue
		}
		o.Steps = append(o.Steps, d[0])
		o.Counts = append(o.Counts, uint64(d[1]))
	}
	if len(o.Steps) == first {
		o.Steps, o.Counts = append(o.Steps, 1), append(o.Counts, 1)
	}
}

// candidates are the engines that may execute an instruction for which the
// kernel names none; the first is taken where the machine has no costs.
//
// Where DVE and Activation exclude one another on PSUM (trn1), copies from it
// are Activation's while the PE has more to do than Activation: nothing is won
// by sharing them. The counters of public profiles on trn1 show that: kernels
// whose only other work is matmuls keep the DVE idle (bmm, matmul), and the DVE
// of lora has the additions alone.
func (b *builder) candidates(op components.Opcode, flags components.Flags, form int32, busy *[components.NumEngines]float64) []components.Engine {
	both := []components.Engine{components.DVE, components.Activation}
	switch op {
	case components.OpcodeTensorCopy:
		if b.mach.Reference.Couplings && flags&components.FlagSrcPSUM != 0 && busy[components.Activation] < busy[components.PE] {
			return both[1:]
		}
		return both
	case components.OpcodeTensorScalar, components.OpcodeTensorScalarPtr:
		if form >= 0 && affine(&b.rec.Forms[form].Attrs) {
			return both
		}
	case components.OpcodeMemset:
		return []components.Engine{components.DVE} // documented for nki.isa.memset
	}
	return nil
}

// affine reports whether a tensor_scalar is data x scale + bias, which
// Activation computes too.
func affine(a *nkirecord.Attrs) bool {
	return a.Op0 == "multiply" && (a.Op1 == "" || a.Op1 == "add") || a.Op0 == "add" && a.Op1 == ""
}

// engines gives instructions without an engine to the one that would be done
// with them first, by work so far.
func (b *builder) engines() {
	in := &b.m.Instr
	nominal := cost.NewNominal(b.m, b.mach)
	busy := make([][components.NumEngines]float64, b.cores)
	takes := func(i int, e components.Engine) float64 {
		in.Engine.Set(i, e)
		k := nominal.Op(i)
		if k == nil {
			return 0
		}
		t, _, _ := nominal.Evaluate(k, i)
		return t
	}
	for i, op := range in.Opcode.Slice() {
		core := int(in.Lane.At(i) / components.LanesPerCore)
		if op.IsMatmul() {
			cycles, passes := nominal.Columns(i)
			busy[core][components.PE] += cycles * float64(passes) * 100 / float64(b.mach.Clock.PEArray)
		}
		if op.IsDMA() || op.IsMatmul() {
			continue
		}
		e := in.Engine.At(i)
		if b.any[i] {
			list := b.candidates(op, in.Flags.At(i), b.forms[i], &busy[core])
			best, at := e, 0.0
			for k, c := range list {
				if t := busy[core][c] + takes(i, c); k == 0 || t < at {
					best, at = c, t
				}
			}
			e = best
			in.Lane.Set(i, uint16(core)*components.LanesPerCore+uint16(e))
		}
		if e < components.NumEngines {
			busy[core][e] += takes(i, e)
		}
		in.Engine.Set(i, e)
	}
}

// finish adds the function, its block and the attributes.
func (b *builder) finish() {
	m := b.m
	f := m.Functions.Add(m.Symbols.InternString(cmp.Or(b.rec.Kernel, "kernel")), 0)
	id := m.Blocks.Add(m.Symbols.InternString("Block1"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(id, uint32(m.Instr.Len()))
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	m.Attributes = append(m.Attributes, components.Attribute{Key: components.AttributeNoDependencies, Value: m.FunctionName(f)})
}

// coreShift keeps the memories of cores apart while dependencies are found.
const coreShift = 1 << 32

// dependencies rebuilds the edges by bytes.
func (b *builder) dependencies(ctx context.Context) error {
	shift := func(sign int64) {
		if b.cores == 1 {
			return
		}
		t := &b.m.Operands
		addr, mem, where := t.Address.Slice(), t.Memory.Slice(), t.Where.Slice()
		core := map[uint32]int64{}
		for i := range b.x.tiles {
			if w := b.where[i]; w > 0 {
				core[w] = int64(b.x.tiles[i].core)
			}
		}
		for i := range addr {
			if !mem[i].InDRAM() {
				addr[i] = uint64(int64(addr[i]) + sign*core[where[i]]*coreShift)
			}
		}
	}
	// Link needs a relation before edges are rebuilt.
	if err := b.m.Link(&components.EdgeSet{}); err != nil {
		return err
	}
	shift(1)
	o := deps.Default()
	_, err := deps.BuildFlow(ctx, b.m, o)
	if err == nil {
		_, err = deps.AnalyzeAnti(ctx, b.m, o)
	}
	shift(-1)
	return err
}

// schedule orders the instructions.
func (b *builder) schedule(ctx context.Context, opt Options) (*components.Module, error) {
	if opt.Policy == sched.Keep {
		return b.m, nil
	}
	w := &components.World{Module: b.m, Machine: b.mach, Events: components.NewEvents(),
		Config: components.Config{Model: components.Calibrated, Loops: components.Once, Jobs: max(opt.Jobs, 1)}}
	if err := cost.Fill(ctx, w); err != nil {
		return nil, err
	}
	if _, err := sched.Run(ctx, w, sched.Options{Policy: opt.Policy, Always: true}); err != nil {
		return nil, err
	}
	return w.Module, nil
}

// notes says what was assumed.
func (b *builder) notes(u usage) {
	m := b.m
	attr := func(key string, v any) {
		m.Attributes = append(m.Attributes, components.Attribute{Key: key, Value: fmt.Sprint(v)})
	}
	attr("nki.kernel", b.rec.Kernel)
	attr("nki.file", b.rec.File)
	attr("nki.api", b.rec.Generation)
	attr("nki.sbuf_peak_bytes", u.sbufPeak)
	attr("nki.psum_peak_bytes", u.psumPeak)
	if n := u.moved.saved + u.moved.reloaded + u.spillBytes; n > 0 {
		attr("nki.spill_bytes", n)
		text := fmt.Sprintf("tiles do not fit into %d KiB of SBUF a partition: %.1f MB are saved and %.1f MB loaded again; the compiler may choose others; "+
			"kernels of this kind were measured at 0.88 to 1.5 times the prediction", b.x.opt.SBUF>>10, float64(u.moved.saved)/1e6, float64(u.moved.reloaded)/1e6)
		if u.moved == (spilling{}) {
			text = fmt.Sprintf("loads do not fit into %d KiB of SBUF a partition: the compiler makes them later or again, which this prediction has not: "+
				"the latency is not known within a factor of two", b.x.opt.SBUF>>10)
		} else if u.spilled > 0 {
			text += fmt.Sprintf("; tiles of %.1f MB found no room even so", float64(u.spillBytes)/1e6)
		}
		m.Note(components.NoteSpills, text, max(u.spilled, 1))
	}
	if n := b.x.left; n > 0 {
		m.Note("nki-hoist", "instructions that do the same in every iteration of a loop run in the first only, as compilers of the old API have it", n)
	}
	for _, n := range b.rec.Notes {
		m.Note("nki-record", n.Text, n.Count)
	}
}
