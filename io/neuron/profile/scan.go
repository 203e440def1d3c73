package profile

import (
	"fmt"
	"io"

	"perfsim/io/internal/jsonscan"
)

// Bounds on untrusted input. An instruction of the real files takes about
// 2 KB and five levels.
const (
	maxDepth   = 128
	maxElement = 16 << 20
	maxKey     = 4096
)

// newScanner returns a scanner of an export: places are bytes, for exports are
// one line.
func newScanner(r io.Reader) *jsonscan.Scanner {
	s := jsonscan.New(r, jsonscan.Limits{Depth: maxDepth, Element: maxElement}, nil)
	s.Bytes = func(off int64) int64 { return off }
	return s
}

// errorAt is an error at a byte offset of the (unwrapped) input.
func errorAt(offset int64, format string, args ...any) error {
	return &jsonscan.Error{At: jsonscan.Place{Off: offset}, Err: fmt.Errorf(format, args...)}
}
