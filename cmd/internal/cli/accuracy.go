package cli

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"perfsim/bench/accuracy"
)

func newAccuracyCommand() *cobra.Command {
	var opt accuracy.Options
	var report string
	var asJSON, quiet, items bool
	c := &cobra.Command{
		Use:   "accuracy [flags] FOLDER…",
		Short: "Predict everything measured in a folder and compare",
		Long: `accuracy predicts every measurement that lies in the folders and prints
predicted against measured, with the median and the worst error of each class:
profiles (each with constants fitted to the others), instruction laws, NKI
kernels, kernels as graphs, models on NeuronCores and Tensix grids.

Tables are told by their columns. Kernel sources are executed with python3 to be
recorded, only with --execute. --report writes the page as Markdown.`,
		Example: `  perfsim accuracy ../shared/data/measured
  perfsim accuracy --execute --report accuracy.md ../shared/data
  perfsim accuracy --json measured/ | jq '.classes'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if opt.Jobs < 1 {
				return usagef("--jobs %d is not at least 1", opt.Jobs)
			}
			p := newProgress(c.ErrOrStderr(), quiet)
			defer p.close()
			started := false
			opt.Progress = func(_ string, done, total int64) {
				if !started {
					p.start("predicting", total, false)
					started = true
				}
				p.set(done)
			}
			r, err := accuracy.Run(c.Context(), args, opt)
			if err != nil {
				return err
			}
			p.close()
			if report != "" {
				if err := save(report, c.OutOrStdout(), r.Markdown); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return printAccuracy(c.OutOrStdout(), r, items)
		},
	}
	fl := c.Flags()
	fl.StringVar(&opt.Machine, "machine", "", "machine for profiles, laws and graphs; default: trn2")
	fl.IntVarP(&opt.Jobs, "jobs", "j", 1, "goroutines that work on one prediction; results do not depend on it")
	fl.BoolVar(&opt.Execute, "execute", false, "execute the Python sources of kernels to record them")
	fl.StringVar(&report, "report", "", "write the page to this file, as Markdown")
	fl.BoolVar(&items, "items", false, "print every item, not only the classes and the worst items")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	fl.BoolVarP(&quiet, "quiet", "q", false, "no progress on stderr")
	return c
}

// printAccuracy prints the classes, and the items or those furthest off.
func printAccuracy(w io.Writer, r *accuracy.Report, items bool) error {
	tw := newTable(w)
	fmt.Fprintln(tw, "CLASS\tITEMS\tLEFT OUT\tMEDIAN\tWORST\tRATIO\tINSIDE\t")
	for _, c := range r.Classes {
		inside := ""
		if c.Ranges > 0 {
			inside = fmt.Sprintf("%d of %d", c.Inside, c.Ranges)
		}
		if c.Predicted == 0 {
			sayf(tw, "%s\t0\t%d\t\t\t\t\t\n", c.Name, c.Skipped)
			continue
		}
		sayf(tw, "%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.2f\t%s\t\n", c.Name, c.Predicted, c.Skipped, c.Median, c.Worst, c.Ratio, inside)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(r.Items) == 0 {
		_, err := fmt.Fprintln(w, "nothing measured was found: no profile, and no table of a kind that is known")
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(tw, "ITEM\tQUANTITY\tPREDICTED\tMEASURED\tERROR\t")
	for n := range r.Items {
		i := &r.Items[n]
		e := i.Error()
		if !items && (math.IsNaN(e) || math.Abs(e) < 0.1) {
			continue
		}
		if i.Predicted == nil {
			sayf(tw, "%s\t%s\t%s\t%s\t\t\n", i.Name, i.Quantity, i.Reason, accuracy.Time(i.Measured))
			continue
		}
		sayf(tw, "%s\t%s\t%s\t%s\t%+.1f %%\t\n", i.Name, i.Quantity, accuracy.Text(i.Predicted), accuracy.Time(i.Measured), 100*e)
	}
	return tw.Flush()
}
