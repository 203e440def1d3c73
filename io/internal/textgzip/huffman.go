package textgzip

import (
	"math/bits"
	"slices"
)

const maxBits = 15 // of a code; 7 for the code of code lengths

// code is a Huffman code as it is written, first bit lowest, and its length.
type code struct {
	bits uint32
	n    uint8
}

// codes are those of a block. length has, by length of a match, the code with
// the extra bits behind it.
type codes struct {
	lit    [286]code
	dist   [30]code
	length [maxMatch + 1]code
}

// lengthCode has, by length of a match, its symbol less 257 (RFC 1951, 3.2.5);
// lengthBase and lengthExtra by symbol its lowest length and extra bits.
var lengthCode, lengthBase, lengthExtra = lengthTables()

func lengthTables() (of [maxMatch + 1]uint8, base [29]uint16, extra [29]uint8) {
	n := uint16(3)
	for c := range 28 {
		e := uint8(0)
		if c >= 8 {
			e = uint8(c/4 - 1)
		}
		base[c], extra[c] = n, e
		for range 1 << e {
			if n < maxMatch {
				of[n] = uint8(c)
			}
			n++
		}
	}
	of[maxMatch], base[28] = 28, maxMatch
	return of, base, extra
}

// distanceCode returns the symbol of a distance less one: two symbols for
// every power of two.
func distanceCode(d uint16) int {
	if d < 4 {
		return int(d)
	}
	k := bits.Len16(d) - 1
	return 2*k + int(d>>(k-1)&1)
}

// distanceExtra returns how many extra bits a symbol has; the bits are the
// lowest of the distance less one.
func distanceExtra(c int) int { return max(0, c/2-1) }

// lengths fills out with the code lengths of a Huffman code for how often the
// symbols occur, none above most bits.
func lengths(freq []uint32, out []uint8, most int) {
	clear(out)
	type node struct {
		freq        uint64
		left, right int // of inner nodes; a leaf has its symbol in left and -1 in right
	}
	for shift := 0; ; shift++ {
		var leaves []node
		for s, f := range freq {
			if f > 0 {
				leaves = append(leaves, node{uint64(f>>shift | 1), s, -1})
			}
		}
		if len(leaves) < 2 {
			for _, l := range leaves {
				out[l.left] = 1
			}
			return
		}
		slices.SortFunc(leaves, func(a, b node) int {
			if a.freq != b.freq {
				if a.freq < b.freq {
					return -1
				}
				return 1
			}
			return a.left - b.left
		})
		// Inner nodes come into being in the order of their counts: two queues.
		all := leaves
		leaf, inner := 0, len(leaves)
		take := func() int {
			if leaf < len(leaves) && (inner >= len(all) || all[leaf].freq <= all[inner].freq) {
				leaf++
				return leaf - 1
			}
			inner++
			return inner - 1
		}
		for range len(leaves) - 1 {
			a := take()
			b := take()
			all = append(all, node{all[a].freq + all[b].freq, a, b})
		}
		depth := make([]int, len(all))
		deepest := 0
		for i := len(all) - 1; i >= 0; i-- {
			if n := all[i]; n.right >= 0 {
				depth[n.left], depth[n.right] = depth[i]+1, depth[i]+1
			} else {
				out[n.left] = uint8(min(depth[i], 255))
				deepest = max(deepest, depth[i])
			}
		}
		if deepest <= most {
			return
		}
		// Rare symbols are taken for less rare and the code is made again.
	}
}

// assign makes the codes of lengths (RFC 1951, 3.2.2).
func assign(lengths []uint8, out []code) {
	var count, next [maxBits + 2]uint32
	for _, n := range lengths {
		count[n]++
	}
	count[0] = 0
	for n := 1; n <= maxBits; n++ {
		next[n+1] = (next[n] + count[n]) << 1
	}
	for s, n := range lengths {
		out[s] = code{}
		if n > 0 {
			out[s] = code{uint32(bits.Reverse16(uint16(next[n])) >> (16 - n)), n}
			next[n]++
		}
	}
}
