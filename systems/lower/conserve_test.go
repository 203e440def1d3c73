package lower_test

import (
	"errors"
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// problem is one access that is wrong.
type problem struct {
	Instr components.InstrID
	Other components.InstrID // the instruction it conflicts with, NoInstr for none
	Text  string
}

// Report is what was looked at and what was found.
type Report struct {
	Accesses int64 // on chip and in device memory
	Ordered  int64 // pairs of accesses whose order was checked
	Waits    int64 // Output and Anti edges whose two ends were compared
	Unknown  int64 // further ones, of whose ends one has no fixed address
	False    int64 // of those found, Output and Anti edges between different bytes
	Found    int64
	Problems []problem // the first ones
}

// most bounds the problems kept.
const most = 20

// Err returns the first problem as an error, nil where there is none.
func (r *Report) Err(m *components.Module) error {
	if r.Found == 0 {
		return nil
	}
	p := r.Problems[0]
	return fmt.Errorf("%d problems; the first: instruction %s (%s, row %d) %s", r.Found, m.InstrName(p.Instr), m.OpcodeName(m.Instr.Opcode.At(int(p.Instr))), p.Instr, p.Text)
}

// span is a range of bytes (per partition) of one memory with its accesses.
type span struct {
	lo, hi  uint64
	owner   uint32 // location row plus one
	writer  uint32 // row plus one, 0 for none
	readers []reader
}

type reader struct {
	channel uint16
	row     uint32
}

// memory is the state of SBUF, PSUM or one location of device memory: spans in
// order, without overlap.
type memory struct{ spans []span }

// at returns the index of the first span that ends behind pos.
func (s *memory) at(pos uint64) int {
	i, _ := slices.BinarySearchFunc(s.spans, pos, func(x span, p uint64) int {
		if x.hi <= p {
			return -1
		}
		return 1
	})
	return i
}

// split makes pos a border and returns the index of the first span at or
// behind it.
func (s *memory) split(pos uint64) int {
	i := s.at(pos)
	if i < len(s.spans) && s.spans[i].lo < pos {
		left := s.spans[i]
		left.readers = slices.Clone(left.readers)
		left.hi = pos
		s.spans[i].lo = pos
		s.spans = slices.Insert(s.spans, i, left)
		i++
	}
	return i
}

// loopWriter is the last writer of a channel in a loop.
type loopWriter struct {
	channel uint16
	row     uint32
}

type ahead struct {
	where, block uint32
	channel      uint16
}

type checker struct {
	m      *components.Module
	r      Report
	sbuf   memory
	psum   memory
	dram   map[uint32]*memory
	looped map[uint32][]loopWriter // by location: who wrote in a loop whose iterations are not all there
	ahead  map[ahead]bool
	region []uint32 // innermost block of each row
	inLoop []bool   // by block: it or a block around it runs more than once
	// channel is what works in program order: a lane, or of the DMA lane a queue
	// with one kind of descriptors.
	channel  []uint16
	channels int
	// before has for each row the last row of each channel that it comes after,
	// plus one: directly, by its channel's program order or through others.
	before []uint32
	last   []uint32
	other  []uint32 // rows of the table of other edges, by consumer
}

// checkModule looks at the memory accesses of a module, from its operands
// alone: that nothing on chip is read before it is defined or after something
// else has taken its place, that nothing in device memory is read before it is
// stored, that every pair of accesses that must not change places is held in
// order by a dependency or by what works in program order (an engine, a stream,
// a DMA queue), and that no instruction waits for another because of a buffer
// of which the two touch different bytes. It knows nothing of how the module
// was made.
//
// Of a loop the rows are looked at once, as its first iteration. What further
// iterations write has no address in the module: bytes that no row has written
// are taken as theirs, so that who reads such bytes must come after the loop's
// last writers; and what a loop reads of device memory must come after all
// writers before the loop.
func checkModule(m *components.Module) (*Report, error) {
	if m.Operands.Offsets.Len() == 0 {
		return nil, errors.New("the module has no operands: there is nothing to check")
	}
	c := &checker{m: m}
	c.blocks()
	c.findChannels()
	c.before = make([]uint32, m.Instr.Len()*c.channels)
	for _, b := range m.TopBlocks() {
		c.sbuf, c.psum, c.last = memory{}, memory{}, make([]uint32, c.channels)
		c.dram, c.looped, c.ahead = map[uint32]*memory{}, map[uint32][]loopWriter{}, map[ahead]bool{}
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			c.instruction(i)
		}
	}
	return &c.r, nil
}

