package devicelog

import (
	"cmp"
	"fmt"
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

// OpsSummary is the summary of an ops table.
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
	// Impossible counts device operators whose times contradict one another:
	// their durations are left out of every sum. FirstImpossible names one.
	Impossible      int
	FirstImpossible string
	Devices         []DeviceOps // by number; their clocks cannot be compared
	ByCode          []OpRow
}

// DeviceOps sums the operators of one device, in ns.
type DeviceOps struct {
	Device  int64
	Ops     int
	Kernel  float64 // kernel durations added up
	Running float64 // time in which some operator ran; NaN where not known
}

// slack is by how much a kernel may outlast its firmware in a table: rounding
// and clocks that are read one after the other.
const slack = 1.05

// impossible says what is wrong with the times of an operator, "" for nothing.
func impossible(o *profilelog.Op) string {
	switch {
	case o.Kernel < 0:
		return fmt.Sprintf("a kernel duration of %.0f ns", o.Kernel)
	case o.FW < 0:
		return fmt.Sprintf("a firmware duration of %.0f ns", o.FW)
	case o.FW > 0 && o.Kernel > slack*o.FW+1000:
		return fmt.Sprintf("a kernel of %.0f ns inside a firmware time of %.0f ns", o.Kernel, o.FW)
	case o.Kernel > 3600e9:
		return fmt.Sprintf("a kernel of %.0f ns, more than an hour", o.Kernel)
	case o.Available > 0 && o.Cores > o.Available:
		return fmt.Sprintf("%d cores of %d", o.Cores, o.Available)
	case o.FWStart >= 0 && o.FWEnd >= 0 && o.FWEnd < o.FWStart:
		return fmt.Sprintf("firmware that ends at cycle %d, before its start at %d", o.FWEnd, o.FWStart)
	}
	return ""
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
	devices := map[int64]*DeviceOps{}
	// An operator's place in time; a table joined of several passes may have it
	// more than once.
	type place struct {
		code                               string
		device, call, trace, session, a, b int64
	}
	lines := map[place]int{}
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
			d := devices[o.Device]
			if d == nil {
				d = &DeviceOps{Device: o.Device}
				devices[o.Device] = d
			}
			d.Ops++
			why := impossible(o)
			if at := (place{o.Code, o.Device, o.CallCount, o.TraceID, o.Session, o.FWStart, o.FWEnd}); why == "" && o.FWEnd > o.FWStart && o.FWStart >= 0 {
				if line := lines[at]; line > 0 {
					why = fmt.Sprintf("the operator, call and cycles of line %d again", line)
				}
				lines[at] = o.Line
			}
			switch {
			case why != "":
				if s.Impossible++; s.Impossible == 1 {
					s.FirstImpossible = fmt.Sprintf("line %d, %s: %s", o.Line, o.Code, why)
				}
				r.NoTime++
				continue
			case math.IsNaN(o.Kernel):
				r.NoTime++
				s.Missing++
			default:
				r.Kernel += o.Kernel
				r.Min, r.Max = min(r.Min, o.Kernel), max(r.Max, o.Kernel)
				s.Kernel += o.Kernel
				d.Kernel += o.Kernel
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
	running := map[int64]int64{}
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
			running[x.dev] += x.b - max(x.a, reach)
			reach = x.b
		}
	}
	s.FWUnion, s.FWSum = float64(un)*nsPerCycle, float64(sum)*nsPerCycle
	for dev, d := range devices {
		d.Running = math.NaN()
		if c, ok := running[dev]; ok {
			d.Running = float64(c) * nsPerCycle
		}
		s.Devices = append(s.Devices, *d)
	}
	slices.SortFunc(s.Devices, func(a, b DeviceOps) int { return cmp.Compare(a.Device, b.Device) })
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
