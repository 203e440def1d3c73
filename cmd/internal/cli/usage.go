package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups are the flags that act on some inputs only: their descriptions
// begin with the mark, and help lists them below a title of their own.
var flagGroups = [...]struct{ mark, title string }{
	{"graphs: ", "Flags for operator graphs (HLO, StableHLO)"},
	{"kernels: ", "Flags for NKI kernels (.py)"},
}

// printUsage prints how a command is used: cobra's own text with its flags in
// groups and lines of the width of a page.
func printUsage(c *cobra.Command) error {
	out := c.OutOrStderr()
	line := func(text string) { fmt.Fprintln(out, text) }
	line("Usage:")
	if c.Runnable() {
		line("  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		line("  " + c.CommandPath() + " [command]")
	}
	if c.HasExample() {
		line("\nExamples:\n" + c.Example)
	}
	if c.HasAvailableSubCommands() {
		line("\nAvailable Commands:")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(out, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	own, groups := grouped(c.LocalFlags())
	printFlags(c, "Flags", own)
	for i, g := range groups {
		printFlags(c, flagGroups[i].title, g)
	}
	printFlags(c, "Global Flags", c.InheritedFlags())
	if c.HasAvailableSubCommands() {
		line("\nUse \"" + c.CommandPath() + " [command] --help\" for more information about a command.")
	}
	return nil
}

// grouped splits flags into those of all inputs and those of flagGroups, whose
// descriptions lose their marks.
func grouped(flags *pflag.FlagSet) (own *pflag.FlagSet, groups [len(flagGroups)]*pflag.FlagSet) {
	own = pflag.NewFlagSet("", pflag.ContinueOnError)
	for i := range groups {
		groups[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		for i, g := range flagGroups {
			if text, ok := strings.CutPrefix(f.Usage, g.mark); ok {
				marked := *f
				marked.Usage = text
				groups[i].AddFlag(&marked)
				return
			}
		}
		own.AddFlag(f)
	})
	return own, groups
}

func printFlags(c *cobra.Command, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(c.OutOrStderr(), "\n%s:\n%s\n", title, strings.TrimRight(flags.FlagUsagesWrapped(textWidth), " \n"))
	}
}
