package cli

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/systems"
	"perfsim/systems/lower"
	"perfsim/systems/whatif"
)

// scaleCores predicts the graph at path on numbers of cores.
func (f *inputFlags) scaleCores(c *cobra.Command, path string, cores []int64, p *progress) ([]systems.CoresPoint, error) {
	r := systems.Request{Settings: f.settings, Reading: f.reading(c, path, p)}
	list, err := systems.ScaleCores(c.Context(), r, cores)
	p.finish()
	return list, f.explainError(err)
}

// coresOf returns the numbers of an assignment to cores.
func coresOf(a whatif.Assignment) ([]int64, error) {
	var out []int64
	for _, v := range a.Values {
		if !v.Number || v.Factor || v.Value != math.Trunc(v.Value) || v.Value < 1 || v.Value > lower.MostCores {
			return nil, usagef("cores=%s is not a number of cores between 1 and %d", v.Text, lower.MostCores)
		}
		out = append(out, int64(v.Value))
	}
	return out, nil
}

// whatifCores answers cores=N.
func whatifCores(c *cobra.Command, in *inputFlags, path string, assigned []whatif.Assignment, p *progress, asJSON bool) error {
	if len(assigned) > 1 {
		return usagef("cores is asked for alone: it makes another program of the graph")
	}
	cores, err := coresOf(assigned[0])
	if err != nil {
		return err
	}
	list, err := in.scaleCores(c, path, cores, p)
	p.close()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), map[string][]systems.CoresPoint{"cores": list})
	}
	return printCores(c.OutOrStdout(), list)
}

// printCores prints a row for every number of cores, and how the last one
// shares the work.
func printCores(out io.Writer, list []systems.CoresPoint) error {
	tw := newTable(out)
	fmt.Fprintln(tw, "CORES\tLATENCY\tSPEED-UP\tEFFICIENCY\tCOLLECTIVES\tWORK\t")
	derived := false
	for _, p := range list {
		sayf(tw, "%d\t%s\t%.2f×\t%.1f %%\t%s\t%s\t\n", p.Cores, units.Nanos(p.NS), p.Speedup, 100*p.Efficiency, units.Nanos(p.CollectivesNS), plusMinus(float64(p.WorkNS)))
		derived = derived || p.Derived
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if p := list[len(list)-1]; p.How != "" {
		if _, err := io.WriteString(out, noteText(p.How, 1)); err != nil {
			return err
		}
	}
	if derived {
		fmt.Fprintln(out, "note: the module is one device's program: one core is taken as the time without\ncollectives times the cores")
	}
	return nil
}
