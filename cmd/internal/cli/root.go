// Package cli has the commands of perfsim, one file each. A command parses
// flags, calls a system and prints; nothing here computes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1 // the input or the work failed
	exitUsage = 2 // the command line is wrong
	exitBreak = 130
)

// usageError marks an error of the command line rather than of the work.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef makes a usage error.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Main runs one command line and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	endWatch := addMemoryLimit(root)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := errors.Join(endWatch(root.ExecuteContext(ctx)), reportPeak())
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "perfsim: interrupted; nothing half-written was left")
		return exitBreak
	case errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(stderr, "perfsim: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "perfsim: %v\n", err)
	return exitError
}

// commands lists every command: the one place where a new one is registered.
func commands() []*cobra.Command {
	return []*cobra.Command{
		newRunCommand(),
		newConvertCommand(),
		newGenCommand(),
		newMachineCommand(),
		newPassesCommand(),
		newExplainCommand(),
		newExportCommand(),
		newQueryCommand(),
		newWhatIfCommand(),
		newCalibrateCommand(),
		newDiffCommand(),
		newPackCommand(),
		newUnpackCommand(),
		newNEFFCommand(),
		newVersionCommand(),
		newViewCommand(),
		newProfileCommand(),
		newNetlistCommand(),
		newDprintCommand(),
		newBenchCommand(),
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "perfsim",
		Short: "Predict how an AI-accelerator module runs, without the chip, and say why",
		Long: `perfsim places every instruction of a module on the timelines of a machine's
engines, once with anti-dependencies and once without, and tells the latency,
what bounds it, and writes a trace that opens in chrome://tracing and Perfetto.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	for _, c := range commands() {
		wrapArgs(c)
		root.AddCommand(c)
	}
	return root
}

// wrapArgs makes the complaints of argument checks usage errors, all the way
// down.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil {
				return nil
			}
			if s := err.Error(); strings.HasPrefix(s, "accepts ") || strings.HasPrefix(s, "requires ") {
				return usagef("%s received; usage: %s (--help tells more)", countOf(len(args), "argument"), c.UseLine())
			}
			return usageError{err}
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}
