//go:build !arm64

package place

import "math"

// prefetchFrom keeps placements without an instruction for it from asking;
// x86-64 asks in padRows.
const prefetchFrom = math.MaxInt

func prefetchTimes(*uint32, int, *pair) {}
