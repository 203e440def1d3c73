package kernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	_ "embed"

	"perfsim/components"
)

//go:embed c/kernel.c
var source []byte

// ErrNoCompiler says that there is no C compiler to build the yardstick.
var ErrNoCompiler = errors.New("no C compiler (cc) on PATH")

// C is a running C program that holds the arrays of one module.
type C struct {
	Variants []string
	cmd      *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Reader
	dir      string
}

// StartC builds the C program and gives it the arrays of m, whose issue
// intervals and latencies must be filled. Temporary files are below dir ("" for the
// system's).
func StartC(dir string, m *components.Module) (*C, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return nil, ErrNoCompiler
	}
	dir, err = os.MkdirTemp(dir, "perfsim-kernel-*")
	if err != nil {
		return nil, err
	}
	c := &C{dir: dir}
	if err := c.start(cc, m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *C) start(cc string, m *components.Module) error {
	src, bin, data := filepath.Join(c.dir, "kernel.c"), filepath.Join(c.dir, "kernel"), filepath.Join(c.dir, "arrays")
	if err := os.WriteFile(src, source, 0o600); err != nil {
		return err
	}
	if out, err := exec.Command(cc, "-O3", "-march=native", "-o", bin, src).CombinedOutput(); err != nil {
		return fmt.Errorf("building the C kernel: %w: %s", err, bytes.TrimSpace(out))
	}
	if err := writeArrays(data, m); err != nil {
		return err
	}
	c.cmd = exec.Command(bin, data)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the C kernel did not start: %w", err)
	}
	c.Variants = strings.Fields(line)
	return os.Remove(data) // it has its own copy by now
}

// writeArrays writes the numbers of rows and edges and the five arrays, each
// rounded up to eight bytes.
func writeArrays(path string, m *components.Module) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := binary.LittleEndian.AppendUint64(nil, uint64(m.Instr.Len()))
	head = binary.LittleEndian.AppendUint64(head, uint64(m.Edges.Preds.Len()))
	edges := m.Edges.Preds.Columns()
	for _, b := range [][]byte{head, edges[0].Raw(), edges[1].Raw(), m.Instr.Issue.Raw(), m.Instr.Latency.Raw(), m.Instr.Lane.Raw()} {
		if _, err := f.Write(b); err != nil {
			return err
		}
		if _, err := f.Write(make([]byte, -len(b)&7)); err != nil {
			return err
		}
	}
	return f.Close()
}

// Run runs a variant once and returns its CPU time in ns and the checksum of
// all times.
func (c *C) Run(variant string) (ns int64, sum uint64, err error) {
	if _, err := fmt.Fprintln(c.in, variant); err != nil {
		return 0, 0, fmt.Errorf("the C kernel has ended: %w", err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("the C kernel has ended: %w", err)
	}
	f := strings.Fields(line)
	if len(f) != 3 || f[0] != variant {
		return 0, 0, fmt.Errorf("the C kernel answered %q to %s", line, variant)
	}
	if ns, err = strconv.ParseInt(f[1], 10, 64); err != nil {
		return 0, 0, err
	}
	sum, err = strconv.ParseUint(f[2], 16, 64)
	return ns, sum, err
}

// Trace has the program write the times of the last run as a trace and
// returns its CPU time in ns and the bytes of the trace.
func (c *C) Trace() (ns, size int64, err error) {
	ns, sum, err := c.Run("trace")
	return ns, int64(sum), err
}

// Close ends the program and removes its files.
func (c *C) Close() error {
	if c.in != nil {
		c.in.Close()
	}
	if c.cmd != nil && c.cmd.Process != nil {
		c.cmd.Wait() // it ends when its input does; how it ended does not matter
	}
	return os.RemoveAll(c.dir)
}

// Sum is the checksum of all times that the C program answers with.
func Sum(arrive [][2]uint64) uint64 {
	var sum uint64
	for _, p := range arrive {
		sum = (sum ^ p[0]) * 0x100000001b3
		sum = (sum ^ p[1]) * 0x100000001b3
	}
	return sum
}
