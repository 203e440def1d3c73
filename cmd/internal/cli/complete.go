package cli

import "github.com/spf13/cobra"

// completeWith has the shell complete the values of a flag.
func completeWith(c *cobra.Command, flag string, values ...string) {
	// It fails for a flag that does not exist or has values already: ours do.
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
