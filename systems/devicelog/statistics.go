package devicelog

import (
	"context"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"

	"perfsim/components/zonelog"
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

// ZoneInfo is one row of statistics.
type ZoneInfo struct {
	Zone      string  `json:"zone,omitempty"` // name of the zone
	File      string  `json:"file,omitempty"`
	Line      uint32  `json:"line,omitempty"`
	Risc      string  `json:"processor,omitempty"` // processor of the core that ran it
	Device    *int32  `json:"device,omitempty"`
	X         *int32  `json:"core_x,omitempty"` // column of the core
	Y         *int32  `json:"core_y,omitempty"` // row of the core
	Run       string  `json:"run,omitempty"`
	Count     uint64  `json:"count"`         // how often it ran
	Sum       uint64  `json:"sum_cycles"`    // cycles of all runs
	Self      uint64  `json:"self_cycles"`   // cycles of all runs less those of the zones inside
	Mean      float64 `json:"mean_cycles"`   // mean of a run, cycles
	Std       float64 `json:"std_cycles"`    // standard deviation of the runs, cycles
	Median    float64 `json:"median_cycles"` // median of the runs, cycles
	P95       uint64  `json:"p95_cycles"`    // 95th percentile of the runs, cycles
	Min       uint64  `json:"min_cycles"`    // shortest run, cycles
	Max       uint64  `json:"max_cycles"`    // longest run, cycles
	Unmatched uint64  `json:"unmatched"`     // starts without an end, and the reverse
	NS        *NSInfo `json:"ns"`            // the figures in ns
}

// NSInfo is the same in nanoseconds.
type NSInfo struct {
	Sum    float64 `json:"sum"`
	Self   float64 `json:"self"` // cycles of all runs less those of the zones inside, ns
	Mean   float64 `json:"mean"` // mean of a run, ns
	Std    float64 `json:"std"`  // standard deviation of the runs, ns
	Median float64 `json:"median"`
	P95    float64 `json:"p95"` // 95th percentile of the runs, ns
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func zoneInfo(l *zonelog.DeviceLog, r *ZoneRow) ZoneInfo {
	z := ZoneInfo{Zone: r.Name, File: r.File, Line: r.Line, Risc: r.Risc, Count: r.Count, Sum: r.Sum, Self: r.Self, Mean: r.Mean, Std: r.Std, Median: r.Median,
		P95: r.P95, Min: r.Min, Max: r.Max, Unmatched: r.Unmatched}
	if r.Device >= 0 {
		z.Device = &r.Device
	}
	if r.X >= 0 {
		z.X, z.Y = &r.X, &r.Y
	}
	if r.Run >= 0 {
		z.Run = runText(l.Runs[r.Run])
	}
	if f := r.FreqMHz; f > 0 {
		ns := func(c float64) float64 { return nanoseconds(c, f) }
		z.NS = &NSInfo{ns(float64(r.Sum)), ns(float64(r.Self)), ns(r.Mean), ns(r.Std), ns(r.Median), ns(float64(r.P95)), ns(float64(r.Min)), ns(float64(r.Max))}
	}
	return z
}

// statRow is a row of the table of statistics, as Parquet and as CSV. A column
// is null where the grouping has none or the log has no clock.
type statRow struct {
	Zone      string   `parquet:"zone,dict"`
	File      string   `parquet:"file,dict"`
	Line      int32    `parquet:"line"`
	Processor string   `parquet:"processor,dict"`
	Device    *int32   `parquet:"device,optional"`
	X         *int32   `parquet:"core_x,optional"`
	Y         *int32   `parquet:"core_y,optional"`
	Run       string   `parquet:"run,dict"`
	Count     int64    `parquet:"count"`
	Sum       int64    `parquet:"sum_cycles"`
	Self      int64    `parquet:"self_cycles"`
	Mean      float64  `parquet:"mean_cycles"`
	Std       float64  `parquet:"std_cycles"`
	Median    float64  `parquet:"median_cycles"`
	P95       int64    `parquet:"p95_cycles"`
	Min       int64    `parquet:"min_cycles"`
	Max       int64    `parquet:"max_cycles"`
	Unmatched int64    `parquet:"unmatched"`
	SumNS     *float64 `parquet:"sum_ns,optional"`
	SelfNS    *float64 `parquet:"self_ns,optional"`
	MeanNS    *float64 `parquet:"mean_ns,optional"`
	StdNS     *float64 `parquet:"std_ns,optional"`
	MedianNS  *float64 `parquet:"median_ns,optional"`
	P95NS     *float64 `parquet:"p95_ns,optional"`
	MinNS     *float64 `parquet:"min_ns,optional"`
	MaxNS     *float64 `parquet:"max_ns,optional"`
}

// WriteZoneStats writes statistics as CSV or Parquet.
func WriteZoneStats(ctx context.Context, w io.Writer, stats []ZoneInfo, asParquet bool) error {
	return writeTable(ctx, w, asParquet, []parquet.WriterOption{parquet.KeyValueMetadata("table", "zone_statistics")}, func(yield func(statRow) bool) {
		for i := range stats {
			if !yield(statRowOf(&stats[i])) {
				return
			}
		}
	})
}

// statRowOf returns the row of a table.
func statRowOf(r *ZoneInfo) statRow {
	s := statRow{Zone: r.Zone, File: r.File, Line: int32(r.Line), Processor: r.Risc, Device: r.Device, X: r.X, Y: r.Y, Run: r.Run, Count: int64(r.Count),
		Sum: int64(r.Sum), Self: int64(r.Self), Mean: r.Mean, Std: r.Std, Median: r.Median, P95: int64(r.P95), Min: int64(r.Min), Max: int64(r.Max), Unmatched: int64(r.Unmatched)}
	if n := r.NS; n != nil {
		s.SumNS, s.SelfNS, s.MeanNS, s.StdNS, s.MedianNS, s.P95NS, s.MinNS, s.MaxNS = &n.Sum, &n.Self, &n.Mean, &n.Std, &n.Median, &n.P95, &n.Min, &n.Max
	}
	return s
}
