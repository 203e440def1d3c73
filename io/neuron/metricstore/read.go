package metricstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/valyala/fastjson"
)

// maxFile bounds a metric file. Real ones hold a few kilobytes; the JSON tree
// takes some fifty times its text.
const maxFile = 16 << 20

// ReadOptions choose how a file is understood.
type ReadOptions struct {
	// Documented reads as the documented program does, which loses: only
	// the members of "backend" objects are taken, every value becomes a
	// float of single precision, every aggregation None, and a member that
	// is no number is an error.
	Documented bool
	// DefaultName is the name of entries whose file has none.
	DefaultName string
}

// Report says what a reader made of a file.
type Report struct {
	Entries int      // taken
	Skipped []string // paths of members that are no numbers, at most 100
	More    int      // skipped members beyond those
}

func (r *Report) skip(path []string) {
	if len(r.Skipped) == 100 {
		r.More++
		return
	}
	r.Skipped = append(r.Skipped, strings.Join(path, "/"))
}

// Read reads a metric store file into s, replacing entries under equal keys.
// On an error s is as it was.
//
// The default reader keeps integers exact and takes every number of every
// layout that is known: Flat, Nested, Lossless, and the layout of real
// tensorizer files, where the aggregation comes first ({"Sum":
// {"compiletime": {"ParAxesAnnotation": 1.5}}}). The rules, ours:
//
//   - a first component that is Sum, Average, Custom or None is the
//     aggregation if two or more follow it (so a module of that name can be
//     read from the flat layout only); without one the aggregation is None;
//   - what remains is the name and the type, whose parts are joined by "::";
//     but two components after an aggregation, the last without "::", are
//     both of the type, and the name is DefaultName;
//   - a number at the top is an entry of DefaultName.
//
// Names that are not UTF-8 are made so, see Set; members that are no numbers
// (a real file carries a time stamp) are skipped and reported.
func (s *Store) Read(r io.Reader, opt ReadOptions) (Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return Report{}, err
	}
	if len(data) > maxFile {
		return Report{}, fmt.Errorf("metric store: larger than %d bytes", maxFile)
	}
	if err := checkSyntax(data); err != nil {
		return Report{}, err
	}
	root, err := fastjson.ParseBytes(data)
	if err != nil { // the grammar is kept, so the depth is all that is left
		return Report{}, fmt.Errorf("metric store: nested more than %d levels deep", fastjson.MaxDepth)
	}
	obj, err := root.Object()
	if err != nil {
		return Report{}, fmt.Errorf("metric store: the file holds no object but %s", typeName(root))
	}
	into := &reading{store: New(), opt: opt}
	switch {
	case obj.Get(losslessMark) != nil:
		err = into.lossless(obj)
	case opt.Documented:
		err = into.documented(obj)
	default:
		into.walk(obj, nil)
	}
	if err != nil {
		return Report{}, fmt.Errorf("metric store: %w", err)
	}
	into.report.Entries = into.store.Len()
	s.Merge(into.store)
	return into.report, nil
}

// ReadFile is Read of the named file.
func (s *Store) ReadFile(path string, opt ReadOptions) (Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	rep, err := s.Read(f, opt)
	if err != nil {
		return Report{}, fmt.Errorf("%s: %w", path, err)
	}
	return rep, nil
}

// MergeTensorizer merges the front end's metric file in dir, as the documented
// driver does before the passes run. That there is none is no error; found
// tells.
func (s *Store) MergeTensorizer(dir string, opt ReadOptions) (rep Report, found bool, err error) {
	rep, err = s.ReadFile(filepath.Join(dir, TensorizerFile), opt)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, false, nil
	}
	return rep, err == nil, err
}

// checkSyntax holds the text to the JSON grammar, which fastjson does not, and
// says where it breaks it.
func checkSyntax(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := min(max(se.Offset-1, 0), int64(len(data)))
		line := 1 + bytes.Count(data[:at], []byte("\n"))
		column := at - int64(bytes.LastIndexByte(data[:at], '\n'))
		return fmt.Errorf("metric store: line %d, column %d: %w", line, column, err)
	}
	return fmt.Errorf("metric store: %w", err)
}

type reading struct {
	store  *Store
	opt    ReadOptions
	report Report
}

// walk visits every number below obj. Members that repeat a key are all
// visited, and the last wins, as in the documented program's JSON library.
func (r *reading) walk(obj *fastjson.Object, path []string) {
	obj.Visit(func(k []byte, v *fastjson.Value) {
		path := append(path[:len(path):len(path)], string(k))
		switch v.Type() {
		case fastjson.TypeObject:
			r.walk(v.GetObject(), path)
		case fastjson.TypeNumber:
			if n, ok := number(numberText(v)); ok {
				r.store.Set(keyOf(path, r.opt.DefaultName), n)
				return
			}
			r.report.skip(path)
		default:
			r.report.skip(path)
		}
	})
}

