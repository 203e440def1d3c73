package lower_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perfsim/components/datadir"
	"perfsim/components/opgraph"
	"perfsim/ecs/proptest"
	"perfsim/io/xla/hlo"
	"perfsim/io/xla/stablehlo"
	"perfsim/systems/lower"
)

// readAll returns the graphs of a file of HLO text or proto.
func readAll(t testing.TB, path string) []*opgraph.Graph {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var gs []*opgraph.Graph
	if strings.HasSuffix(path, ".mlir") {
		if gs, err = stablehlo.Read(path, b); err != nil {
			t.Fatal(err)
		}
	} else if strings.Contains(path, ".pb") {
		if gs, err = hlo.ReadProto(path, b); err != nil {
			t.Fatal(err)
		}
	} else if gs, err = hlo.ReadText(path, b); err != nil {
		t.Fatal(err)
	}
	for _, g := range gs {
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		g.DeriveTripCounts()
	}
	return gs
}

func files(t testing.TB, dirs ...string) []string {
	var out []string
	for _, d := range dirs {
		list, err := filepath.Glob(filepath.Join(datadir.Path(t, d), "*"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	return out
}

// Every real module conserves FLOPs, bytes and collectives and accounts for
// every operator; no tile is used before its load or after another took its
// place, and everything that must stay in order is.
func TestRealFiles(t *testing.T) {
	mach := loadMachine(t, "trn2")
	for _, path := range files(t, "hlo_text", "hlo_scheduled", "hlo_neuron", "hlo_proto", "stablehlo") {
		if strings.HasSuffix(path, ".bc") {
			continue // bytecode is refused by the reader
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, g := range readAll(t, path) {
				if g.NumOps() >= 3_000 && !proptest.Long() {
					t.Skipf("%d operators: only in the long form (%s)", g.NumOps(), proptest.LongVariable)
				}
				opt := lower.DefaultOptions()
				began := time.Now()
				res, err := lower.Lower(context.Background(), g, mach, opt)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				n := res.Module.Instr.Len()
				t.Logf("%d operators, %d instructions, %d executed, %d loops, %v (%.2f M/s)", res.Report.Ops, n, res.Report.Executed, res.Report.TileLoops, took, float64(n)/took.Seconds()/1e6)
				if err := res.Report.Conserved(); err != nil {
					t.Error(err)
				}
				if res.Report.Coarse > 0 {
					t.Logf("%d waits for joined accesses", res.Report.Coarse)
				}
				for _, a := range res.Report.Accounts {
					if a.Treatment == "estimated" {
						t.Logf("estimated: %d %s as %s", a.Count, a.Opcode, a.How)
					}
				}
				if !opt.Operands {
					continue
				}
				recount(t, res)
				r, err := checkModule(res.Module)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d accesses, %d pairs in order, %d waits compared, %d not", r.Accesses, r.Ordered, r.Waits, r.Unknown)
				if r.False > 0 && r.False == r.Found && r.False <= res.Report.Coarse {
					t.Logf("%d waits for other bytes than are touched, all of them counted as coarse", r.False)
				} else if err := r.Err(res.Module); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
