package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write the manual pages of all commands to a folder", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := newRoot(nil)
			root.DisableAutoGenTag = true // the date of the day it ran
			epoch := time.Unix(0, 0).UTC()
			return doc.GenManTree(root, &doc.GenManHeader{Title: "PERFSIM", Section: "1", Source: "perfsim " + version, Date: &epoch}, args[0])
		}}
}
