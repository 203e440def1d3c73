package whatif

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"perfsim/io/svg"
)

// A plot has one panel for every combination of the parameters that are
// neither the axis nor the lines of a panel.
const (
	mostLines  = 7  // of a panel, as many as there are colours
	mostPanels = 24 // of a picture
	mostBars   = 200
)

// curve is one line of a panel.
type curve struct {
	name, colour, dash string
	thin               bool
	dots               []dot
}

type dot struct {
	x      float64
	ns     uint64
	title  string
	hollow bool // it does not fit
}

type panel struct {
	title string
	lines []curve
}

// axis is the parameter along x.
type axis struct {
	name   string
	values []Setting
	log    bool
	base   float64 // where the parameter is as it is, NaN where that is not known
}

// SVG draws the latency against the parameter that has most values, a line for
// every value of the next, a panel for every combination of the rest. Where
// nothing that varies is a number it draws bars. The dashed line is the
// prediction as it is.
func (r *Result) SVG(title string, assigned []Assignment) []byte {
	x, lines := r.axes(assigned)
	if x < 0 {
		return r.bars(title)
	}
	var fixed []string
	for _, s := range assigned {
		if len(s.Values) == 1 {
			fixed = append(fixed, s.Name+"="+s.Values[0].Text)
		}
	}
	if len(fixed) > 0 {
		title += ", with " + strings.Join(fixed, " ")
	}
	a := newAxis(assigned[x])
	panels, left := r.panels(assigned, x, lines)
	return r.draw(title, a, panels, left)
}

// axes picks the assignments of the axis and of the lines, -1 for none.
func (r *Result) axes(assigned []Assignment) (x, lines int) {
	x, lines = -1, -1
	for k, a := range assigned {
		if numeric(a) && (x < 0 || len(a.Values) > len(assigned[x].Values)) {
			x = k
		}
	}
	for k, a := range assigned {
		if n := len(a.Values); k != x && n > 1 && n <= mostLines && (lines < 0 || n > len(assigned[lines].Values)) {
			lines = k
		}
	}
	return x, lines
}

// numeric reports whether an assignment can be an axis: several numbers of one
// kind.
func numeric(a Assignment) bool {
	if len(a.Values) < 2 {
		return false
	}
	for _, v := range a.Values {
		if !v.Number || v.Factor != a.Values[0].Factor {
			return false
		}
	}
	return true
}

func newAxis(a Assignment) axis {
	out := axis{name: a.Name, values: slices.Clone(a.Values), base: math.NaN()}
	slices.SortStableFunc(out.values, func(a, b Setting) int { return cmp.Compare(a.Value, b.Value) })
	out.values = slices.CompactFunc(out.values, func(a, b Setting) bool { return a.Value == b.Value })
	if out.values[0].Factor {
		out.base = 1
	}
	if a.Name == "buffers" {
		out.base = 1
	}
	// Values that grow by factors are drawn by factors.
	n := len(out.values)
	lo, hi := out.values[0].Value, out.values[n-1].Value
	out.log = n > 2 && lo > 0 && hi/lo >= 8 && (out.values[1].Value-lo)/(hi-lo) < 1/float64(2*(n-1))
	return out
}

// at places a value, 0 at the left end to 1 at the right.
func (a *axis) at(v float64) float64 {
	lo, hi := a.values[0].Value, a.values[len(a.values)-1].Value
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	if !(hi > lo) {
		return 0.5
	}
	return (v - lo) / (hi - lo)
}

