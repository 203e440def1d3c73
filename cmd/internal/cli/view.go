package cli

import (
	"io"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/page"
	"perfsim/cmd/internal/web"
)

func newViewCommand() *cobra.Command {
	var in inputFlags
	var report, block string
	var port, events int
	c := &cobra.Command{
		Use:   "view [flags] INPUT",
		Short: "Show a simulation as a page, or write the page as one file",
		Long: `view simulates INPUT and serves its timelines as a page on the loopback
interface until Ctrl-C: the blocks of the program, most time first, their
operators, and their lanes: run A, run B and, where the input has one, the
measurement, on one time axis, with loops, the critical path, the cause of
every wait and the dependencies of the selected event. With -o it writes the
same page as one file that needs no server.`,
		Example: `  perfsim view examples/attention.bir.json
  perfsim view -o report.html profile.json.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if events != 0 && report == "" {
				return usagef("--events is about the page as one file: -o FILE writes it")
			}
			if events < 0 {
				return usagef("--events %d is negative", events)
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			res, err := in.predict(c.Context(), c, args[0], p)
			if err != nil {
				return err
			}
			v, err := page.New(c.Context(), res, block)
			if err != nil {
				return usageError{err}
			}
			p.close()
			program := v.Program()
			if report != "" {
				if err := save(report, c.OutOrStdout(), func(out io.Writer) error {
					return web.Report(out, program, web.ReportOptions{Events: events, Static: v.Static})
				}); err != nil {
					return err
				}
				if report != "-" {
					sayf(c.OutOrStdout(), "wrote %s\n", report)
				}
				return nil
			}
			return web.Serve(c.Context(), program, port, func(url string) {
				sayf(c.OutOrStdout(), "%s\nshowing %s; Ctrl-C ends\n", url, program.Blocks[program.First].Name)
			})
		},
	}
	in.add(c)
	c.Flags().StringVarP(&report, "output", "o", "", "write the page as one file instead of serving it")
	c.Flags().StringVar(&block, "block", "", "block to show first, by name (function/block or block); default: the one with most time over all runs")
	c.Flags().IntVar(&events, "events", 0, "with -o: events that the file holds at most; of more, short ones are drawn together (default 1,000,000)")
	c.Flags().IntVar(&port, "port", 0, "port on the loopback interface; 0 takes a free one")
	return c
}
