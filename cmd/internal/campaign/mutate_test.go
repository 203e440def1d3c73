package campaign

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"regexp"
	"strings"
)

// Values that readers and systems have trouble with.
var (
	numbers = []string{"0", "-1", "1", "255", "256", "65535", "65536", "1048576", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
		"9223372036854775808", "18446744073709551615", "-9223372036854775808", "1e308", "1e999", "0.5", "-0", "NaN", "1e-320"}
	texts = []string{"", "\\u0000", "\\u001b[2J", "\\u202e", "\\ud800", "a\\nb\\r", "=cmd|A0", "../../x", "</script>", strings.Repeat("k", 700), strings.Repeat("n", 70_000)}
	words = []uint64{0, 1, 2, 7, 255, 256, 0xffff, 0x10000, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1}

	numberPattern = regexp.MustCompile(`-?\b\d+(\.\d+)?\b`)
	stringPattern = regexp.MustCompile(`"[^"\\\n]{0,80}"`)
)

// mutate returns a changed copy of the seed: one to four changes, each by what
// the bytes look like, then the checksums and the compression renewed.
func mutate(r *rand.Rand, s *seed) []byte {
	b := bytes.Clone(s.data)
	for range 1 + r.IntN(4) {
		switch {
		case bytes.HasPrefix(b, []byte("\x89PSIM")) && r.IntN(8) > 0:
			b = snapshot(r, b)
		case len(b) > 262 && string(b[257:262]) == "ustar" && r.IntN(2) == 0:
			b = archive(r, b)
		case r.IntN(3) > 0 && printable(b):
			b = text(r, b)
		default:
			b = raw(r, b)
		}
	}
	if s.pack == "gz" && r.IntN(8) > 0 {
		b = gzipped(b)
	}
	return b
}

// printable reports whether b looks like text.
func printable(b []byte) bool {
	for _, c := range b[:min(len(b), 200)] {
		if c < 9 || c > 13 && c < 32 {
			return false
		}
	}
	return true
}

// raw changes bytes.
func raw(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return []byte{byte(r.Uint32())}
	}
	at, n := r.IntN(len(b)), 1+r.IntN(16)
	end := min(at+n, len(b))
	switch r.IntN(7) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
	case 1:
		b[at] = byte(r.Uint32())
	case 2:
		return b[:at] // cut short
	case 3:
		return append(b[:at:at], b[end:]...)
	case 4:
		return bytes.Join([][]byte{b[:at], b[at:end], b[at:]}, nil)
	case 5:
		for k := range min(8, len(b)-at) {
			b[at+k] = byte(words[r.IntN(len(words))] >> (8 * k))
		}
	case 6:
		from := r.IntN(len(b))
		copy(b[at:end], b[from:])
	}
	return b
}

// text changes numbers, strings and lines, and the nesting.
func text(r *rand.Rand, b []byte) []byte {
	pick := func(p *regexp.Regexp, by string) []byte {
		from := r.IntN(len(b) + 1)
		at := p.FindIndex(b[from:])
		if at == nil {
			from = 0
			if at = p.FindIndex(b); at == nil {
				return raw(r, b)
			}
		}
		return bytes.Join([][]byte{b[:from+at[0]], []byte(by), b[from+at[1]:]}, nil)
	}
	switch r.IntN(8) {
	case 0, 1, 2:
		return pick(numberPattern, numbers[r.IntN(len(numbers))])
	case 3:
		return pick(stringPattern, `"`+texts[r.IntN(len(texts))]+`"`)
	case 4: // a string by another of the input
		if all := stringPattern.FindAll(b[:min(len(b), 1<<14)], 200); len(all) > 0 {
			return pick(stringPattern, string(all[r.IntN(len(all))]))
		}
	case 5: // a line again, left out or moved
		lines := bytes.SplitAfter(b, []byte("\n"))
		i, k := r.IntN(len(lines)), r.IntN(len(lines))
		lines[i] = [][]byte{nil, append(bytes.Clone(lines[i]), lines[i]...), lines[k]}[r.IntN(3)]
		return bytes.Join(lines, nil)
	case 6: // a balanced piece again
		if from, to := balanced(r, b); to > from {
			return bytes.Join([][]byte{b[:to], []byte(","), b[from:to], b[to:]}, nil)
		}
	case 7:
		if from, to := balanced(r, b); to > from {
			n := []int{1, 50, 2000, 20_000}[r.IntN(4)]
			return bytes.Join([][]byte{b[:from], bytes.Repeat([]byte("["), n), b[from:to], bytes.Repeat([]byte("]"), n), b[to:]}, nil)
		}
	}
	return raw(r, b)
}

