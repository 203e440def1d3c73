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
	"perfsim/io/internal/proto"
)

// maxMessage bounds one message; real nodes have kilobytes, the global
// metadata of converted algorithms tens of kilobytes.
const maxMessage = 64 << 20

// sniffWire reports whether head starts with a GlobalMetadata message (version
// and attributes only) and a Node.
func sniffWire(head []byte) bool {
	meta, rest, whole := splitMessage(head)
	if !whole && len(meta) == 0 {
		return false
	}
	if !all(meta, whole, func(f *proto.Fields) bool {
		return f.Type == protowire.BytesType && (f.Num == 1 && printable(f.Data) || f.Num == 2 && attributeLike(f.Data))
	}) {
		return false
	}
	if !whole {
		return true // a metadata message larger than what a sniffer sees
	}
	if len(rest) == 0 {
		return len(meta) > 2
	}
	n, _, whole := splitMessage(rest)
	return all(n, whole, func(f *proto.Fields) bool {
		switch f.Num {
		case 1, 3, 6, 7:
			return f.Type == protowire.VarintType
		case 4, 5:
			return f.Type == protowire.VarintType || f.Type == protowire.BytesType
		case 2, 8, 9, 10:
			return f.Type == protowire.BytesType
		}
		return false
	})
}

// splitMessage takes the first length-delimited message off b; whole reports
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

// all reports whether a message has fields, all of which ok takes. A message
// that is not whole may end anywhere.
func all(b []byte, whole bool, ok func(f *proto.Fields) bool) bool {
	f := proto.Of(b)
	n := 0
	for ; f.Next(); n++ {
		if !ok(&f) {
			return false
		}
	}
	group := f.Type > protowire.BytesType && f.Type != protowire.Fixed32Type // or no wire type at all
	switch {
	case f.Err == nil:
	case whole || group:
		return false
	case len(f.Data) > 0: // the beginning of a text or message
		return ok(&f)
	}
	return n > 0
}

func printable(v []byte) bool {
	for _, c := range v {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return len(v) < 64
}

// attributeLike reports whether v begins like an AttributeProto: its name.
func attributeLike(v []byte) bool {
	if len(v) < 2 || v[0] != 0x0a {
		return false
	}
	n := int(v[1])
	return n > 0 && n < 128 && (n+2 > len(v) || printable(v[2:2+n]))
}

// readWire reads the length-delimited messages.
func (g *graph) readWire(ctx context.Context, src *format.Source) error {
	in := proto.Stream{Reader: bufio.NewReaderSize(src, 1<<18)}
	var buf []byte
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		start := in.N
		size, err := in.Uvarint()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("byte %d: the length of message %d: %w", start, n, err)
		}
		if size > maxMessage {
			return fmt.Errorf("byte %d: message %d has %d bytes, more than %d", start, n, size, maxMessage)
		}
		if buf, err = in.Take(buf, int(size)); err != nil {
			return fmt.Errorf("byte %d: message %d of %d bytes: %w", start, n, size, err)
		}
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

var errWire = errors.New("broken protobuf encoding")

// metadata keeps the version and the short attributes of GlobalMetadata.
func (g *graph) metadata(b []byte) error {
	f := proto.Of(b)
	for f.Next() {
		switch {
		case f.Num == 1 && f.Type == protowire.BytesType:
			g.attribute("version", string(f.Data))
		case f.Num == 2 && f.Type == protowire.BytesType:
			a, ok := parseAttribute(f.Data)
			if !ok {
				return errWire
			}
			if a.isText {
				g.attribute(string(a.name), string(a.text))
			}
		}
	}
	if f.Err != nil {
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
	f := proto.Of(b)
	for f.Next() {
		switch num, typ := f.Num, f.Type; {
		case num == 1 && typ == protowire.BytesType:
			a.name = f.Data
		case num == 29 && typ == protowire.BytesType:
			a.text, a.isText = f.Data, true
		case num == 3 && typ == protowire.Fixed64Type:
			a.number = fromFloat(math.Float64frombits(f.Uint))
		case num == 5 && typ == protowire.Fixed32Type:
			a.number = fromFloat(float64(math.Float32frombits(uint32(f.Uint))))
		case (num == 15 || num == 17) && typ == protowire.VarintType:
			a.number = uint64(protowire.DecodeZigZag(f.Uint))
		case num >= 7 && num <= 27 && typ != protowire.BytesType:
			a.number = f.Uint
		}
	}
	return a, f.Err == nil
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
	var tensor uint64
	f := proto.Of(b)
	for f.Next() {
		want := protowire.VarintType
		switch f.Num {
		case 1:
			n.id = f.Uint
		case 2:
			name, want = string(f.Data), protowire.BytesType
		case 3:
			n.kind = nodeType(f.Uint)
		case 4:
			ctrl, want = proto.Ints(ctrl, &f), f.Type
		case 5:
			data, want = proto.Ints(data, &f), f.Type
		case 7:
			dur = f.Uint
		case 10:
			a, ok := parseAttribute(f.Data)
			if !ok {
				return errWire
			}
			want = f.Type
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
		default:
			want = f.Type
		}
		if f.Type != want {
			return errWire
		}
	}
	if f.Err != nil {
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
