package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/occupancy"
)

func newMemoryCommand() *cobra.Command {
	var in inputFlags
	var asJSON bool
	var picture string
	var top int
	c := &cobra.Command{
		Use:   "memory [flags] INPUT",
		Short: "Show what the memories hold over time, and the peak's tensors",
		Long: `memory predicts INPUT and follows what is held in device memory, SBUF and PSUM:
the peak against the machine's size, when it is reached, the tensors that make
it, and what spills cost. Occupancy is the union of the address ranges that are
written and still needed. Blocks stand one after the other, each once; while a
function runs, what its caller holds counts too.`,
		Example: `  perfsim memory examples/attention.bir.json
  perfsim memory --svg memory.svg module.hlo
  perfsim memory --json module.hlo | jq '.spaces[] | [.space, .peak_bytes]'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if top < 1 {
				return usagef("--top %d is not at least 1", top)
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			l, err := in.load(c.Context(), c, args[0], p)
			if err != nil {
				return err
			}
			res, err := in.simulate(c.Context(), l, systems.Request{}, p)
			if err != nil {
				return err
			}
			p.start("following memory", 0, false)
			rep, err := res.Memory(c.Context())
			if err != nil {
				return err
			}
			p.close()
			w := res.World
			if picture != "" {
				title := w.Module.Name + ": memory over time"
				if name := res.MachineName(); name != nil {
					title = fmt.Sprintf("%s on %s: memory over time", w.Module.Name, *name)
				}
				if err := saveBytes(picture, c.OutOrStdout(), rep.SVG(title)); err != nil {
					return err
				}
				if picture == "-" {
					return nil
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), memoryJSON{args[0], w.Module.Name, w.Module.Format, res.MachineName(), w.Config.Model.String(), w.Latency(components.RunA), rep})
			}
			return printMemory(c.OutOrStdout(), res, rep, top)
		},
	}
	in.add(c)
	in.keepOperands()
	fl := c.Flags()
	fl.BoolVar(&asJSON, "json", false, "print JSON, every tensor at the peak and the levels over time included")
	fl.StringVar(&picture, "svg", "", "draw the memories over time into this SVG file, - for standard output")
	fl.IntVar(&top, "top", 10, "tensors to list for each memory")
	return c
}

type memoryJSON struct {
	Input   string  `json:"input"`
	Module  string  `json:"module"`
	Format  string  `json:"format"`
	Machine *string `json:"machine"`
	Model   string  `json:"model"`
	Latency uint64  `json:"latency_ns"` // latency of run A
	*occupancy.Report
}

// spaceName is how lists call a memory: of cores after the first with the core.
func spaceName(s *occupancy.Space) string {
	if s.Core > 0 {
		return fmt.Sprintf("nc%d.%s", s.Core, s.Name)
	}
	return s.Name
}

func printMemory(out io.Writer, res *systems.Result, r *occupancy.Report, top int) error {
	w := res.World
	tw := newTable(out)
	sayf(tw, "module\t%s (%s)\n", w.Module.Name, w.Module.Format)
	if name := res.MachineName(); name != nil {
		sayf(tw, "machine\t%s, %s model\n", *name, w.Config.Model)
	} else {
		sayf(tw, "replayed\tno machine was simulated\n")
	}
	sayf(tw, "latency\t%s\n", units.Nanos(w.Latency(components.RunA)))
	if s := r.Spills; s != nil {
		sayf(tw, "spills\t%s stored, %s reloaded, %s transfers, %s of DMA time\n", humanize.IBytes(s.StoredBytes), humanize.IBytes(s.ReloadedBytes), comma(s.Transfers), units.Nanos(s.BusyNS))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(tw, "MEMORY\tPEAK\tOF\tUSED\tREACHED AT\t\t")
	for k := range r.Spaces {
		s := &r.Spaces[k]
		if s.Absent != "" {
			sayf(tw, "%s\tunknown: %s\n", spaceName(s), s.Absent)
			continue
		}
		mark := ""
		if s.Name != "HBM" {
			mark = "a partition"
		}
		size := "–"
		if s.Size > 0 {
			size = humanize.IBytes(s.Size)
			if !s.Fits {
				mark = "DOES NOT FIT"
			}
		}
		sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", spaceName(s), humanize.IBytes(s.Peak), size, percent(s.Peak, s.Size), units.Nanos(s.At), mark)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for k := range r.Spaces {
		s := &r.Spaces[k]
		if s.Absent != "" || s.Peak == 0 {
			continue
		}
		sayf(out, "\n%s from 0 to %s, full height %s\n%s\n", spaceName(s), units.Nanos(r.End), humanize.IBytes(s.Peak), sparkline(s, r.End))
		fmt.Fprintln(tw, "  SIZE\tFROM\tTO\tKIND\tTENSOR\tWRITTEN BY\t")
		for n := range s.Tensors {
			x := &s.Tensors[n]
			if n == top {
				sayf(tw, "  … and %s more (--top N shows more)\n", comma(uint64(len(s.Tensors)-n)))
				break
			}
			by := x.Operator
			if by == "" {
				by = x.Source
			}
			sayf(tw, "  %s\t%s\t%s\t%s\t%s\t%s\t\n", humanize.IBytes(x.Bytes), units.Nanos(x.From), units.Nanos(x.To), x.Kind, cut(x.Name, 22), cut(by, 20))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// sparkline draws a series in one line of 78 columns: the highest level of
// each piece of the time.
func sparkline(s *occupancy.Space, end uint64) string {
	const width = 78
	marks := []rune(" ▁▂▃▄▅▆▇█")
	var high [width]uint64
	level, at := uint64(0), 0
	piece := func(ns uint64) int {
		return min(int(float64(ns)/float64(max(end, 1))*width), width-1)
	}
	for _, l := range s.Series {
		for to := piece(l.NS); at < to; at++ {
			high[at] = max(high[at], level)
		}
		level = l.Bytes
		high[at] = max(high[at], level)
	}
	for ; at < width; at++ {
		high[at] = max(high[at], level)
	}
	var b strings.Builder
	b.WriteString("  ")
	for _, v := range high {
		n := 0
		if v > 0 {
			n = 1 + int(float64(v)/float64(s.Peak)*float64(len(marks)-2)+0.5)
			n = min(n, len(marks)-1)
		}
		b.WriteRune(marks[n])
	}
	return strings.TrimRight(b.String(), " ")
}
