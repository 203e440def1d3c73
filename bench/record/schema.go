package record

import "perfsim/io/format"

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
