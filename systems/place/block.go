package place

//lint:file-ignore U1000 most of this only the assembly takes

import (
	"perfsim/components"
	"perfsim/ecs"
)

// blockRows is how many rows a block has: what is worked out for them, some
// 80 bytes a row, fits the first-level cache together with their times.
const blockRows = 256

// nearRows is the number of rows whose times, 16 bytes each, lie within a
// second-level cache of today; docs/speed.md has what asking ahead costs there.
const nearRows = 1 << 15

// Constants that the assembly takes.
const (
	targetMask   = ecs.TargetMask
	classShift   = ecs.ClassShift
	classOrdered = components.ClassOrdered
	// nearBack is how many rows back from a block's first the times are still
	// in the first-level cache; those before are asked for.
	nearBack = 512
	// listWords is how many edges are looked at before the times of those that
	// go far back are asked for.
	listWords = 512
	// coreFactor times a lane, shifted right by 19, is the lane's core.
	coreFactor = 1<<19/components.LanesPerCore + 1
)

// What the state of a row has besides special flags in its lowest four bits
// and banks in its upper half. A row without any of this and without banks is
// placed by its first four edges alone.
const (
	stateOrdered = 0xf0  // ordered edges
	stateMore    = 0x100 // more than four edges
	stateMany    = 0x200 // more than eight
	stateGo      = 0x400 // left to the Go code, as rows with special flags are
	stateBanks   = 0x800 // writes several banks or uses several
)

// block is shared by the two loops of walk.go.
type block struct {
	// Columns from the block's first row on.
	off     *uint32
	flags   *components.Flags
	banks   *uint16
	issue   *uint32
	latency *uint32
	lane    *uint16
	out     *pair
	rows    int

	// What is there as a whole.
	words      *uint32
	arrive     *pair
	free       *pair
	bank       *pair
	bankOf     *uint32    // by lane: where the banks of its core start, in bytes
	couple     *[2]uint32 // by lane: what it waits for besides, in bytes from free on; nil where engines are not coupled
	allFlags   *components.Flags
	allIssue   *uint32
	allLatency *uint32
	compress   *[256]uint64 // see compressTable; nil where near is set
	numWords   uint32
	zero       uint32 // the row behind the last, whose times are zero, times four
	lanes      uint32
	near       uint32 // not 0 where the times fit the caches, so that asking ahead is in vain
	last       pair   // the largest end so far

	noBanks [blockRows]uint16 // the column where the rules have none; never written

	// Results of the first loop for the second.
	banked uint32               // not 0 where rows of the block use PSUM banks
	state  [blockRows]uint32    // of what follows, what a row needs
	slot   [blockRows]uint32    // where the lane is in free, in bytes
	degree [blockRows]uint32    // edges, at most 16
	wait   [blockRows]uint32    // the bank written, in bytes from bank on; see bankFirst
	use    [blockRows]uint32    // the bank used
	keep   [blockRows]uint32    // where the end goes, in bytes from free on; see newKernel
	pad    [blockRows][8]uint32 // four rows for run A and four for run B, times four
	pad2   [blockRows][8]uint32 // of the next four edges

	more [blockRows/8 + 8]uint8 // a bit a row: more than four edges
	list [listWords + 16]uint32 // targets that go far back, times four
}

// newPadded returns room for the blocks of a placement of that many times.
func newPadded(times int) *block {
	b := &block{}
	if times < nearRows {
		b.near = 1
		return b
	}
	b.compress = compressTable()
	return b
}

// compressTable has for every byte the numbers of its bits that are set, a
// byte each, in ascending order.
func compressTable() *[256]uint64 {
	var t [256]uint64
	for m := range t {
		at := 0
		for b := range 8 {
			if m>>b&1 != 0 {
				t[m] |= uint64(b) << (8 * at)
				at++
			}
		}
	}
	return &t
}
