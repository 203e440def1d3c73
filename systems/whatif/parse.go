package whatif

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Setting is one value of one parameter: a factor on what is there, or a new
// value.
type Setting struct {
	Name   string
	Text   string  // as given: "1.2x", "32", "anti:buffer=k"
	Factor bool    // Value multiplies
	Value  float64 // of numbers
	Number bool
}

// Assignment is a parameter with the values to try.
type Assignment struct {
	Name   string
	Values []Setting
}

// maxPoints bounds a sweep, maxNumber a value: sums and differences of such
// values are numbers too.
const (
	maxPoints = 10_000
	maxNumber = 1e300
)

// Parse reads NAME=VALUE. VALUE is a number (with a unit where the parameter
// has one: 1.4GHz, 2us), a factor (1.2x), a change (+10%, -20%), a word
// (anti:buffer=k, off), a list of those with commas, or a range: LO..HI in
// five even steps, LO..HI/STEP in steps of STEP, LO..HI*FACTOR by factors.
func Parse(s string) (Assignment, error) {
	name, value, ok := strings.Cut(s, "=")
	if strings.HasPrefix(name, "latency.") || strings.HasPrefix(name, "issue.") {
		// The name of an opcode may hold an equals sign; its value does not.
		if k := strings.LastIndexByte(s, '='); k > len(name) {
			name, value = s[:k], s[k+1:]
		}
	}
	name = strings.TrimSpace(name)
	if !ok || name == "" || strings.TrimSpace(value) == "" {
		return Assignment{}, fmt.Errorf("%q is not an assignment NAME=VALUE", s)
	}
	a := Assignment{Name: name}
	plain := strings.Split(value, ",")
	if name == "drop" {
		for _, v := range splitWords(value) {
			a.Values = append(a.Values, Setting{Name: name, Text: v})
		}
		plain = nil
	}
	for _, v := range plain {
		v = strings.TrimSpace(v)
		if lo, hi, isRange := strings.Cut(v, ".."); isRange {
			list, err := expand(name, lo, hi)
			if err != nil {
				return Assignment{}, fmt.Errorf("%s: %w", s, err)
			}
			a.Values = append(a.Values, list...)
			continue
		}
		x, err := setting(name, v)
		if err != nil {
			return Assignment{}, fmt.Errorf("%s: %w", s, err)
		}
		a.Values = append(a.Values, x)
	}
	if len(a.Values) > maxPoints {
		return Assignment{}, fmt.Errorf("%.60s: %d values, more than %d", s, len(a.Values), maxPoints)
	}
	return a, nil
}

// splitWords splits at commas outside quotes.
func splitWords(s string) []string {
	var out []string
	var quote byte
	from := 0
	word := func(v string) {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	for k := range len(s) {
		switch c := s[k]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if strings.IndexByte(s[k+1:], c) >= 0 { // an apostrophe quotes nothing
				quote = c
			}
		case c == ',':
			word(s[from:k])
			from = k + 1
		}
	}
	word(s[from:])
	return out
}

// setting reads one value.
func setting(name, v string) (Setting, error) {
	s := Setting{Name: name, Text: v}
	if v == "" {
		return s, errors.New("a value is missing")
	}
	switch {
	case strings.HasSuffix(v, "x") || strings.HasSuffix(v, "×"):
		f, err := strconv.ParseFloat(strings.TrimRight(v, "x×"), 64)
		if err != nil || !(f > 0) || f > 1e9 {
			return s, fmt.Errorf("%q is not a factor such as 1.2x", v)
		}
		s.Factor, s.Number, s.Value = true, true, f
		return s, nil
	case strings.HasSuffix(v, "%"):
		f, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64)
		if err != nil || !(f > -100) || f > 1e6 {
			return s, fmt.Errorf("%q is not a change such as -20%% (more than -100%%)", v)
		}
		s.Factor, s.Number, s.Value = true, true, 1+f/100
		return s, nil
	}
	if f, err := number(v); err == nil {
		s.Number, s.Value = true, f
	}
	return s, nil
}

// units scale to what parameters count in: ns, Hz, bytes.
var units = []struct {
	suffix string
	scale  float64
}{{"ghz", 1e9}, {"mhz", 1e6}, {"khz", 1e3}, {"hz", 1}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6},
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"gb/s", 1}, {"b/ns", 1}}

