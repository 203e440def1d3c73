package catapult

import "strconv"

// pairs has the two digits of every number below a hundred.
const pairs = "0001020304050607080910111213141516171819" +
	"2021222324252627282930313233343536373839" +
	"4041424344454647484950515253545556575859" +
	"6061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// appendUint is strconv.AppendUint for the numbers that a trace is full of:
// below 10^16 they are written two digits at a time to where they belong,
// without a copy.
func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 10:
		return append(b, byte('0'+v))
	case v < 100:
		return append(b, pairs[2*v], pairs[2*v+1])
	case v >= 1e16:
		return strconv.AppendUint(b, v, 10)
	}
	n := 3
	for p := uint64(1000); v >= p; p *= 10 {
		n++
	}
	at := len(b)
	if at+16 > cap(b) {
		b = append(b, "0000000000000000"...)
	}
	b = b[:at+n]
	out := b[at:]
	for len(out) >= 2 {
		q := v / 100
		d := (v - q*100) * 2
		out[len(out)-2], out[len(out)-1] = pairs[d], pairs[d+1]
		out = out[:len(out)-2]
		v = q
	}
	if len(out) == 1 {
		out[0] = byte('0' + v)
	}
	return b
}
