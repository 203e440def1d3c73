//go:build !nats

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"perfsim/io/workq"
	"perfsim/systems/sweep"
)

// queueFlags are the flags of a queue that other machines join; this build has
// none.
type queueFlags struct{}

func (*queueFlags) add(*cobra.Command)                   {}
func (*queueFlags) used() bool                           { return false }
func (*queueFlags) check(*sweepFlags, *sweep.Spec) error { return nil }
func (*queueFlags) open(*cobra.Command, *sweep.Plan, *sweep.Spec) (workq.Queue, error) {
	return nil, errors.New("this build has no queue for other machines")
}
