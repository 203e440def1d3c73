package cli

import (
	"io"
	"slices"

	"perfsim/components"
)

// printHeadlines prints the notes that stand next to the latency.
func printHeadlines(w io.Writer, notes []components.Note) {
	for _, n := range notes {
		if n.Headline() {
			sayf(w, "caution\t%s\n", n.Text)
		}
	}
}

// plainNotes returns the notes that are not headlines.
func plainNotes(notes []components.Note) []components.Note {
	return slices.DeleteFunc(slices.Clone(notes), components.Note.Headline)
}
