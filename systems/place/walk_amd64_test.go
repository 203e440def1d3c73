//go:build unix

package place

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"perfsim/components"
	"perfsim/ecs"
)

// fenced returns n values behind which, and before which by a page at most,
// nothing can be read or written.
func fenced[T any](t *testing.T, n int) []T {
	page := unix.Getpagesize()
	size := (n*int(unsafe.Sizeof(*new(T))) + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	for _, fence := range [][]byte{b[:page], b[size+page:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	end := unsafe.Pointer(&b[size+page])
	return unsafe.Slice((*T)(unsafe.Add(end, -n*int(unsafe.Sizeof(*new(T))))), n)
}

// Tables that no check has seen cannot make the assembly read or write
// outside its arrays: blocks and rows it cannot trust are left to the Go
// code. What it does read and write outside ends the test.
func TestAssemblyStaysInside(t *testing.T) {
	if !hasFast() {
		t.Skip("no assembly for this machine")
	}
	mark := pair{0xdead, 0xbeef}
	const guard, lanes, places = 16, 12, 2*12 + 2
	couple := couples(lanes)
	placed, left := 0, 0
	for _, n := range []int{1, 7, 8, 9, blockRows - 1, blockRows, 2*blockRows + 5} {
		off, words := fenced[uint32](t, n+1), fenced[uint32](t, 3*n+1)
		flags, banks, lane := fenced[components.Flags](t, n), fenced[uint16](t, n), fenced[uint16](t, n)
		issue, latency := fenced[uint32](t, n), fenced[uint32](t, n)
		arrive := fenced[pair](t, n+1)
		bank, bankOf := fenced[pair](t, bankFirst+numBanks), []uint32{11: 0}
		free := slices.Repeat([]pair{mark}, places+2*guard)
		for l := range bankOf {
			bankOf[l] = bankFirst * 16
		}
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(5, seed))
			wrong := func() bool { return r.IntN(2000) == 0 }
			if seed%2 == 0 {
				wrong = func() bool { return false }
			}
			at := uint32(0)
			for i := range off {
				off[i] = at
				if wrong() {
					off[i] = r.Uint32()
				}
				at = min(at+r.Uint32N(6), uint32(len(words)))
				if r.IntN(20) == 0 {
					at = min(at+r.Uint32N(20), uint32(len(words)))
				}
			}
			for i := range words {
				words[i] = ecs.Word(uint8(r.IntN(4)), r.Uint32N(uint32(n)))
				if wrong() {
					words[i] = r.Uint32()
				}
			}
			for i := range lane {
				lane[i], banks[i], flags[i] = uint16(r.IntN(12)), 0, 0
				if wrong() {
					lane[i] = uint16(r.Uint32())
				}
				if seed%3 == 0 {
					banks[i] = uint16(r.Uint32() & r.Uint32() & r.Uint32())
				}
				if r.IntN(30) == 0 {
					flags[i] = components.Flags(r.Uint32())
				}
				issue[i], latency[i] = r.Uint32N(100), r.Uint32N(2)*(100+r.Uint32N(100))
			}
			b := newPadded(int(seed % 2 * nearRows))
			b.words, b.numWords, b.zero = &words[0], uint32(len(words)), 4*uint32(n)
			b.arrive, b.free, b.lanes = &arrive[0], &free[guard], lanes
			if seed%5 == 0 {
				b.couple = &couple[0]
			}
			b.bank, b.bankOf = &bank[0], &bankOf[0]
			b.allFlags, b.allIssue, b.allLatency = &flags[0], &issue[0], &latency[0]
			for lo := 0; lo < n; lo += blockRows {
				b.rows = min(blockRows, n-lo)
				b.off, b.flags, b.banks, b.issue, b.latency, b.lane, b.out = &off[lo], &flags[lo], &banks[lo], &issue[lo], &latency[lo], &lane[lo], &arrive[lo]
				ready := padRows(b)
				if ready < 0 || ready > b.rows {
					t.Fatalf("%d rows, seed %d: %d of %d rows are ready", n, seed, ready, b.rows)
				}
				left += b.rows - ready
				for row := 0; row < ready; row++ {
					next := walkRows(b, row, ready)
					if next < row || next > ready {
						t.Fatalf("%d rows, seed %d: rows %d to %d placed, it says up to %d", n, seed, row, ready, next)
					}
					placed += next - row
					row = next
				}
			}
			for _, s := range [][]pair{free[:guard], free[guard+places:]} {
				if slices.ContainsFunc(s, func(p pair) bool { return p != mark }) {
					t.Fatalf("%d rows, seed %d: wrote outside its arrays", n, seed)
				}
			}
			if bank[1] != (pair{}) || arrive[n] != (pair{}) {
				t.Fatalf("%d rows, seed %d: a time that has to be zero is not", n, seed)
			}
		}
	}
	if placed < left || left == 0 {
		t.Errorf("%d rows placed, %d left: the test tries one of both only", placed, left)
	}
}

// The cores of all lanes that a column can hold.
func TestCoreFactor(t *testing.T) {
	for lane := range uint32(1 << 16) {
		if got := lane * coreFactor >> 19; got != lane/components.LanesPerCore {
			t.Fatalf("lane %d: core %d", lane, got)
		}
	}
}