func (c *checker) findChannels() {
	m := c.m
	ids := map[[3]uint16]uint16{}
	c.channel = make([]uint16, m.Instr.Len())
	for i := range c.channel {
		key := [3]uint16{m.Instr.Lane.At(i)}
		if key[0]%components.LanesPerCore == components.LaneDMA {
			key[1] = m.Instr.Queue.Get(i) + 1
			if m.Instr.Flags.At(i)&components.FlagSWDGE != 0 {
				key[2] = 1
			}
		}
		id, ok := ids[key]
		if !ok {
			id = uint16(len(ids))
			ids[key] = id
		}
		c.channel[i] = id
	}
	c.channels = max(len(ids), 1)
	from := m.Edges.Other.From.Slice()
	c.other = make([]uint32, len(from))
	for k := range c.other {
		c.other[k] = uint32(k)
	}
	if !slices.IsSorted(from) {
		slices.SortStableFunc(c.other, func(a, b uint32) int { return int(from[a]) - int(from[b]) })
	}
}

func (c *checker) blocks() {
	t := &c.m.Blocks
	c.region = make([]uint32, c.m.Instr.Len())
	c.inLoop = make([]bool, t.Len())
	for b := range t.Len() {
		if p := t.Parent.At(b); p > 0 {
			c.inLoop[b] = t.Trip.At(b) != 1 || c.inLoop[c.region[p-1]]
		}
		for i := t.First.At(b); i < t.End.At(b); i++ {
			c.region[i] = uint32(b)
		}
	}
}

