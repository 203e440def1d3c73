package tarball

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"perfsim/io/fault"
	"perfsim/io/fileset"
	"perfsim/io/internal/lock"
)

// ExtractOptions choose what is extracted and how.
type ExtractOptions struct {
	// Overwrite allows files that exist to be replaced.
	Overwrite bool
	// Flat drops the folders of the names: every file lands in the folder
	// itself. Names that are absolute or climb out are then usable.
	Flat bool
	// Names selects members by name, written as stored or as SafeName
	// gives it; empty takes all. What is not wanted is still read to its
	// end and checked. A name that no member has is an error.
	Names []string
	// Progress is called with how many bytes were extracted since its last call.
	Progress func(n int64)
}

// ErrFileExists is wrapped by the error about a file that Extract would have to
// replace.
var ErrFileExists = errors.New("file exists")

// Extracted is one file that Extract wrote.
type Extracted struct {
	Name string `json:"name"` // of the member
	Path string `json:"path"` // below the folder, slash-separated
	Size int64  `json:"size"`
}

// Extract writes the members of r below dir, which is made if need be. It is
// all or nothing: the files wait in a temporary folder inside dir and take
// their names when the whole archive has been read and found sound. Members
// other than files and folders, names that are not safe, two members of one
// name and files that exist (without Overwrite) are errors.
func Extract(r *Reader, dir string, opt ExtractOptions) (files []Extracted, err error) {
	dir = filepath.Clean(dir)
	within, fresh, mode := dir, "", fs.FileMode(0o700)
	switch fi, err := os.Stat(dir); {
	case err == nil && !fi.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	case errors.Is(err, fs.ErrNotExist) && filepath.Base(dir) != "..":
		// The temporary folder becomes the new one: a rename for all files.
		within, fresh, mode = filepath.Dir(dir), filepath.Base(dir), 0o777
		if err := os.MkdirAll(within, 0o777); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	if err := fileset.Recover(within); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(within)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var b [6]byte
	rand.Read(b[:])                                   // never fails, by its contract
	stage := fmt.Sprintf(".perfsim-unpack.%x.tmp", b) // see package fileset
	if err := root.Mkdir(stage, mode); err != nil {
		return nil, err
	}
	defer root.RemoveAll(stage)
	if held, err := lock.Path(filepath.Join(within, stage)); err == nil {
		defer held.Close()
	}

	x := extraction{root: root, depth: r.lim.Depth, stage: stage, opt: opt, kind: map[string]Kind{}, found: make([]bool, len(opt.Names)),
		there: map[string]bool{".": true, stage: true}}
	defer x.leave()
	if err := x.unpack(r); err != nil {
		return nil, err
	}
	if fresh != "" {
		return x.files, x.become(fresh)
	}
	if err := x.place(); err != nil {
		return nil, fmt.Errorf("in %s: %w", dir, err)
	}
	return x.files, nil
}

// maxPaths bounds the memory for the paths of one archive: a name may hold
// hundreds of folders of its own.
const maxPaths = 4 << 20

type extraction struct {
	root  *os.Root
	stage string
	opt   ExtractOptions
	files []Extracted
	dirs  []string
	kind  map[string]Kind     // by path: every file, every folder on the way
	depth int                 // most folders of a path, 0 for any
	there map[string]bool     // folders that are there
	found []bool              // which of opt.Names were there
	open  map[string]*os.Root // folders open for writing, by path below root
}

// mostOpen is how many folders stay open: archives often take turns between
// folders, and opening one costs as much as half a file.
const mostOpen = 256

// become gives the temporary folder its name, which nothing has.
func (x *extraction) become(name string) error {
	for _, d := range x.dirs {
		if err := x.mkdirAll(x.staged(d), nil); err != nil {
			return err
		}
	}
	if err := fault.At("rename", name); err != nil {
		return err
	}
	return x.root.Rename(x.stage, name)
}

// enter opens the folder that a file is written to, and keeps it open.
func (x *extraction) enter(dir string) (*os.Root, error) {
	if r := x.open[dir]; r != nil {
		return r, nil
	}
	if len(x.open) >= mostOpen {
		x.leave()
	}
	if err := x.mkdirAll(dir, nil); err != nil {
		return nil, err
	}
	r, err := x.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if x.open == nil {
		x.open = map[string]*os.Root{}
	}
	x.open[dir] = r
	return r, nil
}

// leave closes the folders that are open.
func (x *extraction) leave() {
	for _, r := range x.open {
		r.Close()
	}
	clear(x.open)
}

// unpack reads the archive to its end into the temporary folder.
func (x *extraction) unpack(r *Reader) error {
	buf := make([]byte, chunk)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return x.missing()
		}
		if err != nil {
			return err
		}
		if !x.wanted(e.Name) {
			continue
		}
		name, skip, err := x.target(e)
		if err != nil {
			return fmt.Errorf("member %q: %w", e.Name, err)
		}
		if skip {
			continue
		}
		if err := x.write(r, x.staged(name), e, buf); err != nil {
			return err
		}
		x.files = append(x.files, Extracted{Name: e.Name, Path: name, Size: e.Size})
	}
}

