package psim

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// populate brings the pages of columns that are about to be read into the
// page table at once, which is several times as fast as one fault each, and
// finds a file that cannot be read while that is still an error and not a
// signal.
func (s *Snapshot) populate(want func(column string) bool) error {
	if s.whole == nil {
		return nil
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(s.whole)))
	if base%pageSize != 0 {
		return nil // in memory, not mapped
	}
	for _, c := range s.cols {
		if c.Bytes < pageSize || want != nil && !want(c.Name) {
			continue
		}
		switch err := unix.Madvise(s.whole[c.Offset:c.Offset+c.Bytes], unix.MADV_POPULATE_READ); err {
		case unix.EFAULT, unix.EHWPOISON:
			return fmt.Errorf("%s: column %s cannot be read from the disk, or the file was cut short just now: %w", s.Name, c.Name, err)
		default: // kernels before 5.14 do not know it; touching the pages will do
		}
	}
	return nil
}
