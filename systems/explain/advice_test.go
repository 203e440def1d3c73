package explain_test

import (
	"context"
	"testing"

	"perfsim/systems"
	"perfsim/systems/explain"
	"perfsim/systems/whatif"
)

// What advice about transposes is worth is what the prediction falls by if they
// take no time; advice is sorted by it.
func TestAdviceWorth(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	res, err := systems.Simulate(ctx, systems.Request{Reading: systems.Reading{Path: "../../examples/attention.bir.json"}, Why: true})
	if err != nil {
		t.Fatal(err)
	}
	x, err := res.Explain(ctx, explain.Options{Block: -1})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Lints) < 2 {
		t.Fatalf("%d pieces of advice", len(r.Lints))
	}
	last := ^uint64(0)
	for _, l := range r.Lints {
		if l.Worth == nil {
			t.Fatalf("%s has no worth", l.Code)
		}
		if *l.Worth > last {
			t.Errorf("%s is worth %d and stands behind one worth %d", l.Code, *l.Worth, last)
		}
		last = *l.Worth
		if l.Code == "transposes" {
			// All matmuls, a thousandth of their time left, are worth no less.
			a, err := whatif.Parse("latency.Matmult=-99.9%")
			if err != nil {
				t.Fatal(err)
			}
			s, err := res.Sweep(ctx, [][]whatif.Setting{a.Values}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if most := s.Base.NS - s.Points[0].NS + 100; *l.Worth > most || *l.Worth == 0 {
				t.Errorf("transposes are worth %d, all matmuls %d", *l.Worth, most)
			}
		}
	}
}
