// Package stream predicts a snapshot that does not fit in memory: its rows pass
// in program order through two windows, one that is read and costed while the
// other is placed. The result is that of the module in memory, bit for bit.
//
// An edge whose producer lies before the window finds the arrival that was kept
// of it. Which rows are to be kept a first pass over the edges finds.
//
// # Memory
//
// Two windows with their edges, two bits a row of the module, 16 bytes for every
// row that an edge of a later window points to and 32 more where that edge is
// one of order, and 96 MiB for all else: Plan states the bytes. Beyond it are
// the tables of blocks and names, which are held whole, and 32 bytes for every
// collective that shares bandwidth.
package stream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/psim"
	"perfsim/systems/cost"
	"perfsim/systems/place"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// Options say how a snapshot is streamed.
type Options struct {
	Window int // rows, at least 1
	Jobs   int // goroutines, at least 1; the result does not depend on it
	// Stage, where not nil, is called as a pass begins, with its name and size;
	// what it returns, where not nil, with the share done.
	Stage func(name string, total int64) func(done int64)
	// Planned, where not nil, is called before the second pass.
	Planned func(Plan)

	// placed is called with every window that is placed, whose rows are those of
	// the world.
	placed func(w *components.World, rows int)
}

// Plan is the memory that a stream will hold at a time.
type Plan struct {
	Rows    int    // of the module
	Windows int    // that it takes
	Window  int    // rows of the largest
	Edges   uint64 // of the module
	Far     uint64 // of them, with a producer before the window
	Kept    int    // rows whose arrival is kept
	Bytes   uint64 // that all this takes at most
}

// Refusal is the error of a module that can be predicted in memory only.
type Refusal struct{ Reason string }

func (e *Refusal) Error() string { return e.Reason }

func refuse(text string, args ...any) error { return &Refusal{fmt.Sprintf(text, args...)} }

// Whole reports whether a column of a snapshot is held whole: the small tables
// that a prediction reads.
func Whole(column string) bool {
	table, _, _ := strings.Cut(column, ".")
	switch table {
	case "symbols", "blocks", "functions", "lanes", "queues":
		return true
	}
	return false
}

// read lists the columns of instructions that the reference model and the
// figures read.
func read(in *components.Instructions) []ecs.AnyColumn {
	return []ecs.AnyColumn{&in.Opcode, &in.Engine, &in.Lane, &in.Flags, &in.Elems, &in.Parts, &in.DType, &in.Banks,
		&in.OutElems, &in.Func, &in.Scope, &in.Text, &in.Queue, &in.MACs, &in.DMABytes}
}

// Result is the result of a stream, in addition to the Blocks of the world.
type Result struct {
	Summary *summary.Windows
	Work    *work.Sum
	Timings []ecs.Timing
}

// Run predicts the rows of src by the rules of w, whose module has the other
// tables of the snapshot, and fills the blocks of w.
func Run(ctx context.Context, w *components.World, src *psim.Rows, o Options) (*Result, error) {
	r, err := begin(w, src, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	if err := r.timed("scan", func() error { return r.scan(ctx) }); err != nil {
		return nil, err
	}
	if err := r.pass(ctx); err != nil {
		return nil, err
	}
	r.tally.Note(w)
	return &Result{r.sum, r.work, r.timings}, nil
}

// run is the state of a stream.
type run struct {
	w     *components.World // of the whole module
	src   *psim.Rows
	o     Options
	check func(ctx context.Context, jobs int, w *components.Module) error
	n     uint32   // rows of the module
	edges uint64   // of the module
	from  []uint32 // first row of every window, and n

	// What a first pass finds: the rows that edges of later windows point to,
	// with all or with those of order.
	arrive kept[[2]uint64]
	order  kept[place.Leaving]
	most   struct{ rows, words, far int } // in one window

	reader *reader
	tally  cost.Tally

	// What the second pass places in, and what it finds.
	now    *components.World // of the window that is placed
	stream *place.Stream
	sum    *summary.Windows
	work   *work.Sum
	next   int    // block that begins next
	open   []body // blocks that are being placed, outermost first

	mu      sync.Mutex
	timings []ecs.Timing
}

// body is a block that is being placed.
type body struct {
	block  int
	before [2]uint64 // end of the last event before it
}

// begin checks what can be checked before rows are read.
func begin(w *components.World, src *psim.Rows, o Options) (*run, error) {
	m := w.Module
	if w.Config.Model != components.Reference {
		return nil, refuse("the %s model needs the whole module in memory; what is larger is placed by the reference model", w.Config.Model)
	}
	r := &run{w: w, src: src, o: o}
	n := src.Rows("instr.opcode")
	for _, c := range src.Columns() {
		switch {
		case strings.HasPrefix(c.Name, "instr.measured"):
			return nil, refuse("the module has measured times, whose figures need the whole module in memory")
		case strings.HasPrefix(c.Name, "instr.") && c.Rows() != n:
			return nil, fmt.Errorf("column %s has %d rows, not %d", c.Name, c.Rows(), n)
		}
	}
	var probe components.Instructions = m.Window().Instr
	probe.Grow(1)
	for _, c := range probe.Columns() {
		if c.Len() > 0 && src.Rows(c.Name()) != n {
			return nil, fmt.Errorf("column %s has %d rows, not %d", c.Name(), src.Rows(c.Name()), n)
		}
	}
	var err error
	if r.check, err = m.CheckWindows(int(min(n, ecs.MaxRows))); err != nil {
		return nil, err
	}
	r.n = uint32(n)
	r.edges = uint64(src.Rows(wordsColumn))
	if off := src.Rows(offsetsColumn); off != n+1 && (off != 0 || r.edges != 0) {
		return nil, fmt.Errorf("edges: offsets do not cover %d rows and %d edges", n, r.edges)
	}
	if w.Config.Loops == components.Trips {
		for _, b := range m.TopBlocks() {
			if components.Repeats(m, b) {
				return nil, refuse("loops that count as often as they run are placed again and again, in memory; --loops once places each body once")
			}
		}
	}
	return r, nil
}

// The columns of the edges.
const offsetsColumn, wordsColumn = "edges.offsets", "edges.words"

// timed runs f and adds the time that it takes to that of a name.
func (r *run) timed(name string, f func() error) error {
	began := time.Now()
	err := f()
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.timings {
		if r.timings[i].System == name {
			r.timings[i].Wall += took
			return err
		}
	}
	r.timings = append(r.timings, ecs.Timing{System: name, Wall: took})
	return err
}

// stage begins a pass.
func (r *run) stage(name string, total int64) func(done int64) {
	if r.o.Stage != nil {
		if set := r.o.Stage(name, total); set != nil {
			return set
		}
	}
	return func(int64) {}
}

// reserve asks for memory before it is taken.
func (r *run) reserve(ctx context.Context, bytes uint64) error {
	return format.Reserve(ctx, bytes, "placing "+r.src.Name+" in a stream (a smaller --window takes less)")
}
