package lower

import (
	"cmp"
	"fmt"
	"slices"

	"perfsim/components/opgraph"
)

// Far is a product or convolution whose instructions are far from what its
// operator needs: the array is more than half empty, or operands and results
// move more than twice.
type Far struct {
	Operator string `json:"operator"`
	// Cycles are the columns that its products stream through the array,
	// LostCycles those more than a full array would need. Both count a column of
	// one pass as a cycle, loops and runs of the function multiplied.
	Cycles     int64 `json:"pe_columns"`
	LostCycles int64 `json:"pe_columns_lost"`
	// Bytes move between device memory and the chip, LostBytes of them more than
	// once.
	Bytes     int64 `json:"bytes"`
	LostBytes int64 `json:"bytes_lost"`
}

// mostFar bounds the list.
const mostFar = 10

// meter counts what a kernel does, from start to stop.
type meter struct{ flops, columns, moved int64 }

func (f *fn) meter() meter {
	return meter{f.flops, f.columns, opgraph.AddSize(f.loads, f.stores)}
}

// measure enters a product or convolution into the report where it is far from
// its roofline. first is the meter at its start.
func (f *fn) measure(i int32, first meter) {
	a := f.l.arr
	x := &f.flats[i]
	now := f.meter()
	columns, flops, moved := now.columns-first.columns, now.flops-first.flops, now.moved-first.moved
	if columns <= 0 || f.l.e.mult > 1 {
		return
	}
	full := ceilDiv(flops, 2*a.parts*a.statM)
	var need int64
	seen := map[int32]bool{}
	for _, list := range [][]ref{x.args, x.outs} {
		for _, r := range list {
			if !seen[r.v] {
				seen[r.v] = true
				need = opgraph.AddSize(need, f.values[r.v].total)
			}
		}
	}
	runs := f.l.runs[f.comp]
	far := Far{Operator: f.l.g.OpText(x.op), Cycles: opgraph.MulSize(columns, runs), Bytes: opgraph.MulSize(moved, runs)}
	if full*2 < columns {
		far.LostCycles = opgraph.MulSize(columns-full, runs)
	}
	if need*2 < moved {
		far.LostBytes = opgraph.MulSize(moved-need, runs)
	}
	if far.LostCycles > 0 || far.LostBytes > 0 {
		f.l.far = append(f.l.far, far)
	}
}

// lost weighs the columns and the bytes that an operator loses in ns.
func (l *lowerer) lost(x *Far) float64 {
	m := l.mach
	ns := float64(x.LostCycles) * 100 / float64(max(m.Clock.PEArray, 1))
	if rate := m.Memory.HBMRate; rate > 0 {
		ns = max(ns, float64(x.LostBytes)/rate)
	}
	return ns
}

// farReport sorts the operators that are far from their roofline by their loss,
// and notes the first.
func (l *lowerer) farReport() {
	slices.SortStableFunc(l.far, func(a, b Far) int { return cmp.Compare(l.lost(&b), l.lost(&a)) })
	if len(l.far) == 0 {
		return
	}
	l.rep.FarCount = len(l.far)
	l.rep.Far = l.far[:min(len(l.far), mostFar)]
	x := &l.far[0]
	what := fmt.Sprintf("%d of %d columns through the array would do", x.Cycles-x.LostCycles, x.Cycles)
	if x.LostCycles == 0 || float64(x.LostBytes) > float64(x.LostCycles)*100 {
		what = fmt.Sprintf("%d of the %d bytes it moves are moved more than once", x.LostBytes, x.Bytes)
	}
	l.e.m.Note("far-from-roofline", fmt.Sprintf("products and convolutions whose instructions do more than twice what they need; most: %s, where %s (--json lists them as lowering.far)", x.Operator, what), len(l.far))
}
