package fit

import (
	"maps"
	"math"
	"slices"

	"perfsim/components/machine"
)

// estimator is the way from the measurements of a constant to its value.
type estimator uint8

const (
	byMedian estimator = iota
	byHuber            // of delays that add up, clamped at 0
	byMin              // the smallest: what is left when nothing else adds to it
)

// samples collects measurements by constant.
type samples struct {
	values map[string][]float64
	how    map[string]estimator
	// n and bounds replace the values' own of a constant that is concluded
	// rather than measured.
	n      map[string]int
	bounds map[string][2]float64
}

func newSamples() *samples {
	return &samples{values: map[string][]float64{}, how: map[string]estimator{}, n: map[string]int{}, bounds: map[string][2]float64{}}
}

func (s *samples) add(name string, how estimator, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	s.values[name] = append(s.values[name], v)
	s.how[name] = how
}

// Item is one fitted constant.
type Item struct {
	Name   string  `json:"name"` // constant of the machine
	Was    float64 `json:"was"`  // value before the fit
	Value  float64 `json:"value"`
	N      int     `json:"samples"`
	Spread float64 `json:"spread"` // median absolute deviation
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	How    string  `json:"how"` // what the value is fitted from
}

var estimatorNames = [...]string{byMedian: "median", byHuber: "huber", byMin: "min"}

// estimate returns the value of one constant.
func estimate(how estimator, v []float64) float64 {
	switch how {
	case byHuber:
		return max(0, huber(v))
	case byMin:
		return slices.Min(v)
	}
	return median(slices.Clone(v))
}

// apply puts the constants that have measurements into c and returns them,
// sorted by name. A constant whose estimate is negative has no meaning in the
// model and is left.
func (s *samples) apply(c *machine.Calibrated) []Item {
	var items []Item
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		v := s.values[name]
		x := round(estimate(s.how[name], v))
		if !(x >= 0) {
			continue
		}
		spread := round(mad(v, x))
		was, _ := c.Constant(name)
		it := Item{Name: name, Was: was, Value: x, N: len(v), Spread: spread, Min: slices.Min(v), Max: slices.Max(v), How: estimatorNames[s.how[name]]}
		if b, ok := s.bounds[name]; ok {
			it.N, it.Min, it.Max, it.Spread, it.How = s.n[name], b[0], b[1], round((b[1]-b[0])/2), "bounds"
		}
		items = append(items, it)
		c.Constants[name] = machine.Constant{Value: x, Samples: it.N, Spread: it.Spread, Mark: machine.MarkFitted}
	}
	return items
}

// round keeps four significant decimals more than any measurement has.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }
