package attribute

import (
	"fmt"
	"testing"

	"perfsim/bench/self/gen"
	"perfsim/components"
	"perfsim/systems/cost"
)

// The passes at growing sizes: the time for one instruction stays.
func BenchmarkPasses(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		m, err := gen.Module(ctx, gen.Default(n))
		if err != nil {
			b.Fatal(err)
		}
		w, rules := placed(b, m, load(b, "trn2"), cost.Reference, components.Once)
		a := bind(b, w, rules, components.RunA)
		o := Options{Block: -1}
		for _, p := range []struct {
			name string
			run  func() error
		}{
			{"bind", func() error { _, err := Bind(ctx, w, rules, components.RunA); return err }},
			{"lanes", func() error { _, err := Lanes(ctx, w, rules, a, o); return err }},
			{"path", func() error {
				paths, err := CriticalPath(ctx, w, rules, a, o)
				Report(m, paths)
				return err
			}},
			{"slack", func() error { _, err := Slack(ctx, w, rules, a); return err }},
		} {
			b.Run(fmt.Sprintf("%s/%d", p.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := p.run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instr")
			})
		}
	}
}