// panels sorts the points into panels and lines; left is how many panels there
// was no room for.
func (r *Result) panels(assigned []Assignment, x, lines int) (out []panel, left int) {
	byTitle := map[string]int{}
	antis := slices.ContainsFunc(r.Points, func(p Point) bool { return p.NoAntiNS.Or(p.NS) < p.NS })
	for k := range r.Points {
		p := &r.Points[k]
		values := valuesOf(assigned, k)
		var rest []string
		for j, s := range p.Settings {
			if j != x && j != lines && len(assigned[j].Values) > 1 {
				rest = append(rest, s)
			}
		}
		title := strings.Join(rest, " ")
		n, ok := byTitle[title]
		if !ok {
			n = len(out)
			byTitle[title] = n
			out = append(out, panel{title: title})
		}
		at := values[x].Value
		add := func(name, dash string, colour int, thin bool, d dot) {
			lines := &out[n].lines
			i := slices.IndexFunc(*lines, func(c curve) bool { return c.name == name })
			if i < 0 {
				i = len(*lines)
				*lines = append(*lines, curve{name: name, colour: svg.Colour(colour), dash: dash, thin: thin})
			}
			(*lines)[i].dots = append((*lines)[i].dots, d)
		}
		name, colour := "latency", 0
		fits, fitsColour := "what fits", 2
		if lines >= 0 {
			name, colour = p.Settings[lines], slices.IndexFunc(assigned[lines].Values, func(s Setting) bool { return s.Text == values[lines].Text })
			fits, fitsColour = name+", what fits", colour
		}
		text := strings.Join(p.Settings, " ") + ": " + timeText(p.NS) + ", " + changeOf(p.Change)
		if p.TooMuch {
			text += ", does not fit"
		}
		add(name, "", colour, false, dot{at, p.NS, text, p.TooMuch})
		if p.Fitting != nil {
			add(fits, "", fitsColour, true,
				dot{at, p.Fitting.NS, "what fits of " + strings.Join(p.Settings, " ") + ": " + timeText(p.Fitting.NS) + ", " + changeOf(p.Fitting.Change), false})
		} else if r.someFit() {
			add(fits, "", fitsColour, true, dot{at, p.NS, text, false})
		}
		if lines < 0 && antis {
			add("without anti-dependencies", "2 3", 1, true, dot{at, p.NoAntiNS.Or(p.NS), strings.Join(p.Settings, " ") + " without anti-dependencies: " + timeText(p.NoAntiNS.Or(p.NS)), false})
		}
	}
	for k := range out {
		for _, c := range out[k].lines {
			slices.SortStableFunc(c.dots, func(a, b dot) int { return cmp.Compare(a.x, b.x) })
		}
	}
	if len(out) > mostPanels {
		return out[:mostPanels], len(out) - mostPanels
	}
	return out, 0
}

// someFit reports whether there is a second answer for what fits.
func (r *Result) someFit() bool {
	return slices.ContainsFunc(r.Points, func(p Point) bool { return p.Fitting != nil })
}

// valuesOf returns the values of point k; see Points.
func valuesOf(assigned []Assignment, k int) []Setting {
	out := make([]Setting, len(assigned))
	for j := len(assigned) - 1; j >= 0; j-- {
		v := assigned[j].Values
		out[j] = v[k%len(v)]
		k /= len(v)
	}
	return out
}

// unitOf returns the unit in which ns reads well.
func unitOf(ns float64) (name string, scale float64) {
	switch {
	case ns < 1e4:
		return "ns", 1
	case ns < 1e7:
		return "µs", 1e3
	case ns < 1e10:
		return "ms", 1e6
	}
	return "s", 1e9
}

func timeText(ns uint64) string {
	unit, scale := unitOf(float64(ns))
	if scale == 1 {
		return strconv.FormatUint(ns, 10) + " ns"
	}
	return strconv.FormatFloat(float64(ns)/scale, 'f', 2, 64) + " " + unit
}

func changeOf(v float64) string {
	s := strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	if v >= 0 {
		s = "+" + s
	}
	return s
}

