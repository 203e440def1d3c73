package neff

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/io/internal/proto"
)

// DebugInfo is the content of a debug_info member: the instructions of one
// engine at one level, with their dependences and where they come from. It is
// the message ir_debug_info of the protobuf package neuroncc.debug_info.
type DebugInfo struct {
	Description     string
	Parent          string // file name of the level above
	Engine          components.Engine
	KernelFilenames []string
	KernelFunctions []string
	Frames          StackFrames
	Instructions    []DebugInstruction // empty if they were given to a function

	NumInstructions int
	UnknownFields   int // fields that this reader does not know
	Mismatched      int // instructions whose dependences and kinds differ in number
}

// InstructionType is why an instruction exists.
type InstructionType int32

// The instruction types.
const (
	UnknownInstructionType InstructionType = iota
	RegularInstruction
	SpillInstruction
	TransposeInstruction
)

// String returns the name of the type.
func (t InstructionType) String() string {
	switch t {
	case RegularInstruction:
		return "REGULAR"
	case SpillInstruction:
		return "SPILL"
	case TransposeInstruction:
		return "TRANSPOSE"
	}
	return "UNKNOWN_INSTRUCTION_TYPE"
}

// Dependency is an edge from the instruction ID.
type Dependency struct {
	ID   uint64
	Kind components.EdgeKind // Invalid if the file has none
}

// Attr is a free attribute of an instruction.
type Attr struct{ Key, Value string }

// DebugInstruction is one instruction.
type DebugInstruction struct {
	ID         uint64
	Name       string
	Parents    []uint64 // ids at the level above; in debug_info_asm the BIR ids
	Dataflow   []Dependency
	Scheduling []Dependency
	Type       InstructionType
	Attrs      []Attr // in file order
	StackFrame uint64 // 0 for none
}

