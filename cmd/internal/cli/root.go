// Package cli has the commands of perfsim, one file each. A command parses
// flags, calls a system and prints; nothing here computes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/terminal"
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

// Main runs one command line and returns the exit status. Text for people
// goes through the escapes of package terminal.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, diag := terminal.NewWriter(stdout), terminal.NewWriter(stderr)
	ctx, stop := untilSignal(context.Background(), func() {
		fmt.Fprintln(stderr, "perfsim: interrupted; a hidden folder or file left beside an output is removed by the next run that writes there")
		os.Exit(exitBreak)
	})
	defer stop()
	root := newRoot(args)
	endWatch := addMemoryLimit(root, func(err error) {
		fmt.Fprintf(stderr, "perfsim: %s\n", terminal.Message(err))
		os.Exit(exitError)
	})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(diag)
	err := errors.Join(endWatch(root.ExecuteContext(ctx)), reportPeak())
	if werr := out.Flush(); err == nil && werr != nil {
		err = fmt.Errorf("standard output: %w", werr)
	}
	diag.Flush() // an error of standard error has nowhere to go
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "perfsim: interrupted; nothing half-written was left")
		return exitBreak
	case errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(stderr, "perfsim: %s\n", terminal.Message(err))
		return exitUsage
	}
	fmt.Fprintf(stderr, "perfsim: %s\n", terminal.Message(err))
	return exitError
}

// Root returns the root command with all others, for their manual pages.
func Root() *cobra.Command { return newRoot(nil) }

// command is a command by name, made when it is needed: all twenty with their
// flags take longer than the smallest run.
type command struct {
	name string
	make func() *cobra.Command
}

// commands lists every command: the one place where a new one is registered.
func commands() []command {
	return []command{
		{"run", newRunCommand},
		{"convert", newConvertCommand},
		{"record", newRecordCommand},
		{"rank", newRankCommand},
		{"gen", newGenCommand},
		{"machine", newMachineCommand},
		{"accuracy", newAccuracyCommand},
		{"passes", newPassesCommand},
		{"explain", newExplainCommand},
		{"memory", newMemoryCommand},
		{"export", newExportCommand},
		{"query", newQueryCommand},
		{"whatif", newWhatIfCommand},
		{"sweep", newSweepCommand},
		{"worker", newWorkerCommand},
		{"calibrate", newCalibrateCommand},
		{"diff", newDiffCommand},
		{"pack", newPackCommand},
		{"unpack", newUnpackCommand},
		{"metrics", newMetricsCommand},
		{"neff", newNEFFCommand},
		{"serve", newServeCommand},
		{"version", newVersionCommand},
		{"view", newViewCommand},
		{"profile", newProfileCommand},
		{"netlist", newNetlistCommand},
		{"dprint", newDprintCommand},
		{"bench", newBenchCommand},
	}
}

// newRoot makes the root command for a command line: with the command that the
// first argument names, with all where it names none.
func newRoot(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "perfsim",
		Short: "Predict how an AI-accelerator module runs, without the chip, and say why",
		Long: `perfsim places every instruction of a module on the timelines of a machine's
engines, once with anti-dependencies and once without, and prints the latency,
what bounds it, and writes a trace that opens in chrome://tracing and Perfetto.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageFunc(printUsage)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	list := commands()
	if len(args) > 0 {
		if i := slices.IndexFunc(list, func(c command) bool { return c.name == args[0] }); i >= 0 {
			list = list[i : i+1]
		}
	}
	for _, c := range list {
		made := c.make()
		wrapArgs(made)
		root.AddCommand(made)
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
				return usagef("%s received; usage: %s (see --help)", countOf(len(args), "argument"), c.UseLine())
			}
			return usageError{err}
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}
