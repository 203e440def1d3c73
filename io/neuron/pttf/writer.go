package pttf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"archive/tar"

	"perfsim/io/internal/tarball"
)

// Options choose what a package looks like. The zero value is the
// reproducible package.
type Options struct {
	// AsFound keeps the order in which files are given, their modes, owner
	// numbers and modification, access and change times, as the documented
	// writer does: the times are PAX records. Without it members are sorted by
	// name, with mode 0644, owner 0 and time ModTime.
	AsFound bool
	// PathNames stores each file's path as given instead of its base name.
	PathNames bool
	// ModTime is the time of every member unless AsFound; zero means
	// 1970-01-01.
	ModTime time.Time
	// Level is the gzip level, 1 to 9; 0 means 1, the documented one.
	Level int
	// Log receives the documented log lines; may be nil.
	Log func(string)
	// Source, where it gives a reader for a file of that path and size, is
	// read instead of the file; may be nil.
	Source func(path string, size int64) io.ReadCloser
	// Progress is called with how many bytes of traces have been packed, of how
	// many; may be nil.
	Progress func(done, total int64)
}

// Writer writes one package to a stream: for callers who have the traces in
// memory or make them as they go. Create does the same for files.
type Writer struct {
	opt  Options
	gz   io.WriteCloser
	tw   *tarball.Writer
	done int64
	sum  int64 // expected total, for Progress
	err  error
}

// NewWriter begins a package on w. The writer must be closed, also after an
// error.
func NewWriter(w io.Writer, opt Options) (*Writer, error) {
	gz, err := tarball.NewGzip(w, opt.Level)
	if err != nil {
		return nil, err
	}
	return &Writer{opt: opt, gz: gz, tw: tarball.NewWriter(gz)}, nil
}

// Add writes one member of size bytes from r, with the fields of the
// reproducible package (and mtime, if Options.AsFound). Members are written in
// the order of the calls: for repeatable bytes the caller adds them sorted.
// The name should be one that IsTraceName takes; viewers fail on others.
func (w *Writer) Add(ctx context.Context, name string, size int64, mtime time.Time, r io.Reader) error {
	h := tarball.Header{Name: name, Size: size, ModTime: w.opt.ModTime}
	if w.opt.AsFound {
		h.ModTime = mtime
	}
	return w.add(ctx, h, r)
}

func (w *Writer) add(ctx context.Context, h tarball.Header, r io.Reader) error {
	if w.err != nil {
		return w.err
	}
	w.err = w.tw.Add(ctx, h, r, func(n int64) {
		w.done += n
		if w.opt.Progress != nil {
			w.opt.Progress(w.done, max(w.sum, w.done))
		}
	})
	return w.err
}

// AddFile writes the file as a member of that name. The file is read through
// one handle; one that shrinks or grows meanwhile is an error.
func (w *Writer) AddFile(ctx context.Context, name, path string) error {
	say := logger(w.opt.Log)
	fail := func(what string, err error) error {
		say("Failed to " + what + " file: " + path)
		w.err = fmt.Errorf("pack %s: %w", path, err)
		return w.err
	}
	if w.err != nil {
		return w.err
	}
	// Looked at before it is opened: opening a pipe would wait for ever.
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return fail("stat", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail("open", err)
	}
	defer f.Close()
	if fi, err = f.Stat(); err != nil {
		return fail("stat", err)
	}
	h := tarball.Header{Name: name, Size: fi.Size(), ModTime: w.opt.ModTime}
	if w.opt.AsFound {
		// The portable way to owner numbers and times; the names of owners are
		// left out, as documented.
		sys, err := tar.FileInfoHeader(fi, "")
		if err != nil {
			return fail("stat", err)
		}
		h.ModTime, h.Mode, h.UID, h.GID = sys.ModTime, sys.Mode, sys.Uid, sys.Gid
		h.AccessTime, h.ChangeTime = sys.AccessTime, sys.ChangeTime
	}
	var src io.ReadCloser = f
	if w.opt.Source != nil {
		if s := w.opt.Source(path, h.Size); s != nil {
			src = s
		}
	}
	err = w.add(ctx, h, src)
	if src != f {
		if cerr := src.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		w.err = fmt.Errorf("pack %s: %w", path, err)
		return w.err
	}
	say("Added to tarball: " + path)
	return nil
}

// Close ends the package. It returns the first error of all calls. It does
// not close the stream below.
func (w *Writer) Close() error {
	if w.err == nil {
		w.err = w.tw.Close()
	}
	cerr := w.gz.Close() // always: it stops goroutines
	if w.err == nil {
		w.err = cerr
	}
	err := w.err
	if err == nil {
		w.err = errors.New("pttf: package is closed")
	}
	return err
}

// memberName is the name that a file gets in the package.
func (o Options) memberName(path string) string {
	if o.PathNames {
		return filepath.ToSlash(path)
	}
	return filepath.Base(path)
}
