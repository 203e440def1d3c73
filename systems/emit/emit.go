// Package emit writes what a simulation leaves behind: a trace per block and
// run, the metric store and the package of the traces. Everything is written
// into a folder of its own beside the destination and moved into place when
// it is complete, so that a failed run leaves nothing.
package emit

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"perfsim/components"
	"perfsim/io/fault"
	"perfsim/io/fileset"
	"perfsim/io/format"
	"perfsim/io/neuron/metricstore"
	"perfsim/io/neuron/pttf"
	"perfsim/io/psim"
	"perfsim/io/traces/catapult"
)

// Families of trace files. Only the first is packaged. The documented run B
// has the file name of its run A; here it has a family of its own, because one
// of the two files would be lost otherwise.
const (
	familyRunA   = "perf_sim"
	familyRunB   = "perf_sim_no_antideps"
	FamilyAtEnd  = "perf_sim_at_end_trace"
	familyAtEndB = "perf_sim_at_end_trace_no_antideps"
	FamilySched  = "ps_trace"
)

// runB returns the family of the run B traces beside a family of run A; ""
// where there is none.
func runB(family string) string {
	switch family {
	case familyRunA:
		return familyRunB
	case FamilyAtEnd:
		return familyAtEndB
	}
	return ""
}

// metricsFile is the name of the metric store's file.
const metricsFile = "global_metric_store.json"

// Artifact is a file that was written.
type Artifact struct {
	Path string
	Size int64
	Kind string // "trace", "graph", "metrics", "package"
}

// Output says where to write and holds what was written.
type Output struct {
	Dir string // "" writes nothing
	// PackageOnly streams the run A traces straight into the package and
	// leaves out all trace files.
	PackageOnly bool
	// Layout is the layout of the metric store's file.
	Layout metricstore.Layout
	// Style is how the traces leave the documented form.
	Style     catapult.Style
	Artifacts []Artifact
	// Group, where not nil, is the set of files of several modules that this one
	// is part of; Dir is then the group's.
	Group *Group

	streams []streamed
	// cached is cachedPart, except in tests.
	cached int64
	// traces has the run A traces by name of file.
	traces map[string]traceKey

	set     *fileset.Set // nil until the first file
	beside  []string     // files of the set that are no artefacts
	written map[traceKey]string
}

