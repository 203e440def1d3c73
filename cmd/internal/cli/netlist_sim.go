package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/components/machine/grid"
	"perfsim/io/fileset"
	"perfsim/io/tenstorrent/netlist"
	"perfsim/io/traces/catapult"
	"perfsim/systems/floorplan"
)

// epochFlags are the flags of `netlist --simulate`.
type epochFlags struct {
	on     bool
	inputs int
	epochs []int
	dir    string
	mach   string
	jobs   int
	change float64 // ns from one epoch to the next
}

// epochInfo is one simulated epoch in JSON.
type epochInfo struct {
	Epoch      int      `json:"epoch"`
	Inputs     int      `json:"samples"`
	Latency    uint64   `json:"latency_ns"`                 // time of the epoch
	Endless    uint64   `json:"latency_endless_buffers_ns"` // time of the epoch with buffers that never end
	FirstOut   uint64   `json:"first_sample_ns"`            // when the first sample is out
	PerSample  float64  `json:"ns_per_sample"`              // time between two samples in the steady state
	Bottleneck string   `json:"bottleneck"`                 // operator that is busy longest
	BusyShare  float64  `json:"bottleneck_busy_share"`      // its busy time over that of the epoch
	CoreShare  float64  `json:"core_time_share"`            // busy time over all cores and the whole time
	Relaxed    int      `json:"buffer_waits_dropped"`       // waits for a buffer that were left out, in a cycle of buffers
	Ops        []opInfo `json:"ops"`
}

type opInfo struct {
	Name   string `json:"name"` // name of the operator
	Type   string `json:"type"`
	Device int    `json:"device"`
	Cores  int    `json:"cores"`   // cores of the operator
	Blocks int    `json:"blocks"`  // tiles that it makes
	Busy   uint64 `json:"busy_ns"` // time in which it works
	Start  uint64 `json:"start_ns"`
	End    uint64 `json:"end_ns"`
}

// check fails where an epoch is asked for that has no operator.
func (f *epochFlags) check(r *floorplan.Report) error {
	var have []int
	for i := range r.Epochs {
		if len(r.Epochs[i].Chips) > 0 {
			have = append(have, r.Epochs[i].Index)
		}
	}
	missing := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(f.epochs))), func(e int) bool { return slices.Contains(have, e) })
	switch {
	case len(missing) == 0:
		return nil
	case len(have) == 0:
		return usagef("%s: no epoch of %s has an operator", epochsNamed(missing), r.Name)
	}
	return usagef("%s: %s has operators in %s: --simulate --epoch %d", epochsNamed(missing), r.Name, epochsNamed(have), have[0])
}

// epochsNamed names epochs in ascending order, the first eight of many.
func epochsNamed(list []int) string {
	const most = 8
	if len(list) == 1 {
		return fmt.Sprintf("epoch %d", list[0])
	}
	words := make([]string, 0, most)
	for _, e := range list[:min(len(list), most)] {
		words = append(words, strconv.Itoa(e))
	}
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("epochs %s … %d", strings.Join(words, ", "), list[len(list)-1])
	}
	return "epochs " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// simulate runs the chosen epochs and writes their traces.
func (f *epochFlags) simulate(ctx context.Context, n *netlist.Netlist, r *floorplan.Report) ([]epochInfo, error) {
	var out []epochInfo
	var set *fileset.Set
	var traces []string
	if f.dir != "" {
		var err error
		if set, err = fileset.Open(f.dir); err != nil {
			return nil, err
		}
		defer set.Abort()
	}
	name := f.mach
	if name == "" {
		name = r.Grid.Arch
	}
	if name == "" && len(n.Arch) > 0 {
		name = n.Arch[0]
	}
	mach, err := grid.Load(name)
	if err != nil {
		return nil, fmt.Errorf("%w (--machine names one, or a file)", err)
	}
	cost := floorplan.CostOf(mach)
	f.change = cost.Epoch
	want := map[int]bool{}
	for _, e := range f.epochs {
		want[e] = true
	}
	for i := range r.Epochs {
		e := r.Epochs[i].Index
		if len(f.epochs) > 0 && !want[e] || len(r.Epochs[i].Chips) == 0 {
			continue
		}
		s, err := floorplan.Simulate(ctx, n, r, e, floorplan.SimOptions{Inputs: f.inputs, Cost: cost, Jobs: f.jobs})
		if err != nil {
			return nil, err
		}
		x := epochInfo{Epoch: e, Inputs: s.Inputs, Latency: s.Latency[components.RunA], Endless: s.Latency[components.RunB], FirstOut: s.FirstOut, PerSample: s.PerSample,
			Bottleneck: s.Bottleneck, BusyShare: s.BusyShare, CoreShare: s.CoreShare, Relaxed: s.Relaxed}
		for _, o := range s.Ops {
			x.Ops = append(x.Ops, opInfo{o.Name, o.Type, o.Device, o.Cores, o.Blocks, o.Busy, o.Start, o.End})
		}
		if set != nil {
			trace := fmt.Sprintf("epoch_%d.json", e)
			traces = append(traces, trace)
			err := save(filepath.Join(set.Staging(), trace), nil, func(w io.Writer) error {
				return catapult.Write(ctx, w, s.World, 0, components.RunA, false, max(f.jobs, 1))
			})
			if err != nil {
				return nil, err
			}
		}
		out = append(out, x)
	}
	if set != nil {
		return out, set.Commit(traces)
	}
	return out, nil
}

// printEpochs prints the simulated epochs.
func printEpochs(out io.Writer, list []epochInfo, change float64) error {
	fmt.Fprintln(out, "\nSimulated: macro blocks through operators and queues ('perfsim machine show' lists what is assumed)")
	t := columns{left: 1}
	t.add("epoch", "samples", "time", "first sample", "per sample", "core time used", "waiting for buffers", "bottleneck", "")
	total, samples := uint64(0), 0
	for i := range list {
		e := &list[i]
		total += e.Latency
		samples = max(samples, e.Inputs)
		wait := "0 ns"
		if e.Latency > e.Endless {
			wait = units.Nanos(e.Latency - e.Endless)
		}
		t.add(fmt.Sprint(e.Epoch), fmt.Sprint(e.Inputs), units.Nanos(e.Latency), units.Nanos(e.FirstOut), units.Nanos(uint64(e.PerSample+0.5)), fmt.Sprintf("%.1f %%", 100*e.CoreShare), wait,
			shorten(printable(e.Bottleneck), 48), fmt.Sprintf("%.0f %%", 100*e.BusyShare))
	}
	if err := t.print(out); err != nil {
		return err
	}
	if len(list) > 1 && total > 0 {
		total += uint64(change * float64(len(list)))
		sayf(out, "  all epochs one after the other, %s for each change: %s for %d samples, %.1f samples a second\n", units.Nanos(uint64(change)), units.Nanos(total), samples, float64(samples)*1e9/float64(total))
	}
	for i := range list {
		if list[i].Relaxed > 0 {
			sayf(out, "  epoch %d: %d operators were let go without room in a buffer, as the netlist would stand still otherwise\n", list[i].Epoch, list[i].Relaxed)
		}
	}
	return nil
}

// shorten cuts the middle out of a long name.
func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	var b strings.Builder
	b.WriteString(string(r[:n/2-1]))
	b.WriteString("…")
	b.WriteString(string(r[len(r)-n/2:]))
	return b.String()
}
