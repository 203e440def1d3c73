package explain_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/explain"
)

// The groups of every grouping add up to the latency, the busy time of every
// lane, and the FLOPs and bytes of the module, in both loop modes.
func TestGroupsAddUp(t *testing.T) {
	t.Parallel()
	const hlo = `HloModule m
ENTRY main {
  x = bf16[4096,4096] parameter(0)
  w = bf16[4096,4096] parameter(1)
  y = bf16[4096,4096] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer_0/dot_general" source_file="f.py" source_line=3}
  ROOT z = bf16[4096,4096] tanh(y), metadata={op_name="jit(f)/layer_1/tanh" source_file="f.py" source_line=4}
}
`
	graph := filepath.Join(t.TempDir(), "m.hlo")
	if err := os.WriteFile(graph, []byte(hlo), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{graph, "../../examples/attention.bir.json", "../../examples/loop.bir.json", "../../examples/collective.bir.json"} {
		for _, loops := range []components.Loops{components.Once, components.Trips} {
			ctx := context.Background()
			res, err := systems.Simulate(ctx, systems.Request{Reading: systems.Reading{Path: path}, Settings: systems.Settings{Loops: loops}, Why: true})
			if err != nil {
				t.Fatal(err)
			}
			x, err := res.Explain(ctx, explain.Options{Block: -1})
			if err != nil {
				t.Fatal(err)
			}
			figures := res.Work()
			for _, by := range explain.Groupings() {
				list, rest, err := x.Groups(ctx, explain.Grouping(by))
				if err != nil {
					t.Fatal(err)
				}
				sum, flops, bytes := rest, uint64(0), uint64(0)
				busy := map[string]uint64{}
				for _, g := range list {
					sum += g.PathNS
					for _, e := range g.Busy {
						busy[e.Name] += e.NS
					}
					if g.FLOPs != nil {
						flops += *g.FLOPs
					}
					if g.Bytes != nil {
						bytes += *g.Bytes
					}
				}
				name := filepath.Base(path) + " " + loops.String() + " by " + by
				if want := res.Summary().LatencyA; sum != uint64(want) {
					t.Errorf("%s: %d ns of the critical path, the latency is %d", name, sum, want)
				}
				for _, e := range res.Summary().Engines {
					if busy[e.Name] != e.BusyNS {
						t.Errorf("%s: %s is busy for %d ns, run has %d", name, e.Name, busy[e.Name], e.BusyNS)
					}
				}
				if figures.FLOPs != nil && flops != *figures.FLOPs {
					t.Errorf("%s: %d FLOPs of %d", name, flops, *figures.FLOPs)
				}
				if figures.HBMRead != nil && bytes != *figures.HBMRead+*figures.HBMWritten {
					t.Errorf("%s: %d bytes of %d", name, bytes, *figures.HBMRead+*figures.HBMWritten)
				}
			}
		}
	}
}

// The groups of a graph are named by its operators, layers and lines.
func TestGroupNames(t *testing.T) {
	t.Parallel()
	const hlo = `HloModule m
ENTRY main {
  x = bf16[512,512] parameter(0)
  y = bf16[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer_0/dot_general" source_file="f.py" source_line=3}
  ROOT z = bf16[512,512] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer_1/dot_general" source_file="f.py" source_line=3}
}
`
	path := filepath.Join(t.TempDir(), "m.hlo")
	if err := os.WriteFile(path, []byte(hlo), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	res, err := systems.Simulate(ctx, systems.Request{Reading: systems.Reading{Path: path}, Why: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := res.Explain(ctx, explain.Options{Block: -1})
	if err != nil {
		t.Fatal(err)
	}
	for by, want := range map[explain.Grouping]string{explain.ByOperator: "y z", explain.ByLayer: "jit(f)/layer_0 jit(f)/layer_1", explain.BySource: "f.py:3", explain.ByKernel: "main"} {
		list, _, err := x.Groups(ctx, by)
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, g := range list {
			have[g.Name] = true
		}
		for _, name := range strings.Fields(want) {
			if !have[name] {
				t.Errorf("by %s: no group %s in %v", by, name, have)
			}
		}
		if n := len(strings.Fields(want)); len(list) != n {
			t.Errorf("by %s: %d groups, want %d", by, len(list), n)
		}
	}
}
