package emit

import (
	"errors"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const directChunk = 2 << 20

// direct is a file whose first part goes through the page cache and the rest
// past it. The rest is written by a goroutine of its own, so that rendering
// goes on meanwhile. Close must be called.
type direct struct {
	f      *os.File
	cached int64  // bytes that still go through the cache
	mem    []byte // two chunks of whole pages
	buf    []byte // being filled
	free   chan []byte
	full   chan []byte
	done   chan struct{}
	failed atomic.Pointer[error]
	plain  bool // the file system takes no direct writes
}

func newDirect(f *os.File, cached int64) *direct { return &direct{f: f, cached: cached} }

// Write implements io.Writer. An error meanwhile is returned by a later call or
// by Close.
func (d *direct) Write(p []byte) (int, error) {
	size := len(p)
	if d.full == nil && !d.plain {
		n, err := d.f.Write(p[:min(int64(len(p)), d.cached)])
		d.cached -= int64(n)
		if err != nil || n == size {
			return n, err
		}
		p = p[n:]
		d.start()
	}
	if d.plain {
		n, err := d.f.Write(p)
		return size - len(p) + n, err
	}
	for len(p) > 0 {
		n := copy(d.buf[len(d.buf):cap(d.buf)], p)
		d.buf, p = d.buf[:len(d.buf)+n], p[n:]
		if len(d.buf) == cap(d.buf) {
			d.full <- d.buf
			d.buf = (<-d.free)[:0]
			if err := d.failed.Load(); err != nil {
				return 0, *err
			}
		}
	}
	return size, nil
}

// start turns to direct writes, or to plain ones for good.
func (d *direct) start() {
	mem, err := unix.Mmap(-1, 0, 2*directChunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		d.plain = true
		return
	}
	if err := setDirect(d.f, true); err != nil {
		d.plain = true
		unix.Munmap(mem) // what else could be done
		return
	}
	d.mem, d.free, d.full, d.done = mem, make(chan []byte, 2), make(chan []byte, 2), make(chan struct{})
	d.buf = mem[:0:directChunk]
	d.free <- mem[directChunk:]
	go func() {
		for b := range d.full {
			if d.failed.Load() == nil {
				if err := d.chunk(b); err != nil {
					d.failed.Store(&err)
				}
			}
			d.free <- b
		}
		close(d.done)
	}()
}

// chunk writes a whole chunk. File systems may take the flag and refuse the
// write; the bytes then go through the cache.
func (d *direct) chunk(b []byte) error {
	_, err := d.f.Write(b)
	if errors.Is(err, unix.EINVAL) {
		if err := setDirect(d.f, false); err != nil {
			return err
		}
		_, err = d.f.Write(b)
	}
	return err
}

// Close writes what is left; the file stays open.
func (d *direct) Close() error {
	if d.full == nil {
		return nil
	}
	close(d.full)
	<-d.done
	var err error
	if e := d.failed.Load(); e != nil {
		err = *e
	} else {
		err = setDirect(d.f, false) // the rest is no whole number of pages
	}
	if err == nil {
		_, err = d.f.Write(d.buf)
	}
	d.full, d.buf, d.plain = nil, nil, true
	if uerr := unix.Munmap(d.mem); err == nil {
		err = uerr
	}
	return err
}

func setDirect(f *os.File, on bool) error {
	fd := f.Fd()
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if flags &^= unix.O_DIRECT; on {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(fd, unix.F_SETFL, flags)
	return err
}

// duplicate copies a file of size bytes past the page cache; out writes to dst.
func duplicate(out io.Writer, dst, src *os.File, size int64) error {
	mem, err := unix.Mmap(-1, 0, directChunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem) // what else could be done
	direct := setDirect(src, true) == nil && setDirect(dst, true) == nil
	for done := int64(0); done < size; {
		n, err := src.Read(mem)
		if err == nil {
			if direct && n < len(mem) { // the rest is no whole number of pages
				direct = false
				err = setDirect(dst, false)
			}
			if err == nil {
				_, err = out.Write(mem[:n])
			}
		}
		if direct && errors.Is(err, unix.EINVAL) { // as in chunk
			direct = false
			if err = errors.Join(setDirect(src, false), setDirect(dst, false)); err == nil {
				_, err = src.Seek(done, io.SeekStart)
				n = 0
			}
		}
		if err != nil {
			return err
		}
		done += int64(n)
	}
	return nil
}

// clone makes dst share the blocks of src and reports whether the file system
// can do that.
func clone(dst, src *os.File) bool { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil }
