//go:build !nats

package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"perfsim/io/workq"
	"perfsim/systems/sweep"
)

// checkServe refuses queues, which this build does not have.
func checkServe(*queueFlags) error { return usageError{errNoQueue} }

// open refuses queues.
func (*queueFlags) open(*cobra.Command, *sweep.Plan, string) (q workq.Queue, end func(done bool), err error) {
	return nil, nil, usageError{errNoQueue}
}

// runWorker refuses queues.
func runWorker(context.Context, *workerFlags, string, io.Writer) error { return usageError{errNoQueue} }
