package cli

import (
	"github.com/spf13/cobra"

	"perfsim/io/traces/catapult"
)

// traceFlags say where the perf_sim traces of run leave the documented form.
type traceFlags struct {
	lanes   string
	viewers bool
}

func (f *traceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.lanes, "lanes", "documented", "threads of the traces: documented (eleven; barriers are on thread 0) or all (barriers have a twelfth)")
	c.Flags().BoolVar(&f.viewers, "for-viewers", false, "end events of the traces where the next of their thread starts, because viewers drop events that overlap")
}

// check finds wrong values; out is the folder that the traces go to.
func (f *traceFlags) check(out string) error {
	switch f.lanes {
	case "documented", "all":
	default:
		return usagef("--lanes %q is not documented or all", f.lanes)
	}
	if out == "" && (f.viewers || f.lanes == "all") {
		return usagef("--for-viewers and --lanes all are about trace files: -o DIR writes them")
	}
	return nil
}

func (f *traceFlags) style() catapult.Style {
	return catapult.Style{Barriers: f.lanes == "all", Cut: f.viewers}
}
