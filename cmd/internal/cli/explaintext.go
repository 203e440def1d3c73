package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/explain"
	"perfsim/systems/occupancy"
	"perfsim/systems/work"
)

// mostNotes bounds the notes of the one screen.
const mostNotes = 5

// explainText prints reports for people.
type explainText struct {
	notes  []components.Note
	x      *explain.Analysis
	work   *work.Figures
	memory []occupancy.Head
	out    io.Writer
	input  string
	top    int
}

func (t *explainText) table() *textTable { return newTable(t.out) }

func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// comma writes a count for people.
func comma(n uint64) string { return humanize.Comma(int64(min(n, 1<<62))) }

// cut shortens a name to n characters, keeping its end, which distinguishes
// names better.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}

// head prints what was predicted.
func (t *explainText) head(r *explain.Report) error {
	w := t.x.World
	m := w.Module
	tw := newFacts(t.out)
	how := fmt.Sprintf("on %s, %s model", w.Machine.Name, w.Config.Model)
	if w.Replayed() {
		how = "replayed"
	}
	sayf(tw, "module\t%s (%s), %s, %s\n", m.Name, m.Format, countOf(m.NumInstructions(), "instruction"), how)
	line := units.Nanos(r.SpanNS)
	if r.Window == "" {
		line += units.PhaseRange(w.Range)
	}
	if r.Window != "" {
		line += ", from " + r.Window
	} else {
		if r.SpanNS > r.NoAntiNS.Or(r.SpanNS) {
			line += fmt.Sprintf("; without anti-dependencies %s", units.Nanos(uint64(r.NoAntiNS)))
		}
		if r.MeasuredNS != nil && *r.MeasuredNS > 0 {
			line += "; measured " + units.Nanos(*r.MeasuredNS)
			if !w.Replayed() {
				line += fmt.Sprintf(" (prediction %+.1f %%)", 100*(float64(r.SpanNS)/float64(*r.MeasuredNS)-1))
			}
		}
	}
	sayf(tw, "latency\t%s\n", line)
	if r.Window == "" {
		printWork(tw, t.work)
		printMemoryPeaks(tw, t.memory)
	}
	printHeadlines(tw, m.Notes)
	var parts []string
	for _, c := range r.Classes {
		if c.NS > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", c.Name, 100*c.Share))
		}
	}
	sayf(tw, "bound\t%s (critical path: %s)\n", strings.ToUpper(r.Bound), strings.Join(parts, ", "))
	return tw.Flush()
}

