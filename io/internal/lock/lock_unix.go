//go:build unix

// Package lock distinguishes the files of living processes from those of dead
// ones: a process holds a lock on its unfinished files, and the system releases
// it at the end of the process, whatever the reason.
package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Path opens and locks a file or folder until the file returned is closed or
// the process ends. It fails where a living process has the lock, or path was
// removed meanwhile.
func Path(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := File(f, path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// File is Path for a file that is open already.
func File(f *os.File, path string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	held, err1 := f.Stat()
	now, err2 := os.Lstat(path)
	if err1 != nil || err2 != nil || !os.SameFile(held, now) {
		return errors.New("removed by another process")
	}
	return nil
}
