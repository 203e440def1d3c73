package place

import "perfsim/components"

// The plain path. Rows are placed a block at a time in two loops: the first
// copies the first four edges of every row to a place of fixed size, fills it
// up with edges to a row whose times are zero, asks the memory for the times it
// will need, and marks rows that need more than that; the second places the
// rows without a branch that depends on how many edges or banks they have. Both
// are assembly where there is some (walk_amd64.s) and the rules of rows, in Go,
// everywhere else: tests hold them equal. docs/speed.md has the gain.

// fast places rows lo to hi, which hold no bodies of loops, by blocks.
func (k *kernel) fast(lo, hi uint32) error {
	in := &k.m.Instr
	edges := &k.m.Edges.Preds
	b := k.blk.Get().(*block)
	defer k.blk.Put(b)
	words := edges.Words()
	arrive := k.arrive
	n := uint32(len(arrive) - 1)
	b.words, b.numWords, b.zero = first(words), uint32(len(words)), 4*n
	b.arrive, b.free, b.lanes = first(arrive), first(k.free), uint32(len(k.free))
	b.bank, b.bankOf = first(k.allBanks), first(k.bankOf)
	b.couple = nil
	if k.couple != nil {
		b.couple = first(k.couple)
	}
	b.allFlags, b.allIssue, b.allLatency = first(in.Flags.Slice()), first(in.Issue.Slice()), first(in.Latency.Slice())
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
		b.banks = &b.noBanks[0]
		if k.rules.Banks {
			banks := in.Banks.View(int(lo), int(end))
			if anyChained(in.Flags.View(int(lo), int(end)), banks) { // the assembly does not know them
				if err := k.rows(lo, end); err != nil {
					return err
				}
				lo = end
				continue
			}
			b.banks = &banks[0]
		}
		ready := padRows(b)
		for row := 0; row < b.rows; {
			if row < ready {
				b.last = k.last
				row = walkRows(b, row, ready)
				k.last = b.last
			}
			// The Go code places a row that the assembly stopped at, or all that it
			// cannot place at all.
			stop := row + 1
			if row >= ready {
				stop = b.rows
			}
			if row < stop {
				if err := k.rows(lo+uint32(row), lo+uint32(stop)); err != nil {
					return err
				}
			}
			row = stop
		}
		lo = end
	}
	return nil
}

func first[T any](s []T) *T { return &s[0] }

// anyChained reports whether one of some rows writes PSUM in banks that are not
// known.
func anyChained(flags []components.Flags, banks []uint16) bool {
	banks = banks[:len(flags)]
	var any components.Flags
	for i, f := range flags { // without branches, which would be hard to foresee
		written := components.Flags(uint32(banks[i]>>numBanks)+0xff) >> 8 // 1 where a bank is
		any |= f & components.FlagDstPSUM & (written - 1)
	}
	return any != 0
}