// Attr returns the value of an attribute.
func (d *DebugInstruction) Attr(key string) (string, bool) {
	for _, a := range d.Attrs {
		if a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

// StackFrames is the table of source locations. Ids count from 1, and 0 is
// none, as in the message of the same shape in XLA; the documentation does not
// say.
type StackFrames struct {
	Files     []string
	Functions []string
	Locations []FileLocation
	Frames    []StackFrame
}

// FileLocation is a line of a function of a file.
type FileLocation struct{ File, Function, Line uint64 }

// StackFrame is a location and the frame that called it.
type StackFrame struct{ Location, Parent uint64 }

// Source is a place in the user's program.
type Source struct {
	File     string
	Function string // may be empty
	Line     uint64 // may be 0
}

// String returns file:line.
func (s Source) String() string { return s.File + ":" + strconv.FormatUint(s.Line, 10) }

// Source returns where an instruction comes from: its innermost stack frame
// or, failing that, the attributes that name a kernel's file and line. Their
// keys have twelve characters and are not public; taken are keys of that
// length that contain "file", "line" and "func", which is a guess of ours.
func (d *DebugInfo) Source(in *DebugInstruction) (Source, bool) {
	if f, ok := at(d.Frames.Frames, in.StackFrame); ok {
		if loc, ok := at(d.Frames.Locations, f.Location); ok {
			file, ok := at(d.Frames.Files, loc.File)
			fn, _ := at(d.Frames.Functions, loc.Function)
			return Source{file, fn, loc.Line}, ok
		}
	}
	var s Source
	found := false
	for _, a := range in.Attrs {
		n, err := strconv.ParseUint(a.Value, 10, 32)
		if len(a.Key) != 12 || err != nil {
			continue
		}
		switch key := strings.ToLower(a.Key); {
		case strings.Contains(key, "line"):
			s.Line = n
		case strings.Contains(key, "file") && n < uint64(len(d.KernelFilenames)):
			s.File, found = d.KernelFilenames[n], true
		case strings.Contains(key, "func") && n < uint64(len(d.KernelFunctions)):
			s.Function = d.KernelFunctions[n]
		}
	}
	return s, found
}

// at indexes a table that counts from 1.
func at[T any](table []T, id uint64) (v T, ok bool) {
	if id == 0 || id > uint64(len(table)) {
		return v, false
	}
	return table[id-1], true
}

// Bounds of a field. Real instructions have at most a hundred dependences by
// default; the stack frames of a whole program are the largest field.
const (
	maxMessage     = 256 << 20
	maxInstruction = 16 << 20
)

// ReadDebugInfo reads a debug_info member. Instructions are given to each, in
// file order, or collected if each is nil; the argument is valid during the
// call only. The tables for Source are complete when ReadDebugInfo returns.
// Fields that are not known are counted and passed over. An error names the
// byte.
func ReadDebugInfo(ctx context.Context, r io.Reader, each func(*DebugInstruction) error) (*DebugInfo, error) {
	d := &DebugInfo{}
	p := &protoReader{Stream: proto.Stream{Reader: bufio.NewReaderSize(r, 64<<10)}}
	var in DebugInstruction
	for {
		begin := p.N
		num, typ, val, data, err := p.field()
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = d.set(num, typ, val, data, &in, each)
		}
		if err != nil {
			return nil, fmt.Errorf("debug info, byte %d: %w", begin, err)
		}
	}
}

func (d *DebugInfo) set(num protowire.Number, typ protowire.Type, val uint64, data []byte, in *DebugInstruction, each func(*DebugInstruction) error) error {
	text := typ == protowire.BytesType
	switch {
	case num == 1 && text:
		d.Description = string(data)
	case num == 2 && text:
		d.Parent = string(data)
	case num == 3 && text:
		if len(data) > maxInstruction {
			return fmt.Errorf("instruction %d: %d bytes are more than %d", d.NumInstructions, len(data), maxInstruction)
		}
		mismatch, unknown, err := in.parse(data)
		if err != nil {
			return fmt.Errorf("instruction %d: %w", d.NumInstructions, err)
		}
		d.NumInstructions++
		d.UnknownFields += unknown
		if mismatch {
			d.Mismatched++
		}
		if each != nil {
			return each(in)
		}
		d.Instructions = append(d.Instructions, *in)
		*in = DebugInstruction{} // the slices now belong to the copy
	case num == 4 && typ == protowire.VarintType:
		d.Engine = engineOf(val)
	case num == 5 && text:
		d.KernelFilenames = append(d.KernelFilenames, string(data))
	case num == 6 && text:
		unknown, err := d.Frames.parse(data)
		d.UnknownFields += unknown
		if err != nil {
			return fmt.Errorf("stack frames: %w", err)
		}
	case num == 7 && text:
		d.KernelFunctions = append(d.KernelFunctions, string(data))
	default:
		d.UnknownFields++
	}
	return nil
}

// engineOf maps the protobuf's engine_type_t to the compiler's engines.
func engineOf(v uint64) components.Engine {
	table := [...]components.Engine{components.Unassigned, components.PE, components.Activation,
		components.Pool, components.DMA, components.DVE, components.SP}
	if v < uint64(len(table)) {
		return table[v]
	}
	return components.Unassigned
}

// kindOf maps dependency_edge_kind_t, whose numbers are those of the edges.
func kindOf(v uint64) components.EdgeKind {
	if v < uint64(components.NumEdgeKinds) {
		return components.EdgeKind(v)
	}
	return components.Invalid
}

func (d *DebugInstruction) parse(b []byte) (mismatch bool, unknown int, err error) {
	*d = DebugInstruction{Parents: d.Parents[:0], Dataflow: d.Dataflow[:0], Scheduling: d.Scheduling[:0], Attrs: d.Attrs[:0]}
	var flow, sched, kinds, schedKinds []uint64
	f := proto.Of(b)
	for f.Next() {
		scalar := f.Type == protowire.VarintType
		text := f.Type == protowire.BytesType
		switch {
		case f.Num == 1 && scalar:
			d.ID = f.Uint
		case f.Num == 2 && text:
			d.Name = string(f.Data)
		case f.Num == 3 && (scalar || text):
			d.Parents = proto.Ints(d.Parents, &f)
		case f.Num == 4 && (scalar || text):
			flow = proto.Ints(flow, &f)
		case f.Num == 5 && (scalar || text):
			sched = proto.Ints(sched, &f)
		case f.Num == 6 && scalar:
			d.Type = InstructionType(int32(f.Uint))
		case f.Num == 7 && text:
			var a Attr
			if err := scan(f.Data, 1, &a.Key, 2, &a.Value); err != nil {
				return false, unknown, err
			}
			d.Attrs = append(d.Attrs, a)
		case f.Num == 8 && scalar:
			d.StackFrame = f.Uint
		case f.Num == 9 && (scalar || text):
			kinds = proto.Ints(kinds, &f)
		case f.Num == 10 && (scalar || text):
			schedKinds = proto.Ints(schedKinds, &f)
		default:
			unknown++
		}
	}
	if f.Err != nil {
		return false, unknown, f.Err
	}
	d.Dataflow, mismatch = dependencies(d.Dataflow, flow, kinds)
	var differ bool
	d.Scheduling, differ = dependencies(d.Scheduling, sched, schedKinds)
	return mismatch || differ, unknown, nil
}

// dependencies joins the parallel lists. A file without kinds is an older one,
// not a mismatch.
func dependencies(dst []Dependency, ids, kinds []uint64) (deps []Dependency, mismatch bool) {
	for i, id := range ids {
		d := Dependency{ID: id}
		if i < len(kinds) {
			d.Kind = kindOf(kinds[i])
		}
		dst = append(dst, d)
	}
	return dst, len(kinds) != 0 && len(kinds) != len(ids)
}

func (s *StackFrames) parse(b []byte) (unknown int, err error) {
	f := proto.Of(b)
	for f.Next() {
		if f.Type != protowire.BytesType || f.Num > 4 {
			unknown++
			continue
		}
		switch f.Num {
		case 1:
			s.Files = append(s.Files, string(f.Data))
		case 2:
			s.Functions = append(s.Functions, string(f.Data))
		case 3:
			var l FileLocation
			err = scan(f.Data, 1, &l.File, 2, &l.Function, 3, &l.Line)
			s.Locations = append(s.Locations, l)
		case 4:
			var r StackFrame
			err = scan(f.Data, 1, &r.Location, 2, &r.Parent)
			s.Frames = append(s.Frames, r)
		}
		if err != nil {
			return unknown, err
		}
	}
	if f.Err != nil {
		return unknown, f.Err
	}
	return unknown, nil
}

// scan is proto.Scan with strings that are copies.
func scan(b []byte, into ...any) error {
	if err := proto.Scan(b, func(b []byte) string { return string(b) }, into...); err != nil {
		return err
	}
	return nil
}

// protoReader reads the fields of the outermost message from a stream, so that
// a file of gigabytes takes the memory of its largest field.
type protoReader struct {
	proto.Stream
	buf []byte
}

// field reads one field; io.EOF is the end of the message. data is valid until
// the next call.
func (p *protoReader) field() (num protowire.Number, typ protowire.Type, val uint64, data []byte, err error) {
	if _, err := p.Peek(1); err != nil {
		return 0, 0, 0, nil, err
	}
	tag, err := p.varint()
	if err != nil {
		return 0, 0, 0, nil, err
	}
	num, typ = protowire.DecodeTag(tag)
	if num < protowire.MinValidNumber || tag>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0, 0, nil, fmt.Errorf("field number %d is not valid; no debug info?", tag>>3)
	}
	switch typ {
	case protowire.VarintType:
		val, err = p.varint()
	case protowire.Fixed32Type:
		data, err = p.take(4)
	case protowire.Fixed64Type:
		data, err = p.take(8)
	case protowire.BytesType:
		var size uint64
		if size, err = p.varint(); err == nil {
			data, err = p.take(size)
		}
	default:
		err = fmt.Errorf("field %d has the wire type %d, which debug info does not use", num, typ)
	}
	return num, typ, val, data, err
}

func (p *protoReader) varint() (uint64, error) {
	v, err := p.Uvarint()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("cut short in a number: %w", io.ErrUnexpectedEOF)
	case err != nil:
		err = fmt.Errorf("number: %w", err)
	}
	return v, err
}

func (p *protoReader) take(size uint64) (b []byte, err error) {
	if size > maxMessage {
		return nil, fmt.Errorf("a field of %d bytes is larger than %d", size, maxMessage)
	}
	if p.buf, err = p.Take(p.buf, int(size)); err != nil {
		return nil, fmt.Errorf("cut short: a field of %d bytes ends after %d: %w", size, len(p.buf), err)
	}
	return p.buf, nil
}
