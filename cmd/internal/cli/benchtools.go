package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/bench/modelrun"
	"perfsim/bench/models"
	"perfsim/bench/record"
	"perfsim/components"
	"perfsim/systems/lower"
)

func newBenchCompare() *cobra.Command {
	var asJSON bool
	var plot, metric string
	c := &cobra.Command{Use: "compare FILE…", Short: "Put records beside one another, measured and simulated", Args: cobra.MinimumNArgs(1),
		Long: `compare reads result files of the reference benchmark and of 'perfsim bench' and
prints their properties side by side, the ratios to the first, the geometric
mean over workloads that two devices share, and what makes columns not
comparable. Several records of one run in one file are repeats: median and
spread are named.`,
		Example: "  perfsim bench compare tt.json cuda.json\n  perfsim bench compare --plot rates.svg results/*.json",
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(record.Metrics(), metric) {
				return usagef("--metric %q is none of %s", metric, strings.Join(record.Metrics(), ", "))
			}
			var files []record.Named
			for _, path := range args {
				rs, err := readRecords(c.Context(), path, c.InOrStdin())
				if err != nil {
					return err
				}
				files = append(files, record.Named{Name: path, Records: rs})
			}
			cmp := record.Compare(files)
			if plot != "" {
				if err := saveBytes(plot, c.OutOrStdout(), cmp.SVG(metric)); err != nil || plot == "-" {
					return err
				}
			}
			if asJSON {
				return printComparison(c.OutOrStdout(), cmp)
			}
			_, err := io.WriteString(c.OutOrStdout(), cmp.Text())
			return err
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&plot, "plot", "", "draw --metric as bars into this SVG file")
	c.Flags().StringVar(&metric, "metric", "samples_per_sec", strings.Join(record.Metrics(), ", "))
	return c
}

func readRecords(ctx context.Context, path string, stdin io.Reader) ([]*record.Record, error) {
	r := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		r = f
	}
	b, err := io.ReadAll(io.LimitReader(r, record.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	list, err := record.Read(path, b)
	return list, notA(ctx, "benchmark record", path, err)
}

func printComparison(out io.Writer, c *record.Comparison) error {
	type column struct {
		Title   string  `json:"title"` // heading of the record's column
		File    string  `json:"file"`
		Repeats int     `json:"repeats"`                // repeats of the record
		Median  float64 `json:"samples_per_sec_median"` // median rate
		Least   float64 `json:"samples_per_sec_least"`  // lowest rate
		Most    float64 `json:"samples_per_sec_most"`   // highest rate
	}
	v := struct {
		Columns []column       `json:"columns"` // records compared
		Rows    [][]string     `json:"rows"`
		Ratios  []record.Ratio `json:"ratios"`          // rates over those of the first record
		Geomean []record.Ratio `json:"geometric_means"` // geometric means of the ratios
		Notes   []string       `json:"notes"`
	}{[]column{}, c.Rows, append([]record.Ratio{}, c.Ratios...), append([]record.Ratio{}, c.Geomean...), append([]string{}, c.Notes...)}
	for _, x := range c.Columns {
		v.Columns = append(v.Columns, column{x.Title, x.File, x.N, x.Median, x.Least, x.Most})
	}
	return writeJSON(out, v)
}

func newBenchSchema() *cobra.Command {
	return &cobra.Command{Use: "schema", Short: "Print the JSON schema of records", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(record.Schema())
			return err
		}}
}

// printBenchSweep prints a line a run.
func printBenchSweep(out io.Writer, records []*record.Record) error {
	tw := newTable(out)
	cols := []string{"model", "config", "machine", "dataformat", "math_fidelity", "microbatch", "samples_per_sec", "tokens_per_sec", "inference_time_ms"}
	fmt.Fprintln(tw, strings.Join(cols, "\t"))
	for _, r := range records {
		for i, k := range cols {
			v, _ := r.Text(k)
			if x, ok := r.Number(k); ok && i >= 6 {
				v = strconv.FormatFloat(x, 'g', 6, 64)
			}
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, v)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func newBenchTable() *cobra.Command {
	var machines []string
	var jobs int
	var quiet bool
	c := &cobra.Command{Use: "table", Short: "Run every model and configuration and print a table", Args: cobra.NoArgs,
		Long: `table builds every model and configuration at its own microbatch, runs it on
every machine, and prints a Markdown table: parameters, multiply-accumulates,
instructions, predicted samples per second, wall time here.`,
		Example: "  perfsim bench table --machines grayskull,trn2",
		RunE: func(c *cobra.Command, _ []string) error {
			if jobs < 1 {
				return usagef("--jobs %d is not at least 1", jobs)
			}
			p := newProgress(c.ErrOrStderr(), quiet)
			defer p.close()
			var b strings.Builder
			b.WriteString("| model | config | microbatch | parameters | MACs a sample |")
			line := "|---|---|---:|---:|---:|"
			for _, m := range machines {
				sayf(&b, " %s instructions | samples/s | wall s |", m)
				line += "---:|---:|---:|"
			}
			b.WriteString("\n" + line + "\n")
			for _, fam := range models.Families() {
				for _, config := range fam.Configs {
					p.start(fam.Name+" "+config, 0, false)
					row, err := tableRow(c, fam.Name, config, machines, jobs)
					if err != nil {
						return err
					}
					b.WriteString(row)
				}
			}
			p.close()
			_, err := io.WriteString(c.OutOrStdout(), b.String())
			return err
		}}
	c.Flags().StringSliceVar(&machines, "machines", []string{"grayskull", "trn2"}, "machines to run on")
	c.Flags().IntVarP(&jobs, "jobs", "j", 2, "goroutines that work; results do not depend on it")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress on the terminal")
	return c
}

func tableRow(c *cobra.Command, model, config string, machines []string, jobs int) (string, error) {
	row := ""
	for i, m := range machines {
		format := "Fp16_b"
		if d, err := modelrun.Device(m); err != nil {
			return "", err
		} else if d == "cuda" {
			format = "Fp16"
		}
		began := time.Now()
		o, err := modelrun.Run(c.Context(), modelrun.Options{Model: model, Config: config, Machine: m, Format: format, Fidelity: "HiFi3", LoopCount: 1,
			Jobs: jobs, Lower: lower.DefaultOptions(), Cost: components.Reference})
		if err != nil {
			return "", fmt.Errorf("%s %s on %s: %w", model, config, m, err)
		}
		if i == 0 {
			row = fmt.Sprintf("| %s | %s | %d | %s | %s |", model, config, o.Model.Batch, humanize.Comma(o.Params), humanize.Comma(o.MACs))
		}
		row += fmt.Sprintf(" %s | %s | %.2f |", humanize.Comma(int64(o.Instructions())), strconv.FormatFloat(o.SamplesPerSecond(), 'g', 4, 64), time.Since(began).Seconds())
	}
	return row + "\n", nil
}
