package profile

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// row is an instruction in the order of the file.
type row struct {
	shape
	id, start             uint64
	offset                int64
	dur, wait             uint32
	pc, compilerPC        uint32 // plus one
	name, text            ecs.Symbol
	hlo, source, fn       ecs.Symbol
	apEnd, syncEnd        uint32
	core                  uint32 // row of cores
	branch                int32
	opcode                components.Opcode
	engine                components.Engine
	hasID, strict, always bool
}

// assembler collects what the workers found and builds the module.
type assembler struct {
	m    *components.Module
	rows []row
	// Ragged parts of the rows, in the order of the file.
	predOff []uint32
	preds   []pred
	aps     []ap
	dims    []dim
	syncs   []syncRow // owner is a symbol

	cores   []ecs.Symbol // subgraph names, in the order of the file
	coreNum []uint16
	packets []packet // core is a row of cores
	windows []window
	updates []semUpdate
	queues  []queueInfo // name is a symbol
	// function names the function: the compiler's subgraph, else the module.
	function string
	dropped  int // texts left out because the arena is full
}

// maxText is how many bytes of names and operand text the module's arena may
// take before operand texts are left out; the arena's own limit is 4 GiB.
const maxText = 3 << 30

func newAssembler(name string) *assembler {
	return &assembler{m: components.NewModule(name, "neuronprofile"), predOff: []uint32{0}}
}

// commit adds a parsed chunk. Chunks come in the order of the file.
func (a *assembler) commit(c *chunk) error {
	r := &c.out
	sym := a.m.Symbols
	words := make([]ecs.Symbol, len(r.words))
	for i, w := range r.words {
		words[i] = sym.InternString(w)
	}
	coreOf := make([]uint32, len(r.words))
	core := func(word uint32) uint32 {
		if coreOf[word] == 0 {
			i := slices.Index(a.cores, words[word])
			if i < 0 {
				i = len(a.cores)
				a.cores = append(a.cores, words[word])
			}
			coreOf[word] = uint32(i) + 1
		}
		return coreOf[word] - 1
	}
	intern := func(s span) ecs.Symbol { return sym.Intern(r.texts[s.lo:s.hi]) }

	if len(a.rows)+len(r.instrs) >= ecs.MaxRows || len(a.preds)+len(r.preds) >= math.MaxUint32 ||
		len(a.dims)+len(r.dims) >= math.MaxUint32 || len(a.syncs)+len(r.syncs) >= math.MaxUint32 {
		return errorAt(c.offs[0], "more than %d instructions, or 2^32 edges or access patterns", ecs.MaxRows-1)
	}
	apBase, dimBase, syncBase, predBase := uint32(len(a.aps)), uint32(len(a.dims)), uint32(len(a.syncs)), uint32(len(a.preds))
	for _, p := range r.aps {
		p.lo += dimBase
		p.hi += dimBase
		a.aps = append(a.aps, p)
	}
	a.dims = append(a.dims, r.dims...)
	a.preds = append(a.preds, r.preds...)
	for _, s := range r.syncs {
		if s.owner > 0 {
			s.owner = uint32(words[s.owner-1])
		}
		a.syncs = append(a.syncs, s)
	}
	for i := range r.instrs {
		in := &r.instrs[i]
		n := row{
			shape: in.shape, id: in.id, start: in.start, offset: in.offset, dur: in.dur, wait: in.wait, pc: in.pc, compilerPC: in.compilerPC,
			name: intern(in.name), hlo: intern(in.hlo), source: intern(in.source),
			apEnd: apBase + in.apEnd, syncEnd: syncBase + in.syncEnd, core: core(in.core), branch: in.branch,
			opcode: a.m.Opcode(r.words[in.opcode]), engine: in.engine, hasID: in.hasID, strict: in.strict, always: in.always,
		}
		if in.fn > 0 {
			n.fn = words[in.fn-1]
		}
		if sym.Columns()[0].Bytes() < maxText {
			n.text = intern(in.text)
		} else {
			a.dropped++
		}
		a.rows = append(a.rows, n)
		a.predOff = append(a.predOff, predBase+in.predEnd)
	}
	for _, p := range r.packets {
		p.core = core(p.core)
		a.packets = append(a.packets, p)
	}
	for _, w := range r.windows {
		w.core = core(w.core)
		a.windows = append(a.windows, w)
	}
	for _, u := range r.updates {
		u.core = core(u.core)
		a.updates = append(a.updates, u)
	}
	for _, q := range r.queues {
		q.core, q.name = core(q.core), uint32(words[q.name])
		a.queues = append(a.queues, q)
	}
	if a.function == "" {
		a.function = r.function
	}
	a.m.Attributes = append(a.m.Attributes, r.attrs...)
	for _, n := range r.notes {
		if len(a.m.Notes) < maxNotes {
			a.m.Note(n.Code, n.Text, n.Count)
		}
	}
	return nil
}

