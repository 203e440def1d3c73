package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perfsim/components"
	"perfsim/systems/lower"
)

// lowerFlags are the flags of commands that may be given an operator graph,
// which becomes engine instructions first.
type lowerFlags struct {
	buffers         int
	trips           []string
	defaultTrip     int64
	maxInstructions int
	unroll          int
	noCompress      bool
	noGroup         bool
	inline          int
	operands        bool
	// wantOperands is set by commands that ask about buffers: graphs then keep
	// access patterns unless --operands=false says otherwise.
	wantOperands bool
	infinite     bool
	module       string
	noPreAlloc   bool

	// preAlloc makes the module before allocation of the graph that was read;
	// report is what lowering did. Both nil where no graph was.
	preAlloc func(context.Context) (*components.Module, error)
	report   *lower.Report
}

func (l *lowerFlags) add(c *cobra.Command) {
	d := lower.DefaultOptions()
	fl := c.Flags()
	fl.IntVar(&l.buffers, "buffers", d.Buffers, "graphs: tiles of a streamed value that are on chip at once; 2 is double buffering")
	fl.StringArrayVar(&l.trips, "trip-count", nil, "graphs: NAME=N, trip count of the while (or while body) called NAME; may be repeated")
	fl.Int64Var(&l.defaultTrip, "default-trip-count", d.DefaultTrip, "graphs: trip count of whiles for which nothing tells one")
	fl.IntVar(&l.maxInstructions, "max-instructions", d.MaxInstructions, "graphs: most engine instructions a module may have")
	fl.IntVar(&l.unroll, "unroll", d.Unroll, "graphs: tile loops of up to N iterations are written out")
	fl.BoolVar(&l.noCompress, "no-compress", false, "graphs: write out all tile loops instead of keeping long ones as loops")
	fl.BoolVar(&l.noGroup, "no-group", false, "graphs: every elementwise operator that is in no fusion makes a pass of its own")
	fl.IntVar(&l.inline, "inline", d.Inline, "graphs: calls of up to N operators are laid out at the call")
	fl.BoolVar(&l.operands, "operands", false, "graphs: keep access patterns and memory locations of every instruction")
	fl.BoolVar(&l.infinite, "infinite-buffers", false, "graphs: no buffer is used again and nothing is spilled, as before allocation")
	fl.BoolVar(&l.noPreAlloc, "no-pre-alloc", false, "graphs: the first perf_sim pass simulates the allocated module too, instead of the one before allocation")
	fl.StringVar(&l.module, "module", "", "graphs: name of the module to take where the input has several, or #N for the one in place N")
}

// options returns what the flags ask for.
func (l *lowerFlags) options() (lower.Options, error) {
	o := lower.DefaultOptions()
	o.Buffers, o.DefaultTrip, o.MaxInstructions, o.Unroll = l.buffers, l.defaultTrip, l.maxInstructions, l.unroll
	o.Compress, o.Group, o.Inline, o.Operands, o.Infinite = !l.noCompress, !l.noGroup, l.inline, l.operands || l.wantOperands, l.infinite
	o.Trips = map[string]int64{}
	for _, t := range l.trips {
		name, text, ok := strings.Cut(t, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || name == "" || err != nil || n < 0 {
			return o, usagef("--trip-count %q is not NAME=N with N at least 0", t)
		}
		o.Trips[name] = n
	}
	return o, nil
}

// lower turns the graphs of an input into one module of engine instructions.
func (f *inputFlags) lower(ctx context.Context, graphs []*components.Graph, input, format string, p *progress) (*components.Module, error) {
	g, err := f.pick(graphs, input)
	if err != nil {
		return nil, err
	}
	opt, err := f.lowering.options()
	if err != nil {
		return nil, err
	}
	name := f.machine
	if name == "" {
		name = "trn2"
	}
	mach, err := loadMachine(name)
	if err != nil {
		return nil, err
	}
	g.DeriveTripCounts()
	p.start("lowering", int64(g.NumOps()), false)
	opt.Progress = func(done, _ int64) { p.set(done) }
	res, err := lower.Lower(ctx, g, mach, opt)
	p.finish()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", input, err)
	}
	res.Module.Format = format
	f.lowering.report = &res.Report
	if !opt.Infinite && !f.lowering.noPreAlloc {
		f.lowering.preAlloc = func(ctx context.Context) (*components.Module, error) {
			opt.Infinite, opt.Operands, opt.Progress = true, false, nil
			res, err := lower.Lower(ctx, g, mach, opt)
			if err != nil {
				return nil, err
			}
			return res.Module, nil
		}
	}
	return res.Module, nil
}

// pick returns the graph to lower: the one with the name asked for, or in the
// place asked for, since modules of one file may all have one name.
func (f *inputFlags) pick(graphs []*components.Graph, input string) (*components.Graph, error) {
	var names []string
	for i, g := range graphs {
		name := g.Text(g.Name)
		if want := f.lowering.module; want == name || want == "#"+strconv.Itoa(i+1) || want == "" && len(graphs) == 1 {
			return g, nil
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no modules", input)
	}
	// What would be typed for the first: its name, or its place where another
	// has the same name.
	first := names[0]
	if first == "" || slices.Contains(names[1:], first) {
		first = "#1"
	}
	const most = 10
	var list []string
	for i, name := range names[:min(len(names), most)] {
		list = append(list, fmt.Sprintf("#%d %s, %s", i+1, cut(name, 80), countOf(graphs[i].NumOps(), "operator")))
	}
	if n := len(names) - most; n > 0 {
		list = append(list, fmt.Sprintf("and %s more", humanize.Comma(int64(n))))
	}
	what := fmt.Sprintf("%s has %s and one is to be named", input, countOf(len(names), "module"))
	if f.lowering.module != "" {
		what = fmt.Sprintf("%s has no module called %q but %s", input, f.lowering.module, countOf(len(names), "module"))
	}
	return nil, usagef("%s:\n  %s\nThe first is taken by\n  %s", what, strings.Join(list, "\n  "), f.commandWith("module", first))
}

// commandWith is the command line at hand with a flag added or changed.
func (f *inputFlags) commandWith(flag, value string) string {
	if f.command == nil {
		return "--" + flag + " " + shellWord(value)
	}
	words := []string{f.command.CommandPath()}
	f.command.Flags().Visit(func(x *pflag.Flag) {
		switch {
		case x.Name == flag:
		case x.Value.Type() == "bool" && x.Value.String() == "true":
			words = append(words, "--"+x.Name)
		default:
			if list, ok := x.Value.(pflag.SliceValue); ok {
				for _, v := range list.GetSlice() {
					words = append(words, "--"+x.Name, shellWord(v))
				}
				return
			}
			words = append(words, "--"+x.Name+"="+shellWord(x.Value.String()))
		}
	})
	words = append(words, "--"+flag, shellWord(value))
	for _, a := range f.command.Flags().Args() {
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word that a shell would take apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
