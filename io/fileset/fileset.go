// Package fileset writes files of one folder as a set: after an error or a
// kill at any moment the folder holds the files from before or the new ones,
// never some of each, once the next run in that folder has begun.
//
// Files are written to a hidden folder next to their names. Commit first looks
// whether every name can be taken, then notes in the hidden folder what it is
// about to move (the journal), and moves. Open completes what the journal of a
// dead process says, and removes hidden folders without one. A living process
// holds a lock on its folder.
package fileset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perfsim/io/fault"
	"perfsim/io/internal/lock"
)

// prefix starts the names of hidden folders.
const prefix = ".perfsim-"

// Names within the hidden folder.
const (
	journalName = ".journal" // the names being moved
	backupName  = ".old"     // files that were there before
)

// Reserved reports whether a path is one of the hidden folder's own: a set
// cannot have such a file.
func Reserved(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == journalName || first == journalName+".tmp" || first == backupName
}

// Set is a set of files under construction.
type Set struct {
	dir     string
	staging string
	lock    *os.File
	made    []string // folders made for dir, outermost first
}

// Open prepares to write into dir, which is made where it is absent.
func Open(dir string) (*Set, error) {
	s := &Set{dir: filepath.Clean(dir)}
	for d := s.dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		s.made = append(s.made, d)
	}
	slices.Reverse(s.made)
	if err := errors.Join(fault.At("mkdir", s.dir), os.MkdirAll(s.dir, 0o755)); err != nil {
		s.unmake()
		return nil, fmt.Errorf("output folder: %w", err)
	}
	if err := Recover(s.dir); err != nil {
		s.unmake()
		return nil, err
	}
	for range 100 {
		err := fault.At("mkdir", s.dir)
		if err == nil {
			s.staging, err = os.MkdirTemp(s.dir, prefix+"*")
		}
		if err != nil {
			s.unmake()
			return nil, fmt.Errorf("output folder: %w", err)
		}
		// Between making and locking, another run may have taken the folder for
		// that of a dead process.
		if s.lock, err = os.Open(s.staging); err != nil {
			continue
		}
		if err = lock.File(s.lock, s.staging); err == nil {
			return s, nil
		}
		s.lock.Close()
	}
	s.unmake()
	return nil, fmt.Errorf("output folder %s: its hidden folders are removed by another process", s.dir)
}

// Staging is the hidden folder to which the files are written.
func (s *Set) Staging() string { return s.staging }

// Commit gives the named files of the hidden folder their names. On an error
// the folder is as it was.
func (s *Set) Commit(names []string) error {
	for _, name := range names {
		if st, err := os.Lstat(filepath.Join(s.dir, name)); err == nil && st.IsDir() {
			return fmt.Errorf("output %s is a directory", filepath.Join(s.dir, name))
		}
		if _, err := os.Lstat(filepath.Join(s.staging, name)); err != nil {
			return fmt.Errorf("output %s: %w", filepath.Join(s.dir, name), unnamed(err))
		}
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := Switch(root, filepath.Base(s.staging), names); err != nil {
		return fmt.Errorf("output folder %s: %w", s.dir, err)
	}
	s.end()
	s.made = nil
	return nil
}

// Switch gives the files of staging, a hidden folder below root, their names,
// slash-separated paths below root whose folders are there. On an error the
// files are as they were.
func Switch(root *os.Root, staging string, names []string) error {
	if err := note(root, staging, names); err != nil {
		return unnamed(err)
	}
	if err := move(root, staging, names, false); err != nil {
		return errors.Join(err, undo(root, staging, names))
	}
	return nil
}

// note writes the journal. From here on the set is the new one.
func note(root *os.Root, staging string, names []string) error {
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := root.Mkdir(path.Join(staging, backupName), 0o755); err != nil {
		return err
	}
	tmp := path.Join(staging, journalName+".tmp")
	if err := errors.Join(fault.At("write", tmp), root.WriteFile(tmp, text, 0o644)); err != nil {
		return err
	}
	if err := fault.At("rename", tmp); err != nil {
		return err
	}
	return root.Rename(tmp, path.Join(staging, journalName))
}

// old is where file i of the set waits that was there before.
func old(staging string, i int) string {
	return path.Join(staging, backupName, strconv.Itoa(i))
}

// move moves the files that are still in staging to their names, and keeps
// what was there before. Where a dead process began to, again says so, some may
// be moved already.
func move(root *os.Root, staging string, names []string, again bool) error {
	d := dirs{root: root}
	defer d.close()
	for i, name := range names {
		from := path.Join(staging, name)
		if again {
			if _, err := root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		err := fault.At("link", name)
		if err == nil {
			err = keep(&d, name, old(staging, i))
		}
		if err == nil {
			err = fault.At("rename", name)
		}
		if err == nil {
			err = d.rename(from, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, unnamed(err))
		}
	}
	return nil
}

// keep gives a file a second name: the rename that follows then replaces it
// without a moment in which its name is absent.
func keep(d *dirs, name, old string) error {
	err := d.link(name, old)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist):
		return nil
	}
	return d.rename(name, old) // a file system without hard links
}

// undo takes moved files back and puts those from before in their place. A
// kill within finds the journal: the next run completes the set.
func undo(root *os.Root, staging string, names []string) error {
	var errs []error
	d := dirs{root: root}
	defer d.close()
	for i, name := range slices.Backward(names) {
		from := path.Join(staging, name)
		if _, err := root.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			if err := d.rename(name, from); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if err := d.rename(old(staging, i), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, root.Remove(path.Join(staging, journalName)))...)
}

// Abort drops the files. It does nothing after Commit.
func (s *Set) Abort() {
	if s.staging == "" {
		return
	}
	s.end()
	s.unmake()
}

// end removes the hidden folder and gives the lock back.
func (s *Set) end() {
	os.RemoveAll(s.staging) // what an error leaves the next run removes
	s.lock.Close()
	s.staging = ""
}

// unmake removes the folders made for dir, where they are empty.
func (s *Set) unmake() {
	for _, d := range slices.Backward(s.made) {
		os.Remove(d)
	}
	s.made = nil
}

// Recover completes or removes what dead processes left in dir.
func Recover(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("output folder: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		held, err := lock.Path(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // of a living process, or gone
		}
		err = complete(dir, e.Name())
		held.Close()
		if err != nil {
			return fmt.Errorf("%s holds outputs of a run that was killed and cannot be completed: %w", filepath.Join(dir, e.Name()), err)
		}
	}
	return nil
}

// complete moves what the journal in staging says and removes staging.
func complete(dir, staging string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := root.ReadFile(path.Join(staging, journalName))
	var names []string
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &names); err != nil {
			return err
		}
		for _, name := range names {
			if !filepath.IsLocal(name) {
				return fmt.Errorf("the journal names %q", name)
			}
		}
		if err := move(root, staging, names, true); err != nil {
			return err
		}
	}
	return root.RemoveAll(staging)
}

// Name puts the folder in the place of the hidden folder in the text of an
// error of writing a file.
func (s *Set) Name(err error) error {
	if err == nil || s.staging == "" || !strings.Contains(err.Error(), s.staging) {
		return err
	}
	return renamed{err, strings.ReplaceAll(err.Error(), s.staging, s.dir)}
}

type renamed struct {
	error
	text string
}

func (r renamed) Error() string { return r.text }
func (r renamed) Unwrap() error { return r.error }

// unnamed drops the hidden name from an error.
func unnamed(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
