package kineto

import (
	"math"
	"strconv"
)

// maxTime bounds times, in ns: beyond 2116 as Unix time, and small enough that
// an end, which is a start and at most math.MaxInt64/4, fits.
const maxTime = math.MaxInt64 / 2

// nanoseconds returns a decimal number of microseconds in ns, exact for as
// many as three decimals and rounded beyond, and whether it is a number that
// fits.
func nanoseconds(text []byte) (ns int64, ok bool) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	digits := 0
	const most = maxTime/1000 - 1 // leaves room for the decimals
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		if ns > most/10 {
			return 0, false
		}
		if ns = ns*10 + int64(text[i]-'0'); ns > most {
			return 0, false
		}
		digits++
	}
	frac := 0
	if i < len(text) && text[i] == '.' {
		for i++; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
			switch {
			case frac < 3:
				ns = ns*10 + int64(text[i]-'0')
			case frac == 3 && text[i] >= '5':
				ns++
			}
			frac++
			digits++
		}
	}
	if digits == 0 {
		return 0, false
	}
	if i < len(text) { // an exponent, or no number at all
		f, err := strconv.ParseFloat(string(text), 64)
		f = math.Round(f * 1000)
		if err != nil || !(math.Abs(f) < maxTime) {
			return 0, false
		}
		return int64(f), true
	}
	for ; frac < 3; frac++ {
		ns *= 10
	}
	if negative {
		ns = -ns
	}
	return ns, true
}
