package record

import (
	"fmt"
	"strconv"

	"github.com/valyala/fastjson"

	"perfsim/io/format"
)

// Schema returns a JSON schema (draft 2020-12) of a file of records, made
// from Fields and Marks.
func Schema() []byte {
	b := []byte(`{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "Benchmark records",
  "type": "array",
  "minItems": 1,
  "items": {
    "type": "object",
    "properties": {
`)
	all := append(fields(), marks()...)
	for i, f := range all {
		b = append(b, "      "...)
		b = format.AppendJSONString(b, f.Name)
		b = append(b, `: {"type": `...)
		if f.Null {
			b = append(b, `["`+string(f.Kind)+`", "null"]`...)
		} else {
			b = append(b, `"`+string(f.Kind)+`"`...)
		}
		if f.Kind == Number || f.Kind == integer {
			b = append(b, `, "minimum": 0`...)
		}
		if f.Doc != "" {
			b = append(b, `, "description": `...)
			b = format.AppendJSONString(b, f.Doc)
		}
		b = append(b, '}')
		if i < len(all)-1 {
			b = append(b, ',')
		}
		b = append(b, '\n')
	}
	b = append(b, "    },\n    \"required\": ["...)
	first := true
	for _, f := range all {
		if f.Optional {
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b = format.AppendJSONString(b, f.Name)
	}
	return append(b, "]\n  }\n}\n"...)
}

// Validate tells what of a record the schema refuses, nil where nothing.
func (r *Record) Validate() []error {
	var errs []error
	have := map[string]string{}
	for _, p := range r.Props {
		have[p.Name] = p.JSON
	}
	var parser fastjson.Parser
	for _, f := range append(fields(), marks()...) {
		text, ok := have[f.Name]
		if !ok {
			if !f.Optional {
				errs = append(errs, fmt.Errorf("%s is missing", f.Name))
			}
			continue
		}
		v, err := parser.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is no JSON: %s", f.Name, short(err)))
			continue
		}
		if v.Type() == fastjson.TypeNull {
			if !f.Null {
				errs = append(errs, fmt.Errorf("%s is null", f.Name))
			}
			continue
		}
		if !fits(v, f.Kind) {
			errs = append(errs, fmt.Errorf("%s is %s, not a JSON %s", f.Name, short(fmt.Errorf("%s", text)), f.Kind))
		} else if f.Kind == Number || f.Kind == integer {
			if x, err := strconv.ParseFloat(text, 64); err != nil || x < 0 {
				errs = append(errs, fmt.Errorf("%s is %s, less than 0", f.Name, text))
			}
		}
	}
	return errs
}

func fits(v *fastjson.Value, k kind) bool {
	switch k {
	case Number:
		return v.Type() == fastjson.TypeNumber
	case integer:
		x, err := v.Float64()
		return v.Type() == fastjson.TypeNumber && err == nil && x == float64(int64(x))
	case String:
		return v.Type() == fastjson.TypeString
	case boolean:
		return v.Type() == fastjson.TypeTrue || v.Type() == fastjson.TypeFalse
	case "object":
		return v.Type() == fastjson.TypeObject
	case "array":
		return v.Type() == fastjson.TypeArray
	}
	return false
}
