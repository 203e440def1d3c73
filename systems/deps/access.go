package deps

import (
	"cmp"
	"math"
	"slices"

	"perfsim/components"
)

// space is a memory of its own: accesses of two spaces never meet.
type space struct {
	kind spaceKind
	id   uint32 // bank, alias set, location, core
}

type spaceKind uint8

const (
	spaceSBUF     spaceKind = iota
	spacePSUM               // id is the bank, or maxBanks for all beyond the last
	spaceDRAM               // device memory whose tensors overlap, in bins
	spaceAlias              // id is the alias set
	spaceTensor             // id is the row of a location in device memory that overlaps no other
	spaceRegister           // id is the row of the location
)

// access is one touch of one space.
type access struct {
	row    uint32
	space  uint32 // index of the function's spaces
	write  bool
	p0, p1 uint32 // partitions, or rows of a tensor in device memory
	lo, hi uint64 // bytes, bins
}

const bankBytes = 2048

// maxBanks is the number of PSUM banks distinguished: the banks of every
// machine, and the width of components.Instructions.Banks.
const maxBanks = 8

// maxStrips bounds the strips of partitions or rows of one space; beyond it,
// they are rounded outwards to groups.
const maxStrips = 512

// collector gathers the accesses of one function.
type collector struct {
	m      *components.Module
	opt    *Options
	spaces []space
	index  map[space]uint32
	list   []access
	first  []uint32 // by row from the function's first on: start of its accesses in list
	blind  int      // patterns whose memory is not known
	rows   rowView
}

// collect fills list with the accesses of rows lo to hi, in program order.
func (c *collector) collect(lo, hi uint32) {
	c.index = map[space]uint32{}
	c.first = make([]uint32, 0, hi-lo+1)
	flags := c.m.Instr.Flags.Slice()
	c.rows.look(c.m, lo, hi)
	for i := lo; i < hi; i++ {
		c.first = append(c.first, uint32(len(c.list)))
		if flags[i]&components.FlagLoop != 0 {
			continue
		}
		// Reads come before writes: an instruction reads what was there before it.
		a, b := c.m.Operands.Range(components.InstrID(i))
		for r := a; r < b; r++ {
			if c.m.Operands.Role.At(r) != components.RoleOut {
				c.operand(i, r)
			}
		}
		for r := a; r < b; r++ {
			if c.m.Operands.Role.At(r) == components.RoleOut {
				c.operand(i, r)
			}
		}
	}
	c.first = append(c.first, uint32(len(c.list)))
	c.strips()
}

// operand adds the accesses that operand r of instruction i makes.
func (c *collector) operand(i uint32, r int) {
	t := &c.m.Operands
	kind := t.Kind.At(r)
	write := t.Role.At(r) == components.RoleOut
	where := t.Where.At(r)
	switch kind {
	case components.OperandPhysical, components.OperandSymbolic, components.OperandRegisterAP:
		// A ReadVarAddr reads an address, not what is there.
		if !write && c.m.Instr.Opcode.At(int(i)) == components.OpcodeReadVarAddr {
			return
		}
	case components.OperandRegister:
		if where > 0 && c.opt.Registers {
			c.add(access{row: i, write: write, p1: 1, hi: 1}, space{spaceRegister, where - 1})
		}
		return
	default:
		return
	}
	o := t.At(r)
	if len(o.Counts) == 0 && where == 0 {
		c.blind++
		return
	}
	var lo, hi uint64
	loc := &c.m.Locations
	exact := kind == components.OperandPhysical && len(o.Counts) > 0
	if exact {
		if slices.Contains(o.Counts, 0) {
			return
		}
		lo, hi = o.Span()
	} else {
		// Where the pattern starts is known when it runs: anywhere in the tensor.
		if where == 0 {
			c.blind++
			return
		}
		l := int(where) - 1
		lo = placed(loc, l)
		hi = lo + max(loc.Bytes.At(l), 1)
		o.Memory = loc.Memory.At(l)
	}
	a := access{row: i, write: write, p0: 0, p1: 1, lo: lo, hi: hi}
	switch {
	case o.Memory == components.MemSBUF || o.Memory == components.MemPSUM:
		a.p0, a.p1 = c.partitions(&o, where, exact)
		if o.Memory == components.MemSBUF {
			c.add(a, space{spaceSBUF, 0})
			return
		}
		for bank := lo / bankBytes; bank < maxBanks && bank*bankBytes < hi; bank++ {
			piece := a
			piece.lo = max(lo, bank*bankBytes) - bank*bankBytes
			piece.hi = min(hi, (bank+1)*bankBytes) - bank*bankBytes
			c.add(piece, space{spacePSUM, uint32(bank)})
		}
		if beyond := uint64(maxBanks * bankBytes); hi > beyond {
			a.lo, a.hi = max(lo, beyond)-beyond, hi-beyond
			c.add(a, space{spacePSUM, maxBanks})
		}
	case where > 0 && loc.Alias.At(int(where)-1) != 0:
		a.lo, a.hi = 0, 1
		c.add(a, space{spaceAlias, loc.Alias.At(int(where) - 1)})
	case where > 0 && c.rows.alone(where-1):
		c.rows.split(&a, &o, where-1, exact, loc.Addr.At(int(where)-1))
		c.bins(&a)
		c.add(a, space{spaceTensor, where - 1})
	case o.Memory.InDRAM():
		c.bins(&a)
		c.add(a, space{spaceDRAM, 0})
	default:
		c.blind++
	}
}

