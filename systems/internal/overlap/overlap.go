// Package overlap reports whether two access patterns touch the same memory.
package overlap

import (
	"cmp"
	"slices"

	"perfsim/components"
)

// Answer is the relation of two patterns.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota // one of them has no place in memory
	No
	Yes
)

// most bounds the exact comparison of strided patterns, in elements.
const most = 1 << 12

// Of reports whether patterns a and b of module m overlap. Spans that are apart
// do not; spans that meet are compared element by element where both are small,
// so that interleaved patterns are distinguished, and overlap otherwise.
func Of(m *components.Module, a, b components.AccessPattern) Answer {
	if !placed(a) || !placed(b) {
		return Unknown
	}
	if a.Memory.InDRAM() != b.Memory.InDRAM() || !a.Memory.InDRAM() && a.Memory != b.Memory {
		return No
	}
	if a.Where != b.Where && (a.Where == 0 || b.Where == 0 || a.Memory.InDRAM()) {
		if a.Where == 0 || b.Where == 0 {
			return Unknown
		}
		// Tensors in device memory: one and the same, or aliases.
		la, lb := int(a.Where-1), int(b.Where-1)
		if s := m.Locations.Alias.Get(la); s == 0 || s != m.Locations.Alias.Get(lb) {
			return No
		}
		return Yes
	}
	if !a.Memory.InDRAM() {
		la, ha := uint64(a.Base), uint64(a.Base)+max(a.Partitions(), 1)
		lb, hb := uint64(b.Base), uint64(b.Base)+max(b.Partitions(), 1)
		if ha <= lb || hb <= la {
			return No
		}
	}
	la, ha := a.Span()
	lb, hb := b.Span()
	if ha <= lb || hb <= la {
		return No
	}
	if contiguous(a) && contiguous(b) {
		return Yes
	}
	if a.Memory.InDRAM() || a.Elems() > most || b.Elems() > most {
		return Yes
	}
	if meet(a, b) {
		return Yes
	}
	return No
}

// placed reports whether the pattern says which memory it touches.
func placed(o components.AccessPattern) bool {
	return o.Kind == components.OperandPhysical && len(o.Steps) > 0 && (o.Memory.InDRAM() || o.Memory == components.MemSBUF || o.Memory == components.MemPSUM)
}

func size(o components.AccessPattern) uint64 { return uint64(max(o.DType.Size(), 1)) }

// contiguous reports whether the pattern touches every byte of its span:
// dimension by dimension, from the smallest step on, the copies of what has
// been touched so far reach one another. Counting elements does not decide,
// because one may be touched more than once.
func contiguous(o components.AccessPattern) bool {
	type dim struct{ step, count uint64 }
	dims := make([]dim, 0, 8)
	for d := 1; d < len(o.Steps); d++ {
		if o.Counts[d] > 1 {
			step := o.Steps[d]
			dims = append(dims, dim{uint64(max(step, -step)), o.Counts[d]})
		}
	}
	slices.SortFunc(dims, func(a, b dim) int { return cmp.Compare(a.step, b.step) })
	run := uint64(1) // elements without a hole
	for _, d := range dims {
		if d.step > run {
			return false
		}
		run += d.step * (d.count - 1)
	}
	return true
}

// meet compares the elements of two patterns within a partition.
func meet(a, b components.AccessPattern) bool {
	x, y := starts(a), starts(b)
	slices.Sort(x)
	slices.Sort(y)
	sa, sb := int64(size(a)), int64(size(b))
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i]+sa <= y[j]:
			i++
		case y[j]+sb <= x[i]:
			j++
		default:
			return true
		}
	}
	return false
}

// starts returns the address of every element of the pattern in one
// partition.
func starts(o components.AccessPattern) []int64 {
	out := []int64{int64(o.Address)}
	for d := 1; d < len(o.Steps); d++ {
		step := o.Steps[d] * int64(size(o))
		base := out
		for k := uint64(1); k < o.Counts[d]; k++ {
			for _, s := range base {
				out = append(out, s+int64(k)*step)
			}
		}
	}
	return out
}
