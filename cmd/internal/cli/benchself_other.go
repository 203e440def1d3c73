//go:build !unix

package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// newBenchSelf returns a command that says why it does not work here: what
// other processes took is read the Unix way.
func newBenchSelf() *cobra.Command {
	return &cobra.Command{Use: "self", Short: "Measure perfsim itself (on Unix only)", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("bench self needs a Unix system") }}
}

func reportPeak() error { return nil }
