package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A signal ends a command that waits for standard input or for the other end
// of a named pipe, with status 130.
func TestSignals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("named pipes and signals as on Linux")
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	perfsim := filepath.Join(dir, "perfsim") // the test binary is perfsim by that name
	if err := os.Symlink(exe, perfsim); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for _, c := range []struct {
		args   []string
		signal syscall.Signal
		twice  bool
	}{
		{[]string{"run", "-q", "-"}, syscall.SIGINT, false},
		{[]string{"run", "-q", fifo}, syscall.SIGTERM, false},
		{[]string{"neff", "info", fifo}, syscall.SIGINT, true},
		{[]string{"unpack", fifo}, syscall.SIGTERM, false},
	} {
		t.Run(strings.Join(c.args[:2], " ")+" "+c.signal.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(perfsim, c.args...)
			var stderr bytes.Buffer
			cmd.Stderr, cmd.Dir = &stderr, t.TempDir()
			in, err := cmd.StdinPipe() // stays open: nothing comes
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			// Until the handler is there, the signal's own action ends the process.
			time.Sleep(300 * time.Millisecond)
			cmd.Process.Signal(c.signal)
			if c.twice {
				time.Sleep(50 * time.Millisecond)
				cmd.Process.Signal(c.signal)
			}
			select {
			case <-done:
			case <-time.After(20 * time.Second):
				cmd.Process.Kill()
				t.Fatal("the command goes on")
			}
			if code := cmd.ProcessState.ExitCode(); code != exitBreak || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("status %d: %s", code, stderr.String())
			}
		})
	}
}
