package format

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf8Mark is the byte order mark of UTF-8.
var utf8Mark = []byte("\xef\xbb\xbf")

// DecodeText makes UTF-8 of a text in UTF-16 or UTF-32, as editors and
// redirection on Windows write it: with a byte order mark, or without
// one where the beginning is ASCII with zero bytes in between. A mark of UTF-8 is left
// out. Anything else is passed on as it is; decoded says that it was not UTF-8.
func DecodeText(in *bufio.Reader) (out *bufio.Reader, decoded bool) {
	head, _ := in.Peek(64) // an error is that of the first read
	var order binary.ByteOrder
	skip := 0
	switch {
	case bytes.HasPrefix(head, utf8Mark):
		in.Discard(len(utf8Mark))
		return in, false
	case len(head)%4 == 0 && (bytes.HasPrefix(head, []byte{0xff, 0xfe, 0, 0}) || bytes.HasPrefix(head, []byte{0, 0, 0xfe, 0xff})):
		order = binary.LittleEndian
		if head[0] == 0 {
			order = binary.BigEndian
		}
		in.Discard(4)
		return bufio.NewReaderSize(&utf32Reader{r: in, order: order}, bufSize), true
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}) && len(head)%2 == 0:
		order, skip = binary.LittleEndian, 2
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}) && len(head)%2 == 0:
		order, skip = binary.BigEndian, 2
	case everyFourth(head, 0):
		return bufio.NewReaderSize(&utf32Reader{r: in, order: binary.LittleEndian}, bufSize), true
	case everyFourth(head, 3):
		return bufio.NewReaderSize(&utf32Reader{r: in, order: binary.BigEndian}, bufSize), true
	case everyOther(head, 1):
		order = binary.LittleEndian
	case everyOther(head, 0):
		order = binary.BigEndian
	default:
		return in, false
	}
	in.Discard(skip)
	return bufio.NewReaderSize(&utf16Reader{r: in, order: order}, bufSize), true
}

// everyFourth reports whether b is printable ASCII at the bytes i, i+4, … and
// all others are 0.
func everyFourth(b []byte, i int) bool {
	if len(b) < 16 || len(b)%4 != 0 {
		return false
	}
	for k, c := range b {
		if k%4 != i && c != 0 || k%4 == i && !isText(c) {
			return false
		}
	}
	return true
}

// isText reports whether c is printable ASCII or white space of a text.
func isText(c byte) bool { return c >= ' ' && c <= '~' || c == '\n' || c == '\r' || c == '\t' }

// everyOther reports whether the bytes from i on in steps of two are 0 and the
// others are printable ASCII.
func everyOther(b []byte, i int) bool {
	if len(b) < 16 || len(b)%2 != 0 {
		return false
	}
	for k, c := range b {
		if k%2 == i && c != 0 || k%2 != i && !isText(c) {
			return false
		}
	}
	return true
}

// utf16Reader decodes UTF-16; unpaired surrogates become U+FFFD.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	out   []byte // decoded, not read yet
	buf   [4096]byte
	high  rune // a first half that waits for the second
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		n, err := io.ReadFull(u.r, u.buf[:])
		u.err = err
		if err == io.ErrUnexpectedEOF {
			u.err = io.EOF
		}
		u.out = u.out[:0]
		for i := 0; i+1 < n; i += 2 {
			c := rune(u.order.Uint16(u.buf[i:]))
			if u.high != 0 {
				if r := utf16.DecodeRune(u.high, c); r != utf8.RuneError {
					u.out, u.high = utf8.AppendRune(u.out, r), 0
					continue
				}
				u.out, u.high = utf8.AppendRune(u.out, utf8.RuneError), 0
			}
			if c >= 0xd800 && c < 0xdc00 {
				u.high = c
				continue
			}
			u.out = utf8.AppendRune(u.out, c) // U+FFFD for a second half alone
		}
		if n%2 != 0 || u.err != nil && u.high != 0 {
			u.out = utf8.AppendRune(u.out, utf8.RuneError)
			u.high = 0
		}
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// utf32Reader decodes UTF-32; what is no code point becomes U+FFFD.
type utf32Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
}

// Read needs room for one code point, which the buffer around it gives.
func (u *utf32Reader) Read(p []byte) (int, error) {
	out := p[:0]
	for len(p)-len(out) >= utf8.UTFMax {
		var b [4]byte
		n, err := io.ReadFull(u.r, b[:])
		switch {
		case err == io.ErrUnexpectedEOF && n > 0:
			return len(utf8.AppendRune(out, utf8.RuneError)), nil
		case err != nil && len(out) > 0:
			return len(out), nil
		case err != nil:
			return 0, err
		}
		out = utf8.AppendRune(out, rune(u.order.Uint32(b[:])))
	}
	return len(out), nil
}