func number(v string) (float64, error) {
	low := strings.ToLower(v)
	scale := 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(low, u.suffix); ok {
			low, scale = strings.TrimSpace(rest), u.scale
			break
		}
	}
	f, err := strconv.ParseFloat(low, 64)
	if f *= scale; err != nil || !(math.Abs(f) <= maxNumber) || strings.ContainsAny(low, "xp_") {
		return 0, fmt.Errorf("%q is not a number", v)
	}
	return f, nil
}

// evenSteps is how many values a range without a step has; endSlack, in steps,
// is how far the last may miss the end by rounding.
const (
	evenSteps = 5
	endSlack  = 1e-9
)

// expand makes the values of a range. Both ends are of one kind: numbers,
// factors or changes.
func expand(name, lo, hi string) ([]Setting, error) {
	step, factor := "", ""
	if h, s, ok := strings.Cut(hi, "/"); ok && !strings.HasSuffix(strings.ToLower(hi), "b/ns") && !strings.HasSuffix(strings.ToLower(hi), "gb/s") {
		hi, step = h, s
	} else if h, f, ok := strings.Cut(hi, "*"); ok {
		hi, factor = h, f
	}
	hi, step, factor = strings.TrimSpace(hi), strings.TrimSpace(step), strings.TrimSpace(factor)
	a, err := setting(name, strings.TrimSpace(lo))
	if err != nil {
		return nil, err
	}
	b, err := setting(name, hi)
	if err != nil {
		return nil, err
	}
	if !a.Number || !b.Number {
		return nil, fmt.Errorf("%s..%s is not a range of numbers", lo, hi)
	}
	// 0.8..1.2x: the unit of the end holds for both.
	if b.Factor && !a.Factor && !strings.HasSuffix(hi, "%") {
		a.Factor = true
	}
	if a.Factor != b.Factor {
		return nil, fmt.Errorf("%s and %s are not of one kind", lo, hi)
	}
	if !(b.Value > a.Value) {
		return nil, fmt.Errorf("%s is not above %s", hi, lo)
	}
	var values []float64
	switch {
	case step != "":
		s, err := setting(name, step)
		d := s.Value
		if strings.HasSuffix(step, "%") {
			d--
		}
		if err != nil || !s.Number || !(d > 0) || (b.Value-a.Value)/d > maxPoints {
			return nil, fmt.Errorf("%q is not a step above 0 that fits", step)
		}
		for k := range 1 + int((b.Value-a.Value)/d+endSlack) {
			values = append(values, a.Value+float64(k)*d)
		}
	case factor != "":
		f, err := strconv.ParseFloat(strings.TrimSuffix(factor, "x"), 64)
		if err != nil || !(f > 1) || !(a.Value > 0) || !(math.Log(b.Value/a.Value)/math.Log(f) <= maxPoints) {
			return nil, fmt.Errorf("%q is not a factor above 1 that fits", factor)
		}
		v := a.Value
		for range 1 + int(math.Log(b.Value/a.Value)/math.Log(f)+endSlack) {
			values = append(values, v)
			v *= f
		}
	default:
		for k := range evenSteps {
			values = append(values, a.Value+(b.Value-a.Value)*float64(k)/(evenSteps-1))
		}
	}
	var out []Setting
	for _, v := range values {
		s := Setting{Name: name, Factor: a.Factor, Number: true, Value: v}
		switch {
		case strings.HasSuffix(hi, "%"):
			s.Text = trim(100*(v-1)) + "%"
			if v > 1 {
				s.Text = "+" + s.Text
			}
		case a.Factor:
			s.Text = trim(v) + "x"
		default:
			s.Text = trim(v)
		}
		out = append(out, s)
	}
	return out, nil
}

// trim writes a number with at most six digits that matter.
func trim(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// Points returns every combination of the assignments' values, the last one
// varying fastest.
func Points(list []Assignment) ([][]Setting, error) {
	n := 1
	for k, a := range list {
		for _, b := range list[:k] {
			if a.Name == b.Name && a.Name != "drop" {
				return nil, fmt.Errorf("%s is assigned twice", a.Name)
			}
		}
		if n *= len(a.Values); n > maxPoints {
			return nil, fmt.Errorf("more than %d combinations", maxPoints)
		}
	}
	out := make([][]Setting, 0, n)
	for p := range n {
		point := make([]Setting, len(list))
		for k := len(list) - 1; k >= 0; k-- {
			v := list[k].Values
			point[k] = v[p%len(v)]
			p /= len(v)
		}
		out = append(out, point)
	}
	return out, nil
}
