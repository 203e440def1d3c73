// Package emit writes what a simulation leaves behind: a trace per block and
// run, the metric store and the package of the traces. Everything is written
// into a folder of its own beside the destination and moved into place when
// it is complete, so that a failed run leaves nothing.
package emit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"perfsim/components"
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
	FamilyRunA   = "perf_sim"
	FamilyRunB   = "perf_sim_no_antideps"
	FamilyAtEnd  = "perf_sim_at_end_trace"
	FamilyAtEndB = "perf_sim_at_end_trace_no_antideps"
	FamilySched  = "ps_trace"
)

// runB returns the family of the run B traces beside a family of run A; ""
// where there is none.
func runB(family string) string {
	switch family {
	case FamilyRunA:
		return FamilyRunB
	case FamilyAtEnd:
		return FamilyAtEndB
	}
	return ""
}

// MetricsFile is the name of the metric store's file.
const MetricsFile = "global_metric_store.json"

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
	// Style is how the traces leave the documented form.
	Style     catapult.Style
	Artifacts []Artifact

	streams []streamed
	// cached is cachedPart, except in tests.
	cached int64
	// traces has the run A traces by name of file.
	traces map[string]traceKey

	staging string
	made    []string // folders made for Dir, outermost first
	written map[traceKey]string
}

// Traces writes the run A trace of every top-level block under the family's
// name and, for the families of perf_sim passes, the run B trace. A family that shows the
// same placement again gets the same bytes, as hard links where the file
// system has them.
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
	var work []func() error // begun when the list of artifacts grows no more
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
			if o.PackageOnly {
				if !f.graph && f.family == FamilyRunA {
					o.streams = append(o.streams, streamed{n.trace(f.family, m.Name, m.FunctionName(int(m.Blocks.Function.At(b))), m.BlockName(b)), b})
				}
				continue
			}
			key := traceKey{b, f.run, w.Placement}
			name := n.trace(f.family, m.Name, m.FunctionName(int(m.Blocks.Function.At(b))), m.BlockName(b))
			slot := o.slot(name, f.kind)
			if from := o.written[key]; from != "" {
				if size, err := o.link(from, name); err == nil {
					o.Artifacts[slot].Size = size
					continue
				}
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
	return g.Wait()
}

// traceKey names a trace by what it shows.
type traceKey struct {
	block     int
	run       components.Run
	placement int
}

// link gives the staged file from a second name.
func (o *Output) link(from, name string) (int64, error) {
	to := filepath.Join(o.staging, name)
	if err := os.Link(filepath.Join(o.staging, from), to); err != nil {
		return 0, err
	}
	st, err := os.Stat(to)
	if err != nil {
		return 0, err
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
	slot := o.slot(MetricsFile, "metrics")
	size, err := o.write(MetricsFile, func(out io.Writer) error { return s.WriteJSON(out, true) })
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
	if o.PackageOnly {
		return o.stream(ctx, w, log)
	}
	say := log
	if log != nil {
		// The lines name the folder in which the files will be.
		say = func(line string) { log(strings.ReplaceAll(line, o.staging, o.Dir)) }
	}
	r, err := pttf.Package(ctx, o.staging, filepath.Join(o.staging, pttf.FileName), pttf.Options{Log: say, Source: o.source(ctx, w)})
	if err != nil {
		return err
	}
	if r.Created {
		o.Artifacts[o.slot(pttf.FileName, "package")].Size = r.Size
	}
	return nil
}

// Commit moves everything into place.
func Commit(o *Output) error {
	if o.Dir == "" || o.staging == "" {
		return nil
	}
	for _, a := range o.Artifacts {
		if err := os.Rename(filepath.Join(o.staging, filepath.Base(a.Path)), a.Path); err != nil {
			return err
		}
	}
	err := os.Remove(o.staging)
	o.staging, o.made = "", nil
	return err
}

// Abort removes what was written and not committed.
func (o *Output) Abort() {
	if o.staging == "" {
		return
	}
	os.RemoveAll(o.staging) // nothing better to do with an error here
	for _, d := range slices.Backward(o.made) {
		os.Remove(d)
	}
	o.staging, o.made = "", nil
}

// open makes the destination and the staging folder in it.
func (o *Output) open() error {
	if o.staging != "" {
		return nil
	}
	for d := filepath.Clean(o.Dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		o.made = append(o.made, d)
	}
	slices.Reverse(o.made)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	dir, err := os.MkdirTemp(o.Dir, ".perfsim-*")
	if err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	o.staging = dir
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
const cachedPart = 256 << 20

// write writes one file of the staging folder and returns its size.
func (o *Output) write(name string, fill func(io.Writer) error) (size int64, err error) {
	f, err := os.Create(filepath.Join(o.staging, name))
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	out := newDirect(f, o.cached)
	err = fill(out)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}
