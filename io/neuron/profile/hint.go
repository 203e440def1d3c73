package profile

import (
	"slices"
	"strings"

	"perfsim/components"
)

// noteWarning is the code of the profiler's own warnings.
const noteWarning = "profiler-warning"

// lacks are the parts that a profile may lack: the words of the profiler's
// warning, and what to do about it.
var lacks = [...]struct{ warning, what string }{
	{"additional dynamic DMA metadata", "times of dynamic DMA (capture with --enable-dge-notifs)"},
	{"HLO stats", "FLOPs of the graph"},
	{"compiler metrics", "compiler metrics (compile again with a current compiler)"},
}

// hint makes one note of what the profile lacks, with the flags that bring it,
// in place of the profiler's warnings. Warnings of other kinds stay.
func hint(m *components.Module) {
	var missing []string
	if m.Instr.Source.Len() == 0 && m.Instr.HLO.Len() == 0 {
		missing = append(missing, "source lines and operators (compile with NEURON_FRAMEWORK_DEBUG=1)")
	}
	for _, l := range lacks {
		known := func(n components.Note) bool { return n.Code == noteWarning && strings.Contains(n.Text, l.warning) }
		if slices.ContainsFunc(m.Notes, known) {
			m.Notes = slices.DeleteFunc(m.Notes, known)
			missing = append(missing, l.what)
		}
	}
	if len(missing) > 0 {
		m.Note("profile-lacks", "the profile lacks "+strings.Join(missing, ", "), 1)
	}
}