// placed is where a location starts; in PSUM, counted from bank 0.
func placed(t *components.Locations, l int) uint64 {
	addr, bank := t.Addr.At(l), t.Bank.At(l)
	if t.Memory.At(l) == components.MemPSUM && bank > 0 && addr/bankBytes != uint64(bank) {
		return addr + uint64(bank)*bankBytes
	}
	return addr
}

// bins rounds the bytes of an access outwards to bins of device memory.
func (c *collector) bins(a *access) {
	bin := max(c.opt.Bin, 1)
	a.lo /= bin
	a.hi = (a.hi + bin - 1) / bin
}

// partitions bounds the partitions of an operand: count times the step of its
// first pair where that is a whole number of partitions, count neighbours
// otherwise.
func (c *collector) partitions(o *components.AccessPattern, where uint32, exact bool) (p0, p1 uint32) {
	loc := &c.m.Locations
	if !exact {
		l := int(where) - 1
		return uint32(loc.Base.At(l)), uint32(loc.Base.At(l)) + max(uint32(loc.Parts.At(l)), 1)
	}
	p0 = uint32(o.Base)
	step := uint64(1)
	if where > 0 {
		pitch := loc.Bytes.At(int(where)-1) / uint64(max(o.DType.Size(), 1))
		if s := o.Steps[0]; pitch > 0 && s > 0 && uint64(s)%pitch == 0 {
			step = uint64(s) / pitch
		}
	}
	reach := (o.Counts[0]-1)*min(step, 1<<16) + 1
	return p0, p0 + uint32(min(reach, 1<<16))
}

func (c *collector) add(a access, s space) {
	id, ok := c.index[s]
	if !ok {
		id = uint32(len(c.spaces))
		c.spaces = append(c.spaces, s)
		c.index[s] = id
	}
	a.space = id
	c.list = append(c.list, a)
}

// strips rounds partitions where a space has too many different ones.
func (c *collector) strips() {
	over := make([]bool, len(c.spaces))
	for group := uint32(8); ; group *= 2 {
		again := false
		for s, b := range c.bounds() {
			over[s] = len(b)-1 > maxStrips
			again = again || over[s]
		}
		if !again {
			return
		}
		for i := range c.list {
			if a := &c.list[i]; over[a.space] {
				a.p0 = a.p0 / group * group
				a.p1 = uint32(min((uint64(a.p1)+uint64(group)-1)/uint64(group)*uint64(group), math.MaxUint32))
			}
		}
	}
}

// bounds returns for every space the partitions at which some access begins
// or ends, sorted.
func (c *collector) bounds() [][]uint32 {
	seen := make([]map[uint32]bool, len(c.spaces))
	for i := range c.list {
		a := &c.list[i]
		m := seen[a.space]
		if m == nil {
			m = map[uint32]bool{}
			seen[a.space] = m
		}
		if !m[a.p0] {
			m[a.p0] = true
		}
		if !m[a.p1] {
			m[a.p1] = true
		}
	}
	out := make([][]uint32, len(c.spaces))
	for s, m := range seen {
		for p := range m {
			out[s] = append(out[s], p)
		}
		slices.SortFunc(out[s], func(a, b uint32) int { return cmp.Compare(a, b) })
	}
	return out
}
