package fit

import "strings"

// gapName takes the name of a gap constant apart: "seq.SP.gap_ns" and
// "seq.SP.gap.DMA.DRAIN_ns".
func gapName(name string) (engine, pair string, ok bool) {
	rest, ok := strings.CutPrefix(name, "seq.")
	if !ok {
		return "", "", false
	}
	engine, rest, ok = strings.Cut(rest, ".")
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutPrefix(rest, "gap")
	if !ok {
		return "", "", false
	}
	rest, ok = strings.CutSuffix(rest, "_ns")
	if !ok {
		return "", "", false
	}
	return engine, strings.TrimPrefix(rest, "."), true
}
