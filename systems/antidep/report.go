// Package antidep says what anti-dependencies cost, buffer by buffer: by how
// much the prediction falls when one buffer's are left out, and how many more
// buffers would make that so.
package antidep

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/scenario"
)

// Cost is the cost of the anti-dependencies of one buffer.
type Cost struct {
	Buffer   Buffer
	Edges    int    // anti-dependencies that protect it
	Binding  int    // of them those that hold their instruction
	Writers  int    // instructions that have to wait for it
	OnPath   int    // hops of the critical path
	PathWait uint64 // ns that these hops add to the path, each counted for itself
	// Exact says that Cost is the difference of two predictions; else the
	// cost is at most Cost. Where Bounded is not set either, nothing can be
	// said short of a prediction.
	Exact, Bounded bool
	Cost           uint64
	// Extra is how many more buffers of this kind would let every instruction
	// run as it does without anti-dependencies.
	Extra int
	// Reader and Writer are of the binding edge that holds longest.
	Reader, Writer components.InstrID
	Wait           uint64 // of that edge, ns
}

// BlockCost compares the runs of one top-level block.
type BlockCost struct {
	Block int
	A, B  uint64
}

// Report is the cost of anti-dependencies.
type Report struct {
	A, B    uint64 // predicted ns with and without all anti-dependencies
	Buffers []Cost // the dearest first
	Blocks  []BlockCost
}

// Options say how much work to do.
type Options struct {
	Top   int  // how many buffers get an exact cost
	Trips bool // loop bodies count as often as they run
}

// Make computes the report of a placed world. a is the attribution of run A,
// paths its critical paths with loop bodies counted once.
func Make(ctx context.Context, w *components.World, engine scenario.Engine, t *Table, a *components.Attribution, paths []*attribute.Path, o Options) (*Report, error) {
	m := w.Module
	r := &Report{A: w.Latency(components.RunA), B: w.Latency(components.RunB)}
	for _, row := range m.TopBlocks() {
		res := w.Blocks[row]
		r.Blocks = append(r.Blocks, BlockCost{row, w.BlockLatency(res, components.RunA), w.BlockLatency(res, components.RunB)})
	}
	a = withOthers(w, a)
	r.Buffers = make([]Cost, len(t.Buffers))
	for k := range r.Buffers {
		r.Buffers[k] = Cost{Buffer: t.Buffers[k], Reader: components.NoInstr, Writer: components.NoInstr}
	}
	owner := owners(m, t, a)
	r.count(m, t, a, w, owner)
	// Off the critical path a buffer costs nothing, and on it at most what its
	// hops hold: true where times are sums along fixed dependencies.
	fixed := !o.Trips && w.Events.Dur.Len() == 0 && a.Gap.Len() == 0
	for _, p := range paths {
		r.onPath(w, a, p, owner)
	}
	if fixed {
		for k := range r.Buffers {
			c := &r.Buffers[k]
			c.Bounded = true
			if c.OnPath == 0 {
				c.Exact = true
				continue
			}
			for _, p := range paths {
				c.Cost += detour(w, a, p, owner, uint32(k)) * p.Times
			}
			c.Cost = min(c.Cost, r.A-min(r.A, r.B))
		}
	}
	extraBuffers(w, t, r)
	order := make([]int, len(r.Buffers))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := &r.Buffers[x], &r.Buffers[y]
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.PathWait, a.PathWait), cmp.Compare(b.Binding, a.Binding), cmp.Compare(b.Edges, a.Edges))
	})
	if err := r.exact(ctx, w, engine, t, order, o.Top); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Buffers, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), boolCompare(b.Exact, a.Exact), cmp.Compare(b.PathWait, a.PathWait),
			cmp.Compare(b.Binding, a.Binding), cmp.Compare(b.Edges, a.Edges))
	})
	return r, nil
}

