package birjson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/jsonscan"
)

// Importer is the format as the list of formats knows it.
var Importer = format.Importer{Name: "birjson", Sniff: Sniff, Module: Read}

// Sniff reports whether head looks like BIR JSON or CBOR: an object with the
// key functions, or something that only its functions hold.
func Sniff(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if isCBOR(head) {
		// Sorted keys put the short ones first, so that functions may lie beyond
		// the head, behind our own member or the queues.
		for _, key := range []string{"\x69functions", "\x6dnki_functions", "\x6ballocations", "\x67perfsim", "\x66queues"} {
			if bytes.Contains(head, []byte(key)) {
				return true
			}
		}
		return false
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' {
		return false
	}
	for _, key := range []string{`"functions"`, `"nki_functions"`, `"allocations"`, `"memorylocations"`} {
		if bytes.Contains(head, []byte(key)) {
			return true
		}
	}
	// Attributes may be long, so that functions lie beyond the head; then the
	// first key decides, which with sorted keys is one of these.
	rest := bytes.TrimLeft(head[1:], " \t\r\n")
	for _, key := range []string{`"arch"`, `"archRev"`, `"artifact_info"`, `"artifact_path"`} {
		if bytes.HasPrefix(rest, []byte(key)) {
			return true
		}
	}
	return bytes.HasPrefix(rest, []byte(`"attributes"`)) && bytes.Contains(head, []byte(`"neuron_core_id"`))
}

// Read reads a module. Errors name the file and the line and column (text)
// or the byte (CBOR) of the instruction, allocation or member at fault.
func Read(ctx context.Context, src *format.Source, opt format.Options) (*components.Module, error) {
	m := components.NewModule(moduleName(src.Name), "birjson")
	m.AddCoreLanes(0)
	g := newMerger(m)
	var in io.Reader = src
	head := bytes.TrimPrefix(src.Head(), []byte("\xef\xbb\xbf"))
	mark := len(src.Head()) - len(head) // now: reading takes from the head
	var binary *cborReader
	if isCBOR(head) {
		binary = newCBORReader(src)
		in = binary
	}
	s := jsonscan.New(in, limits, opt.Progress)
	if binary != nil {
		s.Bytes = binary.origin
	} else {
		s.Discard(mark)
	}
	ratio := int64(1)
	if src.Packed != "" {
		ratio = 0 // the length of the text is known at its end only
	}
	g.size = func() int64 { return src.Size * ratio }
	pipe := newPipeline(g, max(opt.Jobs, 1))
	p := &splitter{s: s, pipe: pipe, unread: map[string]int{}}
	err := p.document()
	if err != nil && !errors.Is(err, errStopped) {
		// What was cut so far comes before the place where cutting failed, so
		// an error in it is the first.
		if e := p.flush(); e != nil {
			err = e
		}
	}
	if e := pipe.finish(); e != nil {
		err = e
	}
	if err == nil {
		err = p.apply(m)
	}
	if err == nil {
		err = g.finish(ctx, p)
	}
	if err != nil {
		if cause := ctx.Err(); cause != nil {
			return nil, cause
		}
		if pe, ok := errors.AsType[*jsonscan.Error](err); ok {
			return nil, pe.In(src.Name)
		}
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return m, nil
}

// apply takes over what the splitter read for the module as a whole.
func (p *splitter) apply(m *components.Module) error {
	if p.name != "" {
		m.Name = p.name
	}
	if len(p.ours) == 0 {
		return nil
	}
	var parser fastjson.Parser
	_, err := parser.ParseBytes(p.ours) // it says what is wrong
	if err != nil {
		return fmt.Errorf("perfsim: malformed JSON: %w", err)
	}
	var tape jsonscan.Tape
	v, _ := tape.Parse(p.ours)
	if d := v.Get("declared"); d.Len() == int(components.NumEdgeKinds) {
		p.declared = new([components.NumEdgeKinds]uint64)
		for k, x := range d.All() {
			n, err := number(x, 0, math.MaxInt64)
			if err != nil {
				return fmt.Errorf("perfsim: declared: %w", err)
			}
			p.declared[k] = uint64(n)
		}
	}
	lanes := v.Get("lanes")
	if lanes.Len() == 0 {
		return nil
	}
	if n := lanes.Len(); n > math.MaxUint16 {
		return fmt.Errorf("perfsim: %d lanes", n)
	}
	for _, c := range m.Lanes.Columns() {
		c.Reset()
	}
	for i, l := range lanes.All() {
		engine, ok := components.ParseEngine(string(text(l.Get("engine"))))
		kind, _ := l.Get("kind").Int64()
		core, _ := l.Get("core").Int64()
		if !ok || kind < 0 || kind > 255 || core < 0 || core > math.MaxUint16 {
			return fmt.Errorf("perfsim: lane %d is malformed", i)
		}
		m.Lanes.Add(m.Symbols.AddUnique(text(l.Get("name"))), engine, components.LaneKind(kind), uint16(core))
	}
	return nil
}

// moduleName makes a module's name of its file's: bir.json in a folder nc00/sg00
// is nc00_sg00, as the compiler lays its work folder out.
func moduleName(path string) string {
	base := filepath.Base(path)
	stem := base
	for _, ext := range []string{".gz", ".zst", ".json", ".cbor", ".bir"} {
		stem = strings.TrimSuffix(stem, ext)
	}
	if stem != "bir" || base == path {
		return stem
	}
	dir := filepath.Base(filepath.Dir(path))
	if up := filepath.Base(filepath.Dir(filepath.Dir(path))); strings.HasPrefix(up, "nc") && len(up) == 4 {
		dir = up + "_" + dir
	}
	return dir
}