// Traces writes the run A trace of every top-level block under the family's
// name and, for the families of perf_sim passes, the run B trace. A family that shows the
// same placement again gets a copy.
func Traces(ctx context.Context, w *components.World, o *Output, family string) error {
	if o.Dir == "" {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	m := w.Module
	n := names{used: map[string]int{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, w.Config.Jobs))
	// Begun when the list of artifacts grows no more; copies when their files
	// are written.
	var work, copies []func() error
	blocks := m.TopBlocks()
	// Files are written side by side; where there are fewer than cores, a file
	// has several.
	each := max(1, w.Config.Jobs/max(1, 2*len(blocks)))
	for _, b := range blocks {
		for _, f := range []struct {
			family, kind string
			run          components.Run
			graph        bool
		}{{family, "trace", components.RunA, false}, {runB(family), "graph", components.RunB, true}} {
			if f.family == "" {
				continue
			}
			if f.run == components.RunB && w.NoRunB != "" {
				continue // there is nothing to show
			}
			if o.PackageOnly && o.Group != nil {
				// The package is written when this module is gone.
				if f.graph || f.family != familyRunA {
					continue
				}
			} else if o.PackageOnly {
				if !f.graph && f.family == familyRunA {
					o.streams = append(o.streams, streamed{n.trace(f.family, m.Name, m.FunctionName(int(m.Blocks.Function.At(b))), m.BlockName(b)), b})
				}
				continue
			}
			key := traceKey{b, f.run, w.Placement}
			name := n.trace(f.family, m.Name, m.FunctionName(int(m.Blocks.Function.At(b))), m.BlockName(b))
			slot := o.slot(name, f.kind)
			if from := o.written[key]; from != "" {
				copies = append(copies, func() error {
					size, err := o.copy(from, name)
					o.Artifacts[slot].Size = size
					return err
				})
				continue
			}
			o.written[key] = name
			if !f.graph {
				o.traces[name] = key
			}
			work = append(work, func() error {
				size, err := o.write(name, func(out io.Writer) error { return o.Style.Write(ctx, out, w, b, f.run, f.graph, each) })
				o.Artifacts[slot].Size = size
				return err
			})
		}
	}
	for _, f := range work {
		g.Go(f)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, f := range copies {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// traceKey names a trace by what it shows.
type traceKey struct {
	block     int
	run       components.Run
	placement int
}

// copy gives a copy of the staged file from a name of its own: one inode under
// two names would let an editor of one change the other. The blocks are shared
// where the file system can.
func (o *Output) copy(from, name string) (int64, error) {
	src, err := os.Open(filepath.Join(o.set.Staging(), from))
	if err != nil {
		return 0, err
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return 0, err
	}
	path := filepath.Join(o.set.Staging(), name)
	dst, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	switch out := fault.Writer(struct{ io.Writer }{dst}, path); {
	case clone(dst, src):
	case st.Size() > o.cached:
		err = duplicate(out, dst, src, st.Size())
	default:
		_, err = io.Copy(out, src)
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, o.set.Name(err))
	}
	return st.Size(), nil
}

// Tables writes a snapshot of the module's tables.
func Tables(ctx context.Context, w *components.World, o *Output, name string) error {
	if o.Dir == "" {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	if o.Group != nil {
		name = sanitize(w.Module.Name + "." + name)
	}
	slot := o.slot(name, "tables")
	var err error
	o.Artifacts[slot].Size, err = o.write(name, func(out io.Writer) error {
		return psim.Write(ctx, out, w.Module, format.Options{Jobs: w.Config.Jobs})
	})
	return err
}

// Metrics writes the metric store.
func Metrics(_ context.Context, s *metricstore.Store, o *Output) error {
	if o.Dir == "" {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	if o.Group != nil {
		o.Group.add(s)
		return nil
	}
	slot := o.slot(metricsFile, "metrics")
	size, err := o.write(metricsFile, func(out io.Writer) error { return s.Write(out, o.Layout) })
	o.Artifacts[slot].Size = size
	return err
}

// Package packs the run A traces into file.perf-sim.
func Package(ctx context.Context, w *components.World, o *Output, log func(string)) error {
	if o.Dir == "" {
		return nil
	}
	if err := o.open(); err != nil {
		return err
	}
	if o.Group != nil {
		o.Group.pack = true
		return nil
	}
	if o.PackageOnly {
		return o.stream(ctx, w, log)
	}
	r, err := o.packStaged(ctx, pttf.Options{Log: log, Source: o.source(ctx, w)})
	if err != nil {
		return err
	}
	if r.Created {
		o.Artifacts[o.slot(pttf.FileName, "package")].Size = r.Size
	}
	return nil
}

// packStaged packs the traces that were written.
func (o *Output) packStaged(ctx context.Context, opt pttf.Options) (pttf.Result, error) {
	if log := opt.Log; log != nil {
		// The lines name the folder in which the files will be.
		opt.Log = func(line string) { log(strings.ReplaceAll(line, o.set.Staging(), o.Dir)) }
	}
	r, err := pttf.Package(ctx, o.set.Staging(), filepath.Join(o.set.Staging(), pttf.FileName), opt)
	return r, o.set.Name(err)
}

// Commit moves everything into place: all files or, on an error, none. The
// files of a group wait for its Finish.
func Commit(o *Output) error {
	if o.set == nil {
		return nil
	}
	if o.Group != nil {
		o.Group.take(o)
		o.set = nil
		return nil
	}
	names := make([]string, len(o.Artifacts))
	for i, a := range o.Artifacts {
		names[i] = filepath.Base(a.Path)
	}
	names = append(names, o.beside...)
	if err := o.set.Commit(names); err != nil {
		return err
	}
	o.set = nil
	return nil
}

// Holds reports whether path lies in the folder of the outputs: it can be one
// of their set.
func (o *Output) Holds(path string) bool {
	return o.Dir != "" && o.Group == nil && filepath.Clean(filepath.Dir(path)) == filepath.Clean(o.Dir)
}

// Beside writes one more file of the set, which is no artefact: it gets its
// name together with them.
func (o *Output) Beside(name string, fill func(io.Writer) error) error {
	if err := o.open(); err != nil {
		return err
	}
	for _, a := range o.Artifacts {
		if filepath.Base(a.Path) == name {
			return fmt.Errorf("%s is one of the outputs already", a.Path)
		}
	}
	if _, err := o.write(name, fill); err != nil {
		return err
	}
	o.beside = append(o.beside, name)
	return nil
}

// Abort removes what was written and not committed.
func (o *Output) Abort() {
	switch {
	case o.set == nil:
		return
	case o.Group != nil:
		for _, a := range o.Artifacts {
			os.Remove(filepath.Join(o.set.Staging(), filepath.Base(a.Path))) // what an error leaves goes with the folder
		}
	default:
		o.set.Abort()
	}
	o.set = nil
}

// open makes the destination and the hidden folder in it.
func (o *Output) open() error {
	if o.set != nil {
		return nil
	}
	var err error
	if o.Group != nil {
		o.set, err = o.Group.open()
	} else {
		o.set, err = fileset.Open(o.Dir)
	}
	if err != nil {
		return err
	}
	if o.cached == 0 {
		o.cached = cachedPart
	}
	o.written, o.traces = map[traceKey]string{}, map[string]traceKey{}
	return nil
}

func (o *Output) slot(name, kind string) int {
	o.Artifacts = append(o.Artifacts, Artifact{Path: filepath.Join(o.Dir, name), Kind: kind})
	return len(o.Artifacts) - 1
}

// cachedPart is how much of a file goes through the page cache; ours. A trace
// of gigabytes would take every free page of the machine, drive mapped inputs
// out, and cost more in the first touch of those pages than in rendering
// (docs/speed.md). Smaller files will be read again soon.
const cachedPart = 64 << 20

// write writes one file of the staging folder and returns its size.
func (o *Output) write(name string, fill func(io.Writer) error) (size int64, err error) {
	path := filepath.Join(o.set.Staging(), name)
	err = fault.At("create", path)
	var f *os.File
	if err == nil {
		f, err = os.Create(path)
	}
	if err != nil {
		return 0, o.set.Name(err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	out := newDirect(f, o.cached)
	err = o.set.Name(fill(fault.Writer(out, path)))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, o.set.Name(err))
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