// withOthers returns the attribution with what would have held every
// instruction that an anti-dependency holds. A model that records causes does
// not record that; then nothing is known but that they are held.
func withOthers(w *components.World, a *components.Attribution) *components.Attribution {
	if w.Why[a.Run] == nil {
		return a
	}
	b := *a
	b.Others = nil
	for i, c := range a.Cause.Slice() {
		if c != components.CauseAnti {
			continue
		}
		start, _ := w.Events.Span(w.Module, components.InstrID(i), a.Run)
		b.Others = append(b.Others, components.Other{Instr: components.InstrID(i), Pred: components.NoInstr, At: start - a.Gap.Get(i)})
	}
	return &b
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// nobody is the owner of a wait for which no edge was found.
const nobody = ^uint32(0)

// owners returns, for each of a.Others, the buffer of the binding
// anti-dependency.
func owners(m *components.Module, t *Table, a *components.Attribution) []uint32 {
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	out := make([]uint32, len(a.Others))
	at := 0 // in t.Edges: both lists ascend
	for n, other := range a.Others {
		out[n] = nobody
		i, p := other.Instr, a.Pred.At(int(other.Instr))
		for at < len(t.Edges) && t.Edges[at] < off[i] {
			at++
		}
		for k := at; k < len(t.Edges) && t.Edges[k] < off[i+1]; k++ {
			if components.InstrID(words[t.Edges[k]]&ecs.TargetMask) == p {
				out[n] = t.Of[k]
			}
		}
	}
	return out
}

// ownerOf returns what holds instruction i apart from anti-dependencies and
// the buffer whose anti-dependency holds it; ok is false where none does.
func ownerOf(a *components.Attribution, owner []uint32, i components.InstrID) (other components.Other, buffer uint32, ok bool) {
	if a.Cause.At(int(i)) != components.CauseAnti {
		return other, 0, false
	}
	k, found := slices.BinarySearchFunc(a.Others, i, func(o components.Other, i components.InstrID) int { return cmp.Compare(o.Instr, i) })
	if !found || owner[k] == nobody {
		return other, 0, false
	}
	return a.Others[k], owner[k], true
}

// count fills the counts of edges and the longest waits.
func (r *Report) count(m *components.Module, t *Table, a *components.Attribution, w *components.World, owner []uint32) {
	off := m.Edges.Preds.Offsets()
	i := 0
	last := make([]int, len(t.Buffers)) // consumer row plus one last counted as a writer
	for k, e := range t.Edges {
		for off[i+1] <= e {
			i++
		}
		c := &r.Buffers[t.Of[k]]
		c.Edges++
		if last[t.Of[k]] != i+1 {
			last[t.Of[k]] = i + 1
			c.Writers++
		}
	}
	for n, other := range a.Others {
		if owner[n] == nobody {
			continue
		}
		c := &r.Buffers[owner[n]]
		c.Binding++
		if d := held(w, a, other); d > c.Wait || c.Writer == components.NoInstr {
			c.Wait, c.Writer, c.Reader = d, other.Instr, a.Pred.At(int(other.Instr))
		}
	}
}

// held is by how much the anti-dependency alone holds the instruction, all
// else being as it is.
func held(w *components.World, a *components.Attribution, other components.Other) uint64 {
	start, _ := w.Events.Span(w.Module, other.Instr, a.Run)
	if a.Gap.Len() > 0 {
		start -= a.Gap.At(int(other.Instr))
	}
	return start - other.At
}

// onPath counts the hops of a critical path that anti-dependencies are.
func (r *Report) onPath(w *components.World, a *components.Attribution, p *attribute.Path, owner []uint32) {
	for _, i := range p.Steps {
		if other, k, ok := ownerOf(a, owner, i); ok {
			r.Buffers[k].OnPath++
			r.Buffers[k].PathWait += held(w, a, other)
		}
	}
}

// detour bounds what leaving out a buffer's anti-dependencies can gain: walk
// back from the end of the block along binding constraints; where one is the
// buffer's, add by how much it holds and go on along what else would have.
// Every start on the way falls by at most what is added from there on.
func detour(w *components.World, a *components.Attribution, p *attribute.Path, owner []uint32, buffer uint32) uint64 {
	if len(p.Steps) == 0 {
		return 0
	}
	var sum uint64
	for i := p.Steps[len(p.Steps)-1]; i != components.NoInstr; {
		if other, k, ok := ownerOf(a, owner, i); ok && k == buffer {
			sum += held(w, a, other)
			i = other.Pred
			continue
		}
		i = a.Pred.At(int(i))
	}
	return sum
}

// exact predicts anew without the anti-dependencies of each of the first top
// buffers of order that may cost anything.
func (r *Report) exact(ctx context.Context, w *components.World, engine scenario.Engine, t *Table, order []int, top int) error {
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	pool := scenario.NewPool(w)
	for _, k := range order {
		c := &r.Buffers[k]
		if c.Exact {
			continue
		}
		if top--; top < 0 {
			break
		}
		if c.Edges == len(t.Edges) && w.NoRunB == "" { // run B leaves out the same edges
			c.Exact, c.Bounded, c.Cost = true, true, r.A-min(r.A, r.B)
			continue
		}
		g.Go(func() error {
			f := pool.Get()
			defer pool.Put(f)
			DropBuffers(f, t, []uint32{uint32(k)})
			if err := engine.Place(ctx, f); err != nil {
				return err
			}
			c.Exact, c.Bounded = true, true
			c.Cost = r.A - min(r.A, f.Latency(components.RunA))
			return nil
		})
	}
	return g.Wait()
}

// DropBuffers takes the anti-dependencies of some buffers out of a copy.
func DropBuffers(c *components.World, t *Table, buffers []uint32) {
	at := 0
	scenario.Without(c, func(_ uint32, e int, _ uint32) bool {
		for at < len(t.Edges) && int(t.Edges[at]) < e {
			at++
		}
		return at < len(t.Edges) && int(t.Edges[at]) == e && slices.Contains(buffers, t.Of[at])
	})
}
