package occupancy

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"perfsim/io/svg"
)

// The picture, in pixels.
const (
	plotWidth = 900
	plotLeft  = 86
	plotRight = 16
	plotTop   = 34
	panelHigh = 150
	panelGap  = 46
)

// SVG draws what every space holds over time, with the machine's size as a
// dashed line where it is near enough to be in the picture.
func (r *Report) SVG(title string) []byte {
	var list []Space
	for _, s := range r.Spaces {
		if s.Absent == "" {
			list = append(list, s)
		}
	}
	h := plotTop + len(list)*(panelHigh+panelGap) + 6
	p := svg.New(plotWidth, h, title)
	p.Box(0, 0, plotWidth, float64(h), "#ffffff", "", "")
	p.Text(plotLeft, 20, 14, "start", svg.Ink, title)
	end := max(float64(r.End), 1)
	x := func(ns uint64) float64 { return plotLeft + float64(ns)/end*(plotWidth-plotLeft-plotRight) }
	unit, scale := "µs", 1e3
	switch {
	case end >= 1e9:
		unit, scale = "s", 1e9
	case end >= 1e6:
		unit, scale = "ms", 1e6
	}
	for k, s := range list {
		top := float64(plotTop + k*(panelHigh+panelGap) + 18)
		most := float64(max(s.Peak, 1))
		size := float64(s.Size)
		if size > 0 && size <= 4*most {
			most = max(most, size)
		}
		y := func(bytes float64) float64 { return top + panelHigh*(1-bytes/most) }
		name := s.Name
		if s.Core > 0 {
			name = fmt.Sprintf("nc%d.%s", s.Core, s.Name)
		}
		text := fmt.Sprintf("%s: peak %s", name, humanize.IBytes(s.Peak))
		if s.Size > 0 {
			text += " of " + humanize.IBytes(s.Size)
		}
		if s.Name != "HBM" {
			text += " a partition"
		}
		colour := svg.Ink
		if !s.Fits {
			text, colour = text+": does not fit", "#b42318"
		}
		p.Text(plotLeft, top-5, 12, "start", colour, text)
		step1024 := 1.0
		for most/step1024 >= 1024 {
			step1024 *= 1024
		}
		for _, v := range svg.Ticks(0, most/step1024, 4) {
			if v *= step1024; v > most {
				continue
			}
			p.Line(plotLeft, y(v), plotWidth-plotRight, y(v), 1, svg.Grid, "")
			p.Text(plotLeft-6, y(v)+4, 11, "end", svg.Faint, humanize.IBytes(uint64(v)))
		}
		for _, v := range svg.Ticks(0, end/scale, 8) {
			if v > end/scale {
				continue
			}
			at := x(uint64(v * scale))
			p.Line(at, top+panelHigh, at, top+panelHigh+4, 1, svg.Faint, "")
			p.Text(at, top+panelHigh+16, 11, "middle", svg.Faint, fmt.Sprintf("%g %s", v, unit))
		}
		if size > 0 && size <= most {
			p.Line(plotLeft, y(size), plotWidth-plotRight, y(size), 1.5, "#b42318", "6 4")
		}
		var points []float64
		last := 0.0
		step := func(ns uint64, v float64) {
			points = append(points, x(ns), y(last), x(ns), y(v))
			last = v
		}
		step(0, 0)
		for _, l := range s.Series {
			step(l.NS, float64(l.Bytes))
		}
		step(r.End, last)
		p.Path(points, 1.5, svg.Colour(k), "")
		p.Line(plotLeft, top+panelHigh, plotWidth-plotRight, top+panelHigh, 1, svg.Faint, "")
		p.Dot(x(s.At), y(float64(s.Peak)), 3.5, "#ffffff", svg.Colour(k), fmt.Sprintf("%s at %d ns", humanize.IBytes(s.Peak), s.At))
	}
	return p.Bytes()
}
