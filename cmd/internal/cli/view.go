package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/systems"
)

func newViewCommand() *cobra.Command {
	var in inputFlags
	var report, block string
	var port int
	c := &cobra.Command{
		Use:   "view [flags] INPUT",
		Short: "Show a simulation as a page on this machine, or write the page as one file",
		Long: `view simulates INPUT and serves its timelines as a page on the loopback
interface until Ctrl-C: run A, run B and, where the input has one, the
measurement, stacked on one time axis, with the critical path, the cause of
every wait and the dependencies of the selected event. With -o it writes the
same page as one file that needs no server.`,
		Example: `  perfsim view examples/attention.bir.json
  perfsim view -o report.html profile.json.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			res, err := in.predict(c.Context(), c, args[0], p)
			if err != nil {
				return err
			}
			m := res.World.Module
			row, err := chooseBlock(&res.World.World, block)
			if err != nil {
				return err
			}
			v, err := newViewer(c.Context(), res, row)
			if err != nil {
				return err
			}
			p.close()
			if report != "" {
				if err := save(report, c.OutOrStdout(), func(out io.Writer) error { return web.Report(out, v.dataset(), v.static()) }); err != nil {
					return err
				}
				if report != "-" {
					fmt.Fprintf(c.OutOrStdout(), "wrote %s\n", report)
				}
				return nil
			}
			return web.Serve(c.Context(), v.dataset(), port, func(url string) {
				fmt.Fprintf(c.OutOrStdout(), "%s\nshowing %s/%s; Ctrl-C ends\n", url,
					m.FunctionName(int(m.Blocks.Function.At(row))), m.BlockName(row))
			})
		},
	}
	in.add(c)
	c.Flags().StringVarP(&report, "output", "o", "", "write the page as one file instead of serving it")
	c.Flags().StringVar(&block, "block", "", "block to show, by name (function/block or block); default: the one with most time over all runs of its function")
	c.Flags().IntVar(&port, "port", 0, "port on the loopback interface; 0 takes a free one")
	return c
}

// chooseBlock returns the row of the top-level block with the given name, or
// the one that takes longest.
func chooseBlock(w *components.World, name string) (int, error) {
	m := w.Module
	best, row := uint64(0), -1
	for _, b := range m.TopBlocks() {
		full := m.FunctionName(int(m.Blocks.Function.At(b))) + "/" + m.BlockName(b)
		if name != "" {
			if name == full || name == m.BlockName(b) {
				return b, nil
			}
			continue
		}
		if l := weighted(w, b); row < 0 || l > best {
			best, row = l, b
		}
	}
	if row < 0 {
		return 0, usagef("no top-level block is called %q", name)
	}
	return row, nil
}

// weighted returns the time of a top-level block in all runs of its function,
// run A, in ns.
func weighted(w *components.World, b int) uint64 {
	l, runs := w.BlockLatency(w.Blocks[b], components.RunA), w.Module.Functions.Runs.At(int(w.Module.Blocks.Function.At(b)))
	if l != 0 && runs > math.MaxUint64/l {
		return math.MaxUint64
	}
	return l * runs
}

// blockFacts lists the top-level blocks with their weighted times, the longest
// first, where there are several.
func blockFacts(w *components.World) []web.Fact {
	m := w.Module
	rows := m.TopBlocks()
	if len(rows) < 2 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(weighted(w, b), weighted(w, a)) })
	var out []web.Fact
	for _, b := range rows {
		f := int(m.Blocks.Function.At(b))
		out = append(out, web.Fact{Name: m.FunctionName(f) + "/" + m.BlockName(b),
			Value: fmt.Sprintf("%s in %s (%s)", nanos(weighted(w, b)), countOf(int(m.Functions.Runs.At(f)), "run"), percent(weighted(w, b), w.Latency(components.RunA)))})
	}
	return out
}

// viewer turns one block of a simulated world into what the page shows. Event
// ids are rows counted from the first of the block.
type viewer struct {
	w     *components.World
	m     *components.Module
	block int
	first uint32
	end   uint32
	attr  *components.Attribution
	crit  []bool
	slack []uint64
	lanes []uint16 // lane of each row of the page
	rowOf []int    // row of the page by lane, -1 for none
	succs *successors

	runs         []int  // what the sections of the page are
	measuredFrom uint64 // first measured start of the block, ns
}

func newViewer(ctx context.Context, r *systems.Result, block int) (*viewer, error) {
	w := &r.World.World
	v := &viewer{w: w, m: w.Module, block: block, first: w.Module.Blocks.First.At(block), end: w.Module.Blocks.End.At(block)}
	if err := v.attribute(ctx, r); err != nil {
		return nil, err
	}
	used := make([]bool, v.m.Lanes.Len())
	for i := v.first; i < v.end; i++ {
		if !v.loop(i) {
			used[v.m.Instr.Lane.At(int(i))] = true
		}
	}
	v.rowOf = make([]int, len(used))
	for l := range used {
		v.rowOf[l] = -1
		if used[l] {
			v.rowOf[l] = len(v.lanes)
			v.lanes = append(v.lanes, uint16(l))
		}
	}
	v.succs = newSuccessors(v.m, v.first, v.end)
	return v, nil
}

func (v *viewer) loop(i uint32) bool { return v.m.Instr.Flags.At(int(i))&components.FlagLoop != 0 }