// tickText writes a tick without needless digits.
func tickText(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// span returns the range of the axis of latencies. It starts at 0 where
// differences are to be seen from there.
func span(base uint64, panels []panel) (lo, hi float64) {
	lo, hi = float64(base), float64(base)
	for _, p := range panels {
		for _, c := range p.lines {
			for _, d := range c.dots {
				lo, hi = min(lo, float64(d.ns)), max(hi, float64(d.ns))
			}
		}
	}
	if lo < 0.6*hi || lo == hi {
		return 0, max(hi, 1)
	}
	pad := 0.08 * (hi - lo)
	return lo - pad, hi + pad
}

func (r *Result) draw(title string, a axis, panels []panel, left int) []byte {
	const legend = 20
	w, h, columns := 680.0, 380.0, 1
	if len(panels) > 1 {
		w, h, columns = 480, 300, 2
	}
	head := 44.0
	// One legend for all panels, in the order of the first that has a line.
	var names []curve
	for _, p := range panels {
		for _, c := range p.lines {
			if !slices.ContainsFunc(names, func(x curve) bool { return x.name == c.name }) {
				names = append(names, c)
			}
		}
	}
	if slices.ContainsFunc(r.Points, func(p Point) bool { return p.TooMuch }) {
		names = append(names, curve{name: "does not fit", colour: svg.Colour(0), dash: noLine})
	}
	names = append(names, curve{name: "as it is: " + timeText(r.Base.NS), colour: svg.Faint, dash: "6 4", thin: true})
	total := w * float64(columns)
	rows := [][]curve{{}}
	x := 16.0
	for _, c := range names {
		width := 34 + svg.Width(c.name, 12) + 18
		if x+width > total && len(rows[len(rows)-1]) > 0 {
			rows, x = append(rows, nil), 16
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], c)
		x += width
	}
	top := head + legend*float64(len(rows))
	foot := 8.0
	if left > 0 {
		foot = 28
	}
	height := top + h*float64((len(panels)+columns-1)/columns) + foot
	p := svg.New(int(total), int(height), title)
	p.Text(16, 26, 15, "start", svg.Ink, shorten(title, int((total-32)/svg.Width("x", 15))))
	for k, row := range rows {
		x, y := 16.0, head+legend*float64(k)+4
		for _, c := range row {
			if c.dash == noLine {
				p.Dot(x+13, y, 3.5, "#ffffff", c.colour, "")
			} else {
				p.Line(x, y, x+26, y, widthOf(c), c.colour, c.dash)
			}
			p.Text(x+32, y+4, 12, "start", svg.Ink, c.name)
			x += 34 + svg.Width(c.name, 12) + 18
		}
	}
	lo, hi := span(r.Base.NS, panels)
	unit, scale := unitOf(hi)
	ticks := svg.Ticks(lo/scale, hi/scale, 5)
	if lo > 0 && ticks[0] < lo/scale {
		ticks = ticks[1:]
	}
	if lo == 0 {
		hi = ticks[len(ticks)-1] * scale
	} else if last := len(ticks) - 1; ticks[last] > hi/scale {
		ticks = ticks[:last]
	}
	for k := range panels {
		f := frame{p: p, x: w * float64(k%columns), y: top + h*float64(k/columns), w: w, h: h, lo: lo, hi: hi}
		f.draw(&panels[k], &a, r.Base.NS, ticks, unit, scale)
	}
	if left > 0 {
		p.Text(16, height-10, 12, "start", svg.Faint, "and "+strconv.Itoa(left)+" more panels that are not drawn; --csv has all points")
	}
	return p.Bytes()
}

// noLine marks the entry of the legend that is a dot.
const noLine = "none"

func widthOf(c curve) float64 {
	if c.thin {
		return 1.5
	}
	return 2.25
}

// frame is where a panel is drawn.
type frame struct {
	p          *svg.Picture
	x, y, w, h float64
	lo, hi     float64 // ns
}