// balanced finds a bracketed piece of at most 4 KiB.
func balanced(r *rand.Rand, b []byte) (from, to int) {
	at := r.IntN(len(b) + 1)
	for ; at < len(b); at++ {
		if b[at] == '{' || b[at] == '[' {
			break
		}
	}
	depth := 0
	for k := at; k < min(len(b), at+4096); k++ {
		switch b[k] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at, k + 1
			}
		}
	}
	return 0, 0
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// snapshot changes values of columns, removes columns and cuts them, and
// renews all checksums (docs/snapshot.md draws the bytes).
func snapshot(r *rand.Rand, b []byte) []byte {
	le := binary.LittleEndian
	if len(b) < 128 {
		return raw(r, b)
	}
	columns, dirSize := int(le.Uint32(b[12:])), int(le.Uint64(b[32:]))
	if columns < 1 || columns > 4096 || dirSize > len(b)-64 || dirSize < columns*64 {
		return raw(r, b)
	}
	type column struct {
		record []byte
		data   []byte
		elem   int
	}
	var cols []column
	sums := 0
	for i := range columns {
		rec := bytes.Clone(b[64+i*64:][:64])
		off, n := int(le.Uint64(rec[40:])), int(le.Uint64(rec[48:]))
		if off < 0 || n < 0 || off > len(b)-n {
			return raw(r, b)
		}
		elem := int(le.Uint32(rec[56:]))
		cols = append(cols, column{rec, bytes.Clone(b[off : off+n]), max(elem, 1)})
		sums += int(le.Uint32(rec[60:]))
	}
	if sums < 0 || sums > (dirSize-columns*64)/4 {
		return raw(r, b) // damaged by an earlier change
	}
	header := bytes.Clone(b[64+columns*64+sums*4 : 64+dirSize])
	c := &cols[r.IntN(len(cols))]
	rows := len(c.data) / c.elem
	switch r.IntN(10) {
	case 0: // without the column
		cols = append(cols[:0], slicesWithout(cols, r.IntN(len(cols)))...)
	case 1: // shorter
		if rows > 1 {
			c.data = c.data[:r.IntN(rows)*c.elem]
		}
	case 2: // longer
		c.data = append(c.data, c.data[:r.IntN(rows+1)*c.elem]...)
	default: // other values
		for range 1 + r.IntN(3) {
			if rows == 0 {
				break
			}
			at := r.IntN(rows) * c.elem
			v := words[r.IntN(len(words))]
			switch r.IntN(4) {
			case 0: // another row's
				from := r.IntN(rows) * c.elem
				copy(c.data[at:at+c.elem], c.data[from:])
				continue
			case 1: // near what is there
				var old [8]byte
				copy(old[:], c.data[at:min(at+8, at+c.elem)])
				v = le.Uint64(old[:]) + uint64(r.IntN(5)) - 2
			case 2:
				v = uint64(r.IntN(256))
			}
			for k := range c.elem {
				c.data[at+k] = byte(v >> (8 * (k & 7)))
			}
		}
	}
	return assemble(header, le.Uint64(b[40:]), func(yield func(name, data []byte, elem int)) {
		for _, c := range cols {
			if len(c.data) > 0 {
				yield(c.record[:40], c.data, c.elem)
			}
		}
	})
}

func slicesWithout[T any](s []T, i int) []T {
	return append(append([]T(nil), s[:i]...), s[i+1:]...)
}

// assemble makes a snapshot with right sizes and checksums.
func assemble(header []byte, rows uint64, each func(func(name, data []byte, elem int))) []byte {
	le := binary.LittleEndian
	align := func(n, to int) int { return (n + to - 1) / to * to }
	var records, checks, body []byte
	n, size := 0, 0
	each(func(_, data []byte, _ int) { n++; size += 64 + 4*((len(data)+1<<20-1)>>20) })
	dirSize := size + len(header)
	start := align(64+dirSize, 4096)
	end := start
	each(func(name, data []byte, elem int) {
		at := align(end, 64)
		if len(data) >= 4096 {
			at = align(end, 4096)
		}
		body = append(body, make([]byte, at-end)...)
		body = append(body, data...)
		end = at + len(data)
		records = append(records, name...)
		records = le.AppendUint64(records, uint64(at))
		records = le.AppendUint64(records, uint64(len(data)))
		records = le.AppendUint32(records, uint32(elem))
		records = le.AppendUint32(records, uint32((len(data)+1<<20-1)>>20))
		for k := 0; k < len(data); k += 1 << 20 {
			checks = le.AppendUint32(checks, crc32.Checksum(data[k:min(k+1<<20, len(data))], castagnoli))
		}
	})
	dir := bytes.Join([][]byte{records, checks, header}, nil)
	p := []byte("\x89PSIM\r\n\x1a")
	p = le.AppendUint32(p, 1)
	p = le.AppendUint32(p, uint32(n))
	p = le.AppendUint64(p, uint64(end))
	p = le.AppendUint64(p, 64)
	p = le.AppendUint64(p, uint64(dirSize))
	p = le.AppendUint64(p, rows)
	p = le.AppendUint32(p, 1<<20)
	p = le.AppendUint32(p, crc32.Checksum(dir, castagnoli))
	p = le.AppendUint32(p, 0)
	p = le.AppendUint32(p, crc32.Checksum(p, castagnoli))
	out := append(p, dir...)
	return append(append(out, make([]byte, start-len(out))...), body...)
}

// archive changes the header of a member of a tar and renews its checksum.
func archive(r *rand.Rand, b []byte) []byte {
	var at []int
	for i := 0; i+512 <= len(b); i += 512 {
		if string(b[i+257:i+262]) == "ustar" {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return raw(r, b)
	}
	h := b[at[r.IntN(len(at))]:][:512]
	switch r.IntN(4) {
	case 0:
		h[156] = "0123456gxSLK7"[r.IntN(13)]
	case 1:
		copy(h[124:136], fmt.Sprintf("%011o\x00", words[r.IntN(len(words))]&(1<<33-1)))
	case 2:
		copy(h[:100], []string{"../x", "/x", "a/../../b", strings.Repeat("d/", 49), "x\x00", "."}[r.IntN(6)])
	case 3:
		h[r.IntN(512)] = byte(r.Uint32())
	}
	sum := 8 * int(' ')
	for i, c := range h {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return b
}
