// Package atomicfile writes a file so that its name never holds half of it:
// the bytes go to a temporary file in the same folder, which takes the final
// name only when everything is written.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"perfsim/io/fault"
	"perfsim/io/internal/lock"
)

// File is a file under construction. Exactly one of Commit and Abort ends it;
// Abort after Commit does nothing, so that it can be deferred.
type File struct {
	*os.File
	path   string // the final name, links resolved
	direct bool   // a device or pipe, written in place: it cannot be replaced
	done   bool
}

// Create begins to write path. A symbolic link is followed, so that the file
// it names is replaced and not the link. A device or a pipe (/dev/null,
// /dev/stdout) is opened as it is: renaming over it would destroy it.
func Create(path string) (*File, error) {
	if path == "" {
		return nil, errors.New("empty output file name")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return nil, fmt.Errorf("output %s is a directory", path)
	case err == nil && !fi.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &File{File: f, path: path, direct: true}, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	sweep(path)
	// O_EXCL and a random name: two runs that write the same file each
	// finish their own, and the last rename wins with a whole file. Mode
	// 0666 leaves the permissions to the user's umask, which CreateTemp
	// would not.
	for range 100 {
		var b [6]byte
		rand.Read(b[:]) // never fails, by its contract
		tmp := filepath.Join(filepath.Dir(path), temporary(path)+fmt.Sprintf("%x.tmp", b))
		err := fault.At("create", tmp)
		var f *os.File
		if err == nil {
			f, err = os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create %s: %w", path, unnamed(err))
		}
		if err := lock.File(f, tmp); err != nil { // swept by another run just now
			f.Close()
			continue
		}
		return &File{File: f, path: path}, nil
	}
	return nil, fmt.Errorf("create %s: no free temporary name in its folder", path)
}

// temporary returns how the temporary names of path begin.
func temporary(path string) string { return fmt.Sprintf(".%.40s.", filepath.Base(path)) }

// sweep removes temporary files of path whose processes have ended. A folder
// that cannot be read is left as it is: creating the file says why.
func sweep(path string) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		hex, ours := strings.CutPrefix(name, temporary(path))
		hex, temp := strings.CutSuffix(hex, ".tmp")
		if !ours || !temp || len(hex) != 12 || strings.Trim(hex, "0123456789abcdef") != "" {
			continue
		}
		tmp := filepath.Join(filepath.Dir(path), name)
		if held, err := lock.Path(tmp); err == nil {
			os.Remove(tmp)
			held.Close()
		}
	}
}

// Write writes to the file; an error names the file as the caller does.
func (f *File) Write(p []byte) (int, error) {
	n, err := fault.Writer(f.File, f.path).Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, unnamed(err))
	}
	return n, err
}

// WriteAt writes to the file at a place; an error names the file as the caller
// does.
func (f *File) WriteAt(p []byte, at int64) (int, error) {
	n, err := 0, fault.At("write", f.path)
	if err == nil {
		n, err = f.File.WriteAt(p, at)
	}
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, unnamed(err))
	}
	return n, err
}

// ReadFrom keeps io.Copy to Write.
func (f *File) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{f}, r)
}

// WriteString is Write of a string.
func (f *File) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// unnamed drops the temporary name, which would only puzzle the reader.
func unnamed(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Commit flushes the file to the disk, closes it and gives it its name. On an
// error nothing is left behind and the old file, if any, is as it was.
func (f *File) Commit() error {
	if f.done {
		return errors.New("atomicfile: Commit after the end")
	}
	f.done = true
	tmp := f.Name()
	if f.direct {
		return f.Close()
	}
	err := f.Sync() // delayed allocation reports a full disk here, not at Close
	if err == nil {
		err = fault.At("rename", f.path)
	}
	if err == nil {
		err = os.Rename(tmp, f.path) // before Close, which gives the lock back
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write %s: %w", f.path, unnamed(err))
	}
	return nil
}

// Abort drops the file. It does nothing after Commit.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	if !f.direct {
		os.Remove(f.Name())
	}
	f.Close()
}
