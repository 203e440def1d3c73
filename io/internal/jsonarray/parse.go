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
	var any json.RawMessage
	if se, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &any)); ok {
		return nil, fmt.Errorf("not JSON at byte %d: %w", off+max(se.Offset-1, 0), se)
	}
	return nil, fmt.Errorf("not JSON: %.100s", err)
}
