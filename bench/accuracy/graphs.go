package accuracy

import (
	"context"
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/systems"
)

const classGraphs = "kernels from graphs"

// The kernels of these tables are hand-written; what is predicted is the same
// operation as a graph, lowered by perfsim. The lowering aims at the variants
// that keep everything on chip: those are compared.

// attentionJobs predicts softmax(q·kᵀ)·v of one head.
func attentionJobs(f *file, _ []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		if row["kernel"] != "fused" {
			continue
		}
		s, d, t := row["seqlen"], row["d_head"], hloType(row["dtype"])
		text := fmt.Sprintf(`HloModule attention
max { a = %[3]s[] parameter(0) b = %[3]s[] parameter(1) ROOT m = %[3]s[] maximum(a, b) }
sum { a = %[3]s[] parameter(0) b = %[3]s[] parameter(1) ROOT s = %[3]s[] add(a, b) }
ENTRY main {
  q = %[3]s[%[1]s,%[2]s] parameter(0)
  k = %[3]s[%[1]s,%[2]s] parameter(1)
  v = %[3]s[%[1]s,%[2]s] parameter(2)
  scores = %[3]s[%[1]s,%[1]s] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  low = %[3]s[] constant(-inf)
  most = %[3]s[%[1]s] reduce(scores, low), dimensions={1}, to_apply=max
  mosts = %[3]s[%[1]s,%[1]s] broadcast(most), dimensions={0}
  less = %[3]s[%[1]s,%[1]s] subtract(scores, mosts)
  e = %[3]s[%[1]s,%[1]s] exponential(less)
  zero = %[3]s[] constant(0)
  total = %[3]s[%[1]s] reduce(e, zero), dimensions={1}, to_apply=sum
  totals = %[3]s[%[1]s,%[1]s] broadcast(total), dimensions={0}
  p = %[3]s[%[1]s,%[1]s] divide(e, totals)
  ROOT o = %[3]s[%[1]s,%[2]s] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`, s, d, t)
		it := Item{Class: classGraphs, Name: "attention " + row["dtype"] + " " + s, Machine: "trn2", Quantity: deviceLatency,
			Measured: number(row["p50_us"]) * 1e3, Source: fmt.Sprintf("%s, line %d", f.path, n+2)}
		out = append(out, graphJob(it, opt, text))
	}
	return out, nil
}

// mlpJobs predicts gelu(x·w + b).
func mlpJobs(f *file, _ []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		if row["kernel"] != "fused_pwl" {
			continue
		}
		m, k, c, t := row["M"], row["K"], row["N"], hloType(row["dtype"])
		text := fmt.Sprintf(`HloModule mlp
ENTRY main {
  x = %[4]s[%[1]s,%[2]s] parameter(0)
  w = %[4]s[%[2]s,%[3]s] parameter(1)
  b = %[4]s[%[3]s] parameter(2)
  xw = %[4]s[%[1]s,%[3]s] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = %[4]s[%[1]s,%[3]s] broadcast(b), dimensions={1}
  h = %[4]s[%[1]s,%[3]s] add(xw, bb)
  half = %[4]s[] constant(0.5)
  one = %[4]s[] constant(1)
  c0 = %[4]s[] constant(0.797884583)
  c1 = %[4]s[] constant(0.044715)
  halfs = %[4]s[%[1]s,%[3]s] broadcast(half), dimensions={}
  ones = %[4]s[%[1]s,%[3]s] broadcast(one), dimensions={}
  c0s = %[4]s[%[1]s,%[3]s] broadcast(c0), dimensions={}
  c1s = %[4]s[%[1]s,%[3]s] broadcast(c1), dimensions={}
  h2 = %[4]s[%[1]s,%[3]s] multiply(h, h)
  h3 = %[4]s[%[1]s,%[3]s] multiply(h2, h)
  t0 = %[4]s[%[1]s,%[3]s] multiply(c1s, h3)
  t1 = %[4]s[%[1]s,%[3]s] add(h, t0)
  t2 = %[4]s[%[1]s,%[3]s] multiply(c0s, t1)
  t3 = %[4]s[%[1]s,%[3]s] tanh(t2)
  t4 = %[4]s[%[1]s,%[3]s] add(ones, t3)
  t5 = %[4]s[%[1]s,%[3]s] multiply(halfs, t4)
  ROOT y = %[4]s[%[1]s,%[3]s] multiply(h, t5)
}
`, m, k, c, t)
		it := Item{Class: classGraphs, Name: "MLP " + row["dtype"] + " " + row["config"], Machine: "trn2", Quantity: deviceLatency,
			Measured: number(row["p50_us"]) * 1e3, Source: fmt.Sprintf("%s, line %d", f.path, n+2)}
		out = append(out, graphJob(it, opt, text))
	}
	return out, nil
}

func hloType(dtype string) string { return strings.Replace(dtype, "fp", "f", 1) }

func graphJob(it Item, opt *Options, text string) job {
	if opt.Machine != "" {
		it.Machine = opt.Machine
	}
	return job{it, func(ctx context.Context, i *Item) error {
		src, err := format.FromBytes("graph.hlo", []byte(text))
		if err != nil {
			return err
		}
		defer src.Close()
		r := systems.Request{Reading: systems.Reading{Source: src, Jobs: max(opt.Jobs, 1)}}
		r.Machine, r.Model, r.Loops = it.Machine, components.Calibrated, components.Trips
		return simulate(ctx, i, r)
	}}
}
