package chakra

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/io/format"
)

// maxMessage bounds one message; real nodes have kilobytes, the global
// metadata of converted algorithms tens of kilobytes.
const maxMessage = 64 << 20

// sniffWire tells whether head starts with a GlobalMetadata message (version
// and attributes only) and a Node.
func sniffWire(head []byte) bool {
	meta, rest, whole := splitMessage(head)
	if !whole && len(meta) == 0 {
		return false
	}
	fields := 0
	if !walk(meta, whole, func(num protowire.Number, typ protowire.Type, v []byte, _ uint64) bool {
		fields++
		return typ == protowire.BytesType && (num == 1 && printable(v) || num == 2 && attributeLike(v))
	}) || fields == 0 {
		return false
	}
	if !whole {
		return true // a metadata message larger than what a sniffer sees
	}
	if len(rest) == 0 {
		return fields > 0 && len(meta) > 2
	}
	n, _, whole := splitMessage(rest)
	fields = 0
	return walk(n, whole, func(num protowire.Number, typ protowire.Type, v []byte, _ uint64) bool {
		fields++
		switch num {
		case 1, 3, 6, 7:
			return typ == protowire.VarintType
		case 4, 5:
			return typ == protowire.VarintType || typ == protowire.BytesType
		case 2:
			return typ == protowire.BytesType
		case 8, 9, 10:
			return typ == protowire.BytesType
		}
		return false
	}) && fields > 0
}

// splitMessage takes the first length-delimited message off b; whole tells
// whether b holds all of it.
func splitMessage(b []byte) (msg, rest []byte, whole bool) {
	n, k := protowire.ConsumeVarint(b)
	if k < 0 || n > maxMessage {
		return nil, nil, false
	}
	b = b[k:]
	if uint64(len(b)) < n {
		return b, nil, false
	}
	return b[:n], b[n:], true
}

// walk calls f for every field; it returns false where f does or, unless the
// message is cut off, where the wire format is broken.
func walk(b []byte, whole bool, f func(num protowire.Number, typ protowire.Type, v []byte, n uint64) bool) bool {
	for len(b) > 0 {
		num, typ, k := protowire.ConsumeTag(b)
		if k < 0 {
			return !whole
		}
		b = b[k:]
		var v []byte
		var n uint64
		switch typ {
		case protowire.VarintType:
			n, k = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			v, k = protowire.ConsumeBytes(b)
			if k < 0 && !whole {
				if size, used := protowire.ConsumeVarint(b); used > 0 && size <= maxMessage {
					return f(num, typ, b[used:], 0)
				}
			}
		case protowire.Fixed64Type:
			n, k = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var w uint32
			w, k = protowire.ConsumeFixed32(b)
			n = uint64(w)
		default:
			return false
		}
		if k < 0 {
			return !whole
		}
		if !f(num, typ, v, n) {
			return false
		}
		b = b[k:]
	}
	return true
}

func printable(v []byte) bool {
	for _, c := range v {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return len(v) < 64
}

// attributeLike tells whether v begins like an AttributeProto: its name.
func attributeLike(v []byte) bool {
	if len(v) < 2 || v[0] != 0x0a {
		return false
	}
	n := int(v[1])
	return n > 0 && n < 128 && (n+2 > len(v) || printable(v[2:2+n]))
}

// readWire reads the length-delimited messages.
func (g *graph) readWire(ctx context.Context, src *format.Source) error {
	r := bufio.NewReaderSize(src, 1<<18)
	var buf []byte
	off := int64(0)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		start := off
		size, used, err := readVarint(r)
		if errors.Is(err, io.EOF) && used == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("byte %d: the length of message %d: %w", start, n, noEOF(err))
		}
		if size > maxMessage {
			return fmt.Errorf("byte %d: message %d has %d bytes, more than %d", start, n, size, maxMessage)
		}
		off += int64(used)
		if buf, err = readFull(r, buf, int(size)); err != nil {
			return fmt.Errorf("byte %d: message %d of %d bytes: %w", start, n, size, noEOF(err))
		}
		off += int64(size)
		if n == 0 {
			err = g.metadata(buf)
		} else if err = g.node(buf, start); err != nil && g.leaveOut(start, err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("byte %d: message %d: %w", start, n, err)
		}
	}
}

// leaveOut reports whether a node that cannot be read, at a place, is left out:
// not more than one in ten nodes, else the input is something else.
func (g *graph) leaveOut(at int64, err error) bool {
	if g.broken*10 >= len(g.nodes) {
		return false
	}
	if g.broken++; g.broken == 1 {
		g.firstBad = fmt.Sprintf("byte %d: %v", at, err)
	}
	return true
}

// noEOF makes an end of input inside a message the error it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readVarint(r io.ByteReader) (v uint64, used int, err error) {
	for shift := 0; ; shift += 7 {
		c, err := r.ReadByte()
		if err != nil {
			return 0, used, err
		}
		used++
		if shift == 63 && c > 1 || shift > 63 {
			return 0, used, errors.New("no varint")
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, used, nil
		}
	}
}

