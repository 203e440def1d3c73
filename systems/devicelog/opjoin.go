package devicelog

import (
	"cmp"
	"math"
	"slices"
)

// Join is how operators and launches were brought together.
type Join struct {
	Ops      int `json:"device_ops"` // operators of the table that run on a device
	Launches int `json:"launches"`   // launches in the log
	Joined   int `json:"joined"`     // operators that have their launch
	// ByCycle, ByCall and ByOrder count how the launch was found: its firmware start
	// cycle, its identity (GLOBAL CALL COUNT, and the replay of its trace), or
	// its place among as many launches of the device.
	ByCycle int `json:"by_start_cycle"`
	ByCall  int `json:"by_call_count"`
	ByOrder int `json:"by_order"`
	// Differ counts operators whose kernel takes more than 1 % longer or shorter
	// in the log than in the table.
	Differ int `json:"kernel_differs"`
}

// JoinOps gives operators the launches of a log that ran them.
func JoinOps(p *Profile, ops []OpPerf) Join {
	rows := Report(p.Log, p.Topo, p.Launches)
	j := Join{Launches: len(rows)}
	taken := make([]bool, len(rows))
	type cycle struct{ device, start int64 }
	type identity struct{ device, call, trace, replay int64 }
	byCycle, byCall := map[cycle]int{}, map[identity][]int{}
	byDevice := map[int64][]int{}
	for i := range rows {
		r := &rows[i]
		if r.Ok[colFW] {
			byCycle[cycle{int64(r.Device), int64(r.Dur[colFW].Start)}] = i
		}
		k := identity{int64(r.Device), r.Run.HostID, r.Run.TraceID, r.Run.TraceCounter}
		if r.Run.HostID < 0 {
			k.call = r.Run.RunID
		}
		byCall[k] = append(byCall[k], i)
		byDevice[int64(r.Device)] = append(byDevice[int64(r.Device)], i)
	}
	give := func(o *OpPerf, i int, count *int) {
		r := &rows[i]
		taken[i] = true
		x := &OpLaunch{Run: runText(r.Run), Cores: r.Cores, Start: p.Launches[deviceAt(p.Topo, r.Device)].List[r.Launch].Start}
		if r.FreqMHz > 0 {
			ns := func(cycles uint64) *float64 { return ptr(nanoseconds(float64(cycles), r.FreqMHz)) }
			if r.Ok[colFW] {
				x.FirmwareNS = ns(r.Dur[colFW].Cycles)
			}
			if r.Ok[colKernel] {
				x.KernelNS = ns(r.Dur[colKernel].Cycles)
			}
			if r.GapOK {
				x.GapNS = ns(r.Gap)
			}
		}
		o.Launch = x
		if x.KernelNS != nil && o.Time != nil && math.Abs(*x.KernelNS-*o.Time) > 0.01**o.Time {
			j.Differ++
		}
		j.Joined++
		*count++
	}
	left := map[int64][]*OpPerf{}
	for n := range ops {
		o := &ops[n]
		if o.Host {
			continue
		}
		j.Ops++
		if i, ok := byCycle[cycle{o.Device, o.start}]; ok && !taken[i] {
			give(o, i, &j.ByCycle)
			continue
		}
		list := byCall[identity{o.Device, o.call, o.trace, o.replay}]
		if i := slices.IndexFunc(list, func(i int) bool { return !taken[i] }); o.call >= 0 && i >= 0 {
			give(o, list[i], &j.ByCall)
			continue
		}
		left[o.Device] = append(left[o.Device], o)
	}
	for device, list := range left {
		free := slices.DeleteFunc(byDevice[device], func(i int) bool { return taken[i] })
		if len(free) != len(list) {
			continue // which of them are missing is not known
		}
		slices.SortStableFunc(free, func(a, b int) int {
			return cmp.Or(cmp.Compare(rows[a].Run.Session, rows[b].Run.Session), cmp.Compare(rows[a].Launch, rows[b].Launch))
		})
		for n, o := range list {
			give(o, free[n], &j.ByOrder)
		}
	}
	return j
}

func deviceAt(t *Topology, device int32) int { return slices.Index(t.Devices, device) }
