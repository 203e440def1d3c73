package pttf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"perfsim/io/internal/atomicfile"
)

// create writes the package out from files and returns its size in bytes. The
// name out appears only when the package is complete; on an error nothing is
// left and an older package is as it was. No files is an error here: the pass
// skips the package then (see Package).
func create(ctx context.Context, out string, files []string, opt Options) (size int64, err error) {
	say := logger(opt.Log)
	if len(files) == 0 {
		return 0, errors.New("no files to pack")
	}
	if target, err := os.Stat(out); err == nil {
		for _, f := range files {
			if fi, err := os.Stat(f); err == nil && os.SameFile(fi, target) {
				return 0, fmt.Errorf("the package %s is one of its own members", out)
			}
		}
	}
	dst, err := atomicfile.Create(out)
	if err != nil {
		say("Failed to open archive file: " + err.Error())
		return 0, err
	}
	defer dst.Abort()
	count := &countWriter{w: dst}
	if err := WriteTo(ctx, count, files, opt); err != nil {
		return 0, err
	}
	if err := dst.Commit(); err != nil {
		return 0, err
	}
	return count.n, nil
}

// WriteTo writes a package of files to w, as Create does.
func WriteTo(ctx context.Context, w io.Writer, files []string, opt Options) error {
	type member struct{ name, path string }
	members := make([]member, len(files))
	var total int64
	for i, f := range files {
		members[i] = member{opt.memberName(f), f}
		if fi, err := os.Stat(f); err == nil { // for progress only
			total += fi.Size()
		}
	}
	if !opt.AsFound {
		slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	}
	pw, err := NewWriter(w, opt)
	if err != nil {
		return err
	}
	pw.sum = total
	for _, m := range members {
		if err := pw.AddFile(ctx, m.name, m.path); err != nil {
			pw.Close()
			return err
		}
	}
	return pw.Close()
}

// Result says what Package made.
type Result struct {
	Created bool     // false if there was nothing to pack
	Path    string   // of the package
	Files   []string // that it holds, in the order they were found
	Size    int64    // of the package, bytes
}

// Package is the documented packaging pass: it searches dir for trace files
// and packs them into out, saying so in the documented lines. A directory
// without trace files is no error: nothing is created.
func Package(ctx context.Context, dir, out string, opt Options) (Result, error) {
	say := logger(opt.Log)
	say("Searching for perf_sim trace files in: " + dir)
	files, err := Collect(dir, opt.Log)
	if errors.Is(err, fs.ErrNotExist) {
		say("No perf_sim trace files found. Skipping tarball creation.")
	}
	if err != nil {
		return Result{}, err
	}
	if len(files) == 0 {
		say("No perf_sim trace files found. Skipping tarball creation.")
		return Result{}, nil
	}
	size, err := create(ctx, out, files, opt)
	if err != nil {
		say("Failed to create perf sim package")
		return Result{}, err
	}
	say("Successfully created " + FileName)
	return Result{Created: true, Path: out, Files: files, Size: size}, nil
}

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