// readFull reads n bytes into buf, growing it as they come, so that a wrong
// length allocates no more than there is.
func readFull(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	buf = buf[:0]
	for len(buf) < n {
		part := min(n-len(buf), step)
		at := len(buf)
		buf = append(buf, make([]byte, part)...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

var errWire = errors.New("broken protobuf encoding")

// metadata keeps the version and the short attributes of GlobalMetadata.
func (g *graph) metadata(b []byte) error {
	ok := walk(b, true, func(num protowire.Number, typ protowire.Type, v []byte, _ uint64) bool {
		switch {
		case num == 1 && typ == protowire.BytesType:
			g.attribute("version", string(v))
		case num == 2 && typ == protowire.BytesType:
			a, ok := parseAttribute(v)
			if !ok {
				return false
			}
			if a.isText {
				g.attribute(string(a.name), string(a.text))
			}
		}
		return true
	})
	if !ok {
		return errWire
	}
	return nil
}

// maxAttribute bounds what is kept of remarks about the trace.
const maxAttribute = 256

func (g *graph) attribute(key, value string) {
	if len(value) <= maxAttribute && len(g.b.M.Attributes) < 32 {
		g.b.M.Attributes = append(g.b.M.Attributes, components.Attribute{Key: "trace." + key, Value: value})
	}
}

// attribute is an AttributeProto. Types of values differ between writers, so
// any number counts as a number.
type attribute struct {
	name, text []byte
	number     uint64
	isText     bool
}

// parseAttribute reads an AttributeProto: name 1, doc_string 2, then one value:
// from 3 on double, float, int32, int64, uint32, uint64, sint32, sint64,
// fixed32, fixed64, sfixed32, sfixed64 (each followed by its list), bool 27,
// string 29, bytes 31. An attribute without a value is legal.
func parseAttribute(b []byte) (a attribute, ok bool) {
	ok = walk(b, true, func(num protowire.Number, typ protowire.Type, v []byte, n uint64) bool {
		switch {
		case num == 1 && typ == protowire.BytesType:
			a.name = v
		case num == 29 && typ == protowire.BytesType:
			a.text, a.isText = v, true
		case num == 3 && typ == protowire.Fixed64Type:
			a.number = fromFloat(math.Float64frombits(n))
		case num == 5 && typ == protowire.Fixed32Type:
			a.number = fromFloat(float64(math.Float32frombits(uint32(n))))
		case (num == 15 || num == 17) && typ == protowire.VarintType:
			a.number = uint64(protowire.DecodeZigZag(n))
		case num >= 7 && num <= 27 && typ != protowire.BytesType:
			a.number = n
		}
		return true
	})
	return a, ok
}

func fromFloat(f float64) uint64 {
	if !(f >= 0 && f < math.MaxInt64) {
		return 0
	}
	return uint64(f)
}

// maxSize bounds byte counts: larger ones are negative numbers.
const maxSize = math.MaxInt64

// node reads a Node.
func (g *graph) node(b []byte, offset int64) error {
	n := node{offset: offset}
	var data, ctrl []uint64
	var name, opType string
	var cpu bool
	var comm collective
	var commSize, dur uint64
	packed := func(list []uint64, typ protowire.Type, v []byte, one uint64) ([]uint64, bool) {
		if typ == protowire.VarintType {
			return append(list, one), true
		}
		for len(v) > 0 {
			id, k := protowire.ConsumeVarint(v)
			if k < 0 {
				return list, false
			}
			list = append(list, id)
			v = v[k:]
		}
		return list, typ == protowire.BytesType
	}
	var tensor uint64
	ok := walk(b, true, func(num protowire.Number, typ protowire.Type, v []byte, x uint64) (ok bool) {
		ok = true
		switch num {
		case 1:
			n.id, ok = x, typ == protowire.VarintType
		case 2:
			name, ok = string(v), typ == protowire.BytesType
		case 3:
			n.kind, ok = nodeType(x), typ == protowire.VarintType
		case 4:
			ctrl, ok = packed(ctrl, typ, v, x)
		case 5:
			data, ok = packed(data, typ, v, x)
		case 7:
			dur, ok = x, typ == protowire.VarintType
		case 10:
			var a attribute
			if a, ok = parseAttribute(v); !ok {
				break
			}
			switch string(a.name) {
			case "is_cpu_op":
				cpu = a.number != 0
			case "comm_type":
				if comm = numbered(a.number); a.isText {
					comm = collectiveOf(string(a.text))
				}
			case "comm_size":
				commSize = a.number
			case "num_ops":
				n.work, n.sized = a.number, true
			case "tensor_size":
				tensor, n.sized = a.number, true
			case "op_type":
				opType = string(a.text)
			}
		}
		return ok
	})
	if !ok {
		return errWire
	}
	g.size(&n, cpu, tensor)
	return g.add(n, name, opType, cpu, comm, commSize, dur, data, ctrl)
}

// size takes num_ops and tensor_size of a node of the device.
func (g *graph) size(n *node, cpu bool, tensor uint64) {
	if n.work > maxSize { // a negative number
		n.work = 0
	}
	n.sized = n.sized && !cpu && (n.kind == typeComp || n.kind == typeMemLoad || n.kind == typeMemStore) && (n.work > 0 || tensor > 0)
	if n.sized {
		n.bytes, g.rule = min(tensor, maxSize), "num_ops and tensor_size"
	}
}

// longestMicros bounds a duration: more does not fit a time in ns.
const longestMicros = math.MaxInt64 / 1_000_000

// add checks a node and takes it.
func (g *graph) add(n node, name, opType string, cpu bool, comm collective, commSize, micros uint64, data, ctrl []uint64) error {
	if n.kind > typeColl {
		return fmt.Errorf("node %d has type %d, more than %d", n.id, n.kind, typeColl)
	}
	if micros > longestMicros {
		return fmt.Errorf("node %d lasts %d µs, more than %d", n.id, micros, longestMicros)
	}
	if commSize > maxSize {
		return fmt.Errorf("node %d has a negative comm_size", n.id)
	}
	n.dur = micros * 1000
	g.set(&n, cpu, name, opType, comm, commSize)
	n.data, n.ctrl = g.list(data), g.list(ctrl)
	g.nodes = append(g.nodes, n)
	return nil
}
