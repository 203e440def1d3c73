package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/formats"
)

func newConvertCommand() *cobra.Command {
	var in inputFlags
	var to string
	var asJSON bool
	c := &cobra.Command{
		Use:   "convert [flags] INPUT OUTPUT",
		Short: "Write a module in another format",
		Long: `convert reads INPUT, recognised by what it holds, and writes it to OUTPUT in the
format of OUTPUT's ending or of --to. A further ending .gz or .zst compresses.
The snapshot .psim holds the tables as they lie in memory: perfsim maps it, so
that a hundred million instructions are open in milliseconds. Every checksum
of a snapshot that is read is checked. - is standard input or output.

` + exporterList(),
		Example: `  perfsim convert module.bir.json module.psim
  perfsim convert module.psim module.psim.zst
  perfsim convert --to birjson module.psim - | jq .functions[0].name`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if args[1] == "-" && to == "" {
				return usagef("standard output has no ending: --to names the format")
			}
			if args[1] == "-" && asJSON {
				return usagef("--json and - both want standard output")
			}
			exp, err := formats.FindExporter(args[1], to)
			if err != nil {
				return usageError{err}
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			began := time.Now()
			l, err := in.load(c.Context(), c, args[0], p)
			if err == nil {
				err = in.explainError(l.Keep(c.Context(), in.jobs))
			}
			if err != nil {
				return err
			}
			m := l.Module
			size, err := writeModule(c.Context(), args[1], c.OutOrStdout(), exp, m, in.jobs, p)
			p.close()
			switch {
			case err != nil:
				return err
			case asJSON:
				return writeJSON(c.OutOrStdout(), convertReport{args[0], m.Format, args[1], exp.Name, m.Instr.Len(), m.Edges.Preds.Len(), size, time.Since(began).Seconds()})
			case args[1] == "-":
				return nil
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s, %s instructions, %s\n", args[1], exp.Name, humanize.Comma(int64(m.Instr.Len())), humanize.IBytes(uint64(size)))
			return err
		},
	}
	in.add(c)
	c.Flags().StringVar(&to, "to", "", "format of the output instead of going by its ending")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object about what was done")
	return c
}

// convertReport is what `convert --json` and `gen --json` print.
type convertReport struct {
	Input        string  `json:"input"`
	From         string  `json:"from"`   // format of the input
	Output       string  `json:"output"` // file that was written
	To           string  `json:"to"`
	Instructions int     `json:"instructions"` // instructions of the module
	Edges        int     `json:"edges"`
	Bytes        int64   `json:"bytes"` // bytes of the file
	Seconds      float64 `json:"seconds"`
}

// exporterList names the formats that can be written, for help texts.
func exporterList() string {
	var b strings.Builder
	b.WriteString("Formats:")
	for _, e := range formats.Exporters() {
		sayf(&b, "\n  %-12s %-10s %s", e.Name, e.Suffix, e.Title)
	}
	return b.String()
}

// writeModule writes m to path and returns the bytes written.
func writeModule(ctx context.Context, path string, stdout io.Writer, exp format.Exporter, m *components.Module, jobs int, p *progress) (int64, error) {
	p.start("writing", 0, true)
	defer p.finish()
	return formats.Export(ctx, path, stdout, exp, m, format.Options{Jobs: jobs, Progress: p.set})
}
