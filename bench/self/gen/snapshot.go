package gen

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"perfsim/ecs"
	"perfsim/io/psim"
)

// WindowRows is how many rows Snapshot holds at a time.
const WindowRows = 1 << 22

// Snapshot writes the module of the options, which has no operands, as a snapshot
// and holds a window of its rows at a time. It returns the bytes and the number
// of dependencies, and calls progress, where not nil, with the rows done.
func Snapshot(ctx context.Context, w io.WriterAt, opt Options, progress func(rows int64)) (bytes int64, edges uint64, err error) {
	return snapshot(ctx, w, opt, WindowRows, progress)
}

func snapshot(ctx context.Context, w io.WriterAt, opt Options, window uint32, progress func(rows int64)) (bytes int64, edges uint64, err error) {
	g, err := newGenerator(&opt)
	if err != nil {
		return 0, 0, err
	}
	n := uint32(opt.Instructions)
	var total atomic.Uint64
	if err := g.parallel(ctx, 0, n, func(lo, hi uint32) {
		sum := uint64(0)
		g.degrees(lo, hi, func(_, degree uint32) { sum += uint64(degree) })
		total.Add(sum)
	}); err != nil {
		return 0, 0, err
	}
	edges = total.Load()
	if err := fewEnough(edges); err != nil {
		return 0, 0, err
	}
	whole := g.m
	check, err := whole.CheckWindows(int(n))
	if err != nil {
		return 0, 0, fmt.Errorf("generated module: %w", err)
	}
	g.m = whole.Window()
	sizes := map[string]int64{}
	g.m.Instr.Grow(1) // shows the columns that are there
	for _, c := range g.m.Instr.Columns() {
		sizes[c.Name()] = c.Bytes() * int64(n)
	}
	offsets, words := g.m.Edges.Preds.Columns()[0], g.m.Edges.Preds.Columns()[1]
	sizes[offsets.Name()], sizes[words.Name()] = 4*(int64(n)+1), 4*int64(edges)
	b, err := psim.NewBuilder(w, whole, uint64(n), func(column string) int64 { return sizes[column] })
	if err != nil {
		return 0, 0, err
	}
	before := uint32(0) // dependencies of earlier windows
	for lo := uint32(0); lo < n; lo += min(window, n-lo) {
		hi := min(lo+window, n)
		g.m.Base = lo
		for _, c := range g.m.Instr.Columns() {
			if c.Len() > 0 {
				c.SetLen(int(hi - lo))
			}
		}
		if err := g.edges(ctx, lo, hi); err != nil {
			return 0, 0, err
		}
		g.loopRows(lo, hi)
		if err := check(ctx, opt.Jobs, g.m); err != nil {
			return 0, 0, fmt.Errorf("generated module: %w", err)
		}
		off := offsets.(*ecs.Column[uint32])
		for i := range off.Slice() {
			off.Slice()[i] += before
		}
		before = off.At(int(hi - lo))
		if hi < n { // the next window starts with it
			off.SetLen(int(hi - lo))
		}
		for _, c := range append(g.m.Instr.Columns(), offsets, words) {
			if c.Len() == 0 {
				continue
			}
			if err := b.Append(c.Name(), c.Raw()); err != nil {
				return 0, 0, err
			}
		}
		if progress != nil {
			progress(int64(hi))
		}
	}
	whole.Edges.Declared = g.declared
	bytes, err = b.Close()
	return bytes, edges, err
}
