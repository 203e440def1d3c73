package fit

import (
	"math"
	"slices"
)

// median returns the median of x, which it sorts; NaN for none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	n := len(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return (x[n/2-1] + x[n/2]) / 2
}

// quantile returns the q-quantile of x, which it sorts, as the smallest value
// that at least q of the values do not exceed.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	k := int(math.Ceil(q*float64(len(x)))) - 1
	return x[min(max(k, 0), len(x)-1)]
}

// mad returns the median absolute deviation of x from c.
func mad(x []float64, c float64) float64 {
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = math.Abs(v - c)
	}
	return median(d)
}

// huber returns Huber's M-estimate of location with the usual tuning of 1.345
// robust standard deviations: near the mean for clean measurements, near the
// median with outliers. Where more than half of the values are equal it is
// their median.
func huber(x []float64) float64 {
	m := median(slices.Clone(x))
	s := mad(x, m) / 0.6745
	if !(s > 0) {
		return m
	}
	k := 1.345 * s
	for range 100 {
		sum, weight := 0.0, 0.0
		for _, v := range x {
			w := 1.0
			if r := math.Abs(v - m); r > k {
				w = k / r
			}
			sum += w * v
			weight += w
		}
		next := sum / weight
		if math.Abs(next-m) < 1e-9*max(1, math.Abs(m)) {
			return next
		}
		m = next
	}
	return m
}

// line returns the Theil-Sen line through points: the median of the slopes of
// all pairs with different x and the median of y - slope·x. It is not ok with
// fewer than two different x. Equal x are first merged to their median y, so
// that the work is bounded by the number of different x.
func line(x, y []float64) (slope, base float64, ok bool) {
	byX := map[float64][]float64{}
	for i := range x {
		byX[x[i]] = append(byX[x[i]], y[i])
	}
	if len(byX) < 2 {
		return 0, 0, false
	}
	xs := make([]float64, 0, len(byX))
	for v := range byX {
		xs = append(xs, v)
	}
	slices.Sort(xs)
	if len(xs) > maxDistinct {
		step := float64(len(xs)) / maxDistinct
		few := make([]float64, 0, maxDistinct)
		for k := range maxDistinct {
			few = append(few, xs[int(float64(k)*step)])
		}
		xs = few
	}
	ys := make([]float64, len(xs))
	for i, v := range xs {
		ys[i] = median(byX[v])
	}
	var slopes []float64
	for i := range xs {
		for j := range i {
			slopes = append(slopes, (ys[i]-ys[j])/(xs[i]-xs[j]))
		}
	}
	slope = median(slopes)
	var bases []float64
	for i := range xs {
		bases = append(bases, ys[i]-slope*xs[i])
	}
	return slope, median(bases), true
}

// maxDistinct bounds the different x that line pairs up.
const maxDistinct = 1000
