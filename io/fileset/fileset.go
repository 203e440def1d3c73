// Package fileset writes files of one folder as a set: after an error or a
// kill at any moment the folder holds the files from before or the new ones,
// never some of each, once the next run in that folder has begun.
//
// Files are written to a hidden folder beside their names. Commit first looks
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
	"path/filepath"
	"slices"
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
	if err := s.note(names); err != nil {
		return fmt.Errorf("output folder %s: %w", s.dir, unnamed(err))
	}
	if err := move(s.dir, s.staging, names); err != nil {
		return errors.Join(err, undo(s.dir, s.staging, names))
	}
	s.end()
	s.made = nil
	return nil
}

// note writes the journal. From here on the set is the new one.
func (s *Set) note(names []string) error {
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(s.staging, backupName), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(s.staging, journalName+".tmp")
	if err := errors.Join(fault.At("write", tmp), os.WriteFile(tmp, text, 0o644)); err != nil {
		return err
	}
	return errors.Join(fault.At("rename", tmp), os.Rename(tmp, filepath.Join(s.staging, journalName)))
}

// move moves the files that are still in staging to dir, and what was there
// before to the backup.
func move(dir, staging string, names []string) error {
	for _, name := range names {
		from, to, old := filepath.Join(staging, name), filepath.Join(dir, name), filepath.Join(staging, backupName, name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue // moved before the process ended
		}
		err := fault.At("link", to)
		if err == nil {
			err = keep(to, old)
		}
		if err == nil {
			err = fault.At("rename", to)
		}
		if err == nil {
			err = os.Rename(from, to)
		}
		if err != nil {
			return fmt.Errorf("output %s: %w", to, unnamed(err))
		}
	}
	return nil
}

// keep gives the file at path a second name, old: the rename that follows then
// replaces it without a moment in which the name is absent.
func keep(path, old string) error {
	err := os.Link(path, old)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist):
		return nil
	}
	return os.Rename(path, old) // a file system without hard links
}

// undo takes moved files back and puts those from before in their place.
func undo(dir, staging string, names []string) error {
	// A kill from here on finds the journal: the next run completes the set.
	var errs []error
	for _, name := range slices.Backward(names) {
		from, to, old := filepath.Join(staging, name), filepath.Join(dir, name), filepath.Join(staging, backupName, name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(to, from); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if err := os.Rename(old, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, os.Remove(filepath.Join(staging, journalName)))...)
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
		staging := filepath.Join(dir, e.Name())
		held, err := lock.Path(staging)
		if err != nil {
			continue // of a living process, or gone
		}
		err = complete(dir, staging)
		if err == nil {
			err = os.RemoveAll(staging)
		}
		held.Close()
		if err != nil {
			return fmt.Errorf("%s holds outputs of a run that was killed and cannot be completed: %w", staging, err)
		}
	}
	return nil
}

// complete moves what the journal in staging says.
func complete(dir, staging string) error {
	text, err := os.ReadFile(filepath.Join(staging, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	for _, name := range names {
		if name != filepath.Base(name) || !filepath.IsLocal(name) {
			return fmt.Errorf("the journal names %q", name)
		}
	}
	return move(dir, staging, names)
}

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
