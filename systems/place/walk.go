package place

import (
	"perfsim/components"
	"perfsim/ecs"
)

// The plain path. Rows are placed a block at a time in two loops: the first
// copies the first four edges of every row to a place of fixed size, fills
// it up with edges to a row whose times are zero, and asks the memory for the
// times it will need; the second places the rows without a branch that
// depends on how many edges they have. Both are assembly where there is some
// (walk_amd64.s) and the rules of rows, in Go, everywhere else: a test holds
// them equal. docs/speed.md tells what that gives.

// blockRows is how many rows a block has: the padded edges of a block, 32
// bytes a row, fit the first-level cache beside the times.
const blockRows = 256

// nearRows is the number of rows whose times, 16 bytes each, lie within a
// second-level cache of today; docs/speed.md has what asking ahead costs there.
const nearRows = 1 << 15

// Constants that the assembly takes.
const (
	//lint:ignore U1000 the assembly takes it
	targetMask = ecs.TargetMask
	//lint:ignore U1000 the assembly takes it
	classOrdered = components.ClassOrdered
	//lint:ignore U1000 the assembly takes it
	firstAnti = uint32(components.ClassAnti) << ecs.ClassShift // the last class, so that no word below is one
)

// block is what the two loops share. Pointers are to the block's first row,
// except arrive, free, bank and bankOf, which are whole.
type block struct {
	off      *uint32
	words    *uint32 // row 0
	flags    *components.Flags
	banks    *uint16
	issue    *uint32
	latency  *uint32
	lane     *uint16
	out      *pair
	arrive   *pair
	free     *pair
	bank     *pair
	bankOf   *uint32 // by lane: where the banks of its core start, in bytes
	rows     int
	numWords uint32 // edges in all
	zero     uint32 // the row behind the last, whose times are zero, times two
	lanes    uint32
	near     uint32 // not 0 where the times fit the caches, so that asking ahead is in vain
	last     pair   // the largest end so far
	// pad has for every row four rows for run A and four for run B, times two.
	//
	//lint:ignore U1000 the assembly takes it
	pad [blockRows][8]uint32
	// state is 0 for a plain row; in the low byte what makes it the Go code's,
	// bit 8 where it has more than four edges, in the upper half its banks.
	//
	//lint:ignore U1000 the assembly takes it
	state [blockRows]uint32
}

// fast places rows lo to hi, which hold no bodies of loops, by blocks.
func (k *kernel) fast(lo, hi uint32) error {
	in := &k.m.Instr
	edges := &k.m.Edges.Preds
	b := k.blk
	words := edges.Words()
	arrive := k.arrive
	n := uint32(len(arrive) - 1)
	var noBanks [blockRows]uint16 // where the rules have none
	b.words, b.numWords, b.zero = first(words), uint32(len(words)), 2*n
	b.arrive, b.free, b.lanes = first(arrive), first(k.free), uint32(len(k.free))
	b.bank, b.bankOf = first(k.banks), first(k.bankOf)
	b.near = 0
	if len(arrive) < nearRows {
		b.near = 1
	}
	for lo < hi {
		end := min(lo+blockRows, hi)
		b.rows = int(end - lo)
		b.off, b.flags = &edges.Offsets()[lo:][:b.rows+1][0], &in.Flags.View(int(lo), int(end))[0]
		b.issue, b.latency = &in.Issue.View(int(lo), int(end))[0], &in.Latency.View(int(lo), int(end))[0]
		b.lane, b.out = &in.Lane.View(int(lo), int(end))[0], &arrive[lo:end][0]
		if k.w.Events.Dur.Len() > 0 {
			dur, latency := k.w.Events.Dur.View(int(lo), int(end)), in.Latency.View(int(lo), int(end))
			for i, l := range latency {
				dur[i] = [2]uint32{l, l}
			}
		}
		b.banks = &noBanks[0]
		if k.rules.Banks {
			b.banks = &in.Banks.View(int(lo), int(end))[0]
		}
		ready := padRows(b)
		for row := 0; row < b.rows; row++ {
			if row < ready {
				b.last = k.last
				row = walkRows(b, row, ready)
				k.last = b.last
			}
			if row < b.rows {
				if err := k.rows(lo+uint32(row), lo+uint32(row)+1); err != nil {
					return err
				}
			}
		}
		lo = end
	}
	return nil
}

func first[T any](s []T) *T { return &s[0] }
