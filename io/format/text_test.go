package format

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

type appender interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// Texts in any encoding of Unicode are read as UTF-8.
func TestTextEncodings(t *testing.T) {
	text := "HloModule möbius 😀\n" + strings.Repeat("a line of text\n", 1000)
	ascii := strings.Repeat("HloModule m\n", 900)
	enc := func(s string, order appender, mark bool) []byte {
		var b []byte
		if mark {
			s = "\ufeff" + s
		}
		for _, c := range utf16.Encode([]rune(s)) {
			b = order.AppendUint16(b, c)
		}
		return b
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"UTF-8", []byte(text), text},
		{"UTF-8 with a mark", []byte("\ufeff" + text), text},
		{"little endian", enc(text, binary.LittleEndian, true), text},
		{"big endian", enc(text, binary.BigEndian, true), text},
		{"little endian without a mark", enc(ascii, binary.LittleEndian, false), ascii},
		{"big endian without a mark", enc(ascii, binary.BigEndian, false), ascii},
		{"binary", []byte{0xff, 0xfe, 0}, "\xff\xfe\x00"},
		{"packed", packed(t, enc(text, binary.LittleEndian, true)), text},
		{"half a pair", append(enc("ab", binary.LittleEndian, true), 0x3d, 0xd8), "ab\ufffd"},
	} {
		got, err := unpack(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v, %d bytes, want %d: %.40q", c.name, err, len(got), len(c.want), got)
		}
	}
	s, err := FromBytes("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4096, 1 << 20, 64 << 20} {
		if got := s.HeadN(n); string(got) != text[:min(n, len(text))] {
			t.Errorf("%d bytes of %d", len(got), n)
		}
	}
	if got, err := io.ReadAll(s); err != nil || string(got) != text {
		t.Errorf("%v, %d bytes after looking at the head", err, len(got))
	}
}

// FuzzDecodeText reads any text in UTF-16 and UTF-32 of both byte orders as it
// reads it in UTF-8, and any bytes without a panic.
func FuzzDecodeText(f *testing.F) {
	for _, s := range []string{"HloModule möbius 😀\n", "[{\"ph\":\"X\",\"name\":\"a\"}]", "module @m {\n}\n", "\xff\xfea\x00", "\x00\x00\xfe\xff\x00\x00\x00a", "\xef\xbb\xbfx"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := unpack(b); err != nil {
			return
		}
		s := string(b)
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return c < 0x80 && !isText(byte(c)) || c == '\ufeff' }) {
			return
		}
		for _, order := range []appender{binary.LittleEndian, binary.BigEndian} {
			two, four := order.AppendUint16(nil, 0xfeff), order.AppendUint32(nil, 0xfeff)
			for _, c := range utf16.Encode([]rune(s)) {
				two = order.AppendUint16(two, c)
			}
			for _, c := range s {
				four = order.AppendUint32(four, uint32(c))
			}
			for _, in := range [][]byte{two, four} {
				if got, err := unpack(in); err != nil || string(got) != s {
					t.Errorf("%x is %q, want %q: %v", in, got, s, err)
				}
			}
		}
	})
}
