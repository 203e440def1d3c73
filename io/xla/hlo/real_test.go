package hlo

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/components/opgraph"
)

// TestRealFiles reads every real module and compares its instructions and
// edges (operands and control predecessors) with the counts of the manifest,
// which other tools made.
func TestRealFiles(t *testing.T) {
	manifest, err := os.ReadFile(datadir.Path(t, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(manifest)) {
		f := strings.Split(line, "\t")
		if len(f) < 8 {
			continue
		}
		switch f[1] {
		case "hlo_text", "hlo_scheduled", "hlo_neuron", "hlo_proto":
		default:
			continue
		}
		n++
		t.Run(filepath.Base(f[0]), func(t *testing.T) {
			b := readFile(t, datadir.Path(t, f[0]))
			read, sniff := ReadText, Sniff
			if strings.Contains(f[0], ".pb") {
				read, sniff = ReadProto, SniffProto
			}
			if head := b[:min(len(b), 4096)]; !sniff(head) || Sniff(head) && SniffProto(head) {
				t.Errorf("sniffing: text %v, proto %v", Sniff(head), SniffProto(head))
			}
			graphs, err := read(f[0], b)
			if err != nil {
				t.Fatal(err)
			}
			if len(graphs) != 1 {
				t.Fatalf("%d graphs", len(graphs))
			}
			g := graphs[0]
			ops, edges := 0, 0
			for op := range opgraph.OpID(g.NumOps()) {
				if name := g.CompText(g.Ops.Comp[op]); strings.HasPrefix(name, "async_") && g.Ops.TextLine[op] != 0 && g.Ops.TextLine[op] == g.Comps.TextLine[g.Ops.Comp[op]] {
					continue // made from "X-start" sugar
				}
				ops++
				edges += len(g.Operands(op)) + len(g.Control(op))
			}
			// The manifest's tool read line by line; instructions without a
			// shape and attributes on a line of their own escaped it. There
			// are 62 " = " in the one file, two more order edges in the other.
			switch {
			case strings.Contains(f[0], "sendrecv_known_trip_count"):
				f[6], f[7] = "62", "73"
			case strings.Contains(f[0], "nccl_group_send_recv_no_loop_x4"):
				f[7] = "42"
			}
			if strconv.Itoa(ops) != f[6] || strconv.Itoa(edges) != f[7] {
				t.Errorf("%d instructions and %d edges, the manifest says %s and %s", ops, edges, f[6], f[7])
			}
			roundTrip(t, f[0], g)
		})
	}
	if n != 21 {
		t.Errorf("%d HLO files in the manifest, want 21", n)
	}
}

// open reads a real file of one module.
func open(t testing.TB, name string) *opgraph.Graph {
	t.Helper()
	b := readFile(t, datadir.Path(t, name))
	read := ReadText
	if strings.Contains(name, ".pb") {
		read = ReadProto
	}
	g, err := read(name, b)
	if err != nil {
		t.Fatal(err)
	}
	return g[0]
}

const module40 = "NVIDIA__JAX-Toolbox__module_0040.pjit__wrapped_step_fn."

// TestTextEqualsProto compares the text and the proto of the same scheduled
// module. They agree in everything both carry. The text, which a script
// printed from the proto, leaves out input_output_alias, sharding=,
// output_to_operand_aliasing= and the values of some constants.
func TestTextEqualsProto(t *testing.T) {
	text := open(t, "hlo_scheduled/"+module40+"sm_8.0_gpu_after_optimizations.DERIVED.txt.gz")
	proto := open(t, "hlo_proto/"+module40+"sm_8.0_gpu_after_optimizations.hlo.pb.gz")
	if len(text.Aliases) != 0 || len(proto.Aliases) != 449 {
		t.Errorf("%d and %d aliases, want 0 and 449", len(text.Aliases), len(proto.Aliases))
	}
	proto.Aliases = nil
	d := graphDiff(text, proto, diffOptions{
		Skip: func(a opgraph.OpAttr) bool {
			switch a {
			case opgraph.AttrSharding, opgraph.AttrOutputAliasing,
				opgraph.AttrConstFloat, opgraph.AttrConstInt, opgraph.AttrLiteral:
				return true
			}
			return false
		},
	})
	if d != "" {
		t.Error(d)
	}
	// Where the text has the value of a scalar, it is the same one.
	n := 0
	for op := range opgraph.OpID(text.NumOps()) {
		for _, key := range []opgraph.OpAttr{opgraph.AttrConstFloat, opgraph.AttrConstInt} {
			if v, ok := text.Int(op, key); ok {
				n++
				if w, ok := proto.Int(op, key); !ok || v != w {
					t.Errorf("constant %q is %d in the text, %d in the proto", text.OpText(op), v, w)
				}
			}
		}
	}
	t.Logf("%d scalar constants have a value in the text", n)
}

// TestTotals pins what real modules ask for. The step before partitioning
// over four devices has four times the FLOPs of the one after.
func TestTotals(t *testing.T) {
	before := open(t, "hlo_proto/"+module40+"before_optimizations.hlo.pb.gz").Totals(1)
	after := open(t, "hlo_proto/"+module40+"sm_8.0_gpu_after_optimizations.hlo.pb.gz").Totals(1)
	if before.FLOPs != 4*after.FLOPs || after.FLOPs != 9246527717376 {
		t.Errorf("FLOPs %d before, %d after partitioning", before.FLOPs, after.FLOPs)
	}
	if len(after.UnknownTrips) != 0 || after.Collectives != 23 {
		t.Errorf("%d unknown trip counts, %d collectives", len(after.UnknownTrips), after.Collectives)
	}
}

// TestTripCounts pins the trip counts of the real modules: how many whiles
// are known, derived and unknown, and the largest count.
func TestTripCounts(t *testing.T) {
	for _, c := range []struct {
		file                    string
		known, derived, unknown int
		largest                 int64
	}{
		{"hlo_text/openxla__xla__bench_scan_N2000_M3.hlo", 0, 1, 0, 2000},
		{"hlo_text/ROCm__xla__gemma3_4b__module_0096.jit_train_step.before_optimizations.txt.gz", 0, 2, 0, 5},  // 34 layers: five scanned blocks of six, and four
		{"hlo_text/ROCm__xla__llama3_8b__module_0099.jit_train_step.before_optimizations.txt.gz", 0, 2, 0, 32}, // layers
		{"hlo_text/openxla__xla__hlo_llama31_405b_fp8_64x8.hlo", 0, 2, 0, 126},                                 // layers
		{"hlo_text/openxla__xla__jax.issue.33666.linx.slow_0428.module_0006.hlo.gz", 0, 21, 0, 200},
		{"hlo_scheduled/openxla__xla__gpu_schedule_sendrecv_known_trip_count.hlo", 1, 0, 0, 25},
		{"hlo_scheduled/openxla__xla__tpu_msa_WhileAllocationBug.hlo", 0, 0, 2, 0}, // compare floats
	} {
		g := open(t, c.file)
		var n [3]int
		largest := int64(0)
		for op := range opgraph.OpID(g.NumOps()) {
			if g.Ops.Kind[op] == opgraph.OpWhile {
				v, from := g.TripCount(op)
				n[from]++
				largest = max(largest, v)
			}
		}
		if n != [3]int{opgraph.TripUnknown: c.unknown, opgraph.TripKnown: c.known, opgraph.TripDerived: c.derived} || largest != c.largest {
			t.Errorf("%s: %d known, %d derived, %d unknown, largest %d", c.file, n[opgraph.TripKnown], n[opgraph.TripDerived], n[opgraph.TripUnknown], largest)
		}
	}
}
