package metricstore

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"perfsim/io/internal/atomicfile"
)

// Layout is a form of the JSON file.
type Layout uint8

// The layouts.
const (
	// Nested is the documented form of global_metric_store.json:
	// {name: {"backend": {metric: value}}}, the type split at its first
	// "::". Aggregation takes effect: an Average is written as a running
	// mean with a member "Count" next to it, one for all averages of that
	// object; a Sum is added to what is there; Custom and None replace it.
	// Kinds and aggregations cannot be known from the file.
	Nested Layout = iota
	// Flat is {name: {"backend::metric": value}}; of several aggregations
	// of one metric the last in their order stays.
	Flat
	// Lossless is our own form, which keeps every entry with its
	// aggregation and kind.
	Lossless
)

// losslessMark is the first member of the Lossless layout.
const losslessMark = "perfsim_metric_store"

// indent is the indentation of one level. The documented program lets its
// caller choose, and the choice is not public; this one is ours.
const indent = "  "

// WriteJSON writes the store in the documented nested or flat layout.
func (s *Store) WriteJSON(w io.Writer, nested bool) error {
	if nested {
		return s.Write(w, Nested)
	}
	return s.Write(w, Flat)
}

// Write writes the store as JSON in that layout, keys sorted bytewise, with a
// line end at the end. If a type such as "a" is in the way of "a::b", an error
// says so and nothing is written.
func (s *Store) Write(w io.Writer, layout Layout) error {
	var dst []byte
	switch layout {
	case Flat, Nested:
		root := newObject()
		for _, e := range s.Entries() {
			if err := root.place(e, layout == Nested); err != nil {
				return err
			}
		}
		dst = root.append(nil, 0)
	case Lossless:
		dst = s.appendLossless(nil)
	default:
		return fmt.Errorf("metric store: no layout %d", layout)
	}
	_, err := w.Write(append(dst, '\n'))
	return err
}

// WriteFile writes the store to path, which gets its name when all is written.
func (s *Store) WriteFile(path string, layout Layout) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := s.Write(f, layout); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return f.Commit()
}

// object is a JSON object under construction: members are numbers or objects.
type object struct {
	values  map[string]Value
	objects map[string]*object
}

func newObject() *object {
	return &object{values: map[string]Value{}, objects: map[string]*object{}}
}

func (o *object) child(key string) (*object, bool) {
	if _, taken := o.values[key]; taken {
		return nil, false
	}
	c := o.objects[key]
	if c == nil {
		c = newObject()
		o.objects[key] = c
	}
	return c, true
}

// place puts one entry where its layout wants it. Entries come sorted, so the
// aggregations of one metric meet in the order Sum, Average, Custom, None.
func (o *object) place(e Entry, nested bool) error {
	conflict := func() error {
		return fmt.Errorf("metric store: %q of %q cannot be written: its place is taken by a metric that is both a number and a group", e.Type, e.Name)
	}
	at, ok := o.child(e.Name)
	if !ok {
		return conflict()
	}
	last := e.Type
	if nested {
		if group, rest, split := strings.Cut(last, "::"); split {
			if at, ok = at.child(group); !ok {
				return conflict()
			}
			last = rest
		}
	}
	if _, taken := at.objects[last]; taken {
		return conflict()
	}
	if nested {
		at.aggregate(last, e)
	} else {
		at.values[last] = e.Value
	}
	return nil
}

// countKey is the documented member that counts the averages of an object.
const countKey = "Count"

// aggregate applies the documented rules of the nested layout. A metric that
// meets nothing is stored as it is; the documentation does not say what an
// average makes of the shared Count then, and this choice is ours.
func (o *object) aggregate(key string, e Entry) {
	old, have := o.values[key]
	switch e.Aggregation {
	case Average:
		count, _ := o.values[countKey].Uint64()
		if have {
			n := float64(count)
			e.Value = double((old.Float64()*n + e.Value.Float64()) / (n + 1))
		}
		o.values[key] = e.Value
		o.values[countKey] = Uint64(count + 1)
	case Sum:
		if have {
			e.Value = old.plus(e.Value)
		}
		o.values[key] = e.Value
	default:
		o.values[key] = e.Value
	}
}

func (o *object) append(dst []byte, depth int) []byte {
	keys := make([]string, 0, len(o.values)+len(o.objects))
	for k := range o.values {
		keys = append(keys, k)
	}
	for k := range o.objects {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return append(dst, "{}"...)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, k := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = newline(dst, depth+1)
		dst = appendString(dst, k)
		dst = append(dst, ": "...)
		if c := o.objects[k]; c != nil {
			dst = c.append(dst, depth+1)
		} else {
			dst = o.values[k].append(dst)
		}
	}
	return append(newline(dst, depth), '}')
}

// appendLossless writes {"perfsim_metric_store": 1, "entries": [...]}, one
// entry a line.
func (s *Store) appendLossless(dst []byte) []byte {
	dst = append(dst, `{"`+losslessMark+`": 1, "entries": [`...)
	for i, e := range s.Entries() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = newline(dst, 1)
		dst = append(dst, `{"name": `...)
		dst = appendString(dst, e.Name)
		dst = append(dst, `, "type": `...)
		dst = appendString(dst, e.Type)
		dst = append(dst, `, "aggregation": "`...)
		dst = append(dst, e.Aggregation.String()...)
		dst = append(dst, `", "kind": "`...)
		dst = append(dst, e.Value.Kind().String()...)
		dst = append(dst, `", "value": `...)
		dst = e.Value.append(dst)
		dst = append(dst, '}')
	}
	return append(newline(dst, 0), "]}"...)
}

func newline(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, indent...)
	}
	return dst
}

// appendString appends s, which is UTF-8, as a JSON string: control
// characters, quotes and backslashes escaped, everything else as it is.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c < 0x20:
			dst = append(dst, `\u00`...)
			dst = append(dst, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// number parses a JSON number exactly if it is an integer of 64 bits.
func number(text string) (Value, bool) {
	if !strings.ContainsAny(text, ".eE") {
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			return Uint64(u), true
		}
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return Int64(i), true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, false // out of range
	}
	return double(f), true
}
