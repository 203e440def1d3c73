package stream

import (
	"context"
	"fmt"
	"runtime"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// pass is the second pass: while one window is placed the next is read.
func (r *run) pass(ctx context.Context) error {
	m := r.w.Module
	var err error
	if r.reader, err = r.newReader(); err != nil {
		return err
	}
	r.now = &components.World{Module: m, Machine: r.w.Machine, Config: r.w.Config, Events: components.NewEvents()}
	r.now.Events.Arrive.Reserve(r.most.rows + r.most.far + 1)
	r.stream = place.NewStream(r.now, place.RulesFor(r.w))
	r.sum, r.work = summary.NewWindows(m), work.NewSum(r.w)
	runs := components.NewExecutions(m, r.w.Config.Loops)
	r.w.Blocks = make([]components.BlockResult, m.Blocks.Len())
	for b := range r.w.Blocks {
		r.w.Blocks[b].Block = b
	}
	set := r.stage("placing", int64(r.n))
	r.now.Config.Progress = func(done, _ int64) { set(int64(r.now.Module.Base) + done) }
	windows := [2]*window{r.newWindow()}
	if len(r.from) > 2 {
		windows[1] = r.newWindow()
	}
	if err := r.fill(ctx, windows[0], 0); err != nil {
		return err
	}
	for k := range r.from[:len(r.from)-1] {
		w := windows[k%2]
		g, ctx := ecs.NewGroup(ctx, r.o.Jobs)
		g.Go(func() error {
			if err := r.timed("place", func() error { return r.place(ctx, w) }); err != nil {
				return fmt.Errorf("%s: %w", r.src.Name, err)
			}
			return r.timed("summary", func() error {
				r.sum.Edges(r.now)
				r.work.Rows(w.world.Module, w.rows, runs)
				return nil
			})
		})
		if k+2 < len(r.from) {
			g.Go(func() error { return r.fill(ctx, windows[(k+1)%2], k+1) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if k%collectEvery == collectEvery-1 {
			runtime.GC()
		}
	}
	return nil
}

// collectEvery is after how many windows the memory is collected. A window leaves
// about half a MiB behind, which by itself is collected when it is as much as all
// that is held.
const collectEvery = 64

// place places the rows of a window and keeps what later ones ask for.
func (r *run) place(ctx context.Context, w *window) error {
	m := w.world.Module
	lo, hi := m.Base, m.Base+uint32(w.rows)
	r.stream.Window(m)
	for i, row := range w.far {
		arrive, ok := r.arrive.at(row)
		if !ok {
			return fmt.Errorf("the file was changed while it was read: the first pass found no edge to row %d", row)
		}
		p := place.Producer{Arrive: arrive}
		p.Leaving, _ = r.order.at(row)
		r.stream.Earlier(uint32(w.rows+i), p)
	}
	t := &m.Blocks
	for at := lo; at < hi; {
		for ; r.next < t.Len() && t.First.At(r.next) == at; r.next++ {
			if t.End.At(r.next) > at {
				r.beginBlock(r.next)
			}
		}
		stop := min(hi, t.End.At(r.open[len(r.open)-1].block))
		if r.next < t.Len() {
			stop = min(stop, t.First.At(r.next))
		}
		if err := r.stream.Place(ctx, at-lo, stop-lo); err != nil {
			return err
		}
		r.sum.Rows(r.now, int(at-lo), int(stop-lo))
		for at = stop; len(r.open) > 0 && t.End.At(r.open[len(r.open)-1].block) == at; {
			r.endBlock()
		}
	}
	if r.o.placed != nil {
		r.o.placed(r.now, w.rows)
	}
	r.arrive.take(lo, hi, func(row uint32) [2]uint64 { return r.stream.Producer(row - lo).Arrive })
	r.order.take(lo, hi, func(row uint32) place.Leaving { return r.stream.Producer(row - lo).Leaving })
	return nil
}

func (r *run) beginBlock(b int) {
	if r.w.Module.Blocks.Parent.At(b) == 0 {
		r.stream.Begin()
	}
	r.open = append(r.open, body{b, r.stream.Last()})
}

// endBlock ends the innermost block.
func (r *run) endBlock() {
	b := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	last, t := r.stream.Last(), &r.w.Module.Blocks
	res := &r.w.Blocks[b.block]
	res.Latency = [2]uint64{last[0] - b.before[0], last[1] - b.before[1]}
	res.LatencyTrips = res.Latency
	if t.Parent.At(b.block) == 0 {
		r.sum.EndBlock(r.w.Module.Functions.Runs.At(int(t.Function.At(b.block))))
	}
}
