package components

import "strings"

// Named reports whether a person who typed typed means name: the name itself,
// or its end behind the "…" that tables put in place of a long name's
// beginning.
func Named(name, typed string) bool {
	if name == typed {
		return true
	}
	end, cut := strings.CutPrefix(typed, "…")
	return cut && end != "" && len(end) < len(name) && strings.HasSuffix(name, end)
}