// screen prints the one screen.
func (t *explainText) screen(r *explain.Report) error {
	if err := t.head(r); err != nil {
		return err
	}
	tw := t.table()
	sayf(t.out, "\nWhat costs most\n")
	fmt.Fprintln(tw, "  CAUSE\tSHARE\tON PATH\tRUNS\tSAVES\tSUCH AS\t")
	var times, gains []uint64
	for _, c := range r.Causes {
		times = append(times, c.NS)
		if c.Bounded {
			gains = append(gains, c.AtMost)
		}
	}
	text := units.Column(times...)
	gain := units.Column(append(gains, times...)...) // the same unit where both have digits in it
	for _, c := range r.Causes {
		times := "–"
		if c.Place.Count > 0 {
			times = comma(c.Place.Count)
			c.Place.Count = 0 // of the cause, not of the place that has most of it
		}
		worth := "–"
		if c.Bounded {
			worth = strings.TrimSpace(gain(c.AtMost))
			if !c.Exact {
				worth = "≤ " + worth
			}
		}
		sayf(tw, "  %s\t%5.1f %%\t%s\t%s\t%s\t%s\t\n", cut(c.Name, 19), 100*c.Share, text(c.NS), times, worth, cut(t.where(c.Place), 22))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	sayf(t.out, "\nWhat the engines do\n")
	if err := t.engines(r); err != nil {
		return err
	}
	if len(r.Lines) > 0 {
		sayf(t.out, "\nWhere the critical path is\n")
		if err := t.lines(r); err != nil {
			return err
		}
	}
	if err := t.buffers(r, 3, true); err != nil {
		return err
	}
	if len(r.Blocks) > 0 {
		sayf(t.out, "\nBlocks\n")
		fmt.Fprintln(tw, "  BLOCK\tRUNS\tLATENCY\tWITHOUT ANTI\tBOUND\t")
		times = times[:0]
		for _, b := range r.Blocks[:min(len(r.Blocks), t.top)] {
			times = append(times, b.A, b.B.Or(0))
		}
		text = units.Column(times...)
		for k, b := range r.Blocks {
			if k == t.top {
				sayf(tw, "  … and %d more (--json lists them)\n", len(r.Blocks)-k)
				break
			}
			sayf(tw, "  %s/%s\t%s\t%s\t%s\t%s\t\n", b.Function, b.Block, comma(b.Runs), text(b.A), units.Optional(text, b.B), b.Bound)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if len(r.Lints) > 0 {
		fmt.Fprintln(t.out)
		for _, l := range r.Lints {
			worth := ""
			if l.Worth != nil {
				worth = fmt.Sprintf(" — worth %s, %s", units.Nanos(*l.Worth), share(*l.WorthShare))
			}
			at := ""
			if l.Place.Instruction != "" {
				at = " (" + t.where(l.Place) + ")"
			}
			io.WriteString(t.out, wrapLine("! "+l.Text+at+worth))
		}
	}
	if notes := plainNotes(t.notes); len(notes) > 0 {
		fmt.Fprintln(t.out)
		for k, n := range notes {
			if k == mostNotes && len(notes) > k+1 {
				sayf(t.out, "… and %d more notes (perfsim run prints all)\n", len(notes)-k)
				break
			}
			io.WriteString(t.out, noteText(n.Text, n.Count))
		}
	}
	_, err := fmt.Fprint(t.out, `
More: --by op|layer|source|opcode|engine|kernel, --engine NAME,
  --instruction NAME, --between T0,T1, --path, --antideps, --json.
  perfsim whatif tries changes, perfsim memory shows what is held.
`)
	return err
}

// source is a place of the program as lists print it: a value of StableHLO
// that has a number for a name has its sign in front.
func source(m *components.Module, s string) string {
	if m.Format == "stablehlo" && s != "" && '0' <= s[0] && s[0] <= '9' {
		return "%" + s
	}
	return s
}

func (t *explainText) where(p explain.Place) string {
	var parts []string
	if p.Source != "" {
		parts = append(parts, cut(source(t.x.World.Module, p.Source), 26))
	}
	if p.Instruction != "" {
		parts = append(parts, cut(p.Instruction, 16))
	}
	if p.Count > 1 {
		parts = append(parts, "×"+comma(p.Count))
	}
	return strings.Join(parts, " ")
}

// engines prints one line per lane: work and the largest idle causes.
func (t *explainText) engines(r *explain.Report) error {
	tw := t.table()
	fmt.Fprintln(tw, "  ENGINE\tWORK\tSLOW\tIDLE\t")
	working := make([]int, 0, len(r.Engines))
	var busy []uint64
	for k, e := range r.Engines {
		if e.BusyNS > 0 || len(r.Engines) <= 6 {
			working, busy = append(working, k), append(busy, e.BusyNS)
		}
	}
	shown := busiest(busy, max(t.top, mostLanes))
	for _, k := range shown {
		e := &r.Engines[working[k]]
		var parts []string
		idle := e.Idle
		if e.ControlNS > 0 {
			v := float64(e.ControlNS) / float64(max(r.SpanNS, 1))
			idle = append(slices.Clone(idle), explain.Share{Name: "control", NS: e.ControlNS, Share: v})
			slices.SortStableFunc(idle, func(a, b explain.Share) int { return cmp.Compare(b.NS, a.NS) })
		}
		for _, s := range idle {
			if s.Share < 0.005 || len(parts) == 2 {
				break
			}
			text := fmt.Sprintf("%s %.0f %%", s.Name, 100*s.Share)
			if e.WaitsFor != "" && 2*e.WaitsForNS > s.NS && (s.Name == "flow" || s.Name == "anti" || s.Name == "output" || s.Name == "semaphore" || s.Name == "lane") {
				text += " (for " + e.WaitsFor + ")"
			}
			parts = append(parts, text)
		}
		stretch := ""
		if e.StretchNS > 0 && e.BusyNS > 0 {
			if v := float64(e.StretchNS) / float64(e.BusyNS); v >= 0.01 {
				stretch = fmt.Sprintf("%.0f %%", 100*v)
			}
		}
		sayf(tw, "  %s\t%s %5.1f %%\t%s\t%s\t\n", e.Name, bar(e.Busy), 100*e.Busy, stretch, strings.Join(parts, ", "))
	}
	if n := len(working) - len(shown); n > 0 {
		sayf(tw, "  … and %s with less work (--top N shows more)\n", countOf(n, "lane"))
	}
	if n := len(r.Engines) - len(working); n > 0 {
		sayf(tw, "  … and %s without work\n", countOf(n, "lane"))
	}
	return tw.Flush()
}

// buffers prints the buffers whose anti-dependencies cost something.
func (t *explainText) buffers(r *explain.Report, most int, onlyCostly bool) error {
	var rows []explain.Buffer
	for _, b := range r.Buffers {
		if onlyCostly && b.CostNS == 0 {
			continue
		}
		rows = append(rows, b)
	}
	if len(rows) == 0 {
		return nil
	}
	sayf(t.out, "\nAnti-dependencies\n")
	tw := t.table()
	fmt.Fprintln(tw, "  BUFFER\tSIZE\tEDGES\tBINDING\tCOST\tADD\tLONGEST WAIT\t")
	for k, b := range rows {
		if k == most {
			sayf(tw, "  … and %d more (--antideps lists them)\n", len(rows)-k)
			break
		}
		cost := "unknown"
		switch {
		case b.Exact:
			cost = units.Nanos(b.CostNS)
		case b.Bounded:
			cost = "≤ " + units.Nanos(b.CostNS)
		}
		name := antidep.Label(b.Name, b.Tensor)
		size, extra := humanize.IBytes(b.Bytes), fmt.Sprint(b.Extra)
		if b.Memory == "" {
			size, extra = "–", "–"
		}
		wait := ""
		if b.WaitNS > 0 {
			wait = fmt.Sprintf("%s: %s for %s", units.Nanos(b.WaitNS), cut(b.Writer, 14), cut(b.Reader, 14))
		}
		sayf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", cut(name, 24), size, comma(uint64(b.Edges)), comma(uint64(b.Binding)), cost, extra, wait)
	}
	return tw.Flush()
}

// antideps prints all about anti-dependencies.
func (t *explainText) antideps(r *explain.Report) error {
	if err := t.head(r); err != nil {
		return err
	}
	if len(r.Buffers) == 0 {
		_, err := sayf(t.out, "\nNo anti-dependency holds any instruction: they cost nothing.\n")
		return err
	}
	if err := t.buffers(r, max(t.top, 10), false); err != nil {
		return err
	}
	_, err := sayf(t.out, `
COST is the difference of two predictions, with and without the buffer's
anti-dependencies, behind ≤ a bound. BINDING edges hold an instruction. ADD is
how many more buffers remove the cost. whatif drop=anti:buffer=NAME and
buffers=N try it.
`)
	return err
}

// engine prints what one lane's time is.
func (t *explainText) engine(ctx context.Context, r *explain.Report, lane uint16) error {
	if err := t.head(r); err != nil {
		return err
	}
	stalls, err := t.x.Stalls(ctx, lane)
	if err != nil {
		return err
	}
	for _, e := range r.Engines {
		if e.Lane != lane {
			continue
		}
		tw := t.table()
		sayf(t.out, "\nThe time of %s (%s)\n", e.Name, countOf(int(e.Instructions), "instruction"))
		times := []uint64{e.IssueNS, e.StretchNS, e.ControlNS, e.FinishNS}
		for _, s := range e.Idle {
			times = append(times, s.NS)
		}
		timeText := units.Column(times...)
		line := func(name string, ns uint64, text string) {
			if ns > 0 {
				v := float64(ns) / float64(max(r.SpanNS, 1))
				sayf(tw, "  %s\t%s %5.1f %%\t%s\t%s\t\n", name, bar(v), 100*v, timeText(ns), text)
			}
		}
		line("issue", e.IssueNS, "keeps the engine")
		line("slowed down", e.StretchNS, "instructions that take longer than their cost: a slow clock, a shared bandwidth")
		line("control", e.ControlNS, "its sequencer's own instructions, waits for semaphores included")
		line("finish", e.FinishNS, "a result is outstanding")
		for _, s := range e.Idle {
			c, _ := components.ParseCause(s.Name)
			line("idle: "+s.Name, s.NS, c.Text())
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		if len(stalls) == 0 {
			return nil
		}
		sayf(t.out, "\nWhat it waits for\n")
		fmt.Fprintln(tw, "  INSTRUCTION\tWAITS FOR\tBY\tTIMES\tTIME\tLONGEST\tSUCH AS\t")
		times = times[:0]
		for _, s := range stalls[:min(len(stalls), max(t.top, 10))] {
			times = append(times, s.NS, s.Longest)
		}
		timeText = units.Column(times...)
		for k, s := range stalls {
			if k == max(t.top, 10) {
				sayf(tw, "  … and %d more (--json lists them)\n", len(stalls)-k)
				break
			}
			holder := "–"
			if s.Holder != "" {
				holder = s.HolderLane + " " + s.Holder
			}
			name := s.Opcode
			if s.Source != "" {
				name += " " + cut(source(t.x.World.Module, s.Source), 36)
			}
			sayf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, holder, s.Cause, comma(s.Count), timeText(s.NS), timeText(s.Longest), cut(s.Example, 32))
		}
		return tw.Flush()
	}
	_, err = sayf(t.out, "\n%s has no instructions.\n", t.x.World.Module.LaneName(lane))
	return err
}

// path prints the critical paths, repetitions folded.
func (t *explainText) path(r *explain.Report) error {
	if err := t.head(r); err != nil {
		return err
	}
	m := t.x.World.Module
	sayf(t.out, "\nThe critical path, %s\n", countOf(int(r.Path.Steps), "step"))
	tw := t.table()
	fmt.Fprintln(tw, "  FROM\tTIME\tSTEPS\tWHAT\tNEXT BY\tSUCH AS\tWHERE\t")
	rows := 0
	last := uint64(0)
	for _, p := range t.x.Paths {
		_, end := p.Span()
		last = max(last, end)
	}
	from := units.MomentColumn(last)
	for _, p := range t.x.Paths {
		if len(t.x.Paths) > 1 {
			sayf(tw, "  block %s\n", m.BlockName(p.Block))
		}
		var steps []attribute.Step
		p.Visit(func(s attribute.Step) { steps = append(steps, s) })
		if p.Lead > 0 {
			sayf(tw, "  %s\t%s\t\tbefore start\t\t\t\t\n", from(0), units.Nanos(p.Lead))
		}
		for _, f := range p.Folds(m) {
			if rows++; rows > max(t.top, 20) {
				continue
			}
			for k := range f.Period {
				s := steps[f.First+k]
				var time, delay, runs uint64
				for n := range f.Repeats {
					x := steps[f.First+k+n*f.Period]
					if !m.Instr.Flags.At(int(x.Instr)).Has(components.FlagContinued) {
						runs++
					}
					time += x.Until - x.From
					delay += x.Gap
				}
				mark, count := "", "1"
				if f.Repeats > 1 {
					mark = "│ "
				}
				switch {
				case runs > 1:
					count = "×" + comma(runs)
				case runs == 0:
					count = "rest" // of what an earlier row counts
				}
				if s.Trips > 1 {
					count += fmt.Sprintf(" (of %s trips)", comma(s.Trips))
				}
				via := s.Via.String()
				if s.Via == components.CauseStart {
					via = "end"
				}
				if delay > 0 {
					via += " +" + units.Nanos(delay)
				}
				sayf(tw, "  %s%s\t%s\t%s\t%s %s\t%s\t%s\t%s\t\n", mark, from(s.From), units.Nanos(time), count, m.LaneName(m.Instr.Lane.At(int(s.Instr))),
					m.OpcodeName(m.Instr.Opcode.At(int(s.Instr))), via, cut(m.InstrName(s.Instr), 32), cut(source(m, m.Symbols.String(attribute.Where(m, s.Instr))), 40))
			}
		}
		if p.Tail > 0 {
			sayf(tw, "  \t%s\t\tafter end\t\t\t\t\n", units.Nanos(p.Tail))
		}
	}
	if hidden := rows - max(t.top, 20); hidden > 0 {
		sayf(tw, "  … and %d more rows (--top N lists more)\n", hidden)
	}
	return tw.Flush()
}

// pathStep is a step of the critical path as --path --json prints it.
type pathStep struct {
	Block  string `json:"block"`
	Name   string `json:"name"` // name of the instruction
	Row    uint32 `json:"row"`
	Lane   string `json:"lane"`
	Opcode string `json:"opcode"`
	Source string `json:"source,omitempty"` // file:line in the user's program
	From   uint64 `json:"from_ns"`
	Until  uint64 `json:"until_ns"` // when the next step can go
	Via    string `json:"via"`      // what lets the next step go; "end" of the last
	Delay  uint64 `json:"delay_ns"`
	Trips  uint64 `json:"trips"`
}

// pathJSON prints every step of the critical paths, one to a line.
func (t *explainText) pathJSON() error {
	m := t.x.World.Module
	out := bufio.NewWriterSize(t.out, 1<<16)
	fmt.Fprint(out, `{"steps":[`)
	first := true
	var err error
	for _, p := range t.x.Paths {
		block := m.BlockName(p.Block)
		p.Visit(func(s attribute.Step) {
			i := int(s.Instr)
			via := s.Via.String()
			if s.Via == components.CauseStart {
				via = "end"
			}
			b, e := json.Marshal(pathStep{block, m.InstrName(s.Instr), uint32(i), m.LaneName(m.Instr.Lane.At(i)), m.OpcodeName(m.Instr.Opcode.At(i)),
				m.Symbols.String(attribute.Where(m, s.Instr)), s.From, s.Until, via, s.Gap, s.Trips})
			err = cmp.Or(err, e)
			if !first {
				out.WriteByte(',')
			}
			first = false
			out.WriteByte('\n')
			out.Write(b) // a bufio.Writer keeps its first error for Flush
		})
	}
	fmt.Fprint(out, "\n]}\n")
	if err != nil {
		return err
	}
	return out.Flush()
}

// instruction prints all about one instruction.
func (t *explainText) instruction(d *explain.Instruction) error {
	tw := t.table()
	sayf(tw, "instruction\t%s, row %d, %s/%s\n", d.Name, d.Row, d.Function, d.Block)
	sayf(tw, "does\t%s on %s\n", d.Opcode, d.Lane)
	for _, x := range [][2]string{{"source", d.Source}, {"hlo", d.HLO}, {"operands", d.Text}} {
		if x[1] != "" {
			sayf(tw, "%s\t%s\n", x[0], cut(x[1], 160))
		}
	}
	sayf(tw, "runs\t%s to %s (%s), keeps its lane for %s\n", units.Moment(d.Start), units.Moment(d.End), units.Nanos(d.End-d.Start), units.Nanos(d.Issue))
	if d.StartB != d.Start {
		sayf(tw, "\twithout anti-dependencies it starts at %s\n", units.Moment(d.StartB))
	}
	if d.Measured != nil {
		sayf(tw, "measured\t%s to %s (%s)\n", units.Moment(d.Measured[0]), units.Moment(d.Measured[1]), units.Nanos(d.Measured[1]-d.Measured[0]))
	}
	c, _ := components.ParseCause(d.Cause)
	why := c.Text()
	if d.Holder != "" {
		why += ", through " + d.Holder
	}
	if d.DelayNS > 0 {
		why += fmt.Sprintf("; the model starts it %s later", units.Nanos(d.DelayNS))
	}
	sayf(tw, "held by\t%s\n", why)
	slack := units.Nanos(d.Slack)
	if d.Critical {
		slack += ": it is on the critical path"
	}
	sayf(tw, "slack\t%s\n", slack)
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, side := range []struct {
		title string
		rows  []explain.Neighbour
	}{{"Waits for", d.Preds}, {"Waited for by", d.Succs}} {
		if len(side.rows) == 0 {
			continue
		}
		sayf(t.out, "\n%s\n", side.title)
		fmt.Fprintln(tw, "  INSTRUCTION\tKIND\tENGINE\tOPCODE\tRUNS\tGAP\t\t")
		var starts, ends []uint64
		for _, n := range side.rows[:min(len(side.rows), max(t.top, 20))] {
			starts, ends = append(starts, n.Start), append(ends, n.End)
		}
		from, until := units.MomentColumn(starts...), units.MomentColumn(ends...)
		for k, n := range side.rows {
			if k == max(t.top, 20) {
				sayf(tw, "  … and %d more (--json lists them)\n", len(side.rows)-k)
				break
			}
			mark := ""
			if n.Binding {
				mark = "binds"
			}
			if n.Apart {
				mark = strings.TrimSpace(mark + " touches no common memory")
			}
			gap := "–"
			if n.Gap >= 0 {
				gap = units.Nanos(uint64(n.Gap))
			}
			sayf(tw, "  %s\t%s\t%s\t%s\t%s to %s\t%s\t%s\t\n", cut(n.Name, 40), n.Kind, n.Lane, n.Opcode, from(n.Start), until(n.End), gap, mark)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	for _, o := range d.Others {
		sayf(t.out, "not honoured: %s\n", o)
	}
	return nil
}

// lines prints the part of each source line in the critical path.
func (t *explainText) lines(r *explain.Report) error {
	var times []uint64
	for _, l := range r.Lines {
		times = append(times, l.NS)
	}
	text := units.Column(times...)
	tw := newTable(t.out)
	for _, l := range r.Lines {
		if l.NS == 0 {
			continue // steps that take no time
		}
		sayf(tw, "  %s\t%6s\t%s\t%s, such as %s\t\n", cut(source(t.x.World.Module, l.Source), 60), share(l.Share), text(l.NS), countOf(int(l.Count), "instruction"), l.Example)
	}
	return tw.Flush()
}
