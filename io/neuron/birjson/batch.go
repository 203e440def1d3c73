package birjson

import (
	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// itemKind says what the text of an item is.
type itemKind uint8

const (
	itemInstr    itemKind = iota
	itemAlloc             // an allocation of a function
	itemDMABlock          // a DMABlock of a queue
	itemFunction          // no text: a function begins
	itemEnd               // no text: a function ends
)

// item is one piece of the input that is parsed on its own.
type item struct {
	kind   itemKind
	holds  bool // an instruction with blocks of its own, which are not in its text
	row    uint32
	block  uint32
	fn     int // row of the function
	lo, hi int // text[lo:hi]
	at     jsonscan.Place
}

// A batch is a run of items of one function, with what parsing made of them.
// Batches are parsed in any order and merged in input order.
type batch struct {
	text  []byte // of the items, where another goroutine parses them
	size  int    // bytes of the text of all items
	items []item
	view  *locationView // the function's locations, nil where they are not known yet

	out parsed
	err *jsonscan.Error // the first error; the items before it are in out
	// done is closed when the batch is parsed.
	done chan struct{}
	// settled is set in a batch that only marks a place in the order: it is
	// closed when everything before it is merged.
	settled chan struct{}
}

// Sizes at which a batch is full: large enough that handing it over costs
// nothing, small enough that it stays in the cache.
const (
	batchText  = 192 << 10
	batchItems = 2048
)

func (b *batch) reset() {
	b.text, b.size = b.text[:0], 0
	b.items = b.items[:0]
	b.view = nil
	b.err = nil
	b.done = nil
	b.out.reset()
}

func (b *batch) full() bool { return b.size >= batchText || len(b.items) >= batchItems }

// span is a piece of parsed.str; empty for absent.
type span struct{ lo, hi uint32 }

func (s span) empty() bool { return s.lo == s.hi }

// parsed has the contents of a batch's items, in flat arrays that are reused.
type parsed struct {
	str    []byte
	instrs []instr
	deps   []dep
	ops    []components.AccessPattern
	steps  []int64
	counts []uint64
	late   []lateOperand
	syncs  []syncOp
	refs   []span // names of DMA blocks
	allocs []alloc
	locs   []location
	alias  []aliasPair
	dmas   []dmaBlock
	unread []unread
}

func (p *parsed) reset() {
	p.str = p.str[:0]
	p.instrs = p.instrs[:0]
	p.deps = p.deps[:0]
	p.ops = p.ops[:0]
	p.steps = p.steps[:0]
	p.counts = p.counts[:0]
	p.late = p.late[:0]
	p.syncs = p.syncs[:0]
	p.refs = p.refs[:0]
	p.allocs = p.allocs[:0]
	p.locs = p.locs[:0]
	p.alias = p.alias[:0]
	p.dmas = p.dmas[:0]
	p.unread = p.unread[:0]
}

func (p *parsed) keep(b []byte) span {
	lo := len(p.str)
	p.str = append(p.str, b...)
	return span{uint32(lo), uint32(len(p.str))}
}

func (p *parsed) bytes(s span) []byte { return p.str[s.lo:s.hi] }

// instr is one parsed instruction.
type instr struct {
	row, block uint32
	at         jsonscan.Place

	geometry
	opcode  components.Opcode
	unknown span // name of an opcode that is not the compiler's
	engine  components.Engine
	lane    uint16
	holds   bool
	trip    uint64

	name, source, hlo, scope, fn, text, queue span
	hash                                      uint64 // of the name
	target                                    span   // of a call

	ref        uint64
	pc         uint32
	compilerPC uint32
	wait       uint32
	macs       uint32
	work       uint64
	measured   bool // has mstart and mdur
	timed      bool // has mdur
	mstart     uint64
	mdur       uint32
	hasRef     bool
	given      givenSet
	overrides  bool // its transfer is given, not that of a DMA block

	deps, ops, late, syncs, refs rng
	hasDeps                      bool // has a dependencies key at all
}

// rng is a range of one of parsed's arrays.
type rng struct{ lo, hi uint32 }

// dep is one dependency.
type dep struct {
	name     span
	hash     uint64
	kind     components.EdgeKind
	carried  bool
	distance int32
}

// lateOperand is an operand whose location is not known yet.
type lateOperand struct {
	op     uint32 // index in parsed.ops
	name   span
	set    span
	owner  span // the function that owns the location, where it is not this one
	offset int64
}

type syncOp struct {
	op    components.SyncOp
	space uint8
	id    uint32
	value int64
	owner span
}

// unread is one kind of thing kept but not understood.
type unread struct {
	code  string
	what  span
	count int
}
