package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"perfsim/cmd/internal/units"
	"perfsim/io/tenstorrent/profilelog"
	"perfsim/systems/devicelog"
)

// opsInfo is the report of an ops table.
type opsInfo struct {
	File       string   `json:"file"`
	Family     string   `json:"header_family"` // columns that the table has: which tool wrote it
	Rows       int      `json:"rows"`
	Device     int      `json:"device_ops"`
	Host       int      `json:"host_ops"`                // operators of the host
	Signposts  int      `json:"signposts"`               // signposts of the table
	Missing    int      `json:"device_ops_without_time"` // device operators without a time
	Kernel     float64  `json:"kernel_ns"`
	Union      *float64 `json:"firmware_union_ns"` // union of the firmware times
	Sum        *float64 `json:"firmware_sum_ns"`   // firmware times of all device operators added up
	Overlaps   int      `json:"overlapping_ops"`   // operators that start before the one before has ended
	Ragged     int      `json:"ragged_rows"`       // rows with too few or too many cells
	BadNumbers int      `json:"bad_numbers"`       // cells that should be a number and are none
	// Impossible counts operators whose times contradict one another; they are
	// in no sum.
	Impossible int             `json:"impossible_ops"`
	Example    string          `json:"impossible_example,omitempty"` // one of the impossible rows
	Devices    []opsInfoDevice `json:"by_device"`                    // sums by device
	ByCode     []opsInfoOp     `json:"by_code"`                      // sums by op code

	Chip       string              `json:"chip,omitempty"`
	Join       *devicelog.Join     `json:"join,omitempty"` // how the table and the log were joined
	Ops        []devicelog.OpPerf  `json:"ops"`
	BySignpost []devicelog.OpTotal `json:"by_signpost"` // sums by signpost
	ByOp       []devicelog.OpTotal `json:"by_op_code"`  // sums by op code, of the report by operator
	log        string              // device log that was joined
}

type opsInfoDevice struct {
	Device  int64    `json:"device"`
	Ops     int      `json:"ops"`
	Kernel  float64  `json:"kernel_ns"`
	Running *float64 `json:"running_ns"` // some operator ran
}

type opsInfoOp struct {
	Code    string   `json:"op_code"`
	Type    string   `json:"op_type"`                // op code
	Count   int      `json:"count"`                  // operators added up
	NoTime  int      `json:"without_time,omitempty"` // of these, without a time
	Kernel  float64  `json:"kernel_ns"`
	Min     *float64 `json:"min_ns"` // shortest one
	Max     *float64 `json:"max_ns"`
	Cores   float64  `json:"mean_cores"`      // mean of the cores in use
	PerCore *float64 `json:"mean_core_share"` // mean of the cores in use over those there are
}

// opsReport reads and judges an ops table. chip overrules the table's own;
// joined, where not nil, is the log of the same run.
func opsReport(path, chip string, joined *devicelog.Profile) (*opsInfo, error) {
	t, err := profilelog.ReadOpsFile(path)
	if err != nil {
		return nil, err
	}
	if chip == "" && joined != nil && len(joined.Sessions) > 0 && (len(t.Ops) == 0 || t.Ops[0].Arch == "") {
		chip = joined.Sessions[0].Arch
	}
	s := devicelog.SummarizeOps(t)
	num := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	r := &opsInfo{path, t.Family, s.Rows, s.Device, s.Host, s.Signposts, s.Missing, s.Kernel, num(s.FWUnion), num(s.FWSum), s.Overlaps, t.Ragged, t.BadNum, s.Impossible, s.FirstImpossible, []opsInfoDevice{}, []opsInfoOp{},
		chip, nil, devicelog.PerfOps(t, chip), nil, nil, ""}
	if joined != nil {
		j := devicelog.JoinOps(joined, r.Ops)
		r.Join, r.log = &j, joined.File
	}
	r.BySignpost = devicelog.TotalOps(r.Ops, func(o *devicelog.OpPerf) string { return o.Signpost })
	r.ByOp = devicelog.ByTime(devicelog.TotalOps(r.Ops, func(o *devicelog.OpPerf) string { return o.Code }))
	for _, d := range s.Devices {
		r.Devices = append(r.Devices, opsInfoDevice{d.Device, d.Ops, d.Kernel, num(d.Running)})
	}
	for _, o := range s.ByCode {
		r.ByCode = append(r.ByCode, opsInfoOp{o.Code, o.Type, o.Count, o.NoTime, o.Kernel, num(o.Min), num(o.Max), o.Cores, num(o.PerCore)})
	}
	return r, nil
}

