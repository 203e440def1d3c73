package fit

import (
	"maps"
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

// line fits y = slope·x + base to durations in whole ns. Durations are rounded,
// so the slope of two points a few elements apart is worth little compared with the
// slope of two points far apart, and a minority of points may be outliers.
// line therefore scores the line through every pair of points by the sum of
// squared residuals, each cut off at a limit, takes the best, and refits it by
// least squares to the points within the limit. The limit is three times the
// larger of the rounding and the scatter around the Theil-Sen line.
//
// It is not ok with fewer than two different x. Equal x are first merged to
// their median y, so that the work is bounded by the number of different x.
func line(x, y []float64) (slope, base float64, ok bool) {
	xs, ys := mergeEqual(x, y)
	if len(xs) < 2 {
		return 0, 0, false
	}
	slope, base = theilSen(xs, ys)
	residuals := make([]float64, len(xs))
	for i := range xs {
		residuals[i] = math.Abs(ys[i] - slope*xs[i] - base)
	}
	limit := 3 * max(rounding, median(residuals)/0.6745)
	score := func(slope, base float64) (sum float64) {
		for i := range xs {
			r := min(math.Abs(ys[i]-slope*xs[i]-base), limit)
			sum += r * r
		}
		return sum
	}
	best := score(slope, base)
	for _, i := range thin(len(xs), mostEnds) {
		for _, j := range thin(i, mostEnds) {
			k := (ys[i] - ys[j]) / (xs[i] - xs[j])
			b := ys[i] - k*xs[i]
			if s := score(k, b); s < best {
				best, slope, base = s, k, b
			}
		}
	}
	return leastSquares(xs, ys, slope, base, limit)
}

const (
	rounding    = 1    // ns that a duration may be off because it is a whole number
	maxDistinct = 1000 // different x that line looks at
	mostEnds    = 64   // different x that end a candidate of line
)

// mergeEqual returns the different x in ascending order, at most maxDistinct
// of them, each with the median of its y.
func mergeEqual(x, y []float64) (xs, ys []float64) {
	byX := map[float64][]float64{}
	for i := range x {
		byX[x[i]] = append(byX[x[i]], y[i])
	}
	all := slices.Sorted(maps.Keys(byX))
	for _, k := range thin(len(all), maxDistinct) {
		xs, ys = append(xs, all[k]), append(ys, median(byX[all[k]]))
	}
	return xs, ys
}

// thin returns at most most of the indexes 0 to n-1, evenly spaced, the first
// and the last among them.
func thin(n, most int) []int {
	count := min(n, most)
	list := make([]int, count)
	for k := range list {
		list[k] = k
		if count < n {
			list[k] = k * (n - 1) / (count - 1)
		}
	}
	return list
}

// theilSen returns the median of the slopes of all pairs of points and the
// median of y - slope·x.
func theilSen(xs, ys []float64) (slope, base float64) {
	var slopes, bases []float64
	for i := range xs {
		for j := range i {
			slopes = append(slopes, (ys[i]-ys[j])/(xs[i]-xs[j]))
		}
	}
	slope = median(slopes)
	for i := range xs {
		bases = append(bases, ys[i]-slope*xs[i])
	}
	return slope, median(bases)
}

// leastSquares refits a line to the points that lie within limit of it. It
// returns the line as it is where fewer than two points do.
func leastSquares(xs, ys []float64, slope, base, limit float64) (float64, float64, bool) {
	var n, sx, sy float64
	for i := range xs {
		if math.Abs(ys[i]-slope*xs[i]-base) <= limit {
			n, sx, sy = n+1, sx+xs[i], sy+ys[i]
		}
	}
	if n < 2 {
		return slope, base, true
	}
	mx, my := sx/n, sy/n
	var sxx, sxy float64
	for i := range xs {
		if math.Abs(ys[i]-slope*xs[i]-base) <= limit {
			sxx += (xs[i] - mx) * (xs[i] - mx)
			sxy += (xs[i] - mx) * (ys[i] - my)
		}
	}
	return sxy / sxx, my - sxy/sxx*mx, true
}
