package cli

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/tenstorrent/netlist"
	"perfsim/systems/floorplan"
)

func newNetlistCommand() *cobra.Command {
	var grid, soc, svg string
	var pictures, asJSON, strict, all bool
	var limit int
	var sim epochFlags
	c := &cobra.Command{
		Use:   "netlist [flags] FILE",
		Short: "Look at a Buda netlist: epochs, cores used, placements, queues",
		Long: `netlist reads a Buda netlist (YAML, plain or gzip) and prints the cores that
each epoch uses on each chip against the grid of the architecture, placements
that overlap or leave the grid, operators by type and the memory of the queues
by DRAM channel. An epoch is one graph loaded on a chip at one time. --simulate
runs samples through each epoch: operators work block by block, wait for their
inputs and for room in their output buffers, and read and write queues in DRAM.`,
		Example: `  perfsim netlist mobilenet_v2.yaml
  perfsim netlist --pictures --grid 10x12 netlist.yaml
  perfsim netlist --soc grayskull_120_arch.yaml --svg epochs.svg netlist.yaml
  perfsim netlist --simulate --inputs 16 -o traces netlist.yaml
  perfsim netlist --json netlist.yaml | jq .mean_utilization`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if grid != "" && soc != "" {
				return usagef("--grid and --soc both give the grid")
			}
			if !sim.on && (sim.dir != "" || sim.inputs != 0 || len(sim.epochs) > 0) {
				return usagef("--inputs, --epoch and -o go with --simulate: add --simulate")
			}
			if sim.jobs < 1 {
				return usagef("--jobs %d is not at least 1", sim.jobs)
			}
			if sim.inputs < 0 {
				return usagef("--inputs %d is negative", sim.inputs)
			}
			if svg == "-" && asJSON {
				return usagef("--json and --svg - both want standard output")
			}
			g, err := floorplan.Grid{}, error(nil)
			switch {
			case grid != "":
				if g, err = floorplan.ParseGrid(grid); err != nil {
					return usageError{err}
				}
			case soc != "":
				s, err := netlist.ReadSoCFile(soc)
				if err != nil {
					return err
				}
				g = floorplan.GridOf(s, soc)
			}
			var n *netlist.Netlist
			if args[0] == "-" {
				if n, err = netlist.Read(c.InOrStdin()); err != nil {
					return fmt.Errorf("standard input: %w", err)
				}
				n.Name = "standard input"
			} else if n, err = netlist.ReadFile(args[0]); err != nil {
				return notA(c.Context(), "netlist", args[0], err)
			}
			if g.Cores() == 0 {
				if g, err = floorplan.GridFor(n); err != nil {
					return fmt.Errorf("%s: %w (--grid or --soc)", n.Name, err)
				}
			}
			r := floorplan.Analyze(n, g)
			if err := sim.check(r); err != nil {
				return err
			}
			if svg != "" {
				if err := save(svg, c.OutOrStdout(), func(w io.Writer) error { _, err := w.Write(r.SVG(limit)); return err }); err != nil {
					return err
				}
			}
			var epochs []epochInfo
			if sim.on {
				if epochs, err = sim.simulate(c.Context(), n, r); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				rep := newNetlistReport(r)
				rep.Simulated = epochs
				err = writeJSON(c.OutOrStdout(), rep)
			case svg != "-":
				out := &wrapper{w: c.OutOrStdout()}
				if err = printNetlist(out, r, pictures, all); err == nil && sim.on {
					err = printEpochs(out, epochs, sim.change)
				}
			}
			if err == nil && strict && len(r.Problems) > 0 {
				err = fmt.Errorf("%s: %s (--strict)", n.Name, count(len(r.Problems), "problem"))
			}
			return err
		},
	}
	fl := c.Flags()
	fl.StringVar(&grid, "grid", "", "ROWSxCOLS in place of the architecture's grid")
	fl.StringVar(&soc, "soc", "", "SoC descriptor (YAML) that gives the grid")
	fl.BoolVar(&pictures, "pictures", false, "print the grid of every epoch with its operators")
	fl.BoolVar(&all, "all", false, "print every epoch and chip; default: the first 100")
	fl.StringVar(&svg, "svg", "", "draw the epochs into this file")
	fl.IntVar(&limit, "svg-limit", 256, "how many grids to draw")
	fl.BoolVar(&sim.on, "simulate", false, "run samples through the epochs")
	fl.IntVar(&sim.inputs, "inputs", 0, "samples to run; default: the graph's input_count, at most 64")
	fl.IntSliceVar(&sim.epochs, "epoch", nil, "only these epochs; with --simulate")
	fl.StringVarP(&sim.dir, "output", "o", "", "folder for a trace of each simulated epoch")
	fl.StringVar(&sim.mach, "machine", "", "machine of --simulate by name or description file; default: the netlist's architecture")
	fl.IntVarP(&sim.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "goroutines that work; results do not depend on it")
	fl.BoolVar(&strict, "strict", false, "exit with status 1 where the netlist has problems")
	fl.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// netlistReport is the output of `netlist --json`.
