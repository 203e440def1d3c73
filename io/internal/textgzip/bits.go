package textgzip

import (
	"encoding/binary"
	"slices"
)

// order is that in which the lengths of the code of code lengths are written.
var order = [19]int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// sink collects bits.
type sink struct {
	out []byte
	acc uint64
	n   uint
}

func (s *sink) put(v uint64, n uint) {
	s.acc |= v << (s.n & 63)
	s.n += n
	for s.n >= 8 {
		s.out = append(s.out, byte(s.acc))
		s.acc >>= 8
		s.n -= 8
	}
}

// write appends the runs as one block with codes of its own and an empty
// stored one, which ends at a byte.
func (c *compressor) write(text []byte) {
	s := sink{out: c.out}
	c.head(&s)
	for k := 3; k <= maxMatch; k++ {
		sym := lengthCode[k]
		l := c.huff.lit[257+int(sym)]
		c.huff.length[k] = code{l.bits | uint32(k-int(lengthBase[sym]))<<l.n, l.n + lengthExtra[sym]}
	}
	// Room for the worst: fifteen bits a byte.
	out := slices.Grow(s.out, 2*len(text)+64)
	n := len(out)
	out = out[:cap(out)]
	acc, have := s.acc, s.n
	at := 0
	for _, r := range c.runs {
		lits := text[at : at+int(r.literals)]
		at += int(r.literals) + int(r.length)
		for _, b := range lits {
			l := &c.huff.lit[b]
			acc |= uint64(l.bits) << (have & 63)
			if have += uint(l.n); have > 45 {
				binary.LittleEndian.PutUint64(out[n:], acc)
				n += int(have >> 3)
				acc >>= have &^ 7 & 63
				have &= 7
			}
		}
		if have > 15 { // up to 48 bits come
			binary.LittleEndian.PutUint64(out[n:], acc)
			n += int(have >> 3)
			acc >>= have &^ 7 & 63
			have &= 7
		}
		if r.length == 0 {
			break
		}
		l := &c.huff.length[r.length] // 20 bits
		acc |= uint64(l.bits) << (have & 63)
		have += uint(l.n)
		sym := distanceCode(r.distance) // 28 bits
		d := &c.huff.dist[sym]
		extra := uint(distanceExtra(sym))
		acc |= uint64(d.bits) << (have & 63)
		have += uint(d.n)
		acc |= (uint64(r.distance) & (1<<extra - 1)) << (have & 63)
		have += extra
		binary.LittleEndian.PutUint64(out[n:], acc)
		n += int(have >> 3)
		acc >>= have &^ 7 & 63
		have &= 7
	}
	s = sink{out[:n], acc, have}
	end := c.huff.lit[256]
	s.put(uint64(end.bits), uint(end.n))
	s.put(0, 3) // stored
	s.put(0, -s.n&7)
	c.out = append(s.out, 0, 0, 0xff, 0xff)
}

// head makes the codes of a block and writes them (RFC 1951, 3.2.7).
func (c *compressor) head(s *sink) {
	var n [286 + 30]uint8
	lengths(c.lit[:], n[:286], maxBits)
	dist := n[286:]
	lengths(c.dist[:], dist, maxBits)
	assign(n[:286], c.huff.lit[:])
	assign(dist, c.huff.dist[:])
	// One distance code has to be there, though it is not used.
	if c.dist == [30]uint32{} {
		dist[0] = 1
	}
	// Zeros come in runs; other lengths are written one by one.
	type item struct{ sym, extra, n uint8 }
	var items []item
	for i := 0; i < len(n); {
		k := i
		for k < len(n) && n[k] == 0 && k-i < 138 {
			k++
		}
		switch zeros := k - i; {
		case zeros >= 11:
			items = append(items, item{18, uint8(zeros - 11), 7})
		case zeros >= 3:
			items = append(items, item{17, uint8(zeros - 3), 3})
		default:
			k = i + 1
			items = append(items, item{sym: n[i]})
		}
		i = k
	}
	var freq [19]uint32
	for _, it := range items {
		freq[it.sym]++
	}
	var clen [19]uint8
	var cc [19]code
	lengths(freq[:], clen[:], 7)
	assign(clen[:], cc[:])
	count := 19
	for count > 4 && clen[order[count-1]] == 0 {
		count--
	}
	s.put(2<<1, 3) // not the last; codes of its own
	s.put(286-257, 5)
	s.put(30-1, 5)
	s.put(uint64(count-4), 4)
	for _, k := range order[:count] {
		s.put(uint64(clen[k]), 3)
	}
	for _, it := range items {
		s.put(uint64(cc[it.sym].bits), uint(cc[it.sym].n))
		s.put(uint64(it.extra), uint(it.n))
	}
}
