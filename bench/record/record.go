package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"perfsim/io/format"
)

// Record is one result: properties in order, each with its JSON text.
type Record struct{ Props []Prop }

// Prop is one property.
type Prop struct {
	Name string
	JSON string // compact JSON text
}

// Set sets a property, appending it where it is not there.
func (r *Record) Set(name, json string) {
	for i := range r.Props {
		if r.Props[i].Name == name {
			r.Props[i].JSON = json
			return
		}
	}
	r.Props = append(r.Props, Prop{name, json})
}

// SetText sets a string property.
func (r *Record) SetText(name, s string) { r.Set(name, string(format.AppendJSONString(nil, s))) }

// SetNumber sets a number; one that JSON cannot hold becomes null.
func (r *Record) SetNumber(name string, x float64) { r.Set(name, number(x)) }

// SetInt sets an integer.
func (r *Record) SetInt(name string, n int64) { r.Set(name, strconv.FormatInt(n, 10)) }

// SetBool sets a boolean.
func (r *Record) SetBool(name string, b bool) { r.Set(name, strconv.FormatBool(b)) }

// SetNull sets a property to null and says why.
func (r *Record) SetNull(name string) { r.Set(name, "null") }

// number writes x as the reference benchmark's language does: the shortest
// text that reads back, with a point for whole numbers.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "null"
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if a := math.Abs(x); a == 0 || a >= 1e-4 && a < 1e16 {
		s = strconv.FormatFloat(x, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
	}
	return s
}

// Raw returns the JSON text of a property.
func (r *Record) Raw(name string) (string, bool) {
	for _, p := range r.Props {
		if p.Name == name {
			return p.JSON, true
		}
	}
	return "", false
}

// Number returns a numeric property; ok is false where it is missing, null
// or no number.
func (r *Record) Number(name string) (float64, bool) {
	s, ok := r.Raw(name)
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}

// Text returns a property as people read it: strings without quotes.
func (r *Record) Text(name string) (string, bool) {
	s, ok := r.Raw(name)
	if !ok {
		return "", false
	}
	if strings.HasPrefix(s, `"`) {
		var p fastjson.Parser
		if v, err := p.Parse(s); err == nil {
			return string(v.GetStringBytes()), true
		}
	}
	return s, true
}

// Append appends records as the reference benchmark's file: a JSON array of
// objects.
func Append(dst []byte, records []*Record) []byte {
	dst = append(dst, '[')
	for i, r := range records {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(dst, "{\n"...)
		for j, p := range r.Props {
			dst = append(dst, "  "...)
			dst = format.AppendJSONString(dst, p.Name)
			dst = append(dst, ": "...)
			dst = append(dst, p.JSON...)
			if j < len(r.Props)-1 {
				dst = append(dst, ',')
			}
			dst = append(dst, '\n')
		}
		dst = append(dst, '}')
	}
	return append(dst, "]\n"...)
}

// MaxFile bounds a file of records; real ones have a few kilobytes.
const MaxFile = 64 << 20

// maxProps bounds the properties of a record; real ones have about forty.
const maxProps = 4096

// Read reads a file of records: an array of objects, or one object. Records
// of failed runs, whose arguments are in a property "args", get their
// arguments as properties. A run of bytes that are not UTF-8 is read as one
// U+FFFD, and of a property that comes twice the last value stays, so that
// what Append writes of the records reads as the same records. from names the
// file in errors.
func Read(from string, b []byte) ([]*Record, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", from, MaxFile)
	}
	// The parser does not hold its input to the grammar.
	var any json.RawMessage
	if err := json.Unmarshal(b, &any); err != nil {
		return nil, fmt.Errorf("%s: no JSON: %s", from, short(err))
	}
	b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	var p fastjson.Parser
	v, err := p.ParseBytes(b)
	if err != nil {
		return nil, fmt.Errorf("%s: no JSON: %s", from, short(err))
	}
	items := []*fastjson.Value{v}
	if v.Type() == fastjson.TypeArray {
		items = v.GetArray()
	}
	var out []*Record
	for i, it := range items {
		o, err := it.Object()
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d is a JSON %s, not a record (an object)", from, i, it.Type())
		}
		r := &Record{}
		if n := r.take(o, 0); n > maxProps {
			return nil, fmt.Errorf("%s: entry %d has %d properties, more than %d", from, i, n, maxProps)
		}
		if len(r.Props) == 0 {
			return nil, fmt.Errorf("%s: entry %d is empty", from, i)
		}
		_, model := r.Raw("model")
		_, rate := r.Raw("samples_per_sec")
		if !model && !rate {
			return nil, fmt.Errorf("%s: entry %d has neither model nor samples_per_sec: no benchmark record", from, i)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: holds no record", from)
	}
	return out, nil
}

