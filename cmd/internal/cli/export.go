package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/csvtable"
	"perfsim/io/fileset"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/io/parquetout"
	"perfsim/io/traces/catapult"
	"perfsim/io/traces/folded"
	"perfsim/io/traces/perfetto"
	"perfsim/io/traces/speedscope"
	"perfsim/systems/explain"
	"perfsim/systems/tracklayout"
)

// exportFormat is a format of export, with the ending that names it.
type exportFormat struct {
	name, suffix, title string
	// write writes the timeline as one file and notes what is in it; nil where
	// the format is one of tables.
	write func(ctx context.Context, w io.Writer, t *components.Timeline, o *exportFlags, told func(int64), f *exportedFile) error
}

// exportFormats lists the formats; another ending of a format has no title. Of
// two endings that fit, the longer comes later.
func exportFormats() []exportFormat {
	return []exportFormat{
		{"perfetto", ".pftrace", "Perfetto protobuf trace (ui.perfetto.dev)", writePerfetto},
		{"perfetto", ".perfetto-trace", "", writePerfetto},
		{"chrome", ".json", "Chrome trace, in µs with three decimals", writeChrome},
		{"speedscope", ".speedscope.json", "a profile per lane, a frame per opcode", writeSpeedscope},
		{"folded", ".folded", "stacks for flame graphs, weights in ns", writeFolded},
		{"parquet", ".parquet", "one table, or a folder of tables", nil},
		{"csv", ".csv", "the same tables as CSV", nil},
	}
}

// exportNames lists the names of the formats and the endings.
func exportNames() (names, endings []string) {
	for _, f := range exportFormats() {
		if f.title != "" {
			names, endings = append(names, f.name), append(endings, f.suffix)
		}
	}
	return names, endings
}

func writePerfetto(ctx context.Context, w io.Writer, t *components.Timeline, o *exportFlags, told func(int64), f *exportedFile) error {
	s, err := perfetto.Write(ctx, w, t, perfetto.Options{NoFlows: o.noFlows, Progress: told})
	f.Slices, f.Flows, f.Unshown, f.Counters = s.Slices, s.Flows, s.Unordered, s.Counters
	return err
}

func writeChrome(ctx context.Context, w io.Writer, t *components.Timeline, o *exportFlags, told func(int64), f *exportedFile) error {
	about := [][2]string{{"tool", "perfsim"}, {"tool_version", version}, {"module", t.World.Module.Name}, {"model", t.World.Config.Model.String()}}
	if t.World.Replayed() {
		about = append(about, [2]string{"clock", "replayed"})
	} else {
		about = append(about, [2]string{"machine", t.World.Machine.Name}, [2]string{"clock", "simulated"})
	}
	s, err := catapult.WriteObject(ctx, w, t, catapult.ObjectOptions{NoFlows: o.noFlows, About: about, Progress: told})
	f.Slices, f.Flows, f.Unshown, f.Counters = s.Slices, s.Flows, s.Unshown, s.Counters
	return err
}

func writeSpeedscope(ctx context.Context, w io.Writer, t *components.Timeline, _ *exportFlags, told func(int64), f *exportedFile) (err error) {
	f.Slices, err = speedscope.Write(ctx, w, t, "perfsim "+version, told)
	return err
}

func writeFolded(ctx context.Context, w io.Writer, t *components.Timeline, _ *exportFlags, _ func(int64), _ *exportedFile) error {
	return folded.Write(ctx, w, t)
}

