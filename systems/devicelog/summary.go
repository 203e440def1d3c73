package devicelog

import "math"

// medianSorted is the middle of sorted values.
func medianSorted[T uint32 | uint64](v []T) float64 {
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	if n%2 == 1 {
		return float64(v[n/2])
	}
	a, b := v[n/2-1], v[n/2]
	return float64(a) + float64(b-a)/2
}

// nanoseconds converts cycles at a clock in MHz; NaN without a clock.
func nanoseconds(cycles, mhz float64) float64 {
	if mhz <= 0 {
		return math.NaN()
	}
	return cycles * 1000 / mhz
}

// roundNS is the rounding of the vendor's report: round(cycles * 1000 / MHz),
// halves away from zero.
func roundNS(cycles uint64, mhz float64) (uint64, bool) {
	if mhz <= 0 {
		return 0, false
	}
	return uint64(math.Round(float64(cycles) * 1000 / mhz)), true
}