// maxCores bounds the subgraphs of one profile: their lanes must fit the lane
// column, and no server has more cores.
const maxCores = 1024

// finish builds the tables from what was committed.
func (a *assembler) finish(ctx context.Context) (*components.Module, error) {
	m := a.m
	n := len(a.rows)
	if n == 0 {
		return nil, fmt.Errorf("no instructions: section \"instruction\" is missing or empty")
	}
	a.describe()
	lanes, err := a.numberCores()
	if err != nil {
		return nil, err
	}
	preds, err := a.resolve()
	if err != nil {
		return nil, err
	}
	a.fillGaps()
	n = len(a.rows)
	keys := make([]ordering, n)
	for i := range a.rows {
		r := &a.rows[i]
		keys[i] = ordering{start: r.start, group: group(uint32(a.coreNum[r.core]), r.engine), pc: r.pc, branch: r.branch, always: r.always, strict: r.strict}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	perm, notes, cycle := programOrder(keys, a.predOff, preds)
	if cycle != nil {
		return nil, a.cycleError(cycle)
	}
	if notes.unrolled > 0 {
		m.Note("unrolled", "instructions of engines whose program counter repeats: put in order by following branches and measured times", notes.unrolled)
	}
	if notes.measured > 0 {
		m.Note("measured-order", "instructions put in measured order, because their engine's program counters are missing or repeat without a traced branch", notes.measured)
	}
	if notes.relaxed > 0 {
		m.Note("order-conflict", "instructions taken out of the order of the program counter, because they are needed by one that it puts before them", notes.relaxed)
	}

	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a.columns(perm, lanes)
	a.names(perm)
	queueRows := a.ragged(perm)
	pos := make([]uint32, n)
	for k, r := range perm {
		pos[r] = uint32(k)
	}
	var set components.EdgeSet
	set.Reserve(len(preds))
	for r := range n {
		for k := a.predOff[r]; k < a.predOff[r+1]; k++ {
			set.Add(components.InstrID(pos[r]), components.InstrID(pos[preds[k]]), a.preds[k].kind)
		}
	}
	a.block(n)
	if err := m.Link(&set); err != nil {
		return nil, err
	}
	a.measured(queueRows)
	if a.dropped > 0 {
		m.Note("text-dropped", "operand texts left out: the module holds 3 GiB of text", a.dropped)
	}
	return m, m.Check()
}

// describe names the module and its architecture from its attributes.
func (a *assembler) describe() {
	m := a.m
	if n := strings.TrimSuffix(m.Attribute("neff.network_name"), ".neff"); n != "" {
		m.Name = filepath.Base(n)
	}
	instance := m.Attribute("summary.instance_type")
	for _, f := range []struct{ prefix, arch string }{{"trn1", "trn1"}, {"inf2", "trn1"}, {"trn2", "trn2"}, {"trn3", "trn3"}} {
		if strings.HasPrefix(instance, f.prefix) {
			m.Arch = f.arch
		}
	}
}

// numberCores gives every subgraph its core number: that of its name (sg01 is
// core 1) where all names have one, else their rank by name. It adds the
// lanes of each core, in the order of their numbers, and returns the first
// lane of each row of cores.
func (a *assembler) numberCores() (lanes []uint16, err error) {
	if len(a.cores) > maxCores {
		return nil, fmt.Errorf("%d subgraphs, more than %d", len(a.cores), maxCores)
	}
	a.coreNum = make([]uint16, len(a.cores))
	names := make([]string, len(a.cores))
	byNumber := true
	seen := map[uint16]bool{}
	for i, s := range a.cores {
		names[i] = a.m.Symbols.String(s)
		n, err := uint64(0), error(nil)
		if names[i] != "" { // an export without subgraphs is one core
			n, err = strconv.ParseUint(strings.TrimPrefix(names[i], "sg"), 10, 16)
		}
		byNumber = byNumber && err == nil && n < maxCores && !seen[uint16(n)]
		a.coreNum[i] = uint16(n)
		seen[uint16(n)] = true
	}
	if !byNumber {
		sorted := slices.Sorted(slices.Values(names))
		for i, n := range names {
			k, _ := slices.BinarySearch(sorted, n)
			a.coreNum[i] = uint16(k)
		}
	}
	used := make([]bool, len(a.cores))
	for i := range a.rows {
		used[a.rows[i].core] = true
	}
	byCore := make([]int, len(a.cores))
	for i := range byCore {
		byCore[i] = i
	}
	slices.SortFunc(byCore, func(x, y int) int { return int(a.coreNum[x]) - int(a.coreNum[y]) })
	lanes = make([]uint16, len(a.cores))
	for _, i := range byCore {
		if used[i] {
			lanes[i] = a.m.AddCoreLanes(a.coreNum[i])
		}
	}
	return lanes, nil
}

// resolve finds the row of every predecessor id. Ids are 64-bit and unique. An
// id that no instruction has is that of a record the profile lost: the
// dependency is left out and counted in a note.
func (a *assembler) resolve() ([]uint32, error) {
	size := 16
	for size < 2*len(a.rows) {
		size *= 2
	}
	// Open addressing; ids are random in real files, the multiplication
	// spreads those that are not.
	table := make([]uint32, size) // row plus one
	mask := uint64(size - 1)
	slot := func(id uint64) uint64 { return id * 0x9e3779b97f4a7c15 >> 20 & mask }
	for i := range a.rows {
		r := &a.rows[i]
		if !r.hasID {
			continue
		}
		h := slot(r.id)
		for ; table[h] != 0; h = (h + 1) & mask {
			if other := &a.rows[table[h]-1]; other.id == r.id {
				return nil, errorAt(r.offset, "%s has the id %d of %s at byte %d", a.describeRow(r), r.id, a.describeRow(other), other.offset)
			}
		}
		table[h] = uint32(i) + 1
	}
	out := make([]uint32, 0, len(a.preds))
	kept := a.preds[:0]
	lost, lo := map[uint64]bool{}, a.predOff[0]
	dangling := 0
	for i := range a.rows {
		hi := a.predOff[i+1]
		for k := lo; k < hi; k++ {
			id := a.preds[k].id
			h := slot(id)
			for ; table[h] != 0 && a.rows[table[h]-1].id != id; h = (h + 1) & mask {
			}
			r := &a.rows[i]
			if table[h] == 0 {
				if dangling++; len(lost) < maxLost {
					lost[id] = true
				}
				continue
			}
			p := table[h] - 1
			if p == uint32(i) {
				return nil, errorAt(r.offset, "%s depends on itself", a.describeRow(r))
			}
			out, kept = append(out, p), append(kept, a.preds[k])
		}
		lo, a.predOff[i+1] = hi, uint32(len(kept))
	}
	a.preds = kept
	if dangling > 0 {
		noun := "instructions"
		if len(lost) == 1 {
			noun = "instruction"
		}
		a.m.Note("lost-record", fmt.Sprintf("dependencies on ids that no record has: left out; the profile lost at least %d %s", len(lost), noun), dangling)
	}
	return out, nil
}

// maxLost bounds the lost ids that are distinguished.
const maxLost = 1 << 16

// describeRow names an instruction in messages.
func (a *assembler) describeRow(r *row) string {
	s := "instruction " + cut(a.m.OpcodeName(r.opcode), 60)
	if r.name != 0 {
		s += " " + strconv.Quote(cut(a.m.Symbols.String(r.name), 60))
	}
	if r.pc > 0 {
		s += fmt.Sprintf(" (%s pc %d)", r.engine, r.pc-1)
	}
	return s
}

func (a *assembler) cycleError(cycle []uint32) error {
	const most = 8
	first := &a.rows[cycle[0]]
	text := ""
	for i, c := range cycle {
		if i == most {
			text += fmt.Sprintf("… (%d instructions) -> ", len(cycle))
			break
		}
		text += a.describeRow(&a.rows[c]) + " -> "
	}
	return errorAt(first.offset, "dependency cycle: %s%s", text, a.describeRow(first))
}

// columns fills the instruction table in program order.
func (a *assembler) columns(perm []uint32, lanes []uint16) {
	n := len(perm)
	t := &a.m.Instr
	t.Grow(n)
	opcode, engine, lane, flags := t.Opcode.Slice(), t.Engine.Slice(), t.Lane.Slice(), t.Flags.Slice()
	elems, parts, dtype, banks := t.Elems.Slice(), t.Parts.Slice(), t.DType.Slice(), t.Banks.Slice()
	outElems, fn, text := t.OutElems.Resize(n), t.Func.Resize(n), t.Text.Resize(n)
	ref, pc, compilerPC := t.Ref.Resize(n), t.PC.Resize(n), t.CompilerPC.Resize(n)
	dmaBytes, dmaRow := t.DMABytes.Resize(n), t.DMARow.Resize(n)
	start, dur, wait := t.MeasuredStart.Resize(n), t.MeasuredDur.Resize(n), t.MeasuredWait.Resize(n)
	var hlo, source, timed bool
	for k, i := range perm {
		r := &a.rows[i]
		opcode[k], engine[k], flags[k] = r.opcode, r.engine, r.flags|components.FlagMeasured
		lane[k] = lanes[r.core] + uint16(r.engine)
		if r.dmaLane() {
			lane[k] = lanes[r.core] + components.LaneDMA
		}
		elems[k], parts[k], dtype[k], banks[k] = r.elems, r.parts, r.dtype, r.banks
		outElems[k], fn[k], text[k] = r.outElems, r.fn, r.text
		ref[k], pc[k], compilerPC[k] = r.id, max(r.pc, 1)-1, r.compilerPC
		dmaBytes[k], dmaRow[k] = r.dmaBytes, r.dmaRow
		start[k], dur[k], wait[k] = r.start, r.dur, r.wait
		hlo, source = hlo || r.hlo != 0, source || r.source != 0
		timed = timed || r.start != 0 || r.dur != 0
	}
	if !timed { // the program without a measurement of it
		t.MeasuredStart.Drop()
		t.MeasuredDur.Drop()
		t.MeasuredWait.Drop()
		for k := range flags {
			flags[k] &^= components.FlagMeasured
		}
		a.m.Note("no-times", "no instruction has a timestamp or duration: there is nothing to compare a prediction with", n)
	}
	if hlo {
		c := t.HLO.Resize(n)
		for k, i := range perm {
			c[k] = a.rows[i].hlo
		}
	}
	if source {
		c := t.Source.Resize(n)
		for k, i := range perm {
			c[k] = a.rows[i].source
		}
	}
}

// dmaLane reports whether the instruction moves data with the DMA engines.
func (r *row) dmaLane() bool { return r.flags&(components.FlagSWDGE|components.FlagHWDGE) != 0 }

// names gives every instruction a unique name: its name in BIR, else one made
// of the engine, program counter and opcode ("Tensor.65.EVENT_SEMAPHORE",
// with "nc1." before it on core 1). One BIR instruction becomes several of
// the engine (a matmul is LDWEIGHTS and MATMUL, two pairs in fp32): the
// second and later ones get ".2", ".3" and so on behind the name.
func (a *assembler) names(perm []uint32) {
	sym := a.m.Symbols
	col := a.m.Instr.Name.Resize(len(perm))
	uses := make([]uint32, sym.Len(), sym.Len()+len(perm))
	count := func(s ecs.Symbol) *uint32 {
		for int(s) >= len(uses) {
			uses = append(uses, 0)
		}
		return &uses[s]
	}
	for k, i := range perm {
		r := &a.rows[i]
		if r.name != 0 && uses[r.name] == 0 {
			uses[r.name] = 1
			col[k] = r.name
		}
	}
	var buf []byte
	for k, i := range perm {
		if col[k] != 0 {
			continue
		}
		r := &a.rows[i]
		base := r.name
		if base == 0 {
			buf = buf[:0]
			if core := a.coreNum[r.core]; core > 0 {
				buf = append(strconv.AppendUint(append(buf, "nc"...), uint64(core), 10), '.')
			}
			buf = append(append(buf, profilerName(r.engine)...), '.')
			if r.pc > 0 {
				buf = append(strconv.AppendUint(buf, uint64(r.pc-1), 10), '.')
			}
			buf = append(buf, a.m.OpcodeName(r.opcode)...)
			base = sym.Intern(buf)
		}
		name := base
		for *count(name) > 0 {
			*count(base)++
			buf = append(append(buf[:0], sym.Bytes(base)...), '.')
			name = sym.Intern(strconv.AppendUint(buf, uint64(*count(base)), 10))
		}
		*count(name) = 1
		col[k] = name
	}
}

// profilerName is the profiler's name of an engine.
func profilerName(e components.Engine) string {
	switch e {
	case components.PE:
		return "Tensor"
	case components.DVE:
		return "Vector"
	case components.Activation:
		return "Scalar"
	case components.Pool:
		return "GpSimd"
	case components.SP:
		return "Sync"
	}
	return e.String()
}

// ragged fills the operand and semaphore tables and the queues, whose rows it
// returns.
func (a *assembler) ragged(perm []uint32) map[queueKey]uint16 {
	m := a.m
	queues := a.queueTable()
	flags := m.Instr.Flags.Slice()
	queue := m.Instr.Queue.Resize(len(perm))
	tables := map[tableKey]uint32{}
	var steps []int64
	var counts []uint64
	for k, i := range perm {
		r := &a.rows[i]
		apLo, syncLo := uint32(0), uint32(0)
		if i > 0 {
			apLo, syncLo = a.rows[i-1].apEnd, a.rows[i-1].syncEnd
		}
		for _, p := range a.aps[apLo:r.apEnd] {
			steps, counts = steps[:0], counts[:0]
			for _, d := range a.dims[p.lo:p.hi] {
				steps, counts = append(steps, d.step), append(counts, d.count)
			}
			o := components.AccessPattern{Role: p.role, Kind: p.kind, DType: p.dtype, Memory: p.memory, Address: p.addr, Base: p.base, Steps: steps, Counts: counts}
			if p.table > 0 {
				o.Where = a.tableLocation(tables, tableKey{r.core, p.table - 1})
			}
			m.Operands.Add(o)
		}
		m.Operands.EndRow()

		var owner ecs.Symbol
		if r.dmaLane() {
			queue[k], owner = queues.of(a, r)
			flags[k] = dgeFlags(flags[k], m.Symbols.Bytes(owner))
		}
		for _, s := range a.syncs[syncLo:r.syncEnd] {
			by := ecs.Symbol(s.owner)
			if by == 0 && owner != 0 && !s.op.IsWait() && s.id == r.queueSem-1 {
				by = owner
			}
			m.Syncs.Add(s.op, s.space, s.id, s.value, by)
		}
		m.Syncs.EndRow()
	}
	return queues.rows
}

// tableKey is an entry of the runtime's table of tensor addresses.
type tableKey struct {
	core  uint32
	index int32
}

// tableLocation returns the location (row plus one) that stands for an entry
// of the address table: a tensor whose place the runtime sets.
func (a *assembler) tableLocation(have map[tableKey]uint32, key tableKey) uint32 {
	if at, ok := have[key]; ok {
		return at
	}
	m := a.m
	t := &m.Locations
	name := fmt.Sprintf("table[%d]", key.index)
	if c := a.coreNum[key.core]; c > 0 {
		name = fmt.Sprintf("nc%d.%s", c, name)
	}
	sym := m.Symbols.InternString(name)
	t.Name.Append(sym)
	t.Tensor.Append(sym)
	t.Memory.Append(components.MemDRAM)
	t.Addr.Append(0)
	t.Bytes.Append(0)
	t.Parts.Append(1)
	t.Base.Append(0)
	t.Bank.Append(0)
	t.Alias.Append(0)
	t.Kind.Append(0)
	have[key] = uint32(t.Len())
	return have[key]
}

// block makes the one function and block that hold everything: both cores run
// side by side, so they are one block on two sets of lanes.
func (a *assembler) block(n int) {
	m := a.m
	if a.function == "" {
		a.function = m.Name
	}
	f := m.Functions.Add(m.Symbols.InternString(a.function), 0)
	m.Blocks.Add(m.Symbols.InternString("Block1"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
}

// comparePackets orders packets by time; it compares every field, so that the
// order does not depend on the sorting.
func comparePackets(x, y packet) int {
	if x.start != y.start {
		return cmp.Compare(x.start, y.start)
	}
	return cmp.Or(cmp.Compare(x.core, y.core), cmp.Compare(x.engine, y.engine), cmp.Compare(x.queue, y.queue), cmp.Compare(x.id, y.id),
		cmp.Compare(x.dur, y.dur), cmp.Compare(x.bytes, y.bytes), cmp.Compare(x.read, y.read), cmp.Compare(x.write, y.write), cmp.Compare(x.sem, y.sem))
}

// measured fills the tables of measurements, sorted by time.
func (a *assembler) measured(rows map[queueKey]uint16) {
	m := a.m
	queues := a.packetQueues(rows)
	slices.SortFunc(a.packets, comparePackets)
	for i := range a.packets {
		p := &a.packets[i]
		t := &m.Packets
		t.Start.Append(p.start)
		t.Dur.Append(p.dur)
		t.Engine.Append(uint16(p.engine))
		t.Queue.Append(queueOf(queues, p))
		t.Bytes.Append(p.bytes)
		t.Read.Append(p.read)
		t.Write.Append(p.write)
		t.Sem.Append(p.sem)
		t.Ref.Append(p.id)
	}
	slices.SortStableFunc(a.windows, func(x, y window) int {
		return cmp.Or(cmp.Compare(a.coreNum[x.core], a.coreNum[y.core]), cmp.Compare(x.start, y.start))
	})
	for _, w := range a.windows {
		t := &m.Windows
		t.Start.Append(w.start)
		t.Dur.Append(w.dur)
		t.K.Append(w.k)
		t.N.Append(w.n)
		t.Core.Append(a.coreNum[w.core])
	}
	slices.SortStableFunc(a.updates, func(x, y semUpdate) int { return cmp.Compare(x.time, y.time) })
	for _, u := range a.updates {
		t := &m.SemUpdates
		t.Time.Append(u.time)
		t.ID.Append(u.id)
		t.Value.Append(u.value)
		t.Core.Append(a.coreNum[u.core])
	}
}
