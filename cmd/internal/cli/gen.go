package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/bench/self/gen"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/io/psim"
)

func newGenCommand() *cobra.Command {
	var in inputFlags
	var to, mix string
	var asJSON bool
	opt := gen.Default(0)
	c := &cobra.Command{
		Use:   "gen -n COUNT [flags] OUTPUT",
		Short: "Make a synthetic module of any size",
		Long: `gen makes a module of COUNT instructions from a seed and writes it to OUTPUT, in
the format of OUTPUT's ending or of --to. The same flags give the same module
on every machine. Without further flags it looks like a compiled transformer
layer: about three near dependencies each, half of the work on the tensor
engine. It is for trying perfsim at a size, not a model of any program.

` + exporterList(),
		Example: `  perfsim gen -n 1M big.psim
  perfsim gen -n 200k --operands --loops 4 --nested module.bir.json
  perfsim gen -n 100M --fan-in 2 --far 0.1 far.psim`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if opt.Instructions == 0 {
				return usagef("-n COUNT is missing")
			}
			if args[0] == "-" && to == "" {
				return usagef("standard output has no ending: --to names the format")
			}
			if args[0] == "-" && asJSON {
				return usagef("--json and - both want standard output")
			}
			if in.jobs < 1 {
				return usagef("--jobs %d is not at least 1", in.jobs)
			}
			exp, err := formats.FindExporter(args[0], to)
			if err != nil {
				return usageError{err}
			}
			if mix != "" {
				if opt.Mix, err = parseMix(mix); err != nil {
					return usageError{err}
				}
			}
			opt.Jobs = in.jobs
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			began := time.Now()
			rep, err := generate(c, args[0], exp, opt, p)
			p.close()
			switch {
			case err != nil:
				return err
			case asJSON:
				rep.Seconds = time.Since(began).Seconds()
				return writeJSON(c.OutOrStdout(), rep)
			case args[0] == "-":
				return nil
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s, %s instructions, %s dependencies, %s\n", args[0], exp.Name, humanize.Comma(int64(rep.Instructions)),
				humanize.Comma(int64(rep.Edges)), humanize.IBytes(uint64(rep.Bytes)))
			return err
		},
	}
	fl := c.Flags()
	fl.VarP((*countValue)(&opt.Instructions), "instructions", "n", "instructions to make: 5000, 200k, 10M")
	fl.Uint64Var(&opt.Seed, "seed", opt.Seed, "another seed, another module")
	fl.Float64Var(&opt.FanIn, "fan-in", opt.FanIn, "mean number of dependencies of an instruction")
	fl.Float64Var(&opt.Locality, "locality", opt.Locality, "mean distance of a near producer, in instructions")
	fl.Float64Var(&opt.Far, "far", opt.Far, "share of dependencies on any instruction before")
	fl.Float64Var(&opt.Anti, "anti", opt.Anti, "share of anti-dependencies")
	fl.Float64Var(&opt.Output, "output-deps", opt.Output, "share of output dependencies")
	fl.Float64Var(&opt.Ordered, "ordered", opt.Ordered, "share of pure order dependencies")
	fl.StringVar(&mix, "mix", "", "weights of engines, such as pe=4,act=2,dve=2,pool=1,dma=2,cc=0.1")
	fl.Float64Var(&opt.PSUM, "psum", opt.PSUM, "share of Activation and DVE instructions that read a PSUM bank")
	fl.IntVar(&opt.Blocks, "blocks", opt.Blocks, "top-level blocks")
	fl.IntVar(&opt.Loops, "loops", opt.Loops, "loops in each block")
	fl.IntVar(&opt.Body, "body", opt.Body, "instructions of a loop's body")
	fl.Uint64Var(&opt.Trips, "trips", opt.Trips, "trip count of loops")
	fl.BoolVar(&opt.Nested, "nested", opt.Nested, "a loop inside every loop")
	fl.BoolVar(&opt.Operands, "operands", opt.Operands, "give instructions access patterns instead of drawn dependencies")
	fl.IntVar(&opt.Buffers, "buffers", opt.Buffers, "SBUF buffers that the access patterns use")
	fl.StringVar(&to, "to", "", "format of the output instead of going by its ending")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object about what was made")
	in.addWorking(c)
	return c
}

// generate makes a module and writes it. A snapshot without operands is written
// a window of rows at a time, whatever its size; other modules are made in
// memory.
func generate(c *cobra.Command, path string, exp format.Exporter, opt gen.Options, p *progress) (convertReport, error) {
	ctx := c.Context()
	rep := convertReport{From: "gen", Output: path, To: exp.Name, Instructions: opt.Instructions}
	windows := exp.Name == psim.Exporter.Name && !opt.Operands && formats.Regular(path)
	held := opt.Instructions
	if windows {
		held = min(held, gen.WindowRows)
	}
	// About 18 bytes of columns and 4 an edge, as much again while they grow.
	if err := format.Reserve(ctx, uint64(held)*uint64(40+8*opt.FanIn), "making "+humanize.Comma(int64(opt.Instructions))+" instructions"); err != nil {
		return rep, err
	}
	if windows {
		p.start("writing", int64(opt.Instructions), false)
		err := formats.SaveAt(path, func(w io.WriterAt) (err error) {
			var edges uint64
			rep.Bytes, edges, err = gen.Snapshot(ctx, w, opt, p.set)
			rep.Edges = int(edges)
			return err
		})
		return rep, err
	}
	m, err := gen.Module(ctx, opt)
	if err != nil {
		return rep, err
	}
	rep.Edges = m.Edges.Preds.Len()
	rep.Bytes, err = writeModule(ctx, path, c.OutOrStdout(), exp, m, opt.Jobs, p)
	return rep, err
}

// countValue is a flag for a number of things: digits, with k, M or G behind.
type countValue int

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Type() string   { return "COUNT" }

func (v *countValue) Set(s string) error {
	scale := 1.0
	digits := s
	switch {
	case strings.HasSuffix(s, "k"):
		scale, digits = 1e3, s[:len(s)-1]
	case strings.HasSuffix(s, "M"):
		scale, digits = 1e6, s[:len(s)-1]
	case strings.HasSuffix(s, "G"):
		scale, digits = 1e9, s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f*scale >= 1 && f*scale < 1<<30) {
		return fmt.Errorf("%q is not a count between 1 and 1073741823, such as 200k", s)
	}
	*v = countValue(f * scale)
	return nil
}

// parseMix reads weights such as pe=4,dma=1; engines not named have none.
func parseMix(s string) (gen.Mix, error) {
	var m gen.Mix
	of := map[string]*float64{"pe": &m.PE, "act": &m.Activation, "dve": &m.DVE, "pool": &m.Pool, "dma": &m.DMA, "cc": &m.Collective}
	for _, part := range strings.Split(s, ",") {
		name, text, _ := strings.Cut(part, "=")
		v, err := strconv.ParseFloat(text, 64)
		w, ok := of[name]
		if !ok || err != nil || !(v >= 0 && v < 1e9) {
			return m, fmt.Errorf("--mix %q: %q is not pe, act, dve, pool, dma or cc with a weight, such as pe=4", s, part)
		}
		*w = v
	}
	return m, nil
}
