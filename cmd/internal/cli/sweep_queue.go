package cli

import (
	"errors"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"perfsim/systems/sweep"
)

// accessFlags are the flags of how the sides of a queue know each other.
type accessFlags struct {
	tokenFile     string
	cert, key, ca string
}

func (f *accessFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.tokenFile, "token-file", "", "file with the token of the NATS server; default: the variable "+tokenVariable)
	fl.StringVar(&f.cert, "tls-cert", "", "certificate of this side, PEM")
	fl.StringVar(&f.key, "tls-key", "", "its key, PEM")
	fl.StringVar(&f.ca, "tls-ca", "", "authority that signed the other side's certificate, PEM")
}

// tokenVariable is the environment variable with the token, which a command
// line would show to every user of the machine.
const tokenVariable = "PERFSIM_TOKEN"

func (f *accessFlags) check() error {
	if (f.cert == "") != (f.key == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	return nil
}

// queueFlags are the flags of a sweep whose workers are elsewhere.
type queueFlags struct {
	access   accessFlags
	serve    string
	url      string
	lease    time.Duration
	replicas int
	shared   bool
}

func (f *queueFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.serve, "serve", "", "serve a queue at HOST:PORT or :PORT (this machine alone), which 'perfsim worker' joins")
	fl.StringVar(&f.url, "queue", "", "use the queue of a NATS cluster with JetStream: nats://HOST:PORT,…")
	fl.DurationVar(&f.lease, "lease", defaultLease, "with --serve or --queue: how long a worker that says nothing keeps a case")
	fl.IntVar(&f.replicas, "replicas", 1, "with --queue: servers that keep the queue")
	fl.BoolVar(&f.shared, "shared", false, "with --serve or --queue: workers find the inputs under the same paths, and none is sent")
	f.access.add(c)
}

// defaultLease is how long a worker that says nothing keeps a case.
const defaultLease = 30 * time.Second

// used reports whether workers elsewhere do the work.
func (f *queueFlags) used() bool { return f.serve != "" || f.url != "" }

// check finds wrong values before any work.
func (f *queueFlags) check(c *cobra.Command, sharded bool, spec *sweep.Spec) error {
	if !f.used() {
		for _, name := range []string{"lease", "replicas", "shared", "token-file", "tls-cert", "tls-key", "tls-ca"} {
			if c.Flags().Changed(name) {
				return usagef("--%s is for queues: --serve or --queue", name)
			}
		}
		return nil
	}
	switch {
	case f.serve != "" && f.url != "":
		return usagef("--serve and --queue are two queues; name one")
	case sharded:
		return usagef("--shard splits a sweep without a queue; leave it out")
	case spec.Files != "":
		return usagef("files of cases are written where the cases are predicted: --files goes without --serve and --queue")
	case f.lease < time.Second:
		return usagef("--lease %v is not at least 1s", f.lease)
	case f.replicas < 1 || f.replicas > 5:
		return usagef("--replicas %d is not between 1 and 5", f.replicas)
	}
	if err := f.access.check(); err != nil {
		return err
	}
	return checkServe(f)
}

// workerFlags are the flags of worker.
type workerFlags struct {
	access  accessFlags
	jobs    int
	lease   time.Duration
	idle    time.Duration
	execute bool
	quiet   bool
}

func newWorkerCommand() *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use:   "worker [flags] URL",
		Short: "Predict cases of sweeps that a queue hands out",
		Long: `worker joins the queue that 'perfsim sweep --serve' opens, or a NATS cluster
that 'perfsim sweep --queue' uses, and predicts cases until it is stopped. It
may be started and killed at any time: what it had not finished, another worker
does. Workers get cases of their own version of perfsim only. Kernels in Python
are executed with --execute alone.`,
		Example: `  perfsim worker nats://127.0.0.1:4222
  PERFSIM_TOKEN=… perfsim worker --exit-when-idle 10m nats://head-node:4222`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.jobs < 1 {
				return usagef("--jobs %d is not at least 1", f.jobs)
			}
			if f.lease < time.Second {
				return usagef("--lease %v is not at least 1s", f.lease)
			}
			if err := f.access.check(); err != nil {
				return err
			}
			return runWorker(c.Context(), &f, args[0], c.ErrOrStderr())
		},
	}
	fl := c.Flags()
	fl.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "cases at a time")
	fl.DurationVar(&f.lease, "lease", defaultLease, "how long the worker may say nothing before another gets its case, as the sweep has it")
	fl.DurationVar(&f.idle, "exit-when-idle", 0, "end after so long without a case; 0 never ends")
	fl.BoolVar(&f.execute, "execute", false, "execute kernels in Python that the queue hands out: the publisher's code runs on this machine")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing")
	f.access.add(c)
	return c
}

// errNoQueue is the error of a build without queues.
var errNoQueue = errors.New("this perfsim was built without queues for other machines: build it with 'go build -tags nats ./cmd/perfsim', or split the sweep with --shard (docs/sweep.md)")
