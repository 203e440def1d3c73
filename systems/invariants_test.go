//go:build invariants

package systems

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
)

// A system that leaves an event before its producer's end is caught, with its
// name.
func TestInvariantsCatch(t *testing.T) {
	for name, spoil := range map[string]func(*World){
		"beyond": func(w *World) { w.Events.Arrive.Slice()[0][components.RunA] = 1 << 40 },
		"tables": func(w *World) { w.Module.Instr.Lane.Slice()[0] = 1 << 15 },
		"events": func(w *World) { w.Events = components.NewEvents(); w.Events.Arrive.Append([2]uint64{}) },
	} {
		w, _ := stage(t, 1, 0)
		for _, sys := range perfSim(Pass{Ordinal: 106, Name: "perf_sim_at_end"}, false) {
			if err := checked(sys).Do(context.Background(), w); err != nil {
				t.Fatal(err)
			}
		}
		bad := System{Name: "bad", Writes: []ecs.Component{"summary"}, Run: func(context.Context, *World) error { spoil(w); return nil }}
		if err := checked(bad).Run(context.Background(), w); err == nil || !strings.Contains(err.Error(), "invariant behind bad") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
