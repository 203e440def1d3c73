package cli

import (
	"cmp"
	"errors"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/format"
	"perfsim/io/neuron/nki"
)

func newRecordCommand() *cobra.Command {
	var in inputFlags
	var out string
	c := &cobra.Command{
		Use:   "record [flags] KERNEL.py[:FUNCTION]",
		Short: "Run an NKI kernel on shape descriptions and keep what it records",
		Long: `record executes KERNEL.py with python3 against an embedded stand-in for the
vendor's packages and writes tensors, instructions and loops: what every other
command makes of the source first. docs/nki.md describes the format.`,
		Example: `  perfsim record kernel.py --arg 'f32[128,4096]' -o k.nki.jsonl.gz
  perfsim run k.nki.jsonl.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if out == "" {
				return usagef("record needs a file to write: -o k.nki.jsonl.gz")
			}
			path, function, ok := nki.IsSource(args[0])
			if !ok {
				return usagef("%s is no Python file (.py)", args[0])
			}
			src, err := format.Open(c.Context(), path, c.InOrStdin())
			if err != nil {
				return err
			}
			defer src.Close()
			call := in.settings.Kernel
			call.Function, call.Machine, call.Stderr = function, cmp.Or(in.settings.Machine, "trn2"), c.ErrOrStderr()
			call.Execute, call.Executes = true, in.sayExecutes(c)
			rec, size, err := nki.Record(c.Context(), src, call, out)
			if usage, ok := errors.AsType[*nki.UsageError](err); ok {
				return usageError{usage}
			}
			if err != nil {
				return err
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s instructions recorded (loops once), %s\n", out, humanize.Comma(int64(rec)), humanize.IBytes(uint64(size)))
			return err
		},
	}
	in.jobs = 1 // the kernel runs in one process of its own
	in.addQuiet(c)
	in.addMachine(c, "machine that the kernel is recorded for")
	in.addKernel(c)
	c.Flags().StringVarP(&out, "output", "o", "", "file to write; .gz compresses")
	return c
}