func newExportCommand() *cobra.Command {
	var in inputFlags
	var o exportFlags
	var b strings.Builder
	for _, f := range exportFormats() {
		if f.title != "" {
			sayf(&b, "\n  %-10s %-17s %s", f.name, f.suffix, f.title)
		}
	}
	c := &cobra.Command{
		Use:   "export [flags] INPUT OUTPUT",
		Short: "Predict and write the timeline for viewers and databases",
		Long: `export predicts INPUT and writes its timeline: events with what held them,
dependencies, counters (engines busy, memory in use, bytes moved) and figures.
The ending of OUTPUT names the format, a further .gz or .zst compresses:
` + b.String() + `

A name without an ending, or one that ends in /, is a folder: it gets every
table as a Parquet file (with --to csv as CSV). A .parquet or .csv file gets
one table, the slices, or the one that --table names. --names neuron writes
the tables under the names of the Neuron profiler's files.`,
		Example: `  perfsim export module.bir.json module.pftrace
  perfsim export profile.json.gz tables/
  perfsim export --table dependency profile.json.gz deps.parquet
  perfsim export --measured --run-b profile.json.gz both.pftrace
  perfsim export module.bir.json trace.json.gz`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if err := o.choose(args[1]); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			ctx := c.Context()
			res, err := in.predict(ctx, c, args[0], p)
			if err != nil {
				return err
			}
			block, err := explain.FindBlock(res.World.Module, o.block)
			if err != nil {
				return err
			}
			p.start("attribution", -1, false)
			t, err := res.Timeline(ctx, tracklayout.Options{Block: block, RunB: o.runB, Measured: o.measured, Why: true, Counters: o.counters()})
			if err != nil {
				return err
			}
			written, err := o.write(ctx, c.OutOrStdout(), args[1], t, in.jobs, p)
			p.close()
			if err != nil || args[1] == "-" {
				return err
			}
			if o.json {
				return writeJSON(c.OutOrStdout(), struct {
					Input  string         `json:"input"`
					Format string         `json:"format"`
					Files  []exportedFile `json:"files"` // files that were written
				}{args[0], o.format, written})
			}
			for _, f := range written {
				if _, err := sayf(c.OutOrStdout(), "%s: %s%s\n", f.Path, humanize.IBytes(uint64(f.Bytes)), f.note()); err != nil {
					return err
				}
			}
			return nil
		},
	}
	in.add(c)
	fl := c.Flags()
	names, _ := exportNames()
	fl.StringVar(&o.to, "to", "", "format instead of going by the ending: "+strings.Join(names, ", "))
	fl.StringVar(&o.table, "table", "", "table of a .parquet or .csv file: slice, dependency, track, counter, metric, warning, schema_fields")
	fl.StringVar(&o.names, "names", parquetout.Perfetto, "names of Parquet tables and columns: perfetto or neuron")
	fl.StringVar(&o.block, "block", "", "only one top-level block, as BLOCK or FUNCTION/BLOCK")
	fl.BoolVar(&o.runB, "run-b", false, "the run without anti-dependencies beside the other, as a process of its own")
	fl.BoolVar(&o.measured, "measured", false, "the measured times beside the predicted ones")
	fl.BoolVar(&o.spreadsheet, "spreadsheet", false, "CSV: begin texts that a spreadsheet would run as a formula with an apostrophe")
	fl.BoolVar(&o.noFlows, "no-flows", false, "leave the dependency arrows of trace files out")
	fl.BoolVar(&o.json, "json", false, "print one JSON object about what was written")
	return c
}

type exportFlags struct {
	to, table, names, block                    string
	runB, measured, noFlows, json, spreadsheet bool
	format                                     string
	folder                                     bool
}

// exportedFile is one file that was written.
type exportedFile struct {
	Path   string `json:"path"`
	Table  string `json:"table,omitempty"`  // table that the file holds
	Bytes  int64  `json:"bytes"`            // bytes of the file
	Slices int64  `json:"slices,omitempty"` // slices of a trace
	Flows  int64  `json:"flows,omitempty"`  // arrows of a trace
	// Unshown counts the dependencies that the format has no arrow for.
	Unshown  int64 `json:"flows_not_shown,omitempty"`
	Counters int64 `json:"counter_values,omitempty"` // values of the counters of a trace
}

func (f exportedFile) note() string {
	if f.Slices == 0 {
		return ""
	}
	s := fmt.Sprintf(", %s events", comma(uint64(f.Slices)))
	if f.Flows > 0 || f.Unshown > 0 {
		s += fmt.Sprintf(", %s dependencies", comma(uint64(f.Flows)))
	}
	if f.Unshown > 0 {
		s += fmt.Sprintf(" (%s more cannot be drawn)", comma(uint64(f.Unshown)))
	}
	return s
}

