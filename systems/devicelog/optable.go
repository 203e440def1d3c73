package devicelog

import (
	"cmp"
	"math"
	"slices"

	"perfsim/io/tenstorrent/profilelog"
)

// OpRow sums the operators of one code.
type OpRow struct {
	Code    string
	Type    string
	Count   int
	NoTime  int     // device operators without a device time
	Kernel  float64 // ns of kernel durations added up
	Min     float64
	Max     float64
	Cores   float64 // mean core count
	PerCore float64 // mean share of the worker cores of each row, NaN where unknown
}

// OpsSummary is what an ops table says.
type OpsSummary struct {
	Rows      int
	Device    int // device operators
	Host      int // operators that ran on the host
	Signposts int
	Missing   int // device operators without device times: their rows were lost
	Kernel    float64
	// FWUnion is the time in which some operator ran, by firmware start and
	// end, per device and added over devices; FWSum the plain sum. They
	// differ where operators overlap.
	FWUnion  float64
	FWSum    float64
	Overlaps int
	ByCode   []OpRow
}

// SummarizeOps sums an ops table. Firmware times are cycles; they are turned
// into nanoseconds by the clock that the rows themselves imply (cycles over
// DEVICE FW DURATION of the longest operator).
func SummarizeOps(t *profilelog.OpsTable) OpsSummary {
	s := OpsSummary{Rows: len(t.Ops)}
	byCode := map[[2]string]*OpRow{}
	type iv struct{ dev, a, b int64 }
	var spans []iv
	var longest int64
	nsPerCycle := math.NaN()
	shares := map[*OpRow][2]float64{}
	for i := range t.Ops {
		o := &t.Ops[i]
		device := o.Type == "tt_dnn_device" || o.Type == "" && (t.Family == "C++" || t.Family == "analyzer")
		switch {
		case o.Type == "signpost":
			s.Signposts++
			continue
		case device:
			s.Device++
		default:
			s.Host++
		}
		k := [2]string{o.Code, o.Type}
		r := byCode[k]
		if r == nil {
			r = &OpRow{Code: o.Code, Type: o.Type, Min: math.Inf(1), Max: math.Inf(-1)}
			byCode[k] = r
		}
		r.Count++
		if o.Cores > 0 {
			r.Cores += float64(o.Cores)
			if o.Available > 0 {
				x := shares[r]
				x[0] += float64(o.Cores) / float64(o.Available)
				x[1]++
				shares[r] = x
			}
		}
		if device {
			if math.IsNaN(o.Kernel) {
				r.NoTime++
				s.Missing++
			} else {
				r.Kernel += o.Kernel
				r.Min, r.Max = min(r.Min, o.Kernel), max(r.Max, o.Kernel)
				s.Kernel += o.Kernel
			}
			if o.FWStart >= 0 && o.FWEnd > o.FWStart {
				spans = append(spans, iv{o.Device, o.FWStart, o.FWEnd})
				if c := o.FWEnd - o.FWStart; c > longest && o.FW > 0 {
					longest, nsPerCycle = c, o.FW/float64(c)
				}
			}
		}
	}
	slices.SortFunc(spans, func(x, y iv) int { return cmp.Or(cmp.Compare(x.dev, y.dev), cmp.Compare(x.a, y.a)) })
	var un, sum, reach int64
	for i, x := range spans {
		sum += x.b - x.a
		if i == 0 || x.dev != spans[i-1].dev {
			reach = math.MinInt64
		}
		if x.a < reach {
			s.Overlaps++
		}
		if x.b > reach {
			un += x.b - max(x.a, reach)
			reach = x.b
		}
	}
	s.FWUnion, s.FWSum = float64(un)*nsPerCycle, float64(sum)*nsPerCycle
	for _, r := range byCode {
		r.Cores /= float64(r.Count)
		r.PerCore = math.NaN()
		if x := shares[r]; x[1] > 0 {
			r.PerCore = x[0] / x[1]
		}
		if r.Min > r.Max {
			r.Min, r.Max = math.NaN(), math.NaN()
		}
		s.ByCode = append(s.ByCode, *r)
	}
	slices.SortFunc(s.ByCode, func(a, b OpRow) int {
		return cmp.Or(cmp.Compare(b.Kernel, a.Kernel), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Type, b.Type))
	})
	return s
}
