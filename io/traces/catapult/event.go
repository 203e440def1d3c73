package catapult

import (
	"cmp"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// Bytes reserved for the parts of a record whose length does not depend on
// text of the input, fragments copied whole included. Text of the input is
// appended, and the reserve is renewed behind it.
const (
	eventRoom = 768 // without names, operands and dependencies
	depRoom   = 160
	arrowRoom = 384
)

// maxExact is the largest integer that JSON readers with floating-point
// numbers keep exactly; larger ids are written as strings.
const maxExact = 1 << 53

// middle is the part of a record that depends on what an instruction is and
// not on when it runs. Instructions of a lane come in runs of the same, so
// that it is often to be had from the record before.
type middle struct {
	opcode           components.Opcode
	source, fn, text ecs.Symbol
	from, to         int // where it stands in the buffer
}

// events appends the records of rows from to to of a thread.
func (t *tracer) events(b []byte, rows []uint32, from, to int) []byte {
	b = slices.Grow(b, rowBytes*(to-from))
	// All times first: the rows of a lane are scattered over the tables, and
	// loads that nothing waits for are under way together.
	var starts, ends [pieceRows + 1]uint64
	for k, i := range rows[from:min(to+1, len(rows))] {
		starts[k], ends[k] = t.span(i)
	}
	if to == len(rows) {
		starts[to-from] = math.MaxUint64
	}
	var last middle
	for k, i := range rows[from:to] {
		b = t.event(b, i, starts[k], ends[k], t.drawn(starts[k], ends[k], starts[k+1]), &last)
	}
	return b
}

// Names of the documented records of events without an instruction: the
// transfer that a trigger started, and one of which nothing is known.
const (
	transferName = "dma_transfer_inst"
	nullName     = "null"
)

// transfer appends the degenerate record of a transfer: name, times, thread
// and the id, which is that of its trigger.
func (t *tracer) transfer(b []byte, i uint32, start, dur uint64) []byte {
	name := transferName
	if t.m.Instr.DMABytes.Get(int(i)) == 0 && t.m.Instr.Elems.At(int(i)) == 0 {
		name = nullName
	}
	b = slices.Grow(b, eventRoom)
	o, n := b[:cap(b)], len(b)
	n += copy(o[n:], nameOpen)
	n += copy(o[n:], name)
	n += copy(o[n:], tsText)
	n = putUint(o, n, start)
	n += copy(o[n:], durText)
	n = putUint(o, n, dur)
	n = t.text.lane[t.lane[i]].put(o, n)
	n = t.id(o, n, i)
	n += copy(o[n:], "}}\n")
	return b[:n]
}

// id writes the id of row i.
func (t *tracer) id(o []byte, n int, i uint32) int {
	if t.refs == nil {
		return putUint(o, n, uint64(i))
	}
	return putID(o, n, t.refs[i])
}

// event appends the complete event from start to end, drawn for dur ns.
func (t *tracer) event(b []byte, i uint32, start, end, dur uint64, last *middle) []byte {
	if t.flags[i]&components.FlagTransfer != 0 {
		return t.transfer(b, i, start, dur)
	}
	row := t.preds(i)
	b = slices.Grow(b, eventRoom+depRoom*len(row))
	o, n := b[:cap(b)], len(b)
	// The number of the row is written up to three times.
	lo, hi, digits := decimal(uint64(i))
	var name ecs.Symbol
	if t.names != nil {
		name = t.names[i]
	}
	var nameAt, nameEnd int
	if name == 0 {
		*(*[16]byte)(o[n:]) = shortNameOpenRow
		n += len(nameOpenRow)
		put16(o, n, lo, hi)
		n += digits
	} else {
		*(*[16]byte)(o[n:]) = shortNameOpen
		n += len(nameOpen)
		nameAt = n
		b = format.AppendJSONText(o[:n], t.m.Symbols.Bytes(name))
		nameEnd = len(b)
		b = slices.Grow(b, nameEnd-nameAt+eventRoom+depRoom*len(row))
		o, n = b[:cap(b)], nameEnd
	}
	*(*[16]byte)(o[n:]) = shortTs
	n = putUint(o, n+len(tsText), start)
	*(*[16]byte)(o[n:]) = shortDur
	n = putUint(o, n+len(durText), dur)
	n = t.text.lane[t.lane[i]].put(o, n)
	if t.refs == nil {
		put16(o, n, lo, hi)
		n += digits
	} else {
		n = putID(o, n, t.refs[i])
	}
	if name == 0 {
		*(*[16]byte)(o[n:]) = shortBirNameRow
		n += len(birNameRow)
		put16(o, n, lo, hi)
		n += digits
	} else {
		*(*[16]byte)(o[n:]) = shortBirName
		n += len(birName)
		n += copy(o[n:], o[nameAt:nameEnd])
	}
	// The names of opcodes come from the input: they have any length.
	if t.bare {
		b = append(o[:n], t.text.bare[t.opcode[i]]...)
	} else {
		b = t.middle(o[:n], i, last)
	}
	b = slices.Grow(b, eventRoom+depRoom*len(row))
	o, n = b[:cap(b)], len(b)
	if end-start != dur {
		*(*[16]byte)(o[n:]) = shortLatency
		n = putUint(o, n+len(latencyText), end-start)
	}
	if t.flags[i]&components.FlagBarrier != 0 && !t.style.Barriers {
		n += copy(o[n:], barrierText)
	}
	if banks := t.banks[i]; banks != 0 || t.flags[i]&components.FlagDstPSUM != 0 {
		*(*[16]byte)(o[n:]) = shortBanks
		n = putUint(o, n+len(banksText), uint64(banks&0xff))
		o[n] = ','
		if banks>>8 == 0 && t.flags[i]&components.FlagDstPSUM != 0 {
			n += 1 + copy(o[n+1:], "null") // it writes PSUM, and the input does not tell the banks
		} else {
			n = putUint(o, n+1, uint64(banks>>8))
		}
		o[n] = ']'
		n++
	}
	*(*[16]byte)(o[n:]) = shortDeps
	n += len(depsText)
	if len(row) > 0 {
		n = t.deps(o, n, i, row)
	}
	*(*[16]byte)(o[n:]) = shortEventEnd
	return b[:n+len(eventEnd)]
}

// preds returns the dependencies of row i.
func (t *tracer) preds(i uint32) []uint32 { return t.words[t.offsets[i]:t.offsets[i+1]] }

// middle appends what stands between the name and the latency.
func (t *tracer) middle(b []byte, i uint32, last *middle) []byte {
	in := &t.m.Instr
	is := middle{opcode: t.opcode[i], source: in.Source.Get(int(i)), fn: in.Func.Get(int(i)), text: in.Text.Get(int(i)), from: len(b)}
	lo, hi := t.m.Operands.Range(components.InstrID(i))
	if lo == hi && last.to > 0 && is.opcode == last.opcode && is.source == last.source && is.fn == last.fn && is.text == last.text {
		return append(b, b[last.from:last.to]...)
	}
	b = append(b, t.text.opcode[is.opcode]...)
	b = format.AppendJSONString(b, t.m.Symbols.Bytes(is.source))
	b = t.appendOperands(b, i)
	if lo == hi {
		is.to = len(b)
		*last = is
	}
	return b
}

// putID writes the id that the input gave an instruction.
func putID(o []byte, n int, id uint64) int {
	if id <= maxExact {
		return putUint(o, n, id)
	}
	o[n] = '"'
	n = putUint(o, n+1, id)
	o[n] = '"'
	return n + 1
}

// byPredecessor returns the dependencies of a row sorted by predecessor, as
// documented. The rows of the relation are sorted by class first.
func byPredecessor(row []uint32, buf *[16]uint32) []uint32 {
	sorted := true
	for k := 1; k < len(row); k++ {
		sorted = sorted && row[k-1]&ecs.TargetMask <= row[k]&ecs.TargetMask
	}
	if sorted {
		return row
	}
	if len(row) > len(buf) {
		row = slices.Clone(row)
		slices.SortStableFunc(row, func(a, b uint32) int { return cmp.Compare(a&ecs.TargetMask, b&ecs.TargetMask) })
		return row
	}
	out := buf[:0]
	for _, w := range row {
		k := len(out)
		out = append(out, w)
		for ; k > 0 && out[k-1]&ecs.TargetMask > w&ecs.TargetMask; k-- {
			out[k] = out[k-1]
		}
		out[k] = w
	}
	return out
}

// deps writes one element per predecessor: its id, for cross-engine ones the
// engine, and the documented two fragments.
func (t *tracer) deps(o []byte, n int, i uint32, row []uint32) int {
	*(*[16]byte)(o[n:]) = shortDepOpen
	n += len(depOpen)
	lane, same := t.lane[i], len(t.text.dep)-1
	left := t.graph && t.run == components.RunB
	seen := t.seen
	var buf [16]uint32
	for _, w := range byPredecessor(row, &buf) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		var end uint64
		var of uint16
		if seen != nil {
			s := seen[p-t.first]
			end, of = s>>laneBits, uint16(s)
		} else {
			_, end = t.span(p)
			of = t.lane[p]
		}
		n = t.id(o, n, p)
		from := int(of)
		if of == lane {
			from = same
		}
		n = t.text.dep[from][class].put(o, n)
		n = putUint(o, n, end)
		if left && class == components.ClassAnti {
			n += copy(o[n:], unhonoured)
		}
		*(*[16]byte)(o[n:]) = shortDepNext
		n += len(depNext)
	}
	return n - len(depNext) + 1 // the brace stays
}

