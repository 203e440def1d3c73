//go:build faults

package fault

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable is the environment variable that says what fails: "KIND:N" for the
// N-th operation from 1 on, with the kinds below; "count" writes the number of
// operations to standard error at every one.
const Variable = "PERFSIM_FAULT"

var kinds = map[string]syscall.Errno{"enospc": syscall.ENOSPC, "eio": syscall.EIO, "eintr": syscall.EINTR, "eacces": syscall.EACCES, "enoent": syscall.ENOENT}

var done atomic.Int64

// At is called before the operation op on path. Its error is that of the
// operation.
func At(op, path string) error {
	n := done.Add(1)
	kind, at, _ := strings.Cut(os.Getenv(Variable), ":")
	if kind == "count" {
		fmt.Fprintf(os.Stderr, "fault: %d %s\n", n, op)
		return nil
	}
	if want, err := strconv.ParseInt(at, 10, 64); err != nil || want != n {
		return nil
	}
	if kind == "kill" {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if errno, ok := kinds[kind]; ok {
		return &fs.PathError{Op: op, Path: path, Err: errno}
	}
	return nil
}

type writer struct {
	io.Writer
	path string
}

// Writer returns w with At before every write; path is that of the file.
func Writer(w io.Writer, path string) io.Writer { return writer{w, path} }

func (w writer) Write(p []byte) (int, error) {
	if err := At("write", w.path); err != nil {
		n, _ := w.Writer.Write(p[:len(p)/2]) // as a disk that becomes full
		return n, err
	}
	return w.Writer.Write(p)
}
