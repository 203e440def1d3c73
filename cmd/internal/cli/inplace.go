package cli

import (
	"os"

	"github.com/spf13/cobra"
)

// outputFlags are the flags that name a file to write.
var outputFlags = [...]string{"output", "report", "device-profile", "dprint", "self-profile"}

// refuseInputs fails where command c would write the input at path: the same
// file under any name, through links too.
func refuseInputs(c *cobra.Command, path string) error {
	var outputs []string
	for _, name := range outputFlags {
		if x := c.Flags().Lookup(name); x != nil && x.Value.Type() == "string" {
			outputs = append(outputs, x.Value.String())
		}
	}
	if args := c.Flags().Args(); len(args) == 2 && (c.Name() == "convert" || c.Name() == "export") {
		outputs = append(outputs, args[1])
	}
	in, err := os.Stat(path)
	if err != nil || !in.Mode().IsRegular() {
		return nil // reading says why, and devices are no files
	}
	for _, out := range outputs {
		if st, err := os.Stat(out); out != "" && err == nil && os.SameFile(in, st) {
			return usagef("%s is the input %s: writing it would destroy it; name another file", out, path)
		}
	}
	return nil
}