// arrows appends a flow arrow for every honoured dependency of i: it starts
// in the last ns of what is drawn of the producer and ends at the consumer's
// start.
func (t *tracer) arrows(b []byte, i uint32) []byte {
	if t.flags[i]&components.FlagLoop != 0 {
		return b
	}
	row := t.preds(i)
	if len(row) == 0 {
		return b
	}
	b = slices.Grow(b, arrowRoom*len(row))
	o, n := b[:cap(b)], len(b)
	first := uint64(t.offsets[i])
	to, _ := t.span(i)
	finish := &t.text.to[t.lane[i]]
	for k, w := range row {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		if class == components.ClassAnti && t.run == components.RunB {
			continue
		}
		from := min(t.leaves[p-t.first], to)
		lo, hi, digits := decimal(first + uint64(k))
		n = t.text.starts[class].put(o, n)
		put16(o, n, lo, hi)
		n += digits
		*(*[16]byte)(o[n:]) = shortArrowTs
		n = putUint(o, n+len(arrowTs), from)
		n = t.text.from[t.lane[p]].put(o, n)
		n = t.text.finishes[class].put(o, n)
		put16(o, n, lo, hi)
		n += digits
		*(*[16]byte)(o[n:]) = shortArrowTs
		n = putUint(o, n+len(arrowTs), to)
		n = finish.put(o, n)
	}
	return b[:n]
}
