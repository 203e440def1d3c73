// Package svg writes pictures: plain SVG 1.1 without scripts, styles or
// references to anything outside, so that a browser, a mail and a document
// show it the same. Coordinates are in pixels, y goes down.
package svg

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The colours of series: dark enough on white, apart for the colour-blind too
// (Okabe and Ito, 2008).
var colours = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"}

// Colour returns the colour of series k; they repeat after seven.
func Colour(k int) string { return colours[k%len(colours)] }

// Ink and its lighter kin: text and outlines, text that matters less, lines of
// a grid.
const (
	Ink   = "#222222"
	Faint = "#5f6670"
	Grid  = "#e3e6ea"
)

// Open begins a picture of w by h pixels on white with text of the given size.
func Open(b *bytes.Buffer, w, h, size int) {
	n := strconv.Itoa
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" width="` + n(w) + `" height="` + n(h) + `" viewBox="0 0 ` + n(w) + " " + n(h) +
		`" font-family="sans-serif" font-size="` + n(size) + `">` + "\n" + `<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
}

// Close ends it.
func Close(b *bytes.Buffer) { b.WriteString("</svg>\n") }

// Escape makes text of s. What XML does not allow becomes U+FFFD.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r == 0xfffe, r == 0xffff:
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Picture is a picture under construction.
type Picture struct{ b bytes.Buffer }

// New begins a picture of w by h pixels; the title is shown by what reads it
// aloud and where the pointer rests.
func New(w, h int, title string) *Picture {
	p := &Picture{}
	Open(&p.b, w, h, 12)
	p.b.WriteString("<title>" + Escape(title) + "</title>\n")
	return p
}

// Bytes ends the picture and returns it.
func (p *Picture) Bytes() []byte {
	Close(&p.b)
	return p.b.Bytes()
}

// num writes a coordinate with at most two decimals.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func attr(name, value string) string { return " " + name + `="` + value + `"` }

// end closes an element that shows title where the pointer rests, "" for none.
func (p *Picture) end(element, title string) {
	if title == "" {
		p.b.WriteString("/>\n")
		return
	}
	p.b.WriteString("><title>" + Escape(title) + "</title></" + element + ">\n")
}

// Text writes s; anchor is start, middle or end.
func (p *Picture) Text(x, y float64, size int, anchor, fill, s string) {
	p.b.WriteString("<text" + attr("x", num(x)) + attr("y", num(y)) + attr("font-size", strconv.Itoa(size)) + attr("text-anchor", anchor) + attr("fill", fill) + ">" + Escape(s) + "</text>\n")
}

// Upright writes s from bottom to top, its middle at x, y.
func (p *Picture) Upright(x, y float64, size int, fill, s string) {
	p.b.WriteString("<text" + attr("transform", "translate("+num(x)+" "+num(y)+") rotate(-90)") + attr("font-size", strconv.Itoa(size)) + attr("text-anchor", "middle") +
		attr("fill", fill) + ">" + Escape(s) + "</text>\n")
}

// Line draws a line, dashed where dash is not "".
func (p *Picture) Line(x1, y1, x2, y2, width float64, stroke, dash string) {
	p.b.WriteString("<line" + attr("x1", num(x1)) + attr("y1", num(y1)) + attr("x2", num(x2)) + attr("y2", num(y2)) + attr("stroke", stroke) + attr("stroke-width", num(width)))
	if dash != "" {
		p.b.WriteString(attr("stroke-dasharray", dash))
	}
	p.end("line", "")
}

// Path draws a line through points x0, y0, x1, y1, ….
func (p *Picture) Path(points []float64, width float64, stroke, dash string) {
	p.b.WriteString(`<polyline points="`)
	for k, v := range points {
		if k > 0 {
			p.b.WriteByte(" ,"[k%2])
		}
		p.b.WriteString(num(v))
	}
	p.b.WriteString(`"` + attr("fill", "none") + attr("stroke", stroke) + attr("stroke-width", num(width)) + attr("stroke-linejoin", "round"))
	if dash != "" {
		p.b.WriteString(attr("stroke-dasharray", dash))
	}
	p.end("polyline", "")
}

// Dot draws a disc.
func (p *Picture) Dot(x, y, r float64, fill, stroke, title string) {
	p.b.WriteString("<circle" + attr("cx", num(x)) + attr("cy", num(y)) + attr("r", num(r)) + attr("fill", fill) + attr("stroke", stroke) + attr("stroke-width", "1.5"))
	p.end("circle", title)
}

// Box draws a rectangle.
func (p *Picture) Box(x, y, w, h float64, fill, stroke, title string) {
	p.b.WriteString("<rect" + attr("x", num(x)) + attr("y", num(y)) + attr("width", num(max(w, 0))) + attr("height", num(max(h, 0))) + attr("fill", fill))
	if stroke != "" {
		p.b.WriteString(attr("stroke", stroke))
	}
	p.end("rect", title)
}

// Width is about how wide s is in text of the given size.
func Width(s string, size int) float64 {
	return 0.56 * float64(size) * float64(utf8.RuneCountInString(s))
}

// Ticks returns about n round numbers that span lo to hi.
func Ticks(lo, hi float64, n int) []float64 {
	if !(hi > lo) || n < 1 {
		return []float64{lo}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*f) <= float64(n) {
			step *= f
			break
		}
	}
	first := math.Floor(lo/step + 1e-9)
	var out []float64
	for k := first; ; k++ {
		out = append(out, k*step)
		if k*step >= hi-step*1e-9 || len(out) > 10*n {
			return out
		}
	}
}
