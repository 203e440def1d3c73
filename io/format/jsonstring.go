package format

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendJSONString appends s as a JSON string that every trace viewer reads:
// valid UTF-8 whatever s holds (a bad byte becomes U+FFFD), control characters
// escaped, NUL replaced, no surrogate escapes.
func AppendJSONString[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	dst = AppendJSONText(dst, s)
	return append(dst, '"')
}

// AppendJSONText is AppendJSONString without the quotes.
func AppendJSONText[S string | []byte](dst []byte, s S) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
			i++
		case c == 0:
			dst = append(dst, "\uFFFD"...)
			i++
		case c == '\n':
			dst = append(dst, '\\', 'n')
			i++
		case c == '\t':
			dst = append(dst, '\\', 't')
			i++
		case c == '\r':
			dst = append(dst, '\\', 'r')
			i++
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			i++
		default:
			r, size := decodeRune(s[i:])
			if r == utf8.RuneError && size <= 1 {
				dst = append(dst, "\uFFFD"...)
				i++
			} else {
				dst = append(dst, s[i:i+size]...)
				i += size
			}
		}
		start = i
	}
	return append(dst, s[start:]...)
}

func decodeRune[S string | []byte](s S) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], s)
	return utf8.DecodeRune(buf[:n])
}
