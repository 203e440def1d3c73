package ecs

import (
	"syscall"
	"unsafe"
)

// hugeFrom is the size in bytes from which fresh memory asks for huge pages.
const hugeFrom = 4 << 20

// adviseHuge asks for huge pages behind fresh memory. The first touch of a
// page costs more than the work done in it, and a huge page costs about a
// third of the small ones it stands for; scattered reads miss fewer
// translations. It is a wish: an error changes nothing.
func adviseHuge(p unsafe.Pointer, bytes uintptr) {
	if bytes < hugeFrom {
		return
	}
	const page = 4096
	skip := -uintptr(p) % page
	b := unsafe.Slice((*byte)(unsafe.Add(p, skip)), (bytes-skip)/page*page)
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
}

// populate has the system put memory behind the pages of b now. Their
// contents stay as they are, also while others write to them.
func populate(b []byte) {
	const madvPopulateWrite = 23 // since Linux 5.14; an error changes nothing
	p := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	const page = 4096
	skip := int(-p % page)
	if skip+page > len(b) {
		return
	}
	b = b[skip:]
	_ = syscall.Madvise(b[:len(b)/page*page], madvPopulateWrite)
}
