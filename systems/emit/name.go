package emit

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// maxName bounds a file name: file systems allow 255 bytes, and the writers
// put a temporary suffix behind.
const maxName = 200

// sanitize replaces every character that is not a letter, a digit, '.', '_'
// or '-' by '_'. The documented pass does the same with a regular expression
// that is not published; the set is ours. A name that is too long is cut and
// ends in a hash of the whole.
func sanitize(name string) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if len(s) > maxName {
		h := fnv.New64a()
		h.Write([]byte(name)) // a hash never fails to write
		s = s[:maxName-17] + "-" + strconv.FormatUint(h.Sum64(), 16)
	}
	return s
}

// names hands out file names, each once.
type names struct{ used map[string]int }

// trace returns the name of a block's trace file:
// <family>.<module>.<function>.<block>.json.
func (n *names) trace(family, module, function, block string) string {
	base := sanitize(family + "." + module + "." + function + "." + block)
	n.used[base]++
	if k := n.used[base]; k > 1 {
		base += "-" + strconv.Itoa(k)
	}
	return base + ".json"
}
