package cli

import (
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/components/machine"
)

// completeMachine has the shell complete machines by name, and files.
func completeMachine(c *cobra.Command, flag string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(machine.Names(), cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // as in completeWith
	}
}

// completeModel has the shell complete the models.
func completeModel(c *cobra.Command, flag string) {
	completeWith(c, flag, components.Reference.String(), components.Calibrated.String(), components.Replay.String())
}

// completeWith has the shell complete the values of a flag.
func completeWith(c *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist or has values already: ours do.
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
