//go:build nats

package cli

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestKills serves a sweep to three workers, each a process, and kills workers
// and the server again and again: every case has one row, and the table is the
// one of a local sweep. The short form has 400 cases, 6 kills of workers and 1
// of the server; PERFSIM_KILLS=long has 5,000, 50 and 5.
func TestKills(t *testing.T) {
	t.Parallel()
	steps, workerKills, serverKills := "0.01", 6, 1
	if os.Getenv("PERFSIM_KILLS") == "long" {
		steps, workerKills, serverKills = "0.0008", 50, 5
	}
	dir, port := t.TempDir(), freePort(t)
	cases := []string{"--input", example(t, "attention.bir.json"), "--input", example(t, "tiled_matmul.bir.json"), "--machine", "trn1", "--machine", "trn2",
		"--whatif", "pe.clock=0.5x..1.5x/" + steps, "--whatif", "nope=1"}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	start := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, "perfsim", args...)
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	local := start(append([]string{"sweep", "-q", "-o", filepath.Join(dir, "local.csv")}, cases...)...)
	if err := local.Wait(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(dir, "local.csv"))
	if err != nil {
		t.Fatal(err)
	}
	total := bytes.Count(want, []byte("\n")) - 1
	table := filepath.Join(dir, "queue.csv")
	var serverDone chan error
	serve := func() *exec.Cmd {
		c := start(append([]string{"sweep", "-q", "--lease", "1s", "--serve", ":" + port, "-o", table}, cases...)...)
		serverDone = make(chan error, 1)
		go func(done chan error) { done <- c.Wait() }(serverDone)
		return c
	}
	server := serve()
	work := func() *exec.Cmd {
		return start("worker", "-q", "-j", "1", "--lease", "1s", "nats://127.0.0.1:"+port)
	}
	workers := []*exec.Cmd{work(), work(), work()}
	defer func() {
		for _, w := range workers {
			w.Process.Kill()
			w.Wait()
		}
		server.Process.Kill()
	}()
	rnd := rand.New(rand.NewPCG(7, 7))
	killed, restarted := 0, 0
	for {
		select {
		case err := <-serverDone:
			if err != nil {
				t.Fatal("the server ended: ", err)
			}
			if killed < workerKills || restarted < serverKills {
				t.Errorf("%d kills of workers and %d of the server, want %d and %d", killed, restarted, workerKills, serverKills)
			}
			got, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the table of %d bytes differs from the local one of %d", len(got), len(want))
			}
			record, err := os.ReadFile(table + ".record")
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(record, []byte("\n")) - 1; n != total {
				t.Errorf("%d results in the record for %d cases", n, total)
			}
			fmt.Fprintf(os.Stderr, "%d cases, %d kills of workers, %d of the server: the table is that of a local sweep\n", total, killed, restarted)
			return
		case <-time.After(10 * time.Millisecond):
		}
		text, err := os.ReadFile(table + ".record")
		if err != nil {
			continue
		}
		done := bytes.Count(text, []byte("\n")) - 1
		for killed < workerKills && done >= total*(killed+1)/(workerKills+2) {
			k := rnd.IntN(len(workers))
			workers[k].Process.Kill()
			workers[k].Wait()
			workers[k] = work()
			killed++
		}
		if restarted < serverKills && done >= total*(restarted+1)/(serverKills+1)-total/20 {
			server.Process.Kill()
			<-serverDone
			server = serve()
			restarted++
		}
	}
}
