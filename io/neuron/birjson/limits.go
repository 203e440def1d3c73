package birjson

import "perfsim/io/internal/jsonscan"

// Limits of what a text may ask for. They are far above any real module and
// far below what would hurt.
const (
	maxNesting = 200       // levels of braces and brackets
	maxLoops   = 64        // loops in loops
	maxElement = 64 << 20  // bytes of one instruction, allocation or attribute
	windowSize = 256 << 10 // bytes of a binary input read at a time
)

var limits = jsonscan.Limits{Depth: maxNesting, Element: maxElement}
