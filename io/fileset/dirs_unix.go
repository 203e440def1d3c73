//go:build unix

package fileset

import (
	"errors"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirs keeps folders below root open: a rename of every file of a large set
// opens them anew otherwise, which costs more than the rename.
type dirs struct {
	root *os.Root
	open map[string]dir
}

type dir struct {
	file *os.File
	fd   int // of file, which asks the system at every call
}

// mostOpen is how many folders stay open.
const mostOpen = 256

// at opens the folder of a path below root and returns it with the last name.
func (d *dirs) at(name string) (fd int, base string, err error) {
	key := path.Dir(name)
	in, ok := d.open[key]
	if !ok {
		if len(d.open) >= mostOpen {
			d.close()
		}
		f, err := d.root.Open(key)
		if err != nil {
			return 0, "", err
		}
		if d.open == nil {
			d.open = map[string]dir{}
		}
		in = dir{f, int(f.Fd())}
		d.open[key] = in
	}
	return in.fd, path.Base(name), nil
}

func (d *dirs) both(from, to string, do func(fromFd int, from string, toFd int, to string) error) error {
	a, x, err := d.at(from)
	if err != nil {
		return err
	}
	b, y, err := d.at(to)
	if err == nil && len(d.open) == 1 { // the second pushed the first out
		a, x, err = d.at(from)
	}
	if err != nil {
		return err
	}
	for {
		if err := do(a, x, b, y); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// rename gives a file another name, whatever has it.
func (d *dirs) rename(from, to string) error { return d.both(from, to, unix.Renameat) }

// link gives a file a second name.
func (d *dirs) link(from, to string) error {
	return d.both(from, to, func(a int, x string, b int, y string) error { return unix.Linkat(a, x, b, y, 0) })
}

func (d *dirs) close() {
	for _, in := range d.open {
		in.file.Close()
	}
	clear(d.open)
}
