package stream

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/psim"
)

// window is a module of some rows, read, checked and costed. Behind the rows is
// one for every edge whose producer lies before them.
type window struct {
	world   components.World
	columns []ecs.AnyColumn // that are read
	rows    int
	far     []uint32 // those producers, as rows of the whole module, in the order of the edges
}

// reader reads windows in their order.
type reader struct {
	name           string               // of the file
	columns        []*psim.ColumnReader // as window.columns
	offsets, words *psim.ColumnReader   // nil where there are no edges
	edges          uint32               // of the rows read so far
}

// newReader returns a reader that stands at the first row.
func (r *run) newReader() (*reader, error) {
	x := &reader{name: r.src.Name, offsets: r.src.Column(offsetsColumn), words: r.src.Column(wordsColumn)}
	m := r.w.Module.Window()
	for _, c := range read(&m.Instr) {
		if column := r.src.Column(c.Name()); column != nil {
			x.columns = append(x.columns, column)
		}
	}
	if x.offsets == nil {
		return x, nil
	}
	first := []uint32{0}
	if err := x.offsets.Next(raw(first)); err != nil {
		return nil, err
	}
	if first[0] != 0 {
		return nil, fmt.Errorf("%s: the first edge of the first row is %d, not 0", r.src.Name, first[0])
	}
	return x, nil
}

// newWindow returns an empty window with room for the largest.
func (r *run) newWindow() *window {
	m := r.w.Module.Window()
	w := &window{world: components.World{Module: m, Machine: r.w.Machine, Config: r.w.Config}, far: make([]uint32, 0, r.most.far)}
	rows := r.most.rows + r.most.far
	for _, c := range read(&m.Instr) {
		if r.src.Rows(c.Name()) > 0 {
			c.SetLen(rows)
			w.columns = append(w.columns, c)
		}
	}
	m.Instr.Issue.Reserve(rows)
	m.Instr.Latency.Reserve(rows)
	m.Edges.Preds.Reserve(rows, r.most.words)
	return w
}

// fill reads window k of the module into w and makes it ready to be placed.
func (r *run) fill(ctx context.Context, w *window, k int) error {
	m := w.world.Module
	m.Base, w.rows = r.from[k], int(r.from[k+1]-r.from[k])
	if err := r.timed("read", func() error { return r.reader.read(ctx, w, r.most.words, r.o.Jobs) }); err != nil {
		return err // which names the file
	}
	if err := r.timed("check", func() error { return r.check(ctx, r.o.Jobs, m) }); err != nil {
		return fmt.Errorf("%s: %w", r.src.Name, err)
	}
	if err := complete(m); err != nil {
		return err
	}
	return r.timed("cost", func() error {
		w.rebase()
		return r.tally.Fill(ctx, &w.world, w.rows)
	})
}

// read reads the next w.rows rows, which have at most that many edges. These
// point to rows of the whole module.
func (x *reader) read(ctx context.Context, w *window, edges, jobs int) error {
	g, _ := ecs.NewGroup(ctx, jobs)
	for i, c := range w.columns {
		c.SetLen(w.rows)
		g.Go(func() error { return x.columns[i].Next(c.Raw()) })
	}
	g.Go(func() error { return x.readEdges(&w.world.Module.Edges.Preds, w.rows, edges) })
	return g.Wait()
}

func (x *reader) readEdges(e *ecs.Relation, n, most int) error {
	if x.offsets == nil {
		e.SetEmpty(n)
		return nil
	}
	off := offsetsOf(e).Scratch(n + 1)
	off[0] = 0
	if err := x.offsets.Next(raw(off[1:])); err != nil {
		return err
	}
	for i := range off[1:] {
		off[i+1] -= x.edges // where they do not ascend the check finds it
	}
	count := int(off[n])
	if count > most {
		return fmt.Errorf("%s: the edges of %d rows are %d, more than the first pass found: they do not ascend, or the file was changed", x.name, n, count)
	}
	x.edges += uint32(count)
	words := wordsOf(e).Scratch(count)
	if count == 0 {
		return nil
	}
	return x.words.Next(raw(words))
}

func offsetsOf(e *ecs.Relation) *ecs.Column[uint32] { return e.Columns()[0].(*ecs.Column[uint32]) }
func wordsOf(e *ecs.Relation) *ecs.Column[uint32]   { return e.Columns()[1].(*ecs.Column[uint32]) }

// complete refuses triggers whose transfers have no rows: in memory these are
// put in, which moves all rows behind.
func complete(m *components.Module) error {
	flags := m.Instr.Flags.Slice()
	for i, f := range flags {
		if f&components.FlagTrigger != 0 && (i+1 == len(flags) || !transfers(f, flags[i+1])) {
			return refuse("instruction %s is a DMA trigger without a row for its transfer; 'perfsim run -o DIR --dump-after 88.perf_sim/transfers' writes a snapshot that has them",
				m.InstrName(components.InstrID(i)))
		}
	}
	return nil
}

// rebase makes the edges point to rows of the window: those whose producer lies
// before it to a row of their own behind the others.
func (w *window) rebase() {
	e := &w.world.Module.Edges.Preds
	words := wordsOf(e).Slice()
	base := w.world.Module.Base
	w.far = w.far[:0]
	for i, x := range words {
		to := x & ecs.TargetMask
		if to >= base {
			words[i] = x - base
			continue
		}
		words[i] = x&^ecs.TargetMask | uint32(w.rows+len(w.far))
		w.far = append(w.far, to)
	}
	for _, c := range w.columns {
		c.SetLen(w.rows + len(w.far))
	}
	off := offsetsOf(e).Resize(w.rows + len(w.far) + 1)
	for i := range w.far {
		off[w.rows+1+i] = uint32(len(words))
	}
}
