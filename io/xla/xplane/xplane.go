// Package xplane reads the profiles that XLA's profiler writes as protobuf
// (XSpace, *.xplane.pb): planes with lines of measured events, which name
// kernels and HLO operators. They become what the Chrome trace of the same
// profile becomes.
package xplane

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/proto"
	"perfsim/io/traces/kineto"
)

// maxBytes bounds the input: a profile is read whole.
const maxBytes = 4 << 30

// Importer reads XLA's profiles.
var Importer = format.Importer{Name: "xplane", Sniff: Sniff, Module: read}

// Sniff reports whether head begins an XSpace: a plane (field 1) with an id and
// a name that begins with a slash, such as /device:TPU:0.
func Sniff(head []byte) bool {
	num, typ, n := protowire.ConsumeTag(head)
	if n < 0 || num != 1 || typ != protowire.BytesType {
		return false
	}
	_, k := protowire.ConsumeVarint(head[n:])
	if k < 0 {
		return false
	}
	b := head[n+k:]
	for range 2 {
		num, typ, n := protowire.ConsumeTag(b)
		switch {
		case n < 0:
			return false
		case num == 1 && typ == protowire.VarintType:
			_, k := protowire.ConsumeVarint(b[n:])
			if k < 0 {
				return false
			}
			b = b[n+k:]
		case num == 2 && typ == protowire.BytesType:
			size, k := protowire.ConsumeVarint(b[n:])
			name := b[max(n+k, 0):]
			return k > 0 && size > 1 && size < 256 && len(name) > 6 && (strings.HasPrefix(string(name), "/host:") || strings.HasPrefix(string(name), "/device:"))
		default:
			return false
		}
	}
	return false
}

func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	b, err := src.ReadAll(maxBytes)
	if err != nil {
		return nil, err
	}
	name := path.Base(src.Name)
	for _, suffix := range []string{".gz", ".zst", ".pb", ".xplane"} {
		name = strings.TrimSuffix(name, suffix)
	}
	s := &space{ctx: ctx, base: b}
	var planes [][]byte
	if err := s.scan(b, 1, &planes); err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	for _, p := range planes {
		if err := s.plane(p); err != nil {
			return nil, fmt.Errorf("%s: %w", src.Name, err)
		}
	}
	m, err := kineto.FromSlices(name, "xplane", s.threads, s.slices)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	if s.metadata > 0 {
		m.Note("hlo-proto", "HLO modules that the profile holds beside its events: not read", s.metadata)
	}
	return m, nil
}

// space collects the slices of all planes.
type space struct {
	ctx      context.Context
	base     []byte
	threads  []kineto.Thread
	slices   []kineto.Slice
	metadata int
}

// scan reads the fields of a message into variables, as proto.Scan does.
func (s *space) scan(b []byte, into ...any) error { return s.broken(proto.Scan(b, text, into...)) }

var errWire = errors.New("no protobuf of an XLA profile: the file is damaged or cut short")

// broken names the byte at which a message is no protobuf, nil for a good one.
func (s *space) broken(e *proto.Error) error {
	if e == nil {
		return nil
	}
	return fmt.Errorf("byte %d: %w", cap(s.base)-cap(e.At), errWire)
}

// kind is the metadata of the events of one name.
type kind struct{ name, op, scope string }

// plane takes a plane: first its tables of names, then its lines.
func (s *space) plane(b []byte) error {
	var id uint64
	var name string
	stats, kinds := map[uint64]string{}, map[uint64]kind{}
	var lines, events, names [][]byte
	if err := s.scan(b, 1, &id, 2, &name, 3, &lines, 4, &events, 5, &names); err != nil {
		return err
	}
	for _, e := range names {
		key, v, err := s.entry(e)
		if err != nil {
			return err
		}
		var stat string
		if err := s.scan(v, 2, &stat); err != nil {
			return err
		}
		stats[key] = stat
	}
	if name == "/host:metadata" {
		s.metadata += len(events)
		return nil
	}
	for _, e := range events {
		key, v, err := s.entry(e)
		if err != nil {
			return err
		}
		var k kind
		var long string
		var facts [][]byte
		if err := s.scan(v, 2, &long, 4, &k.name, 5, &facts); err != nil {
			return err
		}
		for _, f := range facts {
			switch stat, value, _ := s.stat(f, stats); stat {
			case "hlo_op":
				k.op = value
			case "tf_op":
				k.scope = scope(value)
			}
		}
		if k.name == "" {
			k.name = long
		}
		kinds[key] = k
	}
	process := strconv.FormatUint(id, 10) + " " + name
	for _, l := range lines {
		if err := s.line(l, process, name, stats, kinds); err != nil {
			return err
		}
	}
	return nil
}

// entry reads an entry of a map from numbers to messages.
func (s *space) entry(b []byte) (key uint64, value []byte, err error) {
	err = s.scan(b, 1, &key, 2, &value)
	return key, value, err
}

// stat reads a statistic: its name, its text and its number. A damaged one is
// read as far as it goes.
func (s *space) stat(b []byte, stats map[uint64]string) (name, value string, number uint64) {
	for f := proto.Of(b); f.Next(); {
		switch f.Num {
		case 1:
			name = stats[f.Uint]
		case 3, 4:
			number = f.Uint
		case 5:
			value = text(f.Data)
		case 7:
			value = stats[f.Uint]
		}
	}
	return name, value, number
}

// line takes the events of a line. Times are the line's start and an offset in
// ps.
func (s *space) line(b []byte, process, plane string, stats map[uint64]string, kinds map[uint64]kind) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	var id, at uint64
	var name, display string
	var events [][]byte
	if err := s.scan(b, 1, &id, 2, &name, 3, &at, 4, &events, 11, &display); err != nil {
		return err
	}
	if len(events) == 0 {
		return nil
	}
	if display != "" {
		name = display
	}
	thread := len(s.threads)
	s.threads = append(s.threads, kineto.Thread{Process: process, ProcessName: process, ID: strconv.FormatUint(id, 10), Name: name})
	stream := strings.HasPrefix(plane, "/device:") && strings.HasPrefix(name, "Stream #")
	for _, e := range events {
		x := kineto.Slice{Thread: thread}
		var offset, dur uint64
		f := proto.Of(e)
		for f.Next() {
			switch f.Num {
			case 1:
				k := kinds[f.Uint]
				x.Name, x.Op, x.Scope = k.name, k.op, k.scope
			case 2:
				offset = f.Uint
			case 3:
				dur = f.Uint
			case 4:
				switch stat, value, number := s.stat(f.Data, stats); stat {
				case "hlo_op":
					x.Op = value
				case "tf_op":
					x.Scope = scope(value)
				case "correlation_id":
					x.Correlation = number
				}
			}
		}
		if err := s.broken(f.Err); err != nil {
			return err
		}
		// Ends are rounded, not durations, so that neighbours do not overlap.
		start := int64(at) + int64(offset/1000)
		x.Start, x.Dur = start, int64(at)+int64((offset+dur)/1000)-start
		switch {
		case stream:
			x.Kind = kineto.DeviceSlice
		case x.Correlation != 0 && plane == "/host:CPU":
			x.Kind = kineto.CallSlice
		}
		s.slices = append(s.slices, x)
	}
	return nil
}

// scope returns the path of a tf_op, "path:type".
func scope(op string) string {
	path, _, _ := strings.Cut(op, ":")
	if path == "XlaModule" { // of a whole module
		return ""
	}
	return components.CleanScope(path)
}

// text makes valid UTF-8 of a string of the file.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
