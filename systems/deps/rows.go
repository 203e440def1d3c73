package deps

import (
	"cmp"
	"slices"

	"perfsim/components"
)

// rowView sees tensors in device memory as rows. Tiles of a tensor are strided
// accesses: taken as ranges of addresses, tiles side by side would overlap.
// Where all strided accesses to a tensor have one pitch they are rectangles of
// rows and columns, as on the chip they are of partitions and bytes.
type rowView struct {
	lonely map[uint32]bool   // locations whose addresses no other shares
	pitch  map[uint32]uint64 // bytes of a row; 0 where the accesses do not agree
}

// look finds the tensors that rows lo to hi access and their pitches.
func (v *rowView) look(m *components.Module, lo, hi uint32) {
	v.lonely, v.pitch = map[uint32]bool{}, map[uint32]uint64{}
	a, _ := m.Operands.Range(components.InstrID(lo))
	_, b := m.Operands.Range(components.InstrID(hi - 1))
	if lo == hi {
		return
	}
	loc := &m.Locations
	var placed []uint32 // locations in placed device memory
	loose := false      // some access of placed device memory names no location
	for r := a; r < b; r++ {
		w := m.Operands.Where.At(r)
		if w == 0 {
			loose = loose || m.Operands.Memory.At(r).InDRAM()
			continue
		}
		l := w - 1
		mem := loc.Memory.At(int(l))
		if mem == components.MemSBUF || mem == components.MemPSUM || mem == components.MemRegister || loc.Alias.At(int(l)) != 0 {
			continue
		}
		if _, seen := v.pitch[l]; !seen {
			v.pitch[l] = 1 // no strided access yet
			if mem == components.MemDRAM {
				placed = append(placed, l)
			} else {
				v.lonely[l] = true // inputs, outputs and what is not placed have no common addresses
			}
		}
		if m.Operands.Kind.At(r) != components.OperandPhysical {
			continue
		}
		o := m.Operands.At(r)
		p, ok := pitchOf(&o, loc.Addr.At(int(l)))
		switch have := v.pitch[l]; {
		case !ok || have != 1 && p != 1 && p != have:
			v.pitch[l] = 0
		case have == 1:
			v.pitch[l] = p
		}
	}
	slices.SortFunc(placed, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(loc.Addr.At(int(a)), loc.Addr.At(int(b))), cmp.Compare(a, b))
	})
	end := uint64(0)
	for i, l := range placed {
		from, to := loc.Addr.At(int(l)), loc.Addr.At(int(l))+loc.Bytes.At(int(l))
		next := ^uint64(0)
		if i+1 < len(placed) {
			next = loc.Addr.At(int(placed[i+1]))
		}
		v.lonely[l] = !loose && loc.Bytes.At(int(l)) > 0 && from >= end && to <= next
		end = max(end, to)
	}
}

// alone reports whether the location can be looked at on its own.
func (v *rowView) alone(l uint32) bool { return v.lonely[l] }

// pitchOf returns the bytes of a row that an access to a tensor at addr goes
// by, 1 where it is one range; false where its shape is none of rows.
func pitchOf(o *components.AccessPattern, addr uint64) (uint64, bool) {
	if lo, _ := o.Span(); lo < addr {
		return 0, false
	}
	size := int64(max(o.DType.Size(), 1))
	largest, run := int64(0), int64(1)
	for k := len(o.Counts) - 1; k >= 0; k-- {
		if o.Counts[k] <= 1 {
			continue
		}
		s := o.Steps[k]
		if s < 0 {
			return 0, false
		}
		if s == run {
			run *= int64(o.Counts[k])
			continue
		}
		largest = max(largest, s)
	}
	if largest == 0 {
		return 1, true
	}
	// What is left next to the largest step must fit in one row.
	rest := int64((o.Address - addr)) % (largest * size)
	for k, s := range o.Steps {
		if o.Counts[k] > 1 && s != largest {
			rest += int64(o.Counts[k]-1) * s * size
		}
	}
	if rest+size > largest*size {
		return 0, false
	}
	return uint64(largest * size), true
}

// split turns the range of an access to location l into rows and columns.
func (v *rowView) split(a *access, o *components.AccessPattern, l uint32, exact bool, addr uint64) {
	pitch := v.pitch[l]
	if pitch <= 1 {
		return // ranges of addresses: all accesses of the tensor are such, or their rows differ
	}
	a.lo -= addr
	a.hi -= addr
	row0, row1 := a.lo/pitch, (a.hi-1)/pitch
	const most = 1<<32 - 2
	if row1 > most { // too many rows to number: one row that meets all
		a.lo, a.hi, a.p0, a.p1 = 0, pitch, 0, most
		return
	}
	a.p0, a.p1 = uint32(row0), uint32(row1)+1
	if p := uint64(1); exact {
		p, _ = pitchOf(o, addr)
		if p == pitch {
			// Within its row, every run lies where the first one does.
			size := uint64(max(o.DType.Size(), 1))
			cols := size
			for k, s := range o.Steps {
				if o.Counts[k] > 1 && uint64(s)*size != pitch {
					cols += (o.Counts[k] - 1) * uint64(s) * size
				}
			}
			a.lo %= pitch
			a.hi = a.lo + cols
			return
		}
	}
	if row0 == row1 {
		a.lo %= pitch
		a.hi = (a.hi-1)%pitch + 1
		return
	}
	a.lo, a.hi = 0, pitch
}
