package emit

import (
	"context"
	"fmt"
	"io"
	"strings"

	"perfsim/io/fileset"
	"perfsim/io/neuron/metricstore"
	"perfsim/io/neuron/pttf"
)

// Group are the outputs of several modules in one folder: their traces, one
// metric store and one package, as the documented packaging pass runs over all
// modules of a compilation. All files get their places together.
type Group struct {
	output  Output // of the files of all modules
	metrics *metricstore.Store
	pack    bool // a module's pipeline has the packaging pass
	names   map[string]bool
}

// NewGroup returns the group of the modules whose outputs go to o.Dir.
func NewGroup(o Output) *Group {
	return &Group{output: o, names: map[string]bool{}}
}

// Name returns the name of a module within the group: its own, with -2, -3 and
// so on behind it where that is taken, upper and lower case alike.
func (g *Group) Name(module string) string {
	name := module
	for n := 2; g.names[strings.ToLower(sanitize(name))]; n++ {
		name = fmt.Sprintf("%s-%d", module, n)
	}
	g.names[strings.ToLower(sanitize(name))] = true
	return name
}

func (g *Group) open() (*fileset.Set, error) {
	if g.output.set == nil {
		if err := g.output.open(); err != nil {
			return nil, err
		}
	}
	return g.output.set, nil
}

// add takes the metrics of a module.
func (g *Group) add(s *metricstore.Store) {
	if g.metrics == nil {
		g.metrics = metricstore.New()
	}
	g.metrics.Merge(s)
}

// take takes the files of a module that is complete.
func (g *Group) take(o *Output) {
	if !o.PackageOnly {
		g.output.Artifacts = append(g.output.Artifacts, o.Artifacts...)
		return
	}
	for _, a := range o.Artifacts {
		if a.Kind != "trace" {
			g.output.Artifacts = append(g.output.Artifacts, a)
		}
	}
	o.Artifacts = nil
}

// Finish writes the metric store and the package, moves all files into place
// and returns the files of the group other than those of the modules.
func (g *Group) Finish(ctx context.Context, log func(string)) ([]Artifact, error) {
	o := &g.output
	if o.set == nil {
		return nil, nil
	}
	defer o.Abort()
	own := len(o.Artifacts)
	if g.metrics != nil {
		slot := o.slot(metricsFile, "metrics")
		size, err := o.write(metricsFile, func(out io.Writer) error { return g.metrics.Write(out, o.Layout) })
		if err != nil {
			return nil, err
		}
		o.Artifacts[slot].Size = size
	}
	if g.pack {
		r, err := o.packStaged(ctx, pttf.Options{Log: log})
		if err != nil {
			return nil, err
		}
		if r.Created {
			o.Artifacts[o.slot(pttf.FileName, "package")].Size = r.Size
		}
	}
	if err := Commit(o); err != nil {
		return nil, err
	}
	return o.Artifacts[own:], nil
}

// Abort removes what was written and not moved.
func (g *Group) Abort() { g.output.Abort() }
