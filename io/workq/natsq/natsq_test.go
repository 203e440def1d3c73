//go:build nats

package natsq

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"perfsim/io/workq"
	"perfsim/io/workq/workqtest"
)

// lease is short, so that tests need not wait long for one to end.
const lease = 600 * time.Millisecond

// rig is a server with two workers, each with a connection of its own.
type rig struct {
	t    *testing.T
	room int
	dir  string
}

// hand is a worker of a rig; a task's context holds it.
type hand struct {
	w       *Worker
	kill    func()
	replace func()
}

type handKey struct{}

func newRig(t *testing.T, room int) workqtest.Rig { return &rig{t, room, t.TempDir()} }

func (r *rig) Run(ctx context.Context, do workq.Do, tasks []workq.Task, take func([]workq.Result) error) error {
	server, err := Start(":0", r.dir, Access{})
	if err != nil {
		return err
	}
	defer server.Stop()
	nc, err := Connect("", server, Access{})
	if err != nil {
		return err
	}
	defer nc.Close()
	q, err := Open(ctx, nc, Options{Engine: "1.0", Sweep: "s", Lease: lease, Room: r.room})
	if err != nil {
		return err
	}
	workers, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var start func()
	start = func() {
		nc, err := Connect(server.URL(), nil, Access{})
		if err != nil {
			r.t.Error(err)
			return
		}
		own, end := context.WithCancel(workers)
		h := &hand{replace: start, kill: func() { nc.Close(); end() }}
		h.w = &Worker{Engine: "1.0", Lease: lease, Open: func(context.Context, string, *Files) (workq.Do, error) {
			return func(ctx context.Context, t workq.Task) ([]byte, error) {
				return do(context.WithValue(ctx, handKey{}, h), t)
			}, nil
		}}
		wg.Go(func() { h.w.Run(own, nc); nc.Close() })
	}
	start()
	start()
	return q.Run(ctx, tasks, take)
}

func (*rig) Die(ctx context.Context) {
	h := ctx.Value(handKey{}).(*hand)
	h.kill()
	h.replace()
	<-ctx.Done()
	panic("killed")
}

func (*rig) Stall(ctx context.Context) {
	w := ctx.Value(handKey{}).(*hand).w
	w.silent.Store(true)
	time.Sleep(3 * lease)
	w.silent.Store(false)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	workqtest.Run(t, newRig)
}

// A task that takes longer than a lease is delivered once while its worker
// lives.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	r := newRig(t, 100)
	var mu sync.Mutex
	begun := 0
	n := 0
	err := r.Run(context.Background(), func(context.Context, workq.Task) ([]byte, error) {
		mu.Lock()
		begun++
		mu.Unlock()
		time.Sleep(4 * lease)
		return []byte("done"), nil
	}, []workq.Task{{ID: "long"}}, func(list []workq.Result) error { n += len(list); return nil })
	if err != nil || n != 1 || begun != 1 {
		t.Errorf("%d results, begun %d times, %v; want one of each", n, begun, err)
	}
}