func (x *extraction) wanted(name string) bool {
	if len(x.opt.Names) == 0 {
		return true
	}
	i := slices.Index(x.opt.Names, name)
	if clean, err := SafeName(name); i < 0 && err == nil {
		i = slices.Index(x.opt.Names, clean)
	}
	if i < 0 {
		return false
	}
	x.found[i] = true
	return true
}

func (x *extraction) missing() error {
	for i, ok := range x.found {
		if !ok && !slices.Contains(x.opt.Names[:i], x.opt.Names[i]) {
			return fmt.Errorf("no member is named %q", x.opt.Names[i])
		}
	}
	return nil
}

// target checks a member and returns the path it will have. skip is set for
// members that need no file.
func (x *extraction) target(e Entry) (name string, skip bool, err error) {
	switch {
	case e.Kind == Directory && (x.opt.Flat || path.Clean(e.Name) == "."):
		return "", true, nil
	case e.Kind != Regular && e.Kind != Directory:
		return "", false, fmt.Errorf("is a %s; only files and directories are extracted", e.Kind)
	}
	name = e.Name
	if x.opt.Flat {
		name = path.Base(name)
	}
	if name, err = SafeName(name); err != nil {
		if !x.opt.Flat && e.Kind == Regular {
			if _, ferr := SafeName(path.Base(e.Name)); ferr == nil {
				err = fmt.Errorf("%w (extract it flat, under its base name)", err)
			}
		}
		return "", false, err
	}
	if n := strings.Count(name, "/"); x.depth > 0 && n > x.depth {
		return "", false, fmt.Errorf("%w: lies in %d folders, more than %d", ErrLimit, n, x.depth)
	}
	if strings.HasPrefix(name, x.stage) || fileset.Reserved(name) {
		return "", false, errors.New("has a name that the temporary folder uses")
	}
	if _, ok := x.kind[name]; ok && (e.Kind == Regular || x.kind[name] == Regular) {
		return "", false, fmt.Errorf("a second member has the path %q", name)
	}
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		k, known := x.kind[d]
		if known && k == Regular {
			return "", false, fmt.Errorf("lies below %q, which is a file", d)
		}
		if known {
			break // and so is every folder above it
		}
		x.kind[d] = Directory
	}
	if len(x.kind) > maxPaths {
		return "", false, fmt.Errorf("%w: more than %d files and folders", ErrLimit, maxPaths)
	}
	x.kind[name] = e.Kind
	if e.Kind == Directory {
		x.dirs = append(x.dirs, name)
		return "", true, nil
	}
	return name, false, nil
}

func (x *extraction) staged(name string) string { return x.stage + "/" + name }

func (x *extraction) write(r *Reader, file string, e Entry, buf []byte) error {
	dir, err := x.enter(path.Dir(file))
	if err != nil {
		return err
	}
	file = path.Base(file)
	if err := fault.At("create", e.Name); err != nil {
		return err
	}
	f, err := dir.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	to := fault.Writer(f, e.Name)
	var n int64
	for {
		k, err := r.Read(buf)
		if k > 0 {
			if _, werr := to.Write(buf[:k]); werr != nil {
				if pe, ok := errors.AsType[*fs.PathError](werr); ok {
					werr = pe.Err // without the temporary name
				}
				return fmt.Errorf("member %q: write: %w", e.Name, werr)
			}
			n += int64(k)
			if x.opt.Progress != nil {
				x.opt.Progress(int64(k))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("member %q: %w", e.Name, err)
		}
	}
	if n != e.Size {
		return fmt.Errorf("member %q: %d bytes, its header says %d", e.Name, n, e.Size)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("member %q: %w", e.Name, err)
	}
	if e.ModTime.Unix() > 0 { // zero is the reproducible archives' "no time"
		dir.Chtimes(file, e.ModTime, e.ModTime) // not worth failing for
	}
	return nil
}

// place gives the files their names, after a look at all of them, and takes
// back what it did if one fails.
func (x *extraction) place() (err error) {
	for _, f := range x.files {
		fi, err := x.root.Lstat(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir):
		case err != nil:
			return err
		case fi.IsDir():
			return fmt.Errorf("%s is a directory", f.Path)
		case !x.opt.Overwrite:
			return fmt.Errorf("%s: %w", f.Path, ErrFileExists)
		}
	}
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, d := range slices.Backward(made) {
			x.root.Remove(d)
		}
	}()
	for _, d := range x.dirs {
		if err := x.mkdirAll(d, &made); err != nil {
			return err
		}
	}
	names := make([]string, len(x.files))
	for i, f := range x.files {
		if err := x.mkdirAll(path.Dir(f.Path), &made); err != nil {
			return err
		}
		names[i] = f.Path
	}
	return fileset.Switch(x.root, x.stage, names)
}

// mkdirAll makes a folder and its parents below the root and adds the ones it
// made to made, where it is not nil.
func (x *extraction) mkdirAll(dir string, made *[]string) error {
	if x.there[dir] {
		return nil
	}
	if fi, err := x.root.Stat(dir); err == nil && fi.IsDir() {
		x.there[dir] = true
		return nil
	}
	if err := x.mkdirAll(path.Dir(dir), made); err != nil {
		return err
	}
	if err := x.root.Mkdir(dir, 0o777); err != nil {
		return err
	}
	x.there[dir] = true
	if made != nil {
		*made = append(*made, dir)
	}
	return nil
}
