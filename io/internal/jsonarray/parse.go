package jsonarray

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/valyala/fastjson"
)

// Parse parses an element that begins at byte off of the input. Its errors say
// where the element stops being JSON; those of the parser name every level
// around that instead.
func Parse(p *fastjson.Parser, text []byte, off int64) (*fastjson.Value, error) {
	v, err := p.ParseBytes(text)
	if err == nil {
		return v, nil
	}
	if short, any := withoutTrailingCommas(text); any {
		if v, err := p.ParseBytes(short); err == nil {
			return v, nil
		}
	}
	var any json.RawMessage
	if se, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &any)); ok {
		return nil, fmt.Errorf("not JSON at byte %d: %w", off+max(se.Offset-1, 0), se)
	}
	return nil, fmt.Errorf("not JSON: %.100s", err)
}

// withoutTrailingCommas returns a copy of a JSON text without the commas that
// stand before a closing bracket, and whether there were any.
func withoutTrailingCommas(text []byte) ([]byte, bool) {
	out := make([]byte, 0, len(text))
	comma := -1 // place in out of a comma after which only white space came
	found := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case ' ', '\t', '\n', '\r':
		case ',':
			comma = len(out)
		case ']', '}':
			if comma >= 0 {
				out, found = append(out[:comma], out[comma+1:]...), true
			}
			comma = -1
		case '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text)-1)
			out = append(out, text[i:end]...)
			i, c, comma = end, text[end], -1
		default:
			comma = -1
		}
		out = append(out, c)
	}
	return out, found
}