// take sets the members of o, those of a member "args" among them; it counts
// them from n on and takes maxProps at most.
func (r *Record) take(o *fastjson.Object, n int) int {
	o.Visit(func(key []byte, v *fastjson.Value) {
		if a := v.GetObject(); a != nil && string(key) == "args" {
			n = r.take(a, n)
		} else if n++; n <= maxProps {
			r.Set(name(key), string(appendValue(nil, v)))
		}
	})
	return n
}

// name returns a key as the writer writes it.
func name(key []byte) string { return strings.ReplaceAll(string(key), "\x00", "\uFFFD") }

// appendValue appends compact JSON text. The parser's own writer escapes
// strings as Go does, which JSON does not know.
func appendValue(dst []byte, v *fastjson.Value) []byte {
	switch v.Type() {
	case fastjson.TypeObject:
		dst = append(dst, '{')
		first := true
		v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(format.AppendJSONString(dst, key), ':')
			dst = appendValue(dst, v)
		})
		return append(dst, '}')
	case fastjson.TypeArray:
		dst = append(dst, '[')
		for i, e := range v.GetArray() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e)
		}
		return append(dst, ']')
	case fastjson.TypeString:
		return format.AppendJSONString(dst, v.GetStringBytes())
	}
	return v.MarshalTo(dst)
}

// short keeps a parser's complaint to one line of sensible length.
func short(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", " ")
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	return s
}

// FileName returns the name of a record's file below the results folder, as
// the reference benchmark makes it.
func FileName(model, config, inputSize, device string, microbatch int, id string) string {
	if config == "" {
		config = "None"
	}
	return strings.ReplaceAll(fmt.Sprintf("perf_%s_%s_%s_%s_mb%d_%s.json", model, config, inputSize, device, microbatch, id), "/", "_")
}

// Stats are the reference benchmark's figures of a run.
type Stats struct {
	RunSeconds float64
	Samples    int64
	Tokens     int64 // generated in all loops
}

// errNoTime is returned for a run that took no time.
var errNoTime = errors.New("the run took no time: no rate can be given")

// Set writes the properties that follow from a run.
func (s Stats) Set(r *Record) error {
	if !(s.RunSeconds > 0) || s.Samples < 1 {
		return errNoTime
	}
	r.SetNumber("total_run_time", s.RunSeconds)
	r.SetInt("total_samples", s.Samples)
	r.SetNumber("samples_per_sec", float64(s.Samples)/s.RunSeconds)
	r.SetNumber("tokens_per_sec", float64(s.Tokens)/s.RunSeconds)
	r.SetNumber("inference_time_ms", s.RunSeconds*1000/float64(s.Samples))
	return nil
}

// Order sorts the properties: those of Fields first, in its order, then the
// marks, then the others as they are.
func (r *Record) Order() {
	rank := map[string]int{}
	for _, f := range append(fields(), marks()...) {
		rank[f.Name] = len(rank) + 1
	}
	known := make([][]Prop, len(rank)+1)
	var rest []Prop
	for _, p := range r.Props {
		if k := rank[p.Name]; k > 0 {
			known[k] = append(known[k], p)
		} else {
			rest = append(rest, p)
		}
	}
	r.Props = r.Props[:0]
	for _, k := range known {
		r.Props = append(r.Props, k...)
	}
	r.Props = append(r.Props, rest...)
}
