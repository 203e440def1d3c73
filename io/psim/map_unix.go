//go:build unix

package psim

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file privately: writes stay in memory.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return b, func() error { return os.NewSyscallError("munmap", unix.Munmap(b)) }, nil
}
