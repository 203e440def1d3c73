// Package units writes durations and moments for people.
package units

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"perfsim/components"
)

// scale are the units of durations that people read, the shortest first.
var scale = [...]struct {
	name string
	ns   float64
}{{"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}

// digits returns the decimals of v, a number of some unit: those that leave
// three to five significant digits.
func digits(v float64) int {
	switch {
	case v < 9.9995:
		return 3
	case v < 999.995:
		return 2
	}
	return 0
}

// unitOf returns the row of scale in which a time of 10 µs or more is printed:
// the one of which there are between 1 and 1,000.
func unitOf(ns uint64) int {
	for u := range scale {
		if float64(ns)/scale[u].ns < 999.995 {
			return u
		}
	}
	return len(scale) - 1
}

// Nanos writes a time in ns for people, with three to five significant digits
// where it is 10 µs or more.
func Nanos(ns uint64) string {
	if ns < 10_000 {
		return humanize.Comma(int64(ns)) + " ns"
	}
	u := unitOf(ns)
	v := float64(ns) / scale[u].ns
	if v >= 999.995 {
		return humanize.Comma(int64(v+0.5)) + " " + scale[u].name
	}
	return fmt.Sprintf("%.*f %s", digits(v), v, scale[u].name)
}

// Moment writes when something happens, ns from the start: always in µs and to
// the ns, so that moments can be distinguished and compared.
func Moment(ns uint64) string {
	return fmt.Sprintf("%s.%03d µs", humanize.Comma(int64(ns/1000)), ns%1000)
}

// Column returns what writes the given times below one another: in one
// unit and with the same decimals where that leaves three digits of the
// shortest, else each as Nanos does; on the right of the column.
func Column(ns ...uint64) func(uint64) string {
	most, least := uint64(0), uint64(0)
	for _, v := range ns {
		most = max(most, v)
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	text := Nanos
	if most >= 10_000 {
		u := unitOf(most)
		d := digits(float64(most) / scale[u].ns)
		shortest := 100 / math.Pow10(d) // of three digits
		if float64(least)/scale[u].ns >= shortest {
			text = func(ns uint64) string {
				if ns == 0 {
					return "0 " + scale[u].name
				}
				return humanize.FormatFloat("#,###."+strings.Repeat("#", d), float64(ns)/scale[u].ns) + " " + scale[u].name
			}
		}
	}
	return rightColumn(text, ns)
}

// MomentColumn returns what writes moments below one another.
func MomentColumn(ns ...uint64) func(uint64) string { return rightColumn(Moment, ns) }

// rightColumn puts texts on the right of a column that is as wide as the
// widest of those of the given times.
func rightColumn(text func(uint64) string, ns []uint64) func(uint64) string {
	width := 0
	for _, v := range ns {
		width = max(width, utf8.RuneCountInString(text(v)))
	}
	return func(ns uint64) string {
		s := text(ns)
		return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
	}
}

// Optional writes a time, or nothing where it is absent.
func Optional(text func(uint64) string, t components.OptionalNS) string {
	if !t.Known() {
		return ""
	}
	return text(uint64(t))
}

// PhaseRange writes the least and greatest latency over the phases of the PE
// clock, in parentheses; nothing where r is nil.
func PhaseRange(r *components.LatencyRange) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(" (%s to %s over PE clock phases)", Nanos(r.Low), Nanos(r.High))
}
