package devicelog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// CounterInfo is one performance counter of a device: how much of the time
// that its reference counted a unit was at work, over all samples. A sample
// is one processor in one launch.
type CounterInfo struct {
	Device    int32   `json:"device"`  // device of the log
	Counter   string  `json:"counter"` // name of the hardware counter
	Samples   int     `json:"samples"` // samples of the counter
	Cores     int     `json:"cores"`   // cores with samples
	Value     uint64  `json:"value"`
	Reference uint64  `json:"reference"` // what the share is of, in the counter's unit
	Share     float64 `json:"share"`     // Value of Reference
	Min       float64 `json:"min"`       // smallest sample
	Median    float64 `json:"median"`    // median of the samples
	Max       float64 `json:"max"`       // largest sample
}

// Counters sums up the performance counters of a log. Where the log does not
// name a counter it is called by its number. Samples without a reference are
// left out.
func Counters(l *zonelog.DeviceLog, t *Topology) []CounterInfo {
	type key struct {
		device int32
		name   string
	}
	type acc struct {
		value, ref uint64
		shares     []float64
		cores      map[int]bool
	}
	defs := make([]bool, len(l.Defs))
	some := false
	for i := range l.Defs {
		d := &l.Defs[i]
		defs[i] = d.Timer == profilelog.IDPerfCounter && d.Type != zonelog.MarkerStart && d.Type != zonelog.MarkerEnd
		some = some || defs[i]
	}
	named := map[uint32]bool{} // meta data texts that are of counters
	for i, m := range l.Metas {
		named[uint32(i)] = strings.Contains(m, `counter type`)
		some = some || named[uint32(i)]
	}
	if !some {
		return nil
	}
	all := map[key]*acc{}
	add := func(lane int, name string, value, ref uint64) {
		if ref == 0 {
			return
		}
		k := key{l.Lanes[lane].Device, name}
		a := all[k]
		if a == nil {
			a = &acc{cores: map[int]bool{}}
			all[k] = a
		}
		a.value += value
		a.ref += ref
		a.shares = append(a.shares, float64(value)/float64(ref))
		a.cores[t.CoreOf[lane]] = true
	}
	at := 0
	for lane := range l.Lanes {
		for row := l.LaneOff[lane]; row < l.LaneOff[lane+1]; row++ {
			for at < len(l.MetaRow) && l.MetaRow[at] < row {
				at++
			}
			if at < len(l.MetaRow) && l.MetaRow[at] == row && named[l.MetaText[at]] {
				m := l.Metas[l.MetaText[at]]
				name, _ := metaField(m, "counter type")
				ref, okR := metaNumber(m, "ref cnt")
				value, okV := metaNumber(m, "value")
				if name != "" && okR && okV {
					add(lane, name, value, ref)
					continue
				}
			}
			if defs[l.Def[row]] && l.Data != nil {
				c := profilelog.DecodePerfCounter(l.Data[row])
				add(lane, "counter "+strconv.Itoa(int(c.Type)), uint64(c.Value), uint64(c.Ref))
			}
		}
	}
	var out []CounterInfo
	for k, a := range all {
		slices.Sort(a.shares)
		n := len(a.shares)
		median := a.shares[n/2]
		if n%2 == 0 {
			median = (a.shares[n/2-1] + a.shares[n/2]) / 2
		}
		out = append(out, CounterInfo{k.device, k.name, n, len(a.cores), a.value, a.ref, float64(a.value) / float64(a.ref), a.shares[0], median, a.shares[n-1]})
	}
	slices.SortFunc(out, func(a, b CounterInfo) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Counter, b.Counter))
	})
	return out
}

func metaNumber(meta, key string) (uint64, bool) {
	s, ok := metaField(meta, key)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil
}
