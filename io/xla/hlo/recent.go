package hlo

// recentSize is how many texts a recent holds: few enough for the fastest
// cache of a processor.
const recentSize = 128

// recent remembers what a text was last found to mean, in front of a table:
// in a module most shapes and operands are those of a few lines before. There
// is one place for each of a few hash values and the last text keeps it.
type recent[V any] [recentSize]struct {
	text string
	val  V
}

// place returns where a text is if it is there. Names differ in their last
// bytes, a number, and in their first ones.
func (r *recent[V]) place(text string) int {
	n := len(text)
	h := uint64(n)
	if n >= 8 {
		h += le64(text) + le64(text[n-8:])<<1
	} else {
		for i := range n {
			h = h<<8 + uint64(text[i])
		}
	}
	return int(h * 0x9e3779b97f4a7c15 >> 32 % recentSize) // 2^64 by the golden ratio
}

func (r *recent[V]) get(text string) (v V, ok bool) {
	e := &r[r.place(text)]
	if e.text != text {
		return v, false
	}
	return e.val, true
}

func (r *recent[V]) put(text string, v V) {
	e := &r[r.place(text)]
	e.text, e.val = text, v
}

// le64 returns the first eight bytes as a number.
func le64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
