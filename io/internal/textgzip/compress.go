package textgzip

import (
	"encoding/binary"
	"math/bits"
)

const (
	window   = 32 << 10
	maxMatch = 258
	minMatch = 4
	slack    = 64 // bytes behind a block that may be read
	hashBits = 11
	// goodMatch is from where on no other match is tried.
	goodMatch = 24
)

// run is some literals and the match behind them; the literals are read from
// the text when it is written.
type run struct {
	literals uint32
	length   uint16 // 0 in the last run of a block
	distance uint16 // less one
}

// compressor compresses one block at a time.
type compressor struct {
	out  []byte
	runs []run
	// short and long have by hash where a phrase was last: its first eight
	// bytes, and its first thirty-two. Places are counted from base, so that the
	// tables need no clearing between blocks.
	short, long [1 << hashBits]uint32
	base        uint32
	lit         [286]uint32 // how often literals and lengths occur
	dist        [30]uint32
	huff        codes
}

// compress sets c.out to deflate blocks of text that end at a byte. The array
// behind text has slack more bytes.
func (c *compressor) compress(text []byte) {
	c.parse(text)
	c.out = c.out[:0]
	c.write(text)
	if stored := len(text) + 5*(len(text)/maxStored+1); len(c.out) > stored {
		c.out = appendStored(c.out[:0], text)
	}
}

const maxStored = 65535

// appendStored appends text as it is.
func appendStored(out, text []byte) []byte {
	for len(text) > 0 {
		n := min(len(text), maxStored)
		out = append(out, 0, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out, text = append(out, text[:n]...), text[n:]
	}
	return out
}

// digitsIn returns how many of the eight bytes of v, from the lowest, are
// digits before the first that is not.
func digitsIn(v uint64) int {
	// A byte is a digit if its high half is 3 and stays 3 when 6 is added.
	const high = 0xf0f0f0f0f0f0f0f0
	low := v & 0x7f7f7f7f7f7f7f7f // no carries into the next byte
	x := (v & high) ^ 0x3030303030303030 | ((low+0x0606060606060606)&high ^ 0x3030303030303030)
	return bits.TrailingZeros64(x) >> 3
}

func hash8(v uint64) uint32 { return uint32(v * 0x9e3779b97f4a7c15 >> (64 - hashBits)) }

// parse finds the runs of text and counts their symbols.
func (c *compressor) parse(text []byte) {
	c.runs = c.runs[:0]
	clear(c.lit[:])
	clear(c.dist[:])
	// Places of blocks before are too far back by the size of a window.
	if c.base > 1<<31 {
		clear(c.short[:])
		clear(c.long[:])
		c.base = 0
	}
	base := c.base + window + 1
	c.base = base + uint32(len(text))
	src := text[: len(text)+slack : len(text)+slack]
	end := len(text)
	clear(src[end:]) // is looked at, and holds no digits
	digits := 0
	from := 0 // of the literals that wait
	for p := 0; p < end; {
		v := binary.LittleEndian.Uint64(src[p:])
		if n := digitsIn(v); n > 0 {
			digits += n
			p += n
			continue
		}
		here := base + uint32(p)
		w := v ^ bits.RotateLeft64(binary.LittleEndian.Uint64(src[p+8:]), 21) ^
			bits.RotateLeft64(binary.LittleEndian.Uint64(src[p+16:])*0xff51afd7ed558ccd, 11) ^ binary.LittleEndian.Uint64(src[p+24:])*0xc4ceb9fe1a85ec53
		short, long := &c.short[hash8(v)], &c.long[hash8(w)]
		at, also := *long, *short
		*long, *short = here, here
		n := match(src, p, base, at)
		if n < goodMatch && also != at {
			if m := match(src, p, base, also); m > n {
				n, at = m, also
			}
		}
		if n < minMatch {
			c.lit[byte(v)]++
			p++
			continue
		}
		n = min(n, end-p)
		d := uint16(here - at - 1)
		literals := uint32(p - from)
		p += n
		from = p
		c.dist[distanceCode(d)]++
		if n <= maxMatch {
			c.runs = append(c.runs, run{literals, uint16(n), d})
			c.lit[257+int(lengthCode[n])]++
			continue
		}
		for n > 0 {
			k := min(n, maxMatch)
			if rest := n - k; rest > 0 && rest < minMatch {
				k -= minMatch // both parts are long enough
			}
			c.runs = append(c.runs, run{literals, uint16(k), d})
			c.lit[257+int(lengthCode[k])]++
			c.dist[distanceCode(d)]++
			literals = 0
			n -= k
		}
	}
	c.runs = append(c.runs, run{literals: uint32(end - from)})
	c.lit[256]++
	// Digits are taken as equally frequent, which they nearly are; counting
	// each would wait for the count before.
	for d := '0'; d <= '9'; d++ {
		c.lit[d] += uint32(digits+9) / 10
	}
}

// match returns how many bytes at p are those at the place at; it may look
// behind the block.
func match(src []byte, p int, base, at uint32) int {
	if at < base || base+uint32(p)-at > window {
		return 0
	}
	a, b := src[p:], src[at-base:]
	for n := 0; n+8 <= len(a) && n+8 <= len(b); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)>>3
		}
	}
	return len(a)
}