func (c *checker) problem(i, other uint32, format string, args ...any) {
	c.r.Found++
	if len(c.r.Problems) < most {
		o := components.NoInstr
		if other > 0 {
			o = components.InstrID(other - 1)
		}
		c.r.Problems = append(c.r.Problems, problem{components.InstrID(i), o, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) instruction(i uint32) {
	m := c.m
	v := c.before[int(i)*c.channels:][:c.channels]
	join := func(q uint32) {
		for l, r := range c.before[int(q)*c.channels:][:c.channels] {
			v[l] = max(v[l], r)
		}
		v[c.channel[q]] = max(v[c.channel[q]], q+1)
	}
	for _, w := range m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		join(p)
		c.needed(i, p, components.KindOfClass(uint8(w>>ecs.ClassShift)))
	}
	o := &m.Edges.Other
	for len(c.other) > 0 && o.From.At(int(c.other[0])) <= i {
		k := int(c.other[0])
		if p := o.To.At(k); o.From.At(k) == i && o.Scope.At(k) == components.ScopeRegion && p < i {
			join(p)
			c.needed(i, p, o.Kind.At(k))
		}
		c.other = c.other[1:]
	}
	if q := c.last[c.channel[i]]; q > 0 {
		join(q - 1)
	}
	c.last[c.channel[i]] = i + 1
	lo, hi := m.Operands.Range(components.InstrID(i))
	for r := lo; r < hi; r++ {
		if o := m.Operands.At(r); o.Role != components.RoleOut {
			c.read(i, o)
		}
	}
	for r := lo; r < hi; r++ {
		if o := m.Operands.At(r); o.Role == components.RoleOut {
			c.write(i, o)
		}
	}
}

// needed tells of an Output or Anti edge from i to p whose instructions touch
// different bytes: nobody has to wait. Between a loop and what is around it
// addresses are those of one iteration, so that nothing can be said.
func (c *checker) needed(i, p uint32, kind components.EdgeKind) {
	if kind != components.Output && kind != components.Anti {
		return
	}
	if a, b := c.region[i], c.region[p]; a != b && (c.inLoop[a] || c.inLoop[b]) {
		c.r.Unknown++
		return
	}
	m := c.m
	plo, phi := m.Operands.Range(components.InstrID(p))
	ilo, ihi := m.Operands.Range(components.InstrID(i))
	if plo == phi || ilo == ihi {
		c.r.Unknown++
		return
	}
	for a := plo; a < phi; a++ {
		x := m.Operands.At(a)
		if (x.Role == components.RoleOut) != (kind == components.Output) {
			continue
		}
		for b := ilo; b < ihi; b++ {
			y := m.Operands.At(b)
			if y.Role != components.RoleOut || x.Memory.InDRAM() != y.Memory.InDRAM() || !x.Memory.InDRAM() && x.Memory != y.Memory || x.Memory.InDRAM() && x.Where != y.Where {
				continue
			}
			if x.Kind != components.OperandPhysical || y.Kind != components.OperandPhysical {
				c.r.Unknown++
				return
			}
			meet := false
			runs(x, func(lo, hi uint64) bool {
				runs(y, func(l, h uint64) bool {
					meet = meet || lo < h && l < hi
					return !meet
				})
				return !meet
			})
			if meet {
				c.r.Waits++
				return
			}
		}
	}
	c.r.False++
	c.problem(i, p+1, "has an %s edge to %s (row %d), which touches other bytes", kind, m.InstrName(components.InstrID(p)), p)
}

// memory returns the memory of an operand, nil where it has none, and whether
// anything in it is there from the start.
func (c *checker) memory(o components.AccessPattern) *memory {
	switch {
	case o.Memory == components.MemSBUF:
		return &c.sbuf
	case o.Memory == components.MemPSUM:
		return &c.psum
	case o.Memory.InDRAM() && o.Where > 0:
		mem := c.dram[o.Where]
		if mem == nil {
			mem = &memory{}
			c.dram[o.Where] = mem
		}
		return mem
	}
	return nil
}

func (c *checker) read(i uint32, o components.AccessPattern) {
	mem := c.memory(o)
	if mem == nil {
		return
	}
	c.r.Accesses++
	if o.Memory.InDRAM() && c.inLoop[c.region[i]] {
		c.readAhead(i, o.Where, mem)
	}
	there := o.Where > 0 && c.m.Locations.Memory.At(int(o.Where)-1) == components.MemInput
	if o.Kind != components.OperandPhysical { // anywhere
		if len(mem.spans) == 0 && !there && c.looped[o.Where] == nil {
			c.problem(i, 0, "reads %s before anything is stored there", c.name(o.Where))
		}
		for k := range mem.spans {
			c.readSpan(i, &mem.spans[k])
		}
		c.afterLoops(i, o.Where)
		return
	}
	runs(o, func(lo, hi uint64) bool { return c.readRun(i, o.Where, mem, there, lo, hi) })
}

// runs calls f for each contiguous piece of a pattern within a partition, until
// it returns false. Pieces in device memory are taken as one.
func runs(o components.AccessPattern, f func(lo, hi uint64) bool) {
	n := len(o.Steps)
	size := uint64(max(o.DType.Size(), 1))
	if n != 3 || o.Memory.InDRAM() || o.Steps[2] != 1 || o.Steps[1] < 0 {
		f(o.Span())
		return
	}
	for k := range o.Counts[1] {
		lo := o.Address + k*uint64(o.Steps[1])*size
		if !f(lo, lo+o.Counts[2]*size) {
			return
		}
	}
}

// readRun checks a read of bytes lo to hi and notes it. Bytes that are there
// from the start get a span without a writer.
func (c *checker) readRun(i, where uint32, mem *memory, there bool, lo, hi uint64) bool {
	for k := mem.split(lo); lo < hi; k++ {
		if k == len(mem.spans) || mem.spans[k].lo > lo { // a hole
			end := hi
			if k < len(mem.spans) {
				end = min(end, mem.spans[k].lo)
			}
			if !there {
				if c.looped[where] == nil {
					c.problem(i, 0, "reads bytes %d to %d of %s, which nobody has defined", lo, end, c.name(where))
					return false
				}
				c.afterLoops(i, where)
			}
			mem.spans = slices.Insert(mem.spans, k, span{lo: lo, hi: end, owner: where})
		}
		if mem.spans[k].hi > hi {
			mem.split(hi)
		}
		s := &mem.spans[k]
		if s.owner != where && c.looped[where] == nil {
			c.problem(i, s.writer, "reads %s, whose bytes %d to %d now hold %s", c.name(where), s.lo, s.hi, c.name(s.owner))
			return false
		}
		if s.owner == where {
			if s.writer == 0 && !there {
				c.afterLoops(i, where)
			}
			c.readSpan(i, s)
		}
		lo = s.hi
	}
	return true
}

// readSpan checks a read of a span and notes it, the last one of each channel.
func (c *checker) readSpan(i uint32, s *span) {
	if s.writer > 0 {
		c.ordered(i, s.writer-1, "reads", "was written by")
	}
	for k := range s.readers {
		if s.readers[k].channel == c.channel[i] {
			s.readers[k].row = i
			return
		}
	}
	s.readers = append(s.readers, reader{c.channel[i], i})
}

// afterLoops checks that i comes after the loops that wrote a location.
func (c *checker) afterLoops(i, where uint32) {
	for _, w := range c.looped[where] {
		if c.region[w.row] != c.region[i] {
			c.ordered(i, w.row, "reads", "was written in a loop by")
		}
	}
}

// readAhead checks what a loop reads of a location in device memory, of which
// only the first iteration is there, once for each channel.
func (c *checker) readAhead(i, where uint32, mem *memory) {
	key := ahead{where, c.region[i], c.channel[i]}
	if c.ahead[key] {
		return
	}
	c.ahead[key] = true
	for k := range mem.spans {
		if w := mem.spans[k].writer; w > 0 && c.region[w-1] != c.region[i] {
			c.ordered(i, w-1, "reads in a loop", "was written by")
		}
	}
}

func (c *checker) write(i uint32, o components.AccessPattern) {
	mem := c.memory(o)
	if mem == nil {
		return
	}
	c.r.Accesses++
	if c.inLoop[c.region[i]] {
		c.noteLoop(i, o.Where)
	}
	lo, hi := o.Span()
	if o.Kind != components.OperandPhysical { // anywhere
		l := &c.m.Locations
		lo = l.Addr.At(int(o.Where - 1))
		hi = lo + l.Bytes.At(int(o.Where-1))
	}
	a := mem.split(lo)
	b := mem.split(hi)
	for k := a; k < b; k++ {
		s := &mem.spans[k]
		if s.writer > 0 {
			c.ordered(i, s.writer-1, "overwrites", "was written by")
		}
		for _, r := range s.readers {
			c.ordered(i, r.row, "overwrites", "is read by")
		}
	}
	mem.spans = slices.Replace(mem.spans, a, b, span{lo: lo, hi: hi, owner: o.Where, writer: i + 1})
}

func (c *checker) noteLoop(i, where uint32) {
	list := c.looped[where]
	for k := range list {
		if list[k].channel == c.channel[i] {
			list[k].row = i
			return
		}
	}
	c.looped[where] = append(list, loopWriter{c.channel[i], i})
}

// ordered checks that instruction i comes after p: they share a channel, which
// works in program order, or i depends on p or on a later instruction of p's
// channel, itself or through others.
func (c *checker) ordered(i, p uint32, does, was string) {
	if p == i || c.channel[p] == c.channel[i] {
		return
	}
	c.r.Ordered++
	if c.before[int(i)*c.channels+int(c.channel[p])] > p {
		return
	}
	c.problem(i, p+1, "%s what %s %s (row %d) without a dependency on it", does, was, c.m.InstrName(components.InstrID(p)), p)
}

func (c *checker) name(where uint32) string {
	if where == 0 {
		return "an unnamed place"
	}
	return c.m.Symbols.String(c.m.Locations.Name.At(int(where - 1)))
}
