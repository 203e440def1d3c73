package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"perfsim/cmd/internal/units"
	"perfsim/systems"
	"perfsim/systems/explain"
)

// groupsJSON is the output of explain --by --json.
type groupsJSON struct {
	systems.Subject
	LatencyNS uint64          `json:"latency_ns"` // latency of run A
	By        string          `json:"by"`         // what rows are grouped by
	Groups    []explain.Group `json:"groups"`     // the groups, most path_ns first
	// RestNS lies before the first and behind the last step of the critical path.
	RestNS uint64 `json:"rest_ns"`
}

// mostGroups bounds the groups listed for people where --top is not given.
const mostGroups = 20

// groups prints what rows add up to by a grouping.
func (t *explainText) groups(r *explain.Report, by string, list []explain.Group, rest uint64) error {
	if err := t.head(r); err != nil {
		return err
	}
	sayf(t.out, "\n%s by %s, time on the critical path first\n", countOf(len(list), "group"), by)
	var table bytes.Buffer
	tw := newTable(&table)
	fmt.Fprintln(tw, "  ON PATH\tSHARE\tRUNS\tFLOPS\tHBM\tMFU\tPERFECT\tBOUND\t")
	shown := list[:min(len(list), t.top)]
	var times, perfect []uint64
	for _, g := range shown {
		times = append(times, g.PathNS)
		if g.PerfectNS != nil {
			perfect = append(perfect, *g.PerfectNS)
		}
	}
	path, ideal := units.Column(times...), units.Column(perfect...)
	optional := func(v *uint64, unit string) string {
		if v == nil || *v == 0 {
			return "–"
		}
		return si3(*v, unit)
	}
	lines := make([]string, 0, len(shown))
	for _, g := range shown {
		mfu, least := "–", "–"
		if g.MFU != nil {
			mfu = short(*g.MFU)
		}
		if g.PerfectNS != nil {
			least = ideal(*g.PerfectNS)
		}
		bound := g.Bound
		if bound == "" {
			bound = "off the path"
		}
		sayf(tw, "  %s\t%6s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", path(g.PathNS), share(g.PathShare), comma(g.Executions), optional(g.FLOPs, ""), optional(g.Bytes, "B"), mfu, least, bound)
		var busy []string
		for k, e := range g.Busy {
			if k == 3 {
				break
			}
			busy = append(busy, cut(e.Name, 22)+" "+units.Nanos(e.NS))
		}
		lines = append(lines, groupLine(source(t.x.World.Module, g.Name), busy))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for k, row := range strings.SplitAfter(table.String(), "\n") {
		if k > 0 && k <= len(lines) {
			fmt.Fprintln(t.out, lines[k-1])
		}
		fmt.Fprint(t.out, row)
	}
	if n := len(list) - len(shown); n > 0 {
		sayf(t.out, "… and %s more (--top N shows more)\n", comma(uint64(n)))
	}
	if rest > 0 {
		sayf(t.out, "before the first and behind the last step: %s\n", units.Nanos(rest))
	}
	_, err := fmt.Fprint(t.out, `
RUNS counts executions; MFU is over the busy time of the busiest engine.
PERFECT is what the FLOPs and HBM bytes take at the machine's peaks.
`)
	return err
}

// groupLine names a group, with the busy time of as many of its engines as fit
// next to the name.
func groupLine(name string, busy []string) string {
	const least = 30 // of the name
	text := ""
	for k, b := range busy {
		next := text + ", " + b
		if k == 0 {
			next = "  busy " + b
		}
		if utf8.RuneCountInString(next) > textWidth-min(least, utf8.RuneCountInString(name)) {
			break
		}
		text = next
	}
	return cut(name, textWidth-utf8.RuneCountInString(text)) + text
}
