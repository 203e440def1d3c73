package nki

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"perfsim/components/nkirecord"
	"perfsim/io/format"
	"perfsim/io/internal/atomicfile"
)

//go:embed perfsim_nki/*.py
var recorder embed.FS

// DefaultSeconds is how much processor time a kernel may take while it is
// recorded; three times as much may pass.
const DefaultSeconds = 60

var apiImport = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*(?:import|from)[ \t]+(?:neuronxcc[ \t.]|nki\b)|^[ \t]*@nki\.jit`)
})

// SourceImporter runs kernel sources.
var SourceImporter = format.Importer{
	Name:   "nki-source",
	Sniff:  importsAPI,
	Record: Run,
}

// importsAPI reports whether a text imports the NKI API. The search for words
// is first: the expression takes seconds for what is read of a large file.
func importsAPI(text []byte) bool {
	return (bytes.Contains(text, []byte("nki")) || bytes.Contains(text, []byte("neuronxcc"))) && apiImport().Match(text)
}

// IsSource reports whether a path names a Python file, and a function in it:
// kernel.py or kernel.py:function.
func IsSource(path string) (file, function string, ok bool) {
	if strings.HasSuffix(path, ".py") {
		return path, "", true
	}
	if i := strings.LastIndex(path, ".py:"); i > 0 {
		return path[:i+3], path[i+4:], true
	}
	return path, "", false
}

// UsageError is a call of a kernel that does not fit it: missing arguments, a
// name that the file has not.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// refuse returns why src must not be executed, or nil: only a file on disk is,
// and only one that the user named as Python.
func refuse(src *format.Source, call format.KernelCall) error {
	switch {
	case src.Path == "":
		return &UsageError{src.Name + " holds a Python kernel that is compressed, in an archive, in a pipe or in UTF-16, and is not executed; save it as a file whose name ends in .py and give that name"}
	case !call.Execute:
		return &UsageError{src.Name + " looks like a Python kernel, which perfsim has to execute, and its name does not end in .py; add --format nki-source to execute it"}
	}
	return nil
}

// Run records the kernel source src: it executes the file with python3 where
// the call permits that.
func Run(ctx context.Context, src *format.Source, opt format.Options) (*nkirecord.Record, error) {
	dir, err := os.MkdirTemp("", "perfsim-nki-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "record.nki.jsonl")
	if err := execute(ctx, dir, src, out, opt.Kernel); err != nil {
		return nil, err
	}
	in, err := format.Open(ctx, out, nil)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return Read(ctx, in, opt)
}

// Record runs the kernel source src and writes its record to the file out. It
// returns the number of recorded instructions and the size of the file.
func Record(ctx context.Context, src *format.Source, call format.KernelCall, out string) (recorded int, size int64, err error) {
	dir, err := os.MkdirTemp("", "perfsim-nki-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	suffix := ".jsonl"
	if strings.HasSuffix(out, ".gz") {
		suffix += ".gz"
	}
	made := filepath.Join(dir, "record"+suffix)
	if err := execute(ctx, dir, src, made, call); err != nil {
		return 0, 0, err
	}
	in, err := format.Open(ctx, made, nil)
	if err != nil {
		return 0, 0, err
	}
	rec, err := Read(ctx, in, format.Options{})
	in.Close()
	if err != nil {
		return 0, 0, err
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return 0, 0, err
	}
	f, err := atomicfile.Create(out)
	if err != nil {
		return 0, 0, err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return 0, 0, err
	}
	return rec.Recorded(), int64(len(data)), f.Commit()
}

// Python returns the interpreter to start: $PERFSIM_PYTHON, else python3.
func Python() (string, error) {
	if p := os.Getenv("PERFSIM_PYTHON"); p != "" {
		return p, nil
	}
	p, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("kernel sources need python3 (3.9 or newer), which is not on the path; PERFSIM_PYTHON names another interpreter")
	}
	return p, nil
}

// unpack writes the embedded package below dir.
func unpack(dir string) error { return os.CopyFS(dir, recorder) }

// execute runs the recorder in a process group of its own, which is gone when
// it returns.
func execute(ctx context.Context, dir string, src *format.Source, out string, call format.KernelCall) error {
	if err := refuse(src, call); err != nil {
		return err
	}
	path := src.Path
	python, err := Python()
	if err != nil {
		return err
	}
	if err := unpack(dir); err != nil {
		return err
	}
	seconds := call.Seconds
	if seconds <= 0 {
		seconds = DefaultSeconds
	}
	name := path
	if call.Function != "" {
		name += ":" + call.Function
	}
	args := []string{"-B", "-m", "perfsim_nki", name, "-o", out, "--timeout", strconv.FormatFloat(seconds, 'g', -1, 64)}
	if call.Machine != "" {
		args = append(args, "--target", call.Machine)
	}
	for _, a := range call.Args {
		args = append(args, "--arg="+a)
	}
	if call.Setup != "" {
		args = append(args, "--setup", call.Setup)
	}
	if call.Grid != "" {
		args = append(args, "--grid", call.Grid)
	}
	// The recorder ends itself at the limit, with the kernel's line; this one
	// is for what does not come back to Python.
	hard, cancel := context.WithTimeout(ctx, time.Duration((3*seconds+10)*float64(time.Second)))
	defer cancel()
	cmd := exec.CommandContext(hard, python, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0", "PYTHONUTF8=1")
	stderr := &tail{to: call.Stderr}
	cmd.Stderr = stderr
	own(cmd)
	cmd.WaitDelay = 2 * time.Second
	if call.Executes != nil {
		call.Executes(path)
	}
	err = cmd.Run()
	reap(cmd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if hard.Err() != nil {
		return fmt.Errorf("%s: the kernel still runs after %g s and was ended (--timeout)", path, seconds)
	}
	if err == nil {
		return nil
	}
	text := stderr.message()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 && text != "" {
		return &UsageError{text}
	}
	if text == "" {
		text = fmt.Sprintf("%s: the recorder failed: %v: %s", path, err, stderr.last())
	}
	return errors.New(text)
}

// tail passes text on and keeps its end.
type tail struct {
	to   io.Writer
	kept []byte
}

const prefix = "perfsim_nki: "

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - 1<<16; n > 0 {
		t.kept = t.kept[n:]
	}
	if t.to != nil && !bytes.Contains(p, []byte(prefix)) {
		_, _ = t.to.Write(p) // what a kernel prints is no part of the answer
	}
	return len(p), nil
}

// message returns what the recorder said, without its name.
func (t *tail) message() string {
	i := bytes.LastIndex(t.kept, []byte(prefix))
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(string(t.kept[i+len(prefix):]))
}

// last returns the last line.
func (t *tail) last() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return lines[len(lines)-1]
}