type netlistReport struct {
	File        string      `json:"file"`
	Arch        []string    `json:"arch"`
	Grid        netlistGrid `json:"grid"`      // grid of the device
	EpochsBy    string      `json:"epochs_by"` // name or execution order
	Devices     int         `json:"devices"`
	Graphs      int         `json:"graphs"` // graphs of the netlist
	Ops         int         `json:"ops"`
	Cores       int         `json:"cores"`    // cores of all operators
	Capacity    int         `json:"capacity"` // cores of all epochs together
	Utilization float64     `json:"mean_utilization"`
	// mean over the epochs of cores in use over those of all chips
	WithIdle  float64        `json:"mean_utilization_idle_chips_included"`
	Epochs    []netlistEpoch `json:"epochs"`
	Types     []netlistType  `json:"ops_by_type"`         // operators by type
	Channels  []netlistChan  `json:"dram_channels"`       // device memory by channel
	HostBytes int64          `json:"host_queue_bytes"`    // bytes of queues on the host
	Problems  []netlistIssue `json:"problems"`            // what a compiler would refuse
	Simulated []epochInfo    `json:"simulated,omitempty"` // epochs in time
}

type netlistGrid struct {
	Rows   int    `json:"rows"`
	Cols   int    `json:"columns"`
	Source string `json:"source"` // where the grid is from
}

type netlistEpoch struct {
	Index       int           `json:"epoch"` // number of the epoch
	Cores       int           `json:"cores"` // cores in use
	Utilization float64       `json:"utilization"`
	IdleChips   int           `json:"idle_chips"` // chips without an operator
	Chips       []netlistChip `json:"chips"`      // figures by chip
}

type netlistChip struct {
	Device      int         `json:"device"`
	Graphs      []string    `json:"graphs"`
	Cores       int         `json:"cores"`          // cores of its operators
	Used        int         `json:"distinct_cores"` // cores in use, each once
	Utilization float64     `json:"utilization"`
	OutOfGrid   int         `json:"ops_out_of_grid"`     // operators outside the grid
	Overlap     int         `json:"cores_claimed_twice"` // cores that two operators claim
	Ops         []netlistOp `json:"ops"`
}

type netlistOp struct {
	Name      string   `json:"name"` // name of the operator
	Type      string   `json:"type"`
	Row       int      `json:"row"`
	Col       int      `json:"column"` // first column of its cores
	Rows      int      `json:"rows"`
	Cols      int      `json:"columns"`
	OutOfGrid bool     `json:"out_of_grid,omitempty"` // whether it lies outside the grid
	Overlaps  []string `json:"overlaps,omitempty"`
}

type netlistType struct {
	Type  string `json:"type"`
	Ops   int    `json:"ops"`
	Cores int    `json:"cores"` // cores of operators of the type
}

type netlistChan struct {
	Device   int   `json:"device"`
	Channel  int   `json:"channel"` // channel of device memory
	Buffers  int   `json:"buffers"` // buffers in the channel
	Bytes    int64 `json:"bytes"`   // bytes of these buffers
	Overlaps int   `json:"overlaps"`
}

type netlistIssue struct {
	Line int    `json:"line"`
	Col  int    `json:"column"`
	Text string `json:"text"`
}

func newNetlistReport(r *floorplan.Report) *netlistReport {
	n := &netlistReport{File: r.Name, Arch: r.Arch, Grid: netlistGrid{r.Grid.Rows, r.Grid.Cols, r.Grid.Source}, EpochsBy: "execution order", Devices: r.Devices,
		Graphs: r.Graphs, Ops: r.Ops, Cores: r.Cores, Capacity: r.Capacity, Utilization: r.Mean, WithIdle: r.MeanAll, HostBytes: r.Host,
		Epochs: []netlistEpoch{}, Types: []netlistType{}, Channels: []netlistChan{}, Problems: []netlistIssue{}}
	if r.Named {
		n.EpochsBy = "name"
	}
	for i := range r.Epochs {
		e := &r.Epochs[i]
		x := netlistEpoch{Index: e.Index, Cores: e.Cores, Utilization: e.Share(), IdleChips: e.Empty, Chips: []netlistChip{}}
		for j := range e.Chips {
			c := &e.Chips[j]
			y := netlistChip{Device: c.Device, Graphs: c.Graphs, Cores: c.Cores, Used: c.Used, Utilization: c.Share(), OutOfGrid: c.OutOfGrid, Overlap: c.Overlap, Ops: []netlistOp{}}
			for k := range c.Ops {
				p := &c.Ops[k]
				y.Ops = append(y.Ops, netlistOp{p.Op.Name, p.Op.Type, p.Row, p.Col, p.Rows, p.Cols, p.OutOfGrid, p.Overlaps})
			}
			x.Chips = append(x.Chips, y)
		}
		n.Epochs = append(n.Epochs, x)
	}
	for _, t := range r.Types {
		n.Types = append(n.Types, netlistType(t))
	}
	for _, c := range r.Channels {
		n.Channels = append(n.Channels, netlistChan(c))
	}
	for _, p := range r.Problems {
		n.Problems = append(n.Problems, netlistIssue{p.Line, p.Col, p.Text})
	}
	return n
}