// choose finds the format and what OUTPUT is.
func (o *exportFlags) choose(output string) error {
	base := strings.TrimSuffix(strings.TrimSuffix(output, ".gz"), ".zst")
	o.format = o.to
	for _, f := range exportFormats() {
		if o.to == "" && strings.HasSuffix(base, f.suffix) {
			o.format = f.name
		}
	}
	if st, err := os.Stat(output); err == nil && st.IsDir() || strings.HasSuffix(output, "/") {
		o.folder = true
	}
	if (o.format == "" || o.format == "parquet" || o.format == "csv") && output != "-" && filepath.Ext(base) == "" {
		o.folder = true
	}
	if o.folder && o.format == "" {
		o.format = "parquet"
	}
	names, endings := exportNames()
	switch {
	case o.format == "":
		return usagef("%s: the ending names no format (%s, or a folder); --to names one", output, strings.Join(endings, ", "))
	case !slices.Contains(names, o.format):
		last := len(names) - 1
		return usagef("--to %q is not %s or %s", o.format, strings.Join(names[:last], ", "), names[last])
	case o.one() != nil && o.folder:
		return usagef("%s is a folder; %s writes one file", output, o.format)
	case o.one() != nil && o.table != "":
		return usagef("--table is for .parquet and .csv files")
	}
	if o.spreadsheet && o.format != "csv" {
		return usagef("--spreadsheet is for CSV")
	}
	if o.names != parquetout.Perfetto && o.names != parquetout.Neuron {
		return usagef("--names %q is not perfetto or neuron", o.names)
	}
	if o.names == parquetout.Neuron && o.format != "parquet" {
		return usagef("--names neuron is for Parquet")
	}
	if o.folder && o.table != "" {
		return usagef("%s is a folder, which gets every table; --table is for a file", output)
	}
	if o.table == "" && !o.folder {
		o.table = "slice"
		if o.names == parquetout.Neuron {
			o.table = "Instruction"
		}
	}
	return nil
}

// counters reports whether what is written may have counters: traces, and every
// table but those of events and dependencies.
func (o *exportFlags) counters() bool {
	switch o.format {
	case "speedscope", "folded":
		return false
	}
	return !slices.Contains([]string{"slice", "dependency", "Instruction", "Flow"}, o.table)
}

// one returns the format where it is one of a single file, nil where it is one
// of tables.
func (o *exportFlags) one() *exportFormat {
	for _, f := range exportFormats() {
		if f.name == o.format && f.write != nil {
			return &f
		}
	}
	return nil
}

// table is one table in whichever format.
type table struct {
	name  string
	write func(ctx context.Context, w io.Writer) error
}

func (o *exportFlags) tables(t *components.Timeline) ([]table, error) {
	var out []table
	if o.format == "csv" {
		for _, f := range csvtable.Files(t, o.spreadsheet) {
			out = append(out, table{f.Table, f.Write})
		}
		return out, nil
	}
	files, err := parquetout.Files(t, o.names, version)
	for _, f := range files {
		out = append(out, table{f.Table, f.Write})
	}
	return out, err
}

func (o *exportFlags) write(ctx context.Context, stdout io.Writer, path string, t *components.Timeline, jobs int, p *progress) ([]exportedFile, error) {
	told := func(n int64) { p.set(n) }
	p.start("writing", int64(t.World.Module.Instr.Len()*len(t.Processes)), false)
	one := exportedFile{Path: path}
	file := func(path string, write func(ctx context.Context, w io.Writer) error) (int64, error) {
		e := format.Exporter{Module: func(ctx context.Context, w io.Writer, _ *components.Module, _ format.Options) error {
			return write(ctx, w)
		}}
		return formats.Export(ctx, path, stdout, e, t.World.Module, format.Options{Jobs: jobs})
	}
	if f := o.one(); f != nil {
		var err error
		one.Bytes, err = file(path, func(ctx context.Context, w io.Writer) error { return f.write(ctx, w, t, o, told, &one) })
		return []exportedFile{one}, err
	}
	tables, err := o.tables(t)
	if err != nil {
		return nil, err
	}
	if !o.folder {
		var known []string
		for _, x := range tables {
			if x.name == o.table {
				one.Table = x.name
				one.Bytes, err = file(path, x.write)
				return []exportedFile{one}, err
			}
			known = append(known, x.name)
		}
		return nil, usagef("no table is called %q (%s)", o.table, strings.Join(known, ", "))
	}
	set, err := fileset.Open(path)
	if err != nil {
		return nil, err
	}
	defer set.Abort()
	var out []exportedFile
	var names []string
	for _, x := range tables {
		name := x.name + "." + o.format
		f := exportedFile{Path: filepath.Join(path, name), Table: x.name}
		if f.Bytes, err = file(filepath.Join(set.Staging(), name), x.write); err != nil {
			return nil, set.Name(err)
		}
		out, names = append(out, f), append(names, name)
	}
	return out, set.Commit(names)
}
