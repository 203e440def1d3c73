package fit

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(want) && math.IsNaN(got) {
		return
	}
	if !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestQuantiles(t *testing.T) {
	nan := math.NaN()
	for _, x := range []struct {
		v                []float64
		median, p90, mad float64 // mad from the median
	}{
		{nil, nan, nan, nan},
		{[]float64{7}, 7, 7, 0},
		{[]float64{4, 1}, 2.5, 4, 1.5},
		{[]float64{5, 1, 3}, 3, 5, 2},
		{[]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5.5, 9, 2.5},
		{[]float64{1, 1, 1, 1, 1000}, 1, 1000, 0},
	} {
		near(t, "median", median(slices.Clone(x.v)), x.median)
		near(t, "90th percentile", quantile(slices.Clone(x.v), 0.9), x.p90)
		near(t, "median absolute deviation", mad(x.v, x.median), x.mad)
	}
}

// TestHuber has values worked out by hand. Of 0, 1, 2, 3, 100 the median is 2
// and the deviation 1, so the limit is k = 1.345/0.6745 = 1.99407. All but 100
// lie within it of the solution m or on its lower side; with 100 and 0 weighted
// k/r, the estimating equation is (1-m)+(2-m)+(3-m)+k-k = 0 as long as m > k:
// m = 2.
func TestHuber(t *testing.T) {
	near(t, "an outlier on one side, 0 on the other", huber([]float64{100, 3, 2, 1, 0}), 2)
	near(t, "clean values", huber([]float64{1, 2, 3, 4, 5}), 3)
	near(t, "more than half equal", huber([]float64{5, 5, 5, 1, 80}), 5)
	near(t, "one", huber([]float64{5}), 5)
	// Of 0, 1, 2, 3, 4, 50 the median is 2.5, the deviation 1.5, so k = 2.99110.
	// 50 counts with k: (0-m)+(1-m)+(2-m)+(3-m)+(4-m)+k = 0 gives m = (10+k)/5.
	near(t, "an outlier", huber([]float64{0, 1, 2, 3, 4, 50}), (10+1.345*1.5/0.6745)/5)
	if !math.IsNaN(huber(nil)) {
		t.Error("nothing has a location")
	}
}

// TestHuberSolves checks the estimating equation: the deviations, those beyond
// k cut to k, add up to nothing.
func TestHuberSolves(t *testing.T) {
	proptest.Check(t, func(r *rapid.T) {
		var x []float64
		for _, v := range rapid.SliceOfN(rapid.IntRange(-1000, 1000), 1, 40).Draw(r, "x") {
			x = append(x, float64(v))
		}
		m := huber(x)
		if m < slices.Min(x)-1e-6 || m > slices.Max(x)+1e-6 {
			r.Fatalf("%v lies outside of the values", m)
		}
		k := 1.345 * mad(x, median(slices.Clone(x))) / 0.6745
		if k == 0 {
			return
		}
		sum := 0.0
		for _, v := range x {
			sum += max(-k, min(k, v-m))
		}
		if math.Abs(sum) > 1e-3*k*float64(len(x)) {
			r.Fatalf("the cut deviations from %v add up to %v, with a limit of %v", m, sum, k)
		}
	})
}

func TestLine(t *testing.T) {
	slope, base, ok := line([]float64{1, 2, 3, 4, 4, 4, 10}, []float64{5, 7, 9, 11, 11, 300, 1e6})
	// 4 has the median 11 and 10 is an outlier: six of the ten slopes are 2.
	if !ok || slope != 2 || base != 3 {
		t.Errorf("slope %v, base %v, %v", slope, base, ok)
	}
	if _, _, ok := line([]float64{3, 3, 3}, []float64{1, 2, 3}); ok {
		t.Error("one x has no slope")
	}
	var x, y []float64
	for k := range 5 * maxDistinct {
		x, y = append(x, float64(k)), append(y, 0.25*float64(k)+7)
	}
	slope, base, ok = line(x, y)
	near(t, "slope of many", slope, 0.25)
	near(t, "base of many", base, 7)
	if !ok {
		t.Error("many different x are a line")
	}
}

func TestThresholdBetween(t *testing.T) {
	for _, x := range [][3]float64{{0.3684, 0.3918, 0.375}, {0.37, 0.376, 0.375}, {0.375, 0.42, 0.3975}, {0.36, 0.375, 0.375}, {0.40, 0.41, 0.405}, {0, 1, 0.375}} {
		near(t, "threshold", thresholdBetween(x[0], x[1]), x[2])
	}
}