func (f *frame) draw(pl *panel, a *axis, base uint64, ticks []float64, unit string, scale float64) {
	p := f.p
	left, right, top, bottom := f.x+72, f.x+f.w-24, f.y+14, f.y+f.h-52
	if pl.title != "" {
		top += 16
		p.Text(left, top-8, 12, "start", svg.Ink, pl.title)
	}
	atY := func(ns float64) float64 { return bottom - (ns-f.lo)/(f.hi-f.lo)*(bottom-top) }
	atX := func(v float64) float64 { return left + a.at(v)*(right-left) }
	for _, t := range ticks {
		y := atY(t * scale)
		p.Line(left, y, right, y, 1, svg.Grid, "")
		p.Text(left-8, y+4, 11, "end", svg.Faint, tickText(t))
	}
	what := "latency, " + unit
	if f.lo > 0 {
		what += " (does not start at 0)"
	}
	p.Upright(f.x+18, (top+bottom)/2, 12, svg.Ink, what)
	// A tick at every value, as far as they have room.
	free := left - 100
	for _, v := range a.values {
		x := atX(v.Value)
		p.Line(x, bottom, x, bottom+4, 1, svg.Faint, "")
		if half := svg.Width(v.Text, 11) / 2; x-half > free {
			p.Text(x, bottom+17, 11, "middle", svg.Faint, v.Text)
			free = x + half + 8
		}
	}
	name := a.name
	if a.log {
		name += " (by factors)"
	}
	p.Text((left+right)/2, bottom+36, 12, "middle", svg.Ink, name)
	if u := a.at(a.base); u >= 0 && u <= 1 { // false for NaN
		x := left + u*(right-left)
		p.Line(x, top, x, bottom, 1, svg.Faint, "2 4")
	}
	p.Line(left, bottom, right, bottom, 1, svg.Faint, "")
	y := atY(float64(base))
	p.Line(left, y, right, y, 1.5, svg.Faint, "6 4")
	least := dot{ns: math.MaxUint64}
	for k := len(pl.lines) - 1; k >= 0; k-- { // the first line on top
		c := pl.lines[k]
		points := make([]float64, 0, 2*len(c.dots))
		for _, d := range c.dots {
			points = append(points, atX(d.x), atY(float64(d.ns)))
		}
		p.Path(points, widthOf(c), c.colour, c.dash)
		if c.dash != "" {
			continue
		}
		for _, d := range c.dots {
			fill := c.colour
			if d.hollow {
				fill = "#ffffff"
			} else if d.ns < least.ns {
				least = d
			}
			if len(c.dots) <= 60 || d.hollow {
				p.Dot(atX(d.x), atY(float64(d.ns)), 3.5, fill, c.colour, d.title)
			}
		}
	}
	if least.ns < math.MaxUint64 {
		text := "least " + timeText(least.ns)
		x, y, anchor := atX(least.x), atY(float64(least.ns))+17, "middle"
		if y > bottom-4 {
			y -= 27
		}
		if half := svg.Width(text, 11) / 2; x+half > right {
			x, anchor = right, "end"
		} else if x-half < left {
			x, anchor = left+4, "start"
		}
		p.Text(x, y, 11, anchor, svg.Ink, text)
	}
}

