package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components/zonelog"
	"perfsim/systems/devicelog"
)

// timeText writes cycles and, where there is a clock, the time.
func timeText(t devicelog.Time) string {
	s := humanize.Comma(int64(t.Cycles)) + " cycles"
	if t.NS != nil {
		s += " (" + units.Nanos(uint64(*t.NS+0.5)) + ")"
	}
	return s
}

func (f *profileFlags) print(out io.Writer, p *devicelog.Profile) error {
	for i, s := range p.Sessions {
		if i > 0 {
			sayf(out, "session %d from line %d: ", i, s.Line)
		} else {
			sayf(out, "%s: ", p.File)
		}
		clock := "no clock"
		if s.FreqMHz != nil {
			clock = fmt.Sprintf("%g MHz", *s.FreqMHz)
		}
		sayf(out, "device log %s, %s at %s\n", s.Version, orText(s.Arch, "unknown chip"), clock)
	}
	sayf(out, "%s, %s, %s on %s\n", count(p.Rows, "marker"), count(p.Zones, "zone"), count(p.Lanes, "processor"), count(p.Cores, "core"))
	if len(p.Diags) > 0 {
		fmt.Fprintln(out, "\nTrouble")
		tw := newTable(out)
		for _, d := range p.Diags {
			line := ""
			if d.Line > 0 {
				line = fmt.Sprintf("line %d", d.Line)
			}
			sayf(tw, "  %s\t%s\t%s\t%s\n", d.Code, humanize.Comma(int64(d.Count)), line, d.Detail)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		sayf(out, "\nDevice %d", d.Device)
		if d.Session > 0 {
			sayf(out, " session %d", d.Session)
		}
		sayf(out, ": %s", launches(d.Launches))
		if d.Open > 0 {
			sayf(out, " (%d without an end, left out of the times)", d.Open)
		}
		fmt.Fprintln(out)
		tw := newTable(out)
		sayf(tw, "  span\t%s\n", timeText(d.Span))
		sayf(tw, "  some launch running\t%s\t%s\n", timeText(d.Busy), percent(d.Busy.Cycles, d.Span.Cycles))
		sayf(tw, "  idle between launches\t%s\t%s\n", timeText(d.Idle), percent(d.Idle.Cycles, d.Span.Cycles))
		if d.Overlaps > 0 {
			sayf(tw, "  launches added up\t%s\t%d overlap, so the sum is not a time\n", timeText(d.Sum), d.Overlaps)
		}
		sayf(tw, "  largest skew of cores at a start\t%s\n", timeText(d.MaxSkew))
		sayf(tw, "  mean busy share of a core\t%.1f %%\n", 100*d.Occupancy)
		for _, g := range d.Gaps {
			sayf(tw, "  gap\t%s\tbetween %s and %s\n", timeText(g.Time), g.After, g.Before)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if f.drawMap {
		for i := range p.Maps {
			m := &p.Maps[i]
			what := "kernel"
			if m.AnyZone {
				what = "zone"
			}
			sayf(out, "\nDevice %d: percent of the span in which some processor of a core was in a %s\n", m.Device, what)
			io.WriteString(out, m.Text(p.Topo))
		}
	}
	if err := f.printStats(out, p); err != nil {
		return err
	}
	if f.analyses {
		if err := printAnalyses(out, p); err != nil {
			return err
		}
	}
	if len(p.Counters) > 0 {
		fmt.Fprintln(out, "\nCounters, percent of their reference")
		tw := newTable(out)
		fmt.Fprintln(tw, "  device\tcounter\tsamples\tcores\tall\tmin\tmedian\tmax")
		for _, c := range p.Counters {
			sayf(tw, "  %d\t%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", c.Device, printable(c.Counter), c.Samples, c.Cores, 100*c.Share, 100*c.Min, 100*c.Median, 100*c.Max)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if len(p.Slow) > 0 {
		fmt.Fprintln(out, "\nSlowest zones")
		tw := newTable(out)
		for _, s := range p.Slow {
			sayf(tw, "  %s\t%s\tdevice %d core %d,%d %s\t%s\tline %d\n", printable(s.Zone), timeText(s.Time), s.Device, s.X, s.Y, printable(s.Risc), s.Run, s.Line)
		}
		return tw.Flush()
	}
	return nil
}

func launches(n int) string {
	if n == 1 {
		return "1 launch"
	}
	return humanize.Comma(int64(n)) + " launches"
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return printable(s)
}

func (f *profileFlags) printStats(out io.Writer, p *devicelog.Profile) error {
	if len(p.Stats) == 0 {
		return nil
	}
	n := len(p.Stats)
	if f.top > 0 {
		n = min(n, f.top)
	}
	sayf(out, "\nZones by %s, in %s", strings.Join(f.by, ", "), f.unit)
	if n < len(p.Stats) {
		sayf(out, ", %d of %d rows (--top 0 for all)", n, len(p.Stats))
	}
	fmt.Fprintln(out)
	by, err := devicelog.ParseBy(f.by)
	if err != nil {
		return err
	}
	head := []string{}
	add := func(d devicelog.By, names ...string) {
		if by&d != 0 {
			head = append(head, names...)
		}
	}
	add(devicelog.ByZone, "zone", "source")
	add(devicelog.ByRisc, "processor")
	if by&(devicelog.ByDevice|devicelog.ByCore) != 0 {
		head = append(head, "device")
	}
	add(devicelog.ByCore, "core")
	add(devicelog.ByLaunchID, "launch")
	t := columns{left: len(head)}
	t.add(append(head, "count", "total", "self", "mean", "std", "median", "p95", "min", "max", "unmatched")...)
	for i := range n {
		r := &p.Stats[i]
		var row []string
		if by&devicelog.ByZone != 0 {
			src := ""
			if r.File != "" {
				src = shortPath(r.File) + ":" + fmt.Sprint(r.Line)
			}
			row = append(row, printable(r.Zone), printable(src))
		}
		if by&devicelog.ByRisc != 0 {
			row = append(row, printable(r.Risc))
		}
		if r.Device != nil {
			row = append(row, fmt.Sprint(*r.Device))
		}
		if r.X != nil {
			row = append(row, fmt.Sprintf("%d,%d", *r.X, *r.Y))
		}
		if by&devicelog.ByLaunchID != 0 {
			row = append(row, r.Run)
		}
		row = append(row, humanize.Comma(int64(r.Count)))
		switch {
		case f.unit == "cycles":
			row = append(row, whole(r.Sum), whole(r.Self), tenths(r.Mean), tenths(r.Std), tenths(r.Median), whole(r.P95), whole(r.Min), whole(r.Max))
		case r.NS == nil:
			row = append(row, "–", "–", "–", "–", "–", "–", "–", "–")
		default:
			for _, v := range []float64{r.NS.Sum, r.NS.Self, r.NS.Mean, r.NS.Std, r.NS.Median, r.NS.P95, r.NS.Min, r.NS.Max} {
				row = append(row, tenths(v))
			}
		}
		t.add(append(row, whole(r.Unmatched))...)
	}
	return t.print(out)
}

func whole(v uint64) string { return humanize.Comma(int64(v)) }

// tenths writes a number with one decimal.
func tenths(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	n, frac, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "," + n[i:]
	}
	return sign + n + "." + frac
}

// shortPath keeps the last folder and the file.
func shortPath(s string) string {
	parts := strings.Split(s, "/")
	if len(parts) <= 2 {
		return s
	}
	return strings.Join(parts[len(parts)-2:], "/")
}

func printAnalyses(out io.Writer, p *devicelog.Profile) error {
	if len(p.Analyses) == 0 {
		return nil
	}
	sayf(out, "\nAnalyses (definitions of %s), in cycles\n", p.Setup)
	t := columns{left: 1}
	t.add("analysis", "device", "count", "average", "max", "median", "min", "sum", "range")
	line := func(name string, dev int32, s *devicelog.StatsInfo) {
		if s == nil {
			t.add(name, fmt.Sprint(dev), "none")
			return
		}
		t.add(name, fmt.Sprint(dev), whole(s.Count), tenths(s.Average), whole(s.Max), tenths(s.Median), whole(s.Min), whole(s.Sum), whole(s.Range))
	}
	differ := false
	for i := range p.Analyses {
		a := &p.Analyses[i]
		line(a.Name, a.Device, a.Stats)
		if a.Vendor != nil {
			differ = true
			line("  vendor's script", a.Device, a.Vendor)
		}
	}
	if err := t.print(out); err != nil {
		return err
	}
	if differ {
		fmt.Fprintln(out, "The vendor's script compares zone names without their phase and groups launches by another rule; where it differs, its result stands below ours.")
	}
	return nil
}

// compareReport is the output of `profile --compare --json`.
type compareReport struct {
	Old      string               `json:"old"`             // first log
	New      string               `json:"new"`             // second log
	Alpha    float64              `json:"alpha"`           // level of significance
	Compared int                  `json:"zones_compared"`  // in both logs; what Holm's correction counts
	OldDiags []devicelog.DiagInfo `json:"old_diagnostics"` // what is wrong with the first log
	NewDiags []devicelog.DiagInfo `json:"new_diagnostics"` // what is wrong with the second log
	Zones    []compareInfo        `json:"zones"`
}

type compareInfo struct {
	Zone        string            `json:"zone"`
	Risc        string            `json:"processor,omitempty"`
	Old         devicelog.Summary `json:"old_cycles"`               // cycles of a run in the first log
	New         devicelog.Summary `json:"new_cycles"`               // cycles of a run in the second log
	Change      *float64          `json:"median_change"`            // 0.1 is 10 % longer
	P           *float64          `json:"p"`                        // probability of such samples from one distribution (Mann-Whitney)
	PCorrected  *float64          `json:"p_corrected"`              // the same, corrected for the number of zones (Holm)
	Superior    *float64          `json:"probability_new_longer"`   // probability that a run of the second log takes longer
	Significant bool              `json:"significant"`              // whether p_corrected is below alpha
	InNS        bool              `json:"compared_in_ns,omitempty"` // whether times were compared in ns, of two clocks
}

func (f *profileFlags) runCompare(c *cobra.Command, args []string, p *progress) error {
	var logs [2]*zonelog.DeviceLog
	var diags [2][]devicelog.DiagInfo
	for i, path := range args {
		if path != "-" && isOpsTable(path) {
			return fmt.Errorf("%s: an ops table; --compare is of device logs", path)
		}
		l, err := f.load(c, path, p)
		if err != nil {
			return err
		}
		if l.Rows() == 0 {
			return nothingIn(path, l)
		}
		logs[i], diags[i] = l, []devicelog.DiagInfo{}
		for _, d := range l.Diags.All() {
			diags[i] = append(diags[i], devicelog.DiagInfo(d))
		}
	}
	by, err := devicelog.ParseBy(f.by)
	if err != nil {
		return err
	}
	p.start("comparing", 0, false)
	deltas, err := devicelog.Compare(c.Context(), logs[0], logs[1], by&devicelog.ByRisc != 0)
	p.close()
	if err != nil {
		return err
	}
	// What has changed comes first, each part by its total change.
	compared := 0
	for i := range deltas {
		if d := &deltas[i]; !d.OnlyA && !d.OnlyB {
			compared++
		}
	}
	slices.SortStableFunc(deltas, func(x, y devicelog.Delta) int { return cmp.Compare(f.unchanged(&x), f.unchanged(&y)) })
	out := io.Writer(&wrapper{w: c.OutOrStdout()})
	if f.asJSON {
		out = c.OutOrStdout()
		r := compareReport{args[0], args[1], f.alpha, compared, diags[0], diags[1], []compareInfo{}}
		num := func(v float64) *float64 {
			if math.IsNaN(v) {
				return nil
			}
			return &v
		}
		for i := range deltas {
			d := &deltas[i]
			r.Zones = append(r.Zones, compareInfo{d.Name, d.Risc, d.A, d.B, num(d.Change), num(d.P), num(d.Holm), num(d.Superior), d.Significant(f.alpha), d.InNS})
		}
		if err := writeJSON(out, r); err != nil {
			return err
		}
		return f.compareTrouble(diags)
	}
	for i, what := range []string{"old", "new"} {
		sayf(out, "%s %s\n", what, args[i])
		for _, d := range diags[i] {
			line := ""
			if d.Line > 0 {
				line = fmt.Sprintf(" from line %d", d.Line)
			}
			sayf(out, "    %s %s%s: %s\n", d.Code, humanize.Comma(int64(d.Count)), line, d.Detail)
		}
	}
	fmt.Fprintln(out)
	t := columns{left: 2}
	t.add("zone", "processor", "old n", "median", "new n", "median", "change", "p", "in total")
	n := len(deltas)
	if f.top > 0 {
		n = min(n, f.top)
	}
	inNS := slices.ContainsFunc(deltas, func(d devicelog.Delta) bool { return d.InNS })
	for i := range n {
		d := &deltas[i]
		change, prob := "", ""
		switch {
		case d.OnlyA:
			change = "gone"
		case d.OnlyB:
			change = "new"
		case !d.Significant(f.alpha):
			change, prob = "~", pText(d.Holm)
		case math.IsNaN(d.Change):
			change, prob = "from 0", pText(d.Holm)
		default:
			change, prob = fmt.Sprintf("%+.1f %%", 100*d.Change), pText(d.Holm)
		}
		// Of a side without the zone nothing is known, of one without a clock no ns.
		side := func(s *devicelog.Summary, mhz float64) (median string, sum float64) {
			scale := 1.0
			switch {
			case s.Count == 0:
				return "", 0
			case inNS && mhz == 0:
				return "no clock", math.NaN()
			case inNS:
				scale = 1000 / mhz
			}
			return tenths(s.Median * scale), float64(s.Sum) * scale
		}
		medA, sumA := side(&d.A, d.FreqA)
		medB, sumB := side(&d.B, d.FreqB)
		total := ""
		if v := sumB - sumA; !math.IsNaN(v) {
			total = humanize.Comma(int64(math.Round(v)))
		}
		t.add(printable(d.Name), printable(d.Risc), whole(d.A.Count), medA, whole(d.B.Count), medB, change, prob, total)
	}
	if err := t.print(out); err != nil {
		return err
	}
	unit := "Cycles."
	if inNS {
		unit = "Nanoseconds, as the clocks differ."
	}
	if n < len(deltas) {
		unit = fmt.Sprintf("%d of %d zones (--top 0 for all). %s", n, len(deltas), unit)
	}
	sayf(out, "\n%s ~ is no significant difference at %g: Mann-Whitney U test, Holm's correction for %s.\n", unit, f.alpha, count(compared, "zone"))
	return f.compareTrouble(diags)
}

// unchanged is 0 for zones that have changed, 1 for others.
func (f *profileFlags) unchanged(d *devicelog.Delta) int {
	if d.OnlyA || d.OnlyB || d.Significant(f.alpha) {
		return 0
	}
	return 1
}

// compareTrouble is the error that --strict asks for.
func (f *profileFlags) compareTrouble(diags [2][]devicelog.DiagInfo) error {
	if f.strict && len(diags[0])+len(diags[1]) > 0 {
		return fmt.Errorf("the logs have trouble (--strict)")
	}
	return nil
}

func pText(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}
