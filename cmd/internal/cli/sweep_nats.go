//go:build nats

package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"perfsim/io/workq"
	"perfsim/io/workq/natsq"
	"perfsim/systems"
	"perfsim/systems/sweep"
)

// offer describes a sweep to a worker.
type offer struct {
	Plan *sweep.Plan `json:"plan"`
	// Dir is the folder from which the paths of the plan are, where workers find
	// the inputs under the same paths; "" where the inputs are sent.
	Dir string `json:"dir,omitempty"`
}

func (f *accessFlags) access() (natsq.Access, error) {
	token, err := readToken(f.tokenFile)
	return natsq.Access{Token: token, Cert: f.cert, Key: f.key, CA: f.ca}, err
}

// checkServe refuses addresses that strangers reach without protection.
func checkServe(f *queueFlags) error {
	if f.serve == "" {
		return nil
	}
	_, loopback, err := natsq.Loopback(f.serve)
	if err != nil {
		return usagef("--serve %w", err)
	}
	a, err := f.access.access()
	if err == nil && !loopback && !a.Protects() {
		return usagef("--serve %s can be reached from other machines: give a token (%s or --token-file), or --tls-cert, --tls-key and --tls-ca", f.serve, tokenVariable)
	}
	return err
}

// open opens the queue, embedded or elsewhere, and sends the plan and its
// inputs. end closes it; the embedded server's files go where the sweep is done.
func (f *queueFlags) open(c *cobra.Command, plan *sweep.Plan, record string) (q workq.Queue, end func(done bool), err error) {
	ctx := c.Context()
	a, err := f.access.access()
	if err != nil {
		return nil, nil, err
	}
	var ends []func(done bool)
	end = func(done bool) {
		for k := len(ends) - 1; k >= 0; k-- {
			ends[k](done)
		}
	}
	defer func() {
		if err != nil {
			end(false)
		}
	}()
	var server *natsq.Server
	if f.serve != "" {
		dir := strings.TrimSuffix(record, ".record") + ".queue"
		if server, err = natsq.Start(f.serve, dir, a); err != nil {
			return nil, nil, err
		}
		ends = append(ends, func(done bool) {
			server.Stop()
			if done {
				os.RemoveAll(dir) // a copy of what the record and the inputs have
			}
		})
		sayf(c.ErrOrStderr(), "listening on %s; workers join with: perfsim worker %s\n", server.URL(), server.URL())
	}
	nc, err := natsq.Connect(f.url, server, a)
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, func(bool) { nc.Close() })
	full, err := filepath.Abs(record)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256([]byte(plan.Digest() + "\n" + full))
	name := hex.EncodeToString(sum[:8])
	queue, err := natsq.Open(ctx, nc, natsq.Options{Engine: plan.Engine, Sweep: name, Lease: f.lease, Replicas: f.replicas})
	if err != nil {
		return nil, nil, err
	}
	return queue, end, f.send(ctx, queue, plan, name)
}

// send stores the plan and, unless they are shared, the inputs.
func (f *queueFlags) send(ctx context.Context, q *natsq.Queue, plan *sweep.Plan, name string) error {
	files, err := q.Files(ctx)
	if err != nil {
		return err
	}
	o := offer{Plan: plan}
	if f.shared {
		if o.Dir, err = os.Getwd(); err != nil {
			return err
		}
	} else {
		for _, in := range plan.Inputs {
			path, _ := systems.InputFile(in.Name)
			if err := files.Put(ctx, in.SHA256, func() (io.ReadCloser, error) { return os.Open(path) }); err != nil {
				return fmt.Errorf("sending %s: %w", path, err)
			}
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return files.Offer(ctx, name, text)
}

// runWorker predicts cases of the queue at url until the context ends.
func runWorker(ctx context.Context, f *workerFlags, url string, stderr io.Writer) error {
	a, err := f.access.access()
	if err != nil {
		return err
	}
	nc, err := natsq.Connect(url, nil, a)
	if err != nil {
		return err
	}
	defer nc.Close()
	dir, err := os.MkdirTemp("", "perfsim-worker-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	engine, err := engineVersion()
	if err != nil {
		return err
	}
	if !f.quiet {
		if at := nc.ConnectedUrlRedacted(); at != "" {
			sayf(stderr, "working for %s, version %s\n", at, engine)
		} else {
			fmt.Fprintln(stderr, "no server answers yet; waiting for it")
		}
	}
	w := natsq.Worker{Engine: engine, Lease: f.lease, Jobs: f.jobs, Idle: f.idle,
		Open: func(ctx context.Context, name string, files *natsq.Files) (workq.Do, error) {
			text, err := files.Offered(ctx, name)
			if err != nil {
				return nil, err
			}
			var o offer
			if err := json.Unmarshal(text, &o); err != nil {
				return nil, err
			}
			e, err := sweep.NewEvaluator(o.Plan, f.resolve, &place{files: files, dir: dir, shared: o.Dir, execute: f.execute, checked: map[string]bool{}}, f.jobs, "")
			if err != nil {
				return nil, err
			}
			return e.Do, nil
		}}
	err = w.Run(ctx, nc)
	if ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}

// errExecute is the error of a case that only a willing worker predicts.
func errExecute() error {
	return fmt.Errorf("the worker executes no kernels in Python; start it with --execute")
}

// resolve reads options as sweep does, without those that execute code.
func (f *workerFlags) resolve(options []string) (sweep.Choice, error) {
	choice, err := resolveOptions(options)
	if err == nil && !f.execute && (choice.Settings.Kernel.Setup != "" || choice.Reading.Format == "nki-source") {
		err = errExecute()
	}
	return choice, err
}

// place is where a worker keeps the files of a plan.
type place struct {
	files   *natsq.Files
	dir     string
	shared  string
	execute bool

	mu      sync.Mutex
	checked map[string]bool // shared files that are those of the plan
}

// Input returns the path of an input, fetched where it is not there yet.
func (p *place) Input(ctx context.Context, in sweep.Input) (string, error) {
	file, rest := systems.InputFile(in.Name)
	if strings.HasSuffix(file, ".py") && !p.execute {
		return "", errExecute()
	}
	if p.shared != "" {
		if !filepath.IsAbs(file) {
			file = filepath.Join(p.shared, file)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.checked[file] {
			return file + rest, nil
		}
		err := in.Check(ctx, file)
		p.checked[file] = err == nil
		return file + rest, err
	}
	path := filepath.Join(p.dir, in.SHA256, filepath.Base(file))
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path + rest, nil
	}
	return path + rest, p.files.Get(ctx, in.SHA256, path)
}

// Machine returns the path of a description.
func (p *place) Machine(m sweep.Machine) (string, error) {
	path := filepath.Join(p.dir, m.SHA256, "machine.yaml")
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, []byte(m.Text), 0o666); err != nil {
		return "", err
	}
	return path, os.Rename(tmp, path)
}