func printNetlist(out io.Writer, r *floorplan.Report, pictures, all bool) error {
	sayf(out, "%s: %s, %s of %dx%d cores (%s)\n", r.Name, orText(strings.Join(r.Arch, ", "), "unknown architecture"), count(r.Devices, "chip"), r.Grid.Rows, r.Grid.Cols, r.Grid.Source)
	order := "execution order"
	if r.Named {
		order = "the names of graphs"
	}
	sayf(out, "%s, %s, epochs by %s\n", count(r.Graphs, "graph"), count(r.Ops, "op"), order)
	if len(r.Problems) > 0 {
		sayf(out, "\nProblems\n")
		for i, p := range r.Problems {
			if i == 20 && !all {
				sayf(out, "  and %d more (--all)\n", len(r.Problems)-i)
				break
			}
			sayf(out, "  line %d:%d: %s\n", p.Line, p.Col, printable(p.Text))
		}
	}
	sayf(out, "\nCores used\n")
	tw := newTable(out)
	shown := 0
	multi := r.Devices > 1
	for i := range r.Epochs {
		e := &r.Epochs[i]
		if shown >= 100 && !all {
			sayf(tw, "  ... %d more epochs (--all)\n", len(r.Epochs)-i)
			break
		}
		shown++
		note := ""
		if multi {
			note = fmt.Sprintf("%s at work, %d idle", count(len(e.Chips), "chip"), e.Empty)
		}
		sayf(tw, "  epoch %d\t%d of %d\t%.1f %%\t%s\t%s\n", e.Index, e.Cores, e.Capacity(), 100*e.Share(), bar(e.Share()), note)
		if !multi {
			continue
		}
		for j := range e.Chips {
			c := &e.Chips[j]
			if shown >= 100 && !all {
				break
			}
			shown++
			sayf(tw, "    chip %d\t%d of %d\t%.1f %%\t%s\t%s\n", c.Device, c.Cores, c.Capacity, 100*c.Share(), bar(c.Share()), printable(strings.Join(c.Graphs, " ")))
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	sayf(out, "  mean utilization %.1f %% (%d of %d cores)", 100*r.Mean, r.Cores, r.Capacity)
	if r.MeanAll != r.Mean {
		sayf(out, ", with idle chips %.1f %%", 100*r.MeanAll)
	}
	fmt.Fprintln(out)
	if pictures {
		n := 0
		for i := range r.Epochs {
			for j := range r.Epochs[i].Chips {
				if n++; n > 64 && !all {
					break
				}
				c := &r.Epochs[i].Chips[j]
				sayf(out, "\nEpoch %d chip %d\n%s", r.Epochs[i].Index, c.Device, c.Text(r.Grid))
			}
		}
	}
	sayf(out, "\nOperators by type\n")
	tw = newTable(out)
	for _, t := range r.Types {
		sayf(tw, "  %s\t%s\t%s\n", printable(t.Type), count(t.Ops, "op"), count(t.Cores, "core"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	sayf(out, "\nQueues: %d, %s on the host\n", r.Queues, humanize.IBytes(uint64(r.Host)))
	if r.Unsized > 0 {
		sayf(out, "  %d of an unknown data format, not counted\n", r.Unsized)
	}
	tw = newTable(out)
	for i, c := range r.Channels {
		if i == 64 && !all {
			sayf(tw, "  ... %d more channels (--all)\n", len(r.Channels)-i)
			break
		}
		sayf(tw, "  chip %d DRAM channel %d\t%s\t%s\n", c.Device, c.Channel, count(c.Buffers, "buffer"), humanize.IBytes(uint64(c.Bytes)))
	}
	return tw.Flush()
}