// keyOf understands the path to a number; see Store.Read for the rules.
func keyOf(path []string, defaultName string) Key {
	k := Key{Name: defaultName, Aggregation: None}
	named := len(path) >= 2
	if agg, ok := parseAggregation(path[0]); ok && len(path) >= 3 {
		k.Aggregation, path = agg, path[1:]
		named = len(path) > 2 || strings.Contains(path[1], "::")
	}
	if named {
		k.Name, path = path[0], path[1:]
	}
	k.Type = strings.Join(path, "::")
	return k
}

// documented reads {name: {"backend": {metric: number}}}.
func (r *reading) documented(obj *fastjson.Object) (err error) {
	obj.Visit(func(name []byte, v *fastjson.Value) {
		group, gerr := v.Object()
		if gerr != nil {
			r.report.skip([]string{string(name)})
			return
		}
		group.Visit(func(k []byte, v *fastjson.Value) {
			if string(k)+"::" != Prefix {
				r.report.skip([]string{string(name), string(k)})
				return
			}
			metrics, merr := v.Object()
			if merr != nil {
				r.report.skip([]string{string(name), string(k)})
				return
			}
			metrics.Visit(func(metric []byte, v *fastjson.Value) {
				if v.Type() != fastjson.TypeNumber {
					if err == nil {
						err = fmt.Errorf("%s/backend/%s: type must be number, but is %s", name, metric, typeName(v))
					}
					return
				}
				n, ok := number(numberText(v))
				if !ok {
					n = double(math.Inf(1))
				}
				r.store.Set(Key{Prefix + string(metric), string(name), None}, float(float32(n.Float64())))
			})
		})
	})
	return err
}

// lossless reads our own layout, strictly.
func (r *reading) lossless(obj *fastjson.Object) error {
	if v := obj.Get(losslessMark); v.Type() != fastjson.TypeNumber || numberText(v) != "1" {
		return fmt.Errorf("version %.60s of our layout is not known", v)
	}
	entries := obj.Get("entries")
	if entries == nil || entries.Type() != fastjson.TypeArray {
		return errors.New(`no list "entries"`)
	}
	list, _ := entries.Array()
	for i, v := range list {
		e, err := losslessEntry(v)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if _, dup := r.store.Lookup(e.Key); dup {
			return fmt.Errorf("entry %d: %s of %q comes twice", i, e.Type, e.Name)
		}
		r.store.Set(e.Key, e.Value)
	}
	return nil
}

func losslessEntry(v *fastjson.Value) (e Entry, err error) {
	text := func(key string) string {
		// A missing value is a nil pointer, on which fastjson's methods
		// other than Get panic.
		m := v.Get(key)
		if m == nil || m.Type() != fastjson.TypeString {
			if err == nil {
				err = fmt.Errorf("no string %q", key)
			}
			return ""
		}
		b, _ := m.StringBytes()
		return string(b)
	}
	e.Name, e.Type = text("name"), text("type")
	agg, kind := text("aggregation"), text("kind")
	if err != nil {
		return e, err
	}
	var ok bool
	if e.Aggregation, ok = parseAggregation(agg); !ok {
		return e, fmt.Errorf("unknown aggregation %.60q", agg)
	}
	val := v.Get("value")
	if val == nil || val.Type() != fastjson.TypeNumber {
		if val != nil && val.Type() == fastjson.TypeNull && kind == KindFloat.String() {
			e.Value = double(math.NaN())
			return e, nil
		}
		return e, errors.New("no number \"value\"")
	}
	n, ok := number(numberText(val))
	if ok {
		e.Value, ok = n.as(kind)
	}
	if !ok {
		return e, fmt.Errorf("%.60s is no %.60s", val, kind)
	}
	return e, nil
}

// as converts a number read from a file to a kind that can hold it exactly.
func (v Value) as(kind string) (Value, bool) {
	switch kind {
	case KindFloat.String():
		return double(v.Float64()), v.kind == KindFloat
	case KindUint32.String():
		return Uint32(uint32(v.bits)), v.kind == KindUint64 && v.bits <= math.MaxUint32
	case KindInt64.String():
		i, ok := v.int64()
		return Int64(i), ok && v.kind != KindFloat
	case KindUint64.String():
		return Uint64(v.bits), v.kind == KindUint64
	}
	return v, false
}

// numberText returns the digits of a number as the file has them.
func numberText(v *fastjson.Value) string { return string(v.MarshalTo(nil)) }

// typeName names a JSON type as the documented program's messages do.
func typeName(v *fastjson.Value) string {
	switch v.Type() {
	case fastjson.TypeTrue, fastjson.TypeFalse:
		return "boolean"
	case fastjson.TypeNumber:
		return "number"
	}
	return v.Type().String()
}
