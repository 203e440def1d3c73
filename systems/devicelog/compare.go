package devicelog

import (
	"cmp"
	"context"
	"math"
	"slices"

	"perfsim/components/zonelog"
	"perfsim/ecs"
)

// Delta compares one zone of two logs.
type Delta struct {
	Name, Risc string
	A, B       Summary
	FreqA      float64 // 0 where unknown or different within the log
	FreqB      float64
	// Change of the median, B against A: 0.1 is 10 % longer. NaN where A has
	// median 0 or one side is empty.
	Change float64
	// P is the two-sided probability of samples at least as far apart if
	// both logs measured the same thing (Mann-Whitney U test: exact for
	// small samples without ties, else normal with tie and continuity
	// correction). NaN where a side is empty.
	P float64
	// Holm is P after Holm's correction for the number of zones compared.
	Holm float64
	// Superior is the probability that a value of B is above one of A, ties
	// counting half: 0.5 is no difference, whatever the number of samples.
	Superior float64
	OnlyA    bool
	OnlyB    bool
	// InNS says that the comparison is in ns because the clocks differ.
	InNS bool
}

// Significant reports whether the difference stands at level alpha after the
// correction for several zones.
func (d *Delta) Significant(alpha float64) bool { return d.Holm <= alpha }

// Compare compares zones by name and, with byRisc, by processor. Durations
// are compared in cycles where both clocks are the same or unknown, else in
// nanoseconds (summaries stay in cycles). The list is ordered by the total
// change of time, largest first.
func Compare(ctx context.Context, a, b *zonelog.DeviceLog, byRisc bool) ([]Delta, error) {
	type key struct{ name, risc string }
	type side struct {
		v     []uint64
		freq  float64
		mixed bool
	}
	collect := func(l *zonelog.DeviceLog) (map[key]*side, error) {
		out := map[key]*side{}
		// Zones of one name share a row whatever their file, so that a
		// moved source still compares.
		for lane := range l.Lanes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			risc := ""
			if byRisc {
				risc = l.Lanes[lane].Risc
			}
			cache := map[uint32]*side{}
			for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
				k := l.Key(z)
				s := cache[k]
				if s == nil {
					id := key{l.ZoneName(k), risc}
					if s = out[id]; s == nil {
						s = &side{freq: -1}
						out[id] = s
					}
					cache[k] = s
				}
				f := l.Freq(l.Run[l.Zones.Begin[z]])
				if s.freq < 0 {
					s.freq = f
				} else if s.freq != f {
					s.mixed = true
				}
				s.v = append(s.v, l.Dur(z))
			}
		}
		return out, nil
	}
	am, err := collect(a)
	if err != nil {
		return nil, err
	}
	bm, err := collect(b)
	if err != nil {
		return nil, err
	}
	var keys []key
	for k := range am {
		keys = append(keys, k)
	}
	for k := range bm {
		if am[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y key) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.risc, y.risc)) })
	out := make([]Delta, len(keys))
	ecs.Parallel(len(keys), func(i int) {
		k := keys[i]
		d := Delta{Name: k.name, Risc: k.risc, Change: math.NaN(), P: math.NaN(), Holm: math.NaN(), Superior: math.NaN()}
		sa, sb := am[k], bm[k]
		if sa != nil {
			d.A = summarize(sa.v)
			if !sa.mixed {
				d.FreqA = sa.freq
			}
		}
		if sb != nil {
			d.B = summarize(sb.v)
			if !sb.mixed {
				d.FreqB = sb.freq
			}
		}
		d.OnlyA, d.OnlyB = sb == nil, sa == nil
		if sa != nil && sb != nil {
			scaleA, scaleB := 1.0, 1.0
			if d.FreqA > 0 && d.FreqB > 0 && d.FreqA != d.FreqB {
				scaleA, scaleB = 1000/d.FreqA, 1000/d.FreqB
				d.InNS = true
			}
			if d.A.Median > 0 {
				d.Change = d.B.Median*scaleB/(d.A.Median*scaleA) - 1
			}
			d.P, d.Superior = mannWhitney(sa.v, sb.v, scaleA, scaleB)
		}
		out[i] = d
	})
	holm(out)
	weight := func(d *Delta) float64 {
		return math.Abs(float64(d.B.Sum) - float64(d.A.Sum))
	}
	slices.SortStableFunc(out, func(x, y Delta) int { return cmp.Compare(weight(&y), weight(&x)) })
	return out, nil
}

// holm corrects the probabilities for their number.
func holm(d []Delta) {
	var idx []int
	for i := range d {
		if !math.IsNaN(d[i].P) {
			idx = append(idx, i)
		}
	}
	slices.SortStableFunc(idx, func(a, b int) int { return cmp.Compare(d[a].P, d[b].P) })
	low := 0.0
	for k, i := range idx {
		low = max(low, min(1, d[i].P*float64(len(idx)-k)))
		d[i].Holm = low
	}
}

// mannWhitney tests two sorted samples, each scaled by a positive factor. It
// returns the two-sided probability and the share of pairs in which b is
// larger (ties half).
func mannWhitney(a, b []uint64, scaleA, scaleB float64) (p, superior float64) {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return math.NaN(), math.NaN()
	}
	at := func(v []uint64, i int, s float64) float64 { return float64(v[i]) * s }
	i, j := 0, 0
	ub := 0.0 // pairs with b above a, ties half
	tie := 0.0
	ties := false
	for i < n || j < m {
		var x float64
		switch {
		case j >= m || i < n && at(a, i, scaleA) <= at(b, j, scaleB):
			x = at(a, i, scaleA)
		default:
			x = at(b, j, scaleB)
		}
		ta, tb := 0, 0
		for i < n && at(a, i, scaleA) == x {
			i++
			ta++
		}
		for j < m && at(b, j, scaleB) == x {
			j++
			tb++
		}
		ub += float64(tb) * (float64(i-ta) + float64(ta)/2)
		if t := float64(ta + tb); t > 1 {
			tie += t * (t*t - 1)
			ties = true
		}
	}
	nm := float64(n) * float64(m)
	superior = ub / nm
	if !ties && n*m <= 2500 && n+m <= 120 {
		return exactU(n, m, int(math.Round(min(ub, nm-ub)))), superior
	}
	total := float64(n + m)
	variance := nm / 12 * ((total + 1) - tie/(total*(total-1)))
	if variance <= 0 {
		return 1, superior // every value is the same
	}
	d := math.Abs(ub-nm/2) - 0.5
	if d <= 0 {
		return 1, superior
	}
	return math.Erfc(d / math.Sqrt(variance) / math.Sqrt2), superior
}

// exactU is the two-sided probability of a U at most u, from the number of
// arrangements of n and m values without ties. The largest value of an
// arrangement is one of a, with the m values of b below it, or one of b.
func exactU(n, m, u int) float64 {
	limit := n * m
	// ways[j][k]: arrangements of i values of a and j of b with U = k.
	ways := make([][]float64, m+1)
	for j := range ways {
		ways[j] = make([]float64, limit+1)
		ways[j][0] = 1
	}
	for range n {
		for j := 0; j <= m; j++ {
			w := ways[j]
			for k := limit; k >= j; k-- {
				w[k] = w[k-j]
			}
			clear(w[:min(j, limit+1)])
			if j > 0 {
				for k, v := range ways[j-1] {
					w[k] += v
				}
			}
		}
	}
	total, low := 0.0, 0.0
	for k, w := range ways[m] {
		total += w
		if k <= u {
			low += w
		}
	}
	return min(1, 2*low/total)
}
