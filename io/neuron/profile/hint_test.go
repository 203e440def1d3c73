package profile

import (
	"testing"

	"perfsim/components"
)

// The warnings about what is missing become one hint that names the flags; a
// warning of another kind stays.
func TestHint(t *testing.T) {
	t.Parallel()
	m := components.NewModule("m", "neuronprofile")
	m.Instr.Grow(1)
	for _, text := range []string{
		"the profiler says: Missing additional dynamic DMA metadata, reported DMA values may be inaccurate. Try capturing the profile with --enable-dge-notifs.",
		"the profiler says: Current NEFF is missing compiler metrics.",
		"the profiler says: Missing HLO stats in the NEFF, `model_flops` is not available.",
		"the profiler says: the trace buffer overflowed",
	} {
		m.Note(noteWarning, text, 1)
	}
	hint(m)
	if len(m.Notes) != 2 || m.Notes[0].Text != "the profiler says: the trace buffer overflowed" {
		t.Fatalf("notes %+v", m.Notes)
	}
	const want = "the profile lacks source lines and operators (compile with NEURON_FRAMEWORK_DEBUG=1), times of dynamic DMA (capture with --enable-dge-notifs), FLOPs of the graph, compiler metrics (compile again with a current compiler)"
	if got := m.Notes[1].Text; got != want {
		t.Errorf("the hint is %q", got)
	}
	m.Notes = nil
	m.Instr.Source.Resize(1)
	if hint(m); len(m.Notes) != 0 {
		t.Errorf("a profile that lacks nothing: %+v", m.Notes)
	}
}
