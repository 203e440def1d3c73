package gen

import (
	"testing"

	"perfsim/systems/deps"
)

// BenchmarkRebuild rebuilds the dependencies of generated modules of a tenth
// of a million, a third and one million accesses: seconds and edges/s, and
// whether time grows with size.
func BenchmarkRebuild(b *testing.B) {
	for _, c := range []struct {
		name  string
		n     int
		loops int
	}{{"100k", 38_000, 0}, {"333k", 127_000, 0}, {"1M", 380_000, 0}, {"1M-loops", 380_000, 100}} {
		b.Run(c.name, func(b *testing.B) {
			o := Default(c.n)
			o.Operands = true
			o.Loops, o.Body = c.loops, 1000
			m := module(b, o)
			opt := deps.Default()
			opt.All = true
			var r deps.Report
			cpu := cpuSeconds()
			for b.Loop() {
				flow, err := deps.BuildFlow(b.Context(), m, opt)
				if err == nil {
					r, err = deps.AnalyzeAnti(b.Context(), m, opt)
				}
				if err != nil {
					b.Fatal(err)
				}
				for k, n := range flow.Edges {
					r.Edges[k] += n
				}
			}
			s := (cpuSeconds() - cpu) / float64(b.N)
			b.ReportMetric(s, "cpu-s/op")
			b.ReportMetric(float64(r.Inserted())/s/1e6, "Medges/cpu-s")
			b.ReportMetric(float64(r.Accesses)/1e6, "Maccesses")
			b.ReportMetric(float64(r.Inserted())/1e6, "Medges")
			b.ReportMetric(s*1e9/float64(r.Accesses), "cpu-ns/access")
		})
	}
}