func (r *opsInfo) print(out io.Writer, top int) error {
	sayf(out, "%s: ops table %s, %s: %d on the device, %d on the host, %s\n", r.File, r.Family, count(r.Rows, "row"), r.Device, r.Host, count(r.Signposts, "signpost"))
	tw := newTable(out)
	if len(r.Devices) > 1 {
		const most = 32
		sayf(tw, "  %d devices, whose clocks cannot be compared:\n", len(r.Devices))
		for i, d := range r.Devices {
			if i == most {
				sayf(tw, "  … and %d more (--json lists them)\n", len(r.Devices)-most)
				break
			}
			running := ""
			if d.Running != nil {
				running = "some op running " + units.Nanos(uint64(*d.Running))
			}
			sayf(tw, "  device %d\t%s\tkernels %s\t%s\n", d.Device, count(d.Ops, "op"), units.Nanos(uint64(d.Kernel)), running)
		}
		sayf(tw, "  kernel durations of all devices added up\t%s\tno time: the devices run side by side\n", units.Nanos(uint64(r.Kernel)))
	} else {
		sayf(tw, "  kernel durations added up\t%s\n", units.Nanos(uint64(r.Kernel)))
	}
	if r.Impossible > 0 {
		sayf(tw, "  impossible times\t%s left out\t%s\n", count(r.Impossible, "op"), printable(r.Example))
	}
	if r.Union != nil && len(r.Devices) <= 1 {
		sayf(tw, "  some op running\t%s\n", units.Nanos(uint64(*r.Union)))
		if r.Overlaps > 0 {
			sayf(tw, "  ops added up\t%s\t%d overlap, so the sum is not a time\n", units.Nanos(uint64(*r.Sum)), r.Overlaps)
		}
	}
	if r.Missing > 0 {
		sayf(tw, "  device ops without a time\t%d of %d\tthe profiler lost them\n", r.Missing, r.Device)
	}
	if r.Ragged+r.BadNumbers > 0 {
		sayf(tw, "  trouble\t%d rows of another length, %d numbers that are none\n", r.Ragged, r.BadNumbers)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	table := columns{left: 2}
	table.add("op", "type", "count", "kernel total ns", "min", "max", "mean cores", "share of cores")
	n := len(r.ByCode)
	if top > 0 {
		n = min(n, top)
	}
	opt := func(v *float64, format string) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf(format, *v)
	}
	for _, o := range r.ByCode[:n] {
		share := ""
		if o.PerCore != nil {
			share = fmt.Sprintf("%.1f %%", 100**o.PerCore)
		}
		table.add(printable(o.Code), printable(o.Type), fmt.Sprint(o.Count), whole(uint64(o.Kernel)), opt(o.Min, "%.0f"), opt(o.Max, "%.0f"), tenths(o.Cores), share)
	}
	if err := table.print(out); err != nil {
		return err
	}
	return r.printPerf(out, top)
}