// bars draws every point as a bar below the one of the prediction as it is.
func (r *Result) bars(title string) []byte {
	type bar struct {
		name, text, colour, title string
		ns                        uint64
	}
	list := []bar{{"as it is", timeText(r.Base.NS), svg.Faint, "", r.Base.NS}}
	for _, p := range r.Points {
		if len(list) == mostBars {
			break
		}
		name := strings.Join(p.Settings, " ")
		text := timeText(p.NS) + ", " + changeOf(p.Change)
		if p.TooMuch {
			text += ", does not fit"
		}
		list = append(list, bar{name, text, svg.Colour(0), strings.Join(p.Notes, "; "), p.NS})
		if f := p.Fitting; f != nil {
			list = append(list, bar{"what fits of it", timeText(f.NS) + ", " + changeOf(f.Change), svg.Colour(2), strings.Join(f.Notes, "; "), f.NS})
		}
	}
	names, texts, most := 60.0, 60.0, uint64(1)
	for k := range list {
		list[k].name = shorten(list[k].name, 48)
		names, texts, most = max(names, svg.Width(list[k].name, 12)), max(texts, svg.Width(list[k].text, 12)), max(most, list[k].ns)
	}
	const row, length, top = 28, 420.0, 48
	left := names + 28
	bottom := float64(top + row*len(list))
	unit, scale := unitOf(float64(most))
	ticks := svg.Ticks(0, float64(most)/scale, 5)
	hi := ticks[len(ticks)-1] * scale
	p := svg.New(int(max(left+length+texts+30, svg.Width(title, 15)+32)), int(bottom)+52, title)
	p.Text(16, 26, 15, "start", svg.Ink, title)
	for _, t := range ticks {
		x := left + t*scale/hi*length
		p.Line(x, top-4, x, bottom, 1, svg.Grid, "")
		p.Text(x, bottom+16, 11, "middle", svg.Faint, tickText(t))
	}
	p.Text(left+length/2, bottom+36, 12, "middle", svg.Ink, "latency, "+unit)
	for k, b := range list {
		y := float64(top + row*k)
		w := float64(b.ns) / hi * length
		p.Text(left-10, y+16, 12, "end", svg.Ink, b.name)
		p.Box(left, y+2, w, row-10, b.colour, "", b.title)
		p.Text(left+max(w, float64(r.Base.NS)/hi*length)+8, y+16, 12, "start", svg.Ink, b.text)
	}
	x := left + float64(r.Base.NS)/hi*length
	p.Line(x, top-4, x, bottom, 1.5, svg.Faint, "6 4")
	return p.Bytes()
}

// shorten keeps the beginning of a long name, which names the parameter.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// ElasticitySVG draws the first most elasticities as bars to both sides of 0.
func ElasticitySVG(title string, list []Elasticity, most int) []byte {
	left := len(list)
	list = list[:min(len(list), max(most, 0), mostBars)]
	left -= len(list)
	names, top := 60.0, 0.0
	for _, e := range list {
		names, top = max(names, svg.Width(shorten(e.Name, 48), 12)), max(top, math.Abs(e.Value))
	}
	const row, half, head = 26, 210.0, 48
	ticks := svg.Ticks(0, max(top, 1e-9), 3)
	hi := ticks[len(ticks)-1]
	middle := names + 28 + half + 44
	bottom := float64(head + row*len(list))
	p := svg.New(int(max(middle+half+72, svg.Width(title, 15)+32)), int(bottom)+72, title)
	p.Text(16, 26, 15, "start", svg.Ink, title)
	for _, t := range ticks {
		for _, s := range []float64{-1, 1} {
			x := middle + s*t/hi*half
			p.Line(x, head-4, x, bottom, 1, svg.Grid, "")
			if t > 0 || s > 0 {
				p.Text(x, bottom+16, 11, "middle", svg.Faint, tickText(s*t))
			}
		}
	}
	p.Text(middle, bottom+36, 12, "middle", svg.Ink, "change of the latency in % where the parameter grows by 1 %")
	for k, e := range list {
		y := float64(head + row*k)
		w := math.Abs(e.Value) / hi * half
		x, at, anchor, colour := middle, middle+w+6, "start", svg.Colour(1)
		if e.Value < 0 {
			x, at, anchor, colour = middle-w, middle-w-6, "end", svg.Colour(0)
		}
		p.Text(names+18, y+15, 12, "end", svg.Ink, shorten(e.Name, 48))
		p.Box(x, y+2, w, row-9, colour, "", "5 % lower "+timeText(e.Low)+", 5 % higher "+timeText(e.High))
		p.Text(at, y+15, 11, anchor, svg.Ink, strconv.FormatFloat(e.Value, 'f', 3, 64))
	}
	p.Line(middle, head-4, middle, bottom, 1, svg.Faint, "")
	if left > 0 {
		p.Text(16, bottom+58, 12, "start", svg.Faint, "and "+strconv.Itoa(left)+" more that matter less (--top)")
	}
	return p.Bytes()
}
