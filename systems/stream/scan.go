package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// scan is the first pass: it finds where windows begin and which rows later
// windows ask for. What it reads may be wrong; the second pass checks all.
func (r *run) scan(ctx context.Context) error {
	if err := r.divide(); err != nil {
		return err
	}
	// Two bits a row, and the counts that go with them.
	if err := r.reserve(ctx, uint64(r.n)/4+uint64(r.n)/rankRows*8); err != nil {
		return err
	}
	r.arrive, r.order = newKept[[2]uint64](r.n), newKept[place.Leaving](r.n)
	far, err := r.mark(ctx)
	if err != nil {
		return err
	}
	arrivals, orders := r.arrive.seal(), r.order.seal()
	held := r.arrive.bytes() + r.order.bytes()
	need := r.inWindows() + arrivals*uint64(unsafe.Sizeof([2]uint64{})) + orders*uint64(unsafe.Sizeof(place.Leaving{}))
	if err := r.reserve(ctx, need); err != nil {
		return err
	}
	r.arrive.values, r.order.values = make([][2]uint64, arrivals), make([]place.Leaving, orders)
	if r.o.Planned != nil {
		r.o.Planned(Plan{Rows: int(r.n), Windows: len(r.from) - 1, Window: r.most.rows, Edges: r.edges, Far: far, Kept: int(arrivals), Bytes: held + need + otherwise})
	}
	return nil
}

// otherwise is the memory of the program, its small tables and garbage that is
// not yet collected.
const otherwise = 96 << 20

// inWindows is the memory of the windows and of the events of one.
func (r *run) inWindows() uint64 {
	row := 4 + 4 + 4 // offset, issue interval, latency
	m := r.w.Module.Window()
	for _, c := range read(&m.Instr) {
		if r.src.Rows(c.Name()) > 0 {
			row += c.ElemSize()
		}
	}
	rows := uint64(r.most.rows + r.most.far)
	return min(2, uint64(len(r.from)-1))*(rows*uint64(row)+4*uint64(r.most.words)+4*uint64(r.most.far)) + rows*(16+8)
}

// divide finds the first row of every window. A trigger and its transfer, the
// row behind it, are in one.
func (r *run) divide() error {
	flags := r.src.Column("instr.flags")
	for at := int64(0); at < int64(r.n); {
		r.from = append(r.from, uint32(at))
		end := min(at+int64(r.o.Window), int64(r.n))
		if end < int64(r.n) {
			var b [8]byte
			if _, err := flags.ReadAt(b[:], 4*(end-1)); err != nil {
				return err
			}
			before, behind := components.Flags(binary.LittleEndian.Uint32(b[:])), components.Flags(binary.LittleEndian.Uint32(b[4:]))
			if transfers(before, behind) {
				end++
			}
		}
		r.most.rows = max(r.most.rows, int(end-at))
		at = end
	}
	r.from = append(r.from, r.n)
	return nil
}

// transfers reports whether a row with flags f is a trigger whose transfer is
// in the row behind it, with flags g.
func transfers(f, g components.Flags) bool {
	const both = components.FlagTrigger | components.FlagTransfer
	return f&components.FlagTrigger != 0 && g&both == components.FlagTransfer
}

// scanWords is how many edges are looked at at a time.
const scanWords = 2 << 20

// mark notes all rows that edges of later windows point to, and returns how many
// such edges there are.
func (r *run) mark(ctx context.Context) (far uint64, err error) {
	words := r.src.Column(wordsColumn)
	if words == nil {
		return 0, nil
	}
	set := r.stage("looking for far dependencies", int64(r.edges))
	offsets, buf := r.src.Column(offsetsColumn), make([]uint32, min(scanWords, r.edges))
	at := uint64(0)
	for k, first := range r.from[:len(r.from)-1] {
		var b [4]byte
		if _, err := offsets.ReadAt(b[:], 4*int64(r.from[k+1])); err != nil {
			return 0, err
		}
		end := uint64(binary.LittleEndian.Uint32(b[:]))
		if end < at || end > r.edges {
			return 0, fmt.Errorf("%s: rows %d to %d: their edges %d to %d are not a part of %d", r.src.Name, first, r.from[k+1], at, end, r.edges)
		}
		r.most.words = max(r.most.words, int(end-at))
		before := far
		for at < end {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			part := buf[:min(uint64(len(buf)), end-at)]
			if err := words.Next(raw(part)); err != nil {
				return 0, err
			}
			for _, w := range part {
				if to := w & ecs.TargetMask; to < first {
					far++
					r.arrive.rows.Set(to)
					if w>>ecs.ClassShift == uint32(components.ClassOrdered) {
						r.order.rows.Set(to)
					}
				}
			}
			at += uint64(len(part))
			set(int64(at))
		}
		r.most.far = max(r.most.far, int(far-before))
	}
	if at != r.edges {
		return 0, fmt.Errorf("%s: edges: offsets do not cover %d rows and %d edges", r.src.Name, r.n, r.edges)
	}
	return far, nil
}

// raw returns the bytes of words.
func raw(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