// The server is killed with its memory, half-way: what it had queued and what
// workers had finished is there again, or published again.
func TestServerStartsAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := Start(":0", dir, Access{})
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	nc, err := Connect(url, nil, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := Open(ctx, nc, Options{Engine: "e", Sweep: "s", Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	wnc, err := Connect(url, nil, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer wnc.Close()
	workers, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() {
		(&Worker{Engine: "e", Lease: lease, Jobs: 2, Open: func(context.Context, string, *Files) (workq.Do, error) {
			return func(_ context.Context, t workq.Task) ([]byte, error) {
				time.Sleep(2 * time.Millisecond)
				return t.Body, nil
			}, nil
		}}).Run(workers, wnc)
	})
	var tasks []workq.Task
	for k := range 300 {
		tasks = append(tasks, workq.Task{ID: fmt.Sprintf("t%d", k), Body: fmt.Appendf(nil, "%d", k)})
	}
	have := map[string]string{}
	restarted := false
	err = q.Run(ctx, tasks, func(list []workq.Result) error {
		for _, r := range list {
			if _, twice := have[r.ID]; twice {
				t.Errorf("%s twice", r.ID)
			}
			have[r.ID] = string(r.Body)
		}
		if len(have) > 20 && !restarted {
			restarted = true
			server.Stop()
			if server, err = Start(strings.TrimPrefix(url, "nats://"), dir, Access{}); err != nil {
				return err
			}
		}
		return nil
	})
	server.Stop()
	if err != nil || len(have) != len(tasks) || !restarted {
		t.Fatalf("%d of %d results, %v", len(have), len(tasks), err)
	}
	for _, task := range tasks {
		if have[task.ID] != string(task.Body) {
			t.Errorf("%s: %q", task.ID, have[task.ID])
		}
	}
}

// Workers of another version get no tasks, and versions with dots are parts of
// subjects.
func TestOtherVersion(t *testing.T) {
	t.Parallel()
	if a, b := taskSubject("0.1.0", "s", "id"), taskSubject("0.2.0", "s", "id"); a == b || strings.Count(a, ".") != 4 {
		t.Errorf("subjects %s and %s", a, b)
	}
	if a, b := workersOf("0.1.0", lease), workersOf("0.2.0", lease); a.Durable == b.Durable || a.FilterSubject == b.FilterSubject {
		t.Errorf("two versions share %s, %s", a.Durable, a.FilterSubject)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{":4222": "127.0.0.1:4222 true", "localhost:1": "localhost:1 true", "[::1]:1": "[::1]:1 true",
		"0.0.0.0:1": "0.0.0.0:1 false", "10.0.0.1:4222": "10.0.0.1:4222 false", "host:4222": "host:4222 false", "4222": "!", ":x": "!", ":70000": "!"} {
		full, loop, err := Loopback(addr)
		if want == "!" {
			if err == nil {
				t.Errorf("%s is taken", addr)
			}
		} else if got := fmt.Sprint(full, " ", loop); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", addr, got, err, want)
		}
	}
	if _, err := Start("0.0.0.0:0", t.TempDir(), Access{}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("a server for all without protection: %v", err)
	}
}

// A token keeps those out who lack it.
func TestToken(t *testing.T) {
	t.Parallel()
	server, err := Start(":0", t.TempDir(), Access{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for token, good := range map[string]bool{"": false, "wrong": false, "secret": true} {
		nc, err := Connect(server.URL(), nil, Access{Token: token})
		if err == nil {
			_, err = nc.RequestWithContext(ctx, "$JS.API.INFO", nil)
			nc.Close()
		}
		if (err == nil) != good {
			t.Errorf("token %q: %v", token, err)
		}
		if good {
			continue
		}
		// A worker that is not let in ends and says why.
		if nc, err = Connect(server.URL(), nil, Access{Token: token}); err == nil {
			err = (&Worker{Engine: "e", Lease: lease}).Run(ctx, nc)
			nc.Close()
		}
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "authorization") {
			t.Errorf("a worker with the token %q: %v", token, err)
		}
	}
}

// Files travel by their sum, and a file that does not have it is refused.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := Start(":0", filepath.Join(dir, "store"), Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	nc, err := Connect("", server, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := context.Background()
	q, err := Open(ctx, nc, Options{Engine: "e", Sweep: "s", Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	f, err := q.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17)
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	opened := 0
	for range 2 {
		if err := f.Put(ctx, name, func() (io.ReadCloser, error) { opened++; return io.NopCloser(bytes.NewReader(data)), nil }); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "a", "b")
	if err := f.Get(ctx, name, path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) || opened != 1 {
		t.Errorf("%d bytes of %d, %v; sent %d times", len(got), len(data), err, opened)
	}
	bad := strings.Repeat("0", 64)
	if err := f.Put(ctx, bad, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data[:10])), nil }); err != nil {
		t.Fatal(err)
	}
	if err := f.Get(ctx, bad, filepath.Join(dir, "c")); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a file with another sum: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "c")); err == nil {
		t.Error("a file with another sum is there")
	}
	if err := f.Offer(ctx, "x", []byte("plan")); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Offered(ctx, "x"); err != nil || string(got) != "plan" {
		t.Errorf("%q, %v", got, err)
	}
}
