package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
)

// SyntaxError is the error of an element whose brackets match and which is no
// JSON. Off is where the element begins.
type SyntaxError struct {
	Off int64
	Err error
}

// Error is the error without the place of the element.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *SyntaxError) Unwrap() error { return e.Err }

// syntaxError says where a text that begins at byte off stops being JSON.
func syntaxError(text []byte, off int64) error {
	var any json.RawMessage
	if se, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &any)); ok {
		return fmt.Errorf("not JSON at byte %d: %w", off+max(se.Offset-1, 0), se)
	}
	return errors.New("not JSON")
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
