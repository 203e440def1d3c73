package devicelog

import (
	"math"
	"math/bits"
	"slices"
)

// Summary describes a set of durations in cycles. Median is the mean of the
// two middle values where their number is even; P95 is the smallest value
// that at least 95 % of the values do not exceed (nearest rank). Std is the
// standard deviation of the values themselves: the divisor is their number.
type Summary struct {
	Count  uint64  `json:"count"` // launches
	Sum    uint64  `json:"sum"`   // stays at its maximum where it does not fit 64 bits
	Min    uint64  `json:"min"`
	Max    uint64  `json:"max"`
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Std    float64 `json:"std"`
	P95    uint64  `json:"p95"`
}

// summarize describes v, which it sorts.
func summarize[T uint32 | uint64](v []T) Summary {
	n := len(v)
	if n == 0 {
		return Summary{}
	}
	slices.Sort(v)
	var hi, lo uint64
	for _, x := range v {
		var c uint64
		lo, c = bits.Add64(lo, uint64(x), 0)
		hi += c
	}
	s := Summary{Count: uint64(n), Sum: lo, Min: uint64(v[0]), Max: uint64(v[n-1])}
	if hi > 0 {
		s.Sum = math.MaxUint64
		s.Mean = (float64(hi)*(1<<64) + float64(lo)) / float64(n)
	} else {
		s.Mean = float64(lo) / float64(n)
	}
	var squares float64
	for _, x := range v {
		d := float64(x) - s.Mean
		squares += d * d
	}
	s.Std = math.Sqrt(squares / float64(n))
	s.Median = medianSorted(v)
	s.P95 = uint64(v[(n*95+99)/100-1])
	return s
}

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