// printPerf prints how well every operator ran, as users of tt-perf-report know
// it.
func (r *opsInfo) printPerf(out io.Writer, top int) error {
	if len(r.Ops) == 0 {
		return nil
	}
	if j := r.Join; j != nil {
		sayf(out, "\n%d of %d device ops joined with %s of %s: %d by firmware start,\n%d by call count, %d by order\n",
			j.Joined, j.Ops, launches(j.Launches), r.log, j.ByCycle, j.ByCall, j.ByOrder)
		if j.Differ > 0 {
			sayf(out, "the kernels of %s take over 1 %% more or less in the log\n", count(j.Differ, "op"))
		}
	}
	shown := slices.Clone(r.Ops)
	if top > 0 && len(shown) > top {
		slices.SortStableFunc(shown, func(a, b devicelog.OpPerf) int { return cmp.Compare(b.Share, a.Share) })
		shown = shown[:top]
		slices.SortFunc(shown, func(a, b devicelog.OpPerf) int { return cmp.Compare(a.ID, b.ID) })
		sayf(out, "\nThe %d of %d ops that take most (--top 0 lists all)\n", top, len(r.Ops))
	} else {
		fmt.Fprintln(out, "\nOps")
	}
	micro := func(ns *float64) string {
		if ns == nil {
			return ""
		}
		return humanize.CommafWithDigits(math.Round(*ns/100)/10, 1)
	}
	percentText := func(v *float64) string {
		if v == nil {
			return ""
		}
		return tenths(*v)
	}
	table := columns{left: 1}
	heads := []string{"op", "id", "share", "bound", "time µs", "gap µs", "cores", "DRAM %", "FLOP %", "fidelity"}
	if len(r.Devices) > 1 {
		heads = append(heads, "dev")
	}
	table.add(heads...)
	for i := range shown {
		o := &shown[i]
		cores := ""
		if o.Cores >= 0 {
			cores = fmt.Sprint(o.Cores)
		}
		row := []string{shorten(printable(o.Code), 22), fmt.Sprint(o.ID), fmt.Sprintf("%.1f %%", 100*o.Share), o.Bound, micro(o.Time), micro(o.Gap), cores,
			percentText(o.DRAMPercent), percentText(o.FLOPsPercent), o.Fidelity}
		if len(r.Devices) > 1 {
			row = append(row, fmt.Sprint(o.Device))
		}
		table.add(row...)
	}
	if err := table.print(out); err != nil {
		return err
	}
	for _, list := range []struct {
		head string
		rows []devicelog.OpTotal
	}{{"signpost", r.BySignpost}, {"op code", r.ByOp}} {
		if len(list.rows) < 2 {
			continue
		}
		fmt.Fprintln(out)
		table := columns{left: 1}
		table.add("total by "+list.head, "device", "ops", "share", "time µs", "gap µs")
		n := len(list.rows)
		if top > 0 {
			n = min(n, top)
		}
		for _, t := range list.rows[:n] {
			table.add(shorten(printable(orText(t.Name, "(before the first)")), 36), fmt.Sprint(t.Device), fmt.Sprint(t.Ops), fmt.Sprintf("%.1f %%", 100*t.Share), micro(&t.Time), micro(&t.Gap))
		}
		if err := table.print(out); err != nil {
			return err
		}
		if n < len(list.rows) {
			sayf(out, "… and %d more (--top 0 lists them)\n", len(list.rows)-n)
		}
	}
	if !slices.ContainsFunc(r.Ops, func(o devicelog.OpPerf) bool { return o.FLOPsPercent != nil || o.DRAMPercent != nil }) {
		sayf(out, "\nno share of DRAM and FLOPs: the chip is not known; --chip names it (%s)\n", strings.Join(devicelog.ChipNames(), ", "))
	}
	return r.printAdvice(out)
}

// printAdvice prints every piece of advice once, with how many operators it is
// for, how long they take and which one takes longest.
func (r *opsInfo) printAdvice(out io.Writer) error {
	type piece struct {
		text  string
		ops   int
		ns    float64
		first *devicelog.OpPerf
	}
	var list []*piece
	for i := range r.Ops {
		o := &r.Ops[i]
		ns := 0.0
		for _, v := range []*float64{o.Time, o.Gap} {
			if v != nil {
				ns += *v
			}
		}
		for _, a := range o.Advice {
			k := slices.IndexFunc(list, func(p *piece) bool { return p.text == a })
			if k < 0 {
				k = len(list)
				list = append(list, &piece{text: a, first: o})
			}
			p := list[k]
			if o.Share > p.first.Share {
				p.first = o
			}
			p.ops++
			p.ns += ns
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *piece) int { return cmp.Compare(b.ns, a.ns) })
	fmt.Fprintln(out, "\nAdvice")
	for _, p := range list {
		sayf(out, "  %s with %s, such as %d %s:\n    %s\n", count(p.ops, "op"), units.Nanos(uint64(p.ns)), p.first.ID, shorten(printable(p.first.Code), 30), p.text)
	}
	return nil
}
