package models

import (
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// Params returns the number of trained parameters: every weight of every
// phase once.
func (m *Model) Params() int64 {
	seen := map[string]bool{}
	var total int64
	for _, p := range m.Phases {
		for path, op := range p.Weights {
			if !seen[path] {
				seen[path] = true
				total += p.Graph.Shapes.Count(p.Graph.Ops.Shape[op])
			}
		}
	}
	return total
}

// MACs returns the multiply-accumulates of one sample in all runs of its
// phases.
func (m *Model) MACs() int64 {
	var total int64
	for _, p := range m.Phases {
		total += MACs(p.Graph) / int64(m.Batch) * p.Runs
	}
	return total
}

// MACs returns the multiply-accumulates of the dots and convolutions of a
// graph, counted as published tables do: a tap on the padding counts, the
// holes of a transposed convolution do not. (opgraph.Graph.FLOPs counts no
// tap on padding.)
func MACs(g *opgraph.Graph) int64 {
	var total int64
	for op := range opgraph.OpID(g.NumOps()) {
		switch g.Ops.Kind[op] {
		case opgraph.OpDot:
			total += g.FLOPs(op) / 2
		case opgraph.OpConvolution:
			c, _ := g.ConvSize(op)
			pairs := c.Dense
			if w := g.Window(op, nil); slices.ContainsFunc(w, func(d opgraph.WindowDim) bool { return d.LHSDilate > 1 }) {
				pairs = c.Pairs
			}
			total += c.Batch * c.Out * c.In * pairs
		}
	}
	return total
}

// List returns the list of models as the reference benchmark prints it.
func List() string {
	var b strings.Builder
	b.WriteString("\nAvailable models:\n\n")
	for _, f := range Families() {
		b.WriteString(" -  " + f.Name + strings.Repeat(" ", max(30-len(f.Name), 0)) + " configs:  ['" + strings.Join(f.Configs, "', '") + "']\n")
	}
	b.WriteString("\n\n")
	return b.String()
}

// WeightSet returns the trained parameters of the phase's graph as a set.
func (p *Phase) WeightSet() map[opgraph.OpID]bool {
	out := make(map[opgraph.OpID]bool, len(p.Weights))
	for _, op := range p.Weights {
		out[op] = true
	}
	return out
}
