package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/components/zonelog"
	"perfsim/io/fileset"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/io/tenstorrent/profilelog"
	"perfsim/systems/devicelog"
)

// profileFlags are the flags of `perfsim profile`.
type profileFlags struct {
	by       []string
	top      int
	slowest  int
	gaps     int
	zone     string
	unit     string
	setup    string
	freq     float64
	sources  []string
	compare  bool
	alpha    float64
	drawMap  bool
	asJSON   bool
	strict   bool
	jobs     int
	quiet    bool
	svg      string
	stats    string
	zones    string
	trace    string
	report   string
	vendor   string
	ops      string
	chip     string
	swapped  bool
	analyses bool
}

func newProfileCommand() *cobra.Command {
	var f profileFlags
	c := &cobra.Command{
		Use:   "profile [flags] LOG...",
		Short: "Analyse device profiler logs: zones, cores, launches, idle time",
		Long: `profile reads profile_log_device.csv of Tenstorrent devices, every version from
V0 (2023) to V12, plain or compressed, and prints what happened where: zones by
processor, launches and the idle time between them, the vendor's analyses with
their results, the slowest zones, and every trouble in the log with its line.
An ops table (ops_perf_results*.csv) or C++ report is recognised: what every
operator takes, the gap before it, its share of the peaks of DRAM and matrix
engines, what bounds it, advice, and totals by op code and signpost. --ops joins
a table with the launches of a log. Of a NoC trace (noc_trace_dev*.json) it
prints transfers, barriers, and what every link carried.
With --compare, two logs are compared zone by zone, with significance.`,
		Example: `  perfsim profile generated/profiler/.logs/profile_log_device.csv
  perfsim profile --by zone,core --top 0 --stats cores.csv log.csv.gz
  perfsim profile ops_perf_results.csv
  perfsim profile noc_trace_dev0_Matmul_ID1024.json
  perfsim profile --ops ops_perf_results.csv profile_log_device.csv
  perfsim profile --map --svg busy.svg --trace log.trace.json log.csv
  perfsim profile --report cpp_device_perf_report.csv log.csv
  perfsim profile --vendor-output output/device log.csv
  perfsim profile --compare before.csv after.csv
  perfsim profile --json log.csv | jq '.devices[].idle.ns'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(args); err != nil {
				return err
			}
			// The columns of a log hold no pointers, so collecting often
			// costs little and halves what the process takes at its peak.
			defer debug.SetGCPercent(debug.SetGCPercent(collectAt(args)))
			return f.run(c, args)
		},
	}
	fl := c.Flags()
	fl.StringSliceVar(&f.by, "by", []string{"zone", "risc"}, "group zones by zone, risc, core, device, run")
	fl.IntVar(&f.top, "top", 20, "rows of the zone table, 0 for all")
	fl.IntVar(&f.slowest, "slowest", 5, "how many of the slowest zones to list")
	fl.StringVar(&f.zone, "zone", "", "only this zone among the slowest")
	fl.IntVar(&f.gaps, "gaps", 3, "how many of the largest gaps between launches to list, for each device")
	fl.StringVar(&f.unit, "unit", "cycles", "cycles or ns, for the zone table")
	fl.BoolVar(&f.analyses, "analyses", true, "print the vendor's analyses")
	fl.StringVar(&f.setup, "setup", "auto", "analyses of which time: auto (by log version), "+strings.Join(devicelog.SetupNames(), ", "))
	fl.Float64Var(&f.freq, "freq", 0, "clock in MHz in place of the log's")
	fl.StringSliceVar(&f.sources, "sources", nil, "zone_src_locations.log, for zones without a name")
	fl.BoolVar(&f.swapped, "as-written", false, "do not undo exchanged time and stat columns")
	fl.BoolVar(&f.compare, "compare", false, "compare the second log with the first")
	fl.Float64Var(&f.alpha, "alpha", 0.05, "level of significance for --compare, corrected for the number of zones")
	fl.BoolVar(&f.drawMap, "map", false, "print the core grid with the busy share of each core")
	fl.StringVar(&f.svg, "svg", "", "draw the core grid into this file (one a device: -1, -2, ... are added)")
	fl.StringVar(&f.stats, "stats", "", "write the zone table, all rows, as CSV, or Parquet where the name ends in .parquet")
	fl.StringVar(&f.zones, "zones", "", "write every zone as CSV, or Parquet where the name ends in .parquet")
	fl.StringVar(&f.trace, "trace", "", "write a trace for chrome://tracing and Perfetto (.json or .json.gz)")
	fl.StringVar(&f.report, "report", "", "write the vendor's C++ report, exact gaps beside its rounded ones")
	fl.StringVar(&f.vendor, "vendor-output", "", "write device_analysis_data.json and device_stats.txt into this folder, as the vendor's script does")
	fl.StringVar(&f.ops, "ops", "", "ops_perf_results*.csv of the same run: its operators are joined with the launches of the log")
	fl.StringVar(&f.chip, "chip", "", "chip by whose peaks operators are judged, in place of the table's: "+strings.Join(devicelog.ChipNames(), ", "))
	fl.BoolVar(&f.strict, "strict", false, "exit with status 1 where the log has trouble")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "parsers at work, 0 for one a processor; results do not depend on it")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on the terminal")
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	c.AddCommand(newProfileDecode(), newProfileGen(), newProfileID())
	return c
}

// collectAt returns by how many per cent the heap may grow beyond what logs
// hold before garbage is collected: by 20, or about 6 MB where that is less. A
// log holds about a sixth of its text.
func collectAt(paths []string) int {
	const room = 6 << 20
	size := int64(0)
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil {
			size += st.Size()
		}
	}
	return int(min(20, max(2, 100*room/max(size/6, 1))))
}

func (f *profileFlags) check(args []string) error {
	if _, err := devicelog.ParseBy(f.by); err != nil {
		return usagef("--by: %v", err)
	}
	if f.setup != "auto" {
		if _, ok := devicelog.SetupByName(f.setup); !ok {
			return usagef("--setup %q is not auto, %s", f.setup, strings.Join(devicelog.SetupNames(), ", "))
		}
	}
	stdout := 0
	for _, o := range []string{f.svg, f.stats, f.zones, f.trace, f.report} {
		if o == "-" {
			stdout++
		}
	}
	switch {
	case f.unit != "cycles" && f.unit != "ns":
		return usagef("--unit %q is not cycles or ns", f.unit)
	case f.top < 0 || f.slowest < 0 || f.gaps < 0 || f.jobs < 0:
		return usagef("--top, --slowest, --gaps and --jobs are not negative")
	case f.freq < 0:
		return usagef("--freq %g is not a clock", f.freq)
	case !(f.alpha > 0 && f.alpha < 1):
		return usagef("--alpha %g is not between 0 and 1", f.alpha)
	case f.chip != "" && !slices.Contains(devicelog.ChipNames(), f.chip):
		return usagef("--chip %q is none of %s", f.chip, strings.Join(devicelog.ChipNames(), ", "))
	case f.ops != "" && (len(args) != 1 || f.compare):
		return usagef("--ops is of one log")
	case f.compare && len(args) != 2:
		return usagef("--compare wants two logs, not %d", len(args))
	case stdout > 1 || stdout == 1 && f.asJSON:
		return usagef("only one output can be standard output")
	case f.compare && (f.svg != "" || f.stats != "" || f.zones != "" || f.trace != "" || f.report != "" || f.vendor != "" || f.drawMap):
		return usagef("--compare prints a table or, with --json, JSON; --map and files are of one log")
	case len(args) > 1 && !f.compare && (f.svg != "" || f.stats != "" || f.zones != "" || f.trace != "" || f.report != "" || f.vendor != ""):
		return usagef("files are written for one log at a time")
	}
	return nil
}

// headOf returns the first bytes of a file, unwrapped, nil where it cannot be
// read: the reader of the whole file says why.
func headOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	r, _, done, err := profilelog.Unwrap(f)
	if err != nil {
		return nil
	}
	defer done()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(r, head)
	return head[:n]
}

// isOpsTable looks at the first line of a file.
func isOpsTable(path string) bool {
	line, _, _ := strings.Cut(string(headOf(path)), "\n")
	return strings.Contains(line, "OP CODE") || strings.Contains(line, "OP_CODE") || strings.Contains(line, "OP NAME,")
}

func (f *profileFlags) load(c *cobra.Command, path string, p *progress) (*zonelog.DeviceLog, error) {
	opt := profilelog.Options{Workers: f.jobs, FreqMHz: f.freq, KeepSwapped: f.swapped}
	if len(f.sources) > 0 {
		src, err := readSources(f.sources)
		if err != nil {
			return nil, err
		}
		opt.Sources = src
	}
	if path == "-" {
		opt.Name = "standard input"
		return profilelog.Read(c.Context(), c.InOrStdin(), opt)
	}
	if err := notALog(c.Context(), path); err != nil {
		return nil, err
	}
	if st, err := os.Stat(path); err == nil {
		p.start("reading "+filepath.Base(path), st.Size(), true)
		opt.Progress = p.set
	}
	defer p.finish()
	return profilelog.ReadFile(c.Context(), path, opt)
}

// notALog fails for a file that another command or tool reads, with its name.
func notALog(ctx context.Context, path string) error {
	src, err := format.Open(ctx, path, nil)
	if err != nil {
		return nil // the reader reports it
	}
	defer src.Close()
	if f, err := formats.Find(src, ""); err == nil && f.Name == profilelog.Importer.Name {
		return nil
	}
	return advised(path, "no device profiler log", src)
}

// notA adds to err, with which a reader refused the file at path as none of
// its kind, the name of the command or tool that reads it.
func notA(ctx context.Context, kind, path string, err error) error {
	if s, failed := os.Stat(path); err == nil || failed != nil || !s.Mode().IsRegular() {
		return err // a pipe is not read twice
	}
	src, opened := format.Open(ctx, path, nil)
	if opened != nil {
		return err
	}
	defer src.Close()
	if better := advised(path, "no "+kind, src); better != nil {
		return better
	}
	return err
}

// advised is an error that names what reads src; nil where nothing is known,
// and for a damaged file of the kind that was asked for.
func advised(path, not string, src *format.Source) error {
	advice := formats.Advice(src)
	if what, _, _ := strings.Cut(advice, ":"); advice != "" && !strings.Contains(what, strings.TrimPrefix(not, "no ")) {
		return fmt.Errorf("%s: %s but %s", path, not, advice)
	}
	return nil
}

// readSources joins source logs.
func readSources(paths []string) (*profilelog.Sources, error) {
	var readers []io.Reader
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		readers = append(readers, f, strings.NewReader("\n"))
	}
	return profilelog.ReadSources(io.MultiReader(readers...))
}

func (f *profileFlags) run(c *cobra.Command, args []string) error {
	p := newProgress(c.ErrOrStderr(), f.quiet)
	defer p.close()
	if f.compare {
		return f.runCompare(c, args, p)
	}
	out := io.Writer(&wrapper{w: c.OutOrStdout()})
	if f.asJSON {
		out = c.OutOrStdout()
	}
	a := analysing{f: f, out: out, progress: p}
	for _, path := range args {
		var err error
		switch {
		case path != "-" && isOpsTable(path):
			err = a.opsTable(path)
		case path != "-" && isNoCTrace(path):
			err = a.nocTrace(path)
		default:
			err = a.log(c, path)
		}
		if err != nil {
			return err
		}
	}
	if f.asJSON {
		var v any = a.reports
		if len(a.reports) == 1 {
			v = a.reports[0]
		}
		if err := writeJSON(out, v); err != nil {
			return err
		}
	}
	if a.trouble && f.strict {
		return fmt.Errorf("the log has trouble (--strict)")
	}
	return nil
}

// analysing gathers the reports of the inputs, for --json, or prints each as it
// is made.
type analysing struct {
	f        *profileFlags
	out      io.Writer
	progress *progress
	reports  []any
	trouble  bool // whether a log has diagnostics
}

func (a *analysing) opsTable(path string) error {
	rep, err := opsReport(path, a.f.chip, nil)
	if err != nil {
		return err
	}
	return a.add(rep, func() error { return rep.print(a.out, a.f.top) })
}

func (a *analysing) nocTrace(path string) error {
	rep, err := nocReport(path, a.f.chip)
	if err != nil {
		return err
	}
	return a.add(rep, func() error { return printNoC(a.out, rep, a.f.top) })
}

// add keeps a report, and prints it unless all are printed as JSON.
func (a *analysing) add(rep any, print func() error) error {
	a.reports = append(a.reports, rep)
	if a.f.asJSON {
		return nil
	}
	a.progress.close()
	return print()
}

func (a *analysing) log(c *cobra.Command, path string) error {
	f := a.f
	l, err := f.load(c, path, a.progress)
	if err != nil {
		return err
	}
	by, err := devicelog.ParseBy(f.by)
	if err != nil {
		return err
	}
	a.progress.start("analysing", 0, false)
	pr, err := devicelog.New(c.Context(), path, l, devicelog.Options{By: by, Setup: f.setup, Slowest: f.slowest, Zone: f.zone, Gaps: f.gaps})
	if err != nil {
		return err
	}
	a.progress.close()
	if l.Rows() == 0 {
		return nothingIn(path, l)
	}
	first := len(a.reports) == 0
	a.trouble = a.trouble || len(pr.Diags) > 0
	a.reports = append(a.reports, pr)
	if err := f.files(c.Context(), pr, a.out); err != nil {
		return err
	}
	var ops *opsInfo
	if f.ops != "" {
		if ops, err = opsReport(f.ops, f.chip, pr); err != nil {
			return err
		}
		a.reports = append(a.reports, ops)
	}
	if f.asJSON || f.toStdout() {
		return nil
	}
	if !first {
		fmt.Fprintln(a.out)
	}
	if err := f.print(a.out, pr); err != nil || ops == nil {
		return err
	}
	fmt.Fprintln(a.out)
	return ops.print(a.out, f.top)
}

// nothingIn is the error of a log without rows: why there are none.
func nothingIn(path string, l *zonelog.DeviceLog) error {
	all := l.Diags.All()
	at := slices.IndexFunc(all, func(d zonelog.Diagnostic) bool {
		return d.Code == profilelog.DiagEmptyFile || d.Code == profilelog.DiagNoRows
	})
	if at < 0 {
		return fmt.Errorf("%s: there are no rows", path)
	}
	return fmt.Errorf("%s: %s: %s", path, all[at].Code, all[at].Detail)
}

func (f *profileFlags) toStdout() bool {
	for _, o := range []string{f.svg, f.stats, f.zones, f.trace, f.report} {
		if o == "-" {
			return true
		}
	}
	return false
}

func isParquet(path string) bool { return filepath.Ext(path) == ".parquet" }

// files writes what was asked for.
func (f *profileFlags) files(ctx context.Context, p *devicelog.Profile, stdout io.Writer) error {
	type output struct {
		path  string
		write func(io.Writer) error
	}
	l := p.Log
	commit := func() error { return nil }
	outs := []output{
		{f.stats, func(w io.Writer) error { return devicelog.WriteZoneStats(ctx, w, p.Stats, isParquet(f.stats)) }},
		{f.zones, func(w io.Writer) error { return devicelog.WriteZones(ctx, w, l, isParquet(f.zones)) }},
		{f.trace, func(w io.Writer) error { return devicelog.WriteTrace(ctx, w, l, p.Topo) }},
		{f.report, func(w io.Writer) error {
			return devicelog.WriteReport(w, devicelog.Report(l, p.Topo, p.Launches), true)
		}},
	}
	if f.svg != "" {
		for i := range p.Maps {
			path := f.svg
			if len(p.Maps) > 1 && path != "-" {
				ext := filepath.Ext(path)
				path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), i+1, ext)
			}
			m := &p.Maps[i]
			outs = append(outs, output{path, func(w io.Writer) error { _, err := w.Write(m.SVG(p.Topo)); return err }})
		}
	}
	if f.vendor != "" && len(l.Sessions) > 0 {
		setup := devicelog.SetupFor(l.Sessions[0].Version)
		if s, ok := devicelog.SetupByName(f.setup); ok {
			setup = s
		}
		set, err := fileset.Open(f.vendor)
		if err != nil {
			return err
		}
		defer set.Abort()
		v := devicelog.NewVendor(l, setup)
		stats, analysis := "device_stats.txt", "device_analysis_data.json"
		outs = append(outs, output{filepath.Join(set.Staging(), stats), v.WriteStats}, output{filepath.Join(set.Staging(), analysis), v.WriteJSON})
		commit = func() error { return set.Commit([]string{stats, analysis}) }
	}
	for _, o := range outs {
		if o.path == "" {
			continue
		}
		if err := save(o.path, stdout, o.write); err != nil {
			return err
		}
	}
	return commit()
}
