// Package check looks at the memory accesses of a module, from its operands
// alone: that nothing on chip is read before it is defined or after something
// else has taken its place, that nothing in device memory is read before it is
// stored, and that every pair of accesses that must not change places is held
// in order by a dependency or by their lane. It knows nothing of how the
// module was made.
package check

import (
	"errors"
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Problem is one access that is wrong.
type Problem struct {
	Instr components.InstrID
	Other components.InstrID // the instruction it conflicts with, NoInstr for none
	Text  string
}

// Report is what was looked at and what was found.
type Report struct {
	Accesses int64 // on chip
	Ordered  int64 // pairs of accesses whose order was checked
	Skipped  int64 // pairs whose other end lies in another block, which the placement orders by its blocks
	Found    int64
	Problems []Problem // the first ones
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
	writer  uint32 // row plus one
	readers []reader
}

type reader struct {
	lane uint16
	row  uint32
}

// memory is the state of SBUF or PSUM: spans in order, without overlap.
type memory struct{ spans []span }

// cut makes positions lo and hi borders of spans and returns the spans
// between them as a range of indexes; holes are not filled.
func (s *memory) cut(lo, hi uint64) (a, b int) {
	a = s.split(lo)
	b = s.split(hi)
	return a, b
}

// over returns the spans that have bytes between lo and hi. A reader of a part
// of a span counts as one of the whole span: that is stricter than need be.
func (s *memory) over(lo, hi uint64) (a, b int) {
	a = s.at(lo)
	for b = a; b < len(s.spans) && s.spans[b].lo < hi; b++ {
	}
	return a, b
}

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

type checker struct {
	m      *components.Module
	r      Report
	sbuf   memory
	psum   memory
	stored map[uint32]bool // locations of device memory that have been written
	looped map[uint32]bool // locations written in a loop whose iterations are not all there
	region []uint32        // innermost block of each row
	inLoop []bool          // by block: it or a block around it runs more than once
	// before has for each row the last row of each lane that it comes after,
	// plus one: directly, by its lane's program order or through others.
	before [][lanes]uint32
	last   [lanes]uint32
	lane   []uint16
}

// lanes is how many lanes access on-chip memory; the streams do not.
const lanes = int(components.LaneSP) + 1

// Module checks all functions of a module with operands.
func Module(m *components.Module) (*Report, error) {
	if m.Operands.Offsets.Len() == 0 {
		return nil, errors.New("the module has no operands: there is nothing to check")
	}
	c := &checker{m: m, lane: m.Instr.Lane.Slice()}
	c.blocks()
	c.before = make([][lanes]uint32, m.Instr.Len())
	for _, b := range m.TopBlocks() {
		c.sbuf, c.psum, c.last = memory{}, memory{}, [lanes]uint32{}
		c.stored, c.looped = map[uint32]bool{}, map[uint32]bool{}
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			c.instruction(i)
		}
	}
	return &c.r, nil
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
		c.r.Problems = append(c.r.Problems, Problem{components.InstrID(i), o, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) instruction(i uint32) {
	m := c.m
	v := &c.before[i]
	join := func(q uint32) {
		for l, r := range c.before[q] {
			v[l] = max(v[l], r)
		}
		if l := int(c.lane[q]); l < lanes {
			v[l] = max(v[l], q+1)
		}
	}
	for _, w := range m.Edges.Preds.Row(int(i)) {
		join(w & ecs.TargetMask)
	}
	if l := int(c.lane[i]); l < lanes {
		if q := c.last[l]; q > 0 {
			join(q - 1)
		}
		c.last[l] = i + 1
	}
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

func (c *checker) memory(o components.AccessPattern) *memory {
	switch o.Memory {
	case components.MemSBUF:
		return &c.sbuf
	case components.MemPSUM:
		return &c.psum
	}
	return nil
}

func (c *checker) read(i uint32, o components.AccessPattern) {
	if o.Memory.InDRAM() {
		if o.Memory != components.MemInput && o.Where > 0 && !c.stored[o.Where] {
			c.problem(i, 0, "reads %s in device memory before anything is stored there", c.name(o.Where))
		}
		return
	}
	mem := c.memory(o)
	if mem == nil {
		return
	}
	c.r.Accesses++
	c.runs(o, func(lo, hi uint64) bool { return c.readRun(i, o.Where, mem, lo, hi) })
}

// runs calls f for each contiguous piece of a pattern within a partition, until
// it returns false.
func (c *checker) runs(o components.AccessPattern, f func(lo, hi uint64) bool) {
	n := len(o.Steps)
	size := uint64(max(o.DType.Size(), 1))
	if n != 3 || o.Steps[2] != 1 || o.Steps[1] < 0 {
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

func (c *checker) readRun(i, where uint32, mem *memory, lo, hi uint64) bool {
	a, b := mem.over(lo, hi)
	at := lo
	for k := a; k < b; k++ {
		s := &mem.spans[k]
		if s.lo > at && !c.looped[where] {
			c.problem(i, 0, "reads bytes %d to %d of %s, which nobody has defined", at, s.lo, c.name(where))
			return false
		}
		at = s.hi
		if s.owner != where && !c.looped[where] {
			c.problem(i, s.writer, "reads %s, whose bytes %d to %d now hold %s", c.name(where), s.lo, s.hi, c.name(s.owner))
			return false
		}
		if s.owner == where {
			c.ordered(i, s.writer-1, "reads", "was written by")
		}
		c.note(s, i)
	}
	if at < hi && !c.looped[where] {
		c.problem(i, 0, "reads bytes %d to %d of %s, which nobody has defined", at, hi, c.name(where))
		return false
	}
	return true
}

// note records a reader of a span, the last one of each lane.
func (c *checker) note(s *span, i uint32) {
	for k := range s.readers {
		if s.readers[k].lane == c.lane[i] {
			s.readers[k].row = i
			return
		}
	}
	s.readers = append(s.readers, reader{c.lane[i], i})
}

func (c *checker) write(i uint32, o components.AccessPattern) {
	if c.inLoop[c.region[i]] {
		c.looped[o.Where] = true
	}
	if o.Memory.InDRAM() {
		c.stored[o.Where] = true
		return
	}
	mem := c.memory(o)
	if mem == nil {
		return
	}
	c.r.Accesses++
	lo, hi := o.Span()
	a, b := mem.cut(lo, hi)
	for k := a; k < b; k++ {
		s := &mem.spans[k]
		c.ordered(i, s.writer-1, "overwrites", "was written by")
		for _, r := range s.readers {
			c.ordered(i, r.row, "overwrites", "is read by")
		}
	}
	mem.spans = slices.Replace(mem.spans, a, b, span{lo: lo, hi: hi, owner: o.Where, writer: i + 1})
}

// ordered tells whether instruction i comes after p: they share a lane, which
// works in program order, or i depends on p or on a later instruction of p's
// lane, itself or through others.
func (c *checker) ordered(i, p uint32, does, was string) {
	if p == i || c.lane[p] == c.lane[i] {
		return
	}
	if c.region[p] != c.region[i] {
		c.r.Skipped++
		return
	}
	c.r.Ordered++
	if l := int(c.lane[p]); l < lanes && c.before[i][l] > p {
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
