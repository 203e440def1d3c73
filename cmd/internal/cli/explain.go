package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems/attribute"
	"perfsim/systems/explain"
)

func newExplainCommand() *cobra.Command {
	var in inputFlags
	var o explainFlags
	c := &cobra.Command{
		Use:   "explain [flags] INPUT",
		Short: "Say what bounds a prediction, where, and what would help",
		Long: `explain predicts INPUT and prints one screen: what bounds it, the causes that
cost most with their places and what each is worth at most, what the time of
every engine is, what anti-dependencies cost, and what looks wrong. The flags
ask for details: an engine, an instruction, a stretch of time, the critical
path. Figures add up: the time of every engine and the critical path are the
latency, to the nanosecond.`,
		Example: `  perfsim explain examples/attention.bir.json
  perfsim explain --by op module.hlo
  perfsim explain --engine PE profile.json.gz
  perfsim explain --instruction I-42 module.bir.json
  perfsim explain --between 10us,25us profile.json.gz
  perfsim explain --path --top 40 profile.json.gz
  perfsim explain --path --json module.bir.json |
      jq '.steps[] | select(.via == "anti")'
  perfsim explain --json module.bir.json | jq '.causes[0]'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			win, input, err := o.window(args)
			if err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			ctx := c.Context()
			res, err := in.predict(ctx, c, input, p)
			if err == nil {
				err = res.CheckTimes(input)
			}
			if err != nil {
				return err
			}
			res.Input = input
			w := res.World
			block, err := explain.FindBlock(w.Module, o.block)
			if err != nil {
				return err
			}
			opt := explain.Options{Top: o.top, Block: block, Window: win, Progress: func(done, total int64) { p.set(done) }}
			if o.antideps {
				opt.Buffers = max(o.top, 10)
			}
			p.start("explaining", 5, false)
			x, err := res.Explain(ctx, opt)
			if err != nil {
				return err
			}
			t := explainText{x: x, work: res.Work(), notes: res.Notes(), out: c.OutOrStdout(), input: input, top: o.top}
			if o.instruction != "" {
				i, err := explain.Find(w.Module, o.instruction)
				if err != nil {
					return err
				}
				d, err := x.Instruction(ctx, i)
				if err != nil {
					return err
				}
				p.close()
				if o.json {
					return writeJSON(c.OutOrStdout(), d)
				}
				return t.instruction(d)
			}
			if o.path && o.json {
				p.close()
				return t.pathJSON()
			}
			r, err := x.Report(ctx)
			if err != nil {
				return err
			}
			if t.memory, err = res.MemoryPeaks(ctx); err != nil {
				return err
			}
			if o.by != "" {
				list, rest, err := x.Groups(ctx, explain.Grouping(o.by))
				if err != nil {
					return err
				}
				p.close()
				if o.json {
					return writeJSON(c.OutOrStdout(), groupsJSON{res.Subject(), r.SpanNS, o.by, list, rest})
				}
				if !c.Flags().Changed("top") {
					t.top = mostGroups
				}
				return t.groups(r, o.by, list, rest)
			}
			p.close()
			r.Window = windowText(win)
			if o.json {
				return writeJSON(c.OutOrStdout(), res.Explained(r, t.memory))
			}
			switch {
			case o.engine != "":
				l, err := findLane(w.Module, o.engine)
				if err != nil {
					return err
				}
				return t.engine(ctx, r, l)
			case o.path:
				return t.path(r)
			case o.antideps:
				return t.antideps(r)
			}
			return t.screen(r)
		},
	}
	in.add(c)
	in.keepOperands() // the question is about buffers
	fl := c.Flags()
	fl.IntVar(&o.top, "top", 5, "rows of every list")
	fl.StringVar(&o.engine, "engine", "", "details of one engine: what its time is and what it waits for")
	fl.StringVar(&o.instruction, "instruction", "", "details of one instruction, by name or #ROW: what held it, its predecessors and successors")
	fl.StringVar(&o.between, "between", "", "only the time from T0 to T1, as T0,T1 (ns, or with unit: 10us,25us)")
	fl.StringVar(&o.block, "block", "", "only one top-level block, as BLOCK or FUNCTION/BLOCK")
	fl.BoolVar(&o.path, "path", false, "the critical path step by step, repetitions folded (with --json every step)")
	fl.BoolVar(&o.antideps, "antideps", false, "what the anti-dependencies of every buffer cost")
	fl.StringVar(&o.by, "by", "", "sums by op, layer, source, opcode, engine or kernel")
	completeWith(c, "by", explain.Groupings()...)
	fl.BoolVar(&o.json, "json", false, "print the whole report as one JSON object")
	return c
}

type explainFlags struct {
	top                                 int
	engine, instruction, between, block string
	by                                  string
	path, antideps, json                bool
}

// window reads --between and says which argument is the input: the end of the
// window may stand behind the flag as a word of its own.
func (o *explainFlags) window(args []string) (*attribute.Window, string, error) {
	if o.top < 1 {
		return nil, "", usagef("--top %d is not at least 1", o.top)
	}
	if o.by != "" && !slices.Contains(explain.Groupings(), o.by) {
		return nil, "", usagef("--by %q is none of %s", o.by, strings.Join(explain.Groupings(), ", "))
	}
	if o.by != "" && o.between != "" {
		return nil, "", usagef("--by sums up all executions, not those of a window: leave --between out")
	}
	if o.between == "" {
		if len(args) != 1 {
			return nil, "", usagef("%d inputs received; one is explained at a time", len(args))
		}
		return nil, args[0], nil
	}
	from, to, both := strings.Cut(o.between, ",")
	if !both {
		from, to, both = strings.Cut(o.between, "..")
	}
	if !both {
		if len(args) != 2 {
			return nil, "", usagef("--between needs two times, as T0,T1")
		}
		to, args = args[0], args[1:]
	}
	if len(args) != 1 {
		return nil, "", usagef("%d inputs received; one is explained at a time", len(args))
	}
	a, err := parseNanos(from)
	if err != nil {
		return nil, "", usagef("--between: %v", err)
	}
	b, err := parseNanos(to)
	if err != nil {
		return nil, "", usagef("--between: %v", err)
	}
	if b <= a {
		return nil, "", usagef("--between: %s is not before %s", from, to)
	}
	return &attribute.Window{From: a, To: b}, args[0], nil
}

// parseNanos reads a time: a number of ns, or with one of the units ns, us,
// µs, ms, s.
func parseNanos(s string) (uint64, error) {
	s = strings.TrimSpace(s)
	number := strings.TrimRight(s, "nuµms")
	unit := s[len(number):]
	scale := map[string]float64{"": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if scale == 0 || err != nil || !(v >= 0) || v*scale > 1e18 {
		return 0, fmt.Errorf("%q is not a time such as 1500, 10us or 2.5ms", s)
	}
	return uint64(v*scale + 0.5), nil
}

func windowText(w *attribute.Window) string {
	if w == nil {
		return ""
	}
	return units.Moment(w.From) + " to " + units.Moment(w.To)
}

// findLane returns a lane by its name or, of core 0, by an engine's other
// names.
func findLane(m *components.Module, name string) (uint16, error) {
	var known []string
	used := make([]bool, m.Lanes.Len())
	for _, l := range m.Instr.Lane.Slice() {
		used[l] = true
	}
	for l := range m.Lanes.Len() {
		if strings.EqualFold(m.LaneName(uint16(l)), name) {
			return uint16(l), nil
		}
		if used[l] {
			known = append(known, m.LaneName(uint16(l)))
		}
	}
	if e, ok := components.ParseEngine(name); ok {
		for l := range m.Lanes.Len() {
			if m.Lanes.Engine.At(l) == e && m.Lanes.Kind.At(l) == components.LaneEngine {
				return uint16(l), nil
			}
		}
	}
	return 0, fmt.Errorf("no engine or lane is called %q (%s)", name, strings.Join(slices.Compact(known), ", "))
}
