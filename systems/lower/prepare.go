package lower

import (
	"fmt"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/systems/spmd"
)

// prepare returns the graph that is laid out: dimensions known, custom-calls
// with a public meaning replaced, and one device's share of a module that is
// not partitioned. It leaves g alone.
func prepare(g *opgraph.Graph, opt *Options) (*opgraph.Graph, []components.Note, error) {
	g, err := setDims(g, opt.Dims)
	if err != nil {
		return nil, nil, err
	}
	g, done := expand(g)
	var notes []components.Note
	var cut *components.Note
	if opt.Cores == 0 {
		g, cut = spmd.Partition(g)
	} else if g, cut, err = spmd.Cores(g, opt.Cores, opt.Cuts); err != nil {
		return nil, nil, err
	}
	if cut != nil {
		notes = append(notes, *cut)
	}
	for _, d := range done {
		notes = addNote(notes, "expanded", fmt.Sprintf("custom-call %s counted as %s", d.target, d.as))
	}
	return g, notes, nil
}

func addNote(notes []components.Note, code, text string) []components.Note {
	for i := range notes {
		if notes[i].Code == code && notes[i].Text == text {
			notes[i].Count++
			return notes
		}
	}
	return append(notes, components.Note{Code: code, Text: text, Count: 1})
}
