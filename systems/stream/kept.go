package stream

import (
	"math/bits"
	"unsafe"

	"perfsim/ecs"
)

// kept holds a value for each of some rows. The rows are chosen first, then the
// values come in the order of the rows.
type kept[T any] struct {
	rows   ecs.Bits
	before []uint32 // rows that come before each run of rankRows
	values []T      // as many as there are rows
	n      int      // values that are there
}

// rankRows is for how many rows the count of those before is held.
const rankRows = 512

func newKept[T any](rows uint32) kept[T] { return kept[T]{rows: ecs.NewBits(int(rows))} }

// seal ends the choice of rows and counts them.
func (k *kept[T]) seal() (count uint64) {
	k.before = make([]uint32, (len(k.rows)*64+rankRows-1)/rankRows)
	for i, w := range k.rows {
		if i%(rankRows/64) == 0 {
			k.before[i/(rankRows/64)] = uint32(count)
		}
		count += uint64(bits.OnesCount64(w))
	}
	return count
}

// at returns the value of a row, which must have come, and whether the row was
// chosen.
func (k *kept[T]) at(row uint32) (v T, ok bool) {
	if !k.rows.Has(row) {
		return v, false
	}
	i := k.before[row/rankRows]
	for w := row / rankRows * (rankRows / 64); w < row/64; w++ {
		i += uint32(bits.OnesCount64(k.rows[w]))
	}
	i += uint32(bits.OnesCount64(k.rows[row/64] & (1<<(row%64) - 1)))
	if int(i) >= k.n {
		return v, false
	}
	return k.values[i], true
}

// take calls value for those of rows lo to hi that were chosen, in order.
func (k *kept[T]) take(lo, hi uint32, value func(row uint32) T) {
	for w := lo / 64; w*64 < hi; w++ {
		set := k.rows[w]
		if w == lo/64 {
			set &= ^uint64(0) << (lo % 64)
		}
		for ; set != 0; set &= set - 1 {
			row := w*64 + uint32(bits.TrailingZeros64(set))
			if row >= hi {
				return
			}
			k.values[k.n] = value(row)
			k.n++
		}
	}
}

// bytes is the memory of k when all values are there.
func (k *kept[T]) bytes() uint64 {
	return 8*uint64(len(k.rows)) + 4*uint64(len(k.before)) + uint64(len(k.values))*uint64(unsafe.Sizeof(*new(T)))
}
