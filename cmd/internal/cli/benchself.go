//go:build unix

package cli

import (
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"perfsim/bench/self/suite"
)

// newBenchSelf returns the command that measures perfsim itself.
func newBenchSelf() *cobra.Command {
	var sizes []int
	var rounds int
	var budget time.Duration
	var out, raw, dir, peers, data string
	c := &cobra.Command{
		Use:   "self",
		Short: "Measure perfsim itself and write BENCHMARKS.md",
		Long: `self measures the placement kernel against one in C, every system, whole
processes and other simulators where they are installed, by size, and writes
the report and the raw figures that benchstat reads. Whole processes are
measured by starting this program again. It needs room for temporary files, up
to 35 bytes an instruction of the largest size.`,
		Example: `  perfsim bench self
  perfsim bench self --sizes 10000,100000,1000000 --time 1m \
      -o /tmp/BENCHMARKS.md --raw /tmp/results.txt`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, n := range sizes {
				if n < 100 || n >= 1<<30 {
					return usagef("--sizes %d is not between 100 and %d", n, 1<<30-1)
				}
			}
			if rounds < 1 || len(sizes) == 0 {
				return usagef("--rounds and --sizes must name at least one")
			}
			slices.Sort(sizes)
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if data == "" {
				data, _ = suite.Upward("shared/data") // what is missing is noted in the report
			}
			r, err := suite.Run(c.Context(), suite.Options{Sizes: sizes, Rounds: rounds, Budget: budget, Dir: dir, Peers: peers, Data: data, Command: []string{self},
				Log: c.ErrOrStderr()})
			if err != nil {
				return err
			}
			if err := save(raw, c.OutOrStdout(), r.Raw); err != nil {
				return err
			}
			if err := save(out, c.OutOrStdout(), r.Markdown); err != nil {
				return err
			}
			_, err = sayf(c.OutOrStdout(), "wrote %s and %s\n", out, raw)
			return err
		},
	}
	fl := c.Flags()
	fl.IntSliceVar(&sizes, "sizes", []int{10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}, "numbers of instructions")
	fl.IntVar(&rounds, "rounds", 5, "how often each figure is taken")
	fl.DurationVar(&budget, "time", 5*time.Minute, "about how long each of the parts may take; larger sizes are left out when it is over")
	fl.StringVarP(&out, "output", "o", "BENCHMARKS.md", "the report to write")
	fl.StringVar(&raw, "raw", "bench/results.txt", "the figures to write, for benchstat")
	fl.StringVar(&peers, "peers", "", "folder with the programs of other simulators, which bench/self/peers.sh builds; PATH is searched too")
	fl.StringVar(&data, "data", "", "folder with the files of real users that readers are measured on; default: shared/data in this folder or one above it")
	fl.StringVar(&dir, "dir", "", "folder for temporary files; default: the system's")
	return c
}

// reportPeak gives the measuring process the peak memory of this one, where it
// was started to be measured.
func reportPeak() error { return suite.WritePeak() }
