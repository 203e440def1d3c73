package record

import (
	"fmt"
	"strconv"
	"strings"

	"perfsim/io/svg"
)

// SVG draws one metric of the columns as bars, without scripts or outside
// references.
func (c *Comparison) SVG(metric string) []byte {
	const left, bar, gap, width, top = 260, 22, 10, 520, 44
	most := 0.0
	for i := range c.Columns {
		x, _ := c.Columns[i].Rec.Number(metric)
		most = max(most, x)
	}
	h := top + len(c.Columns)*(bar+gap) + 12
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n", left+width+120, h, left+width+120, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="16" y="26" font-size="15">%s</text>`+"\n", svg.Escape(metric))
	for i := range c.Columns {
		x, ok := c.Columns[i].Rec.Number(metric)
		y := top + i*(bar+gap)
		fill := "#4c78a8"
		if s, _ := c.Columns[i].Rec.Raw("simulated"); s == "true" {
			fill = "#9ecae9"
		}
		label := "no value"
		w := 0
		if ok {
			label = strconv.FormatFloat(x, 'g', 5, 64)
			if most > 0 {
				w = int(x/most*width + 0.5)
			}
		}
		title := c.Columns[i].Title
		if r := []rune(title); len(r) > 36 {
			title = string(r[:35]) + "…"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left-8, y+16, svg.Escape(title), left, y, w, bar, fill, left+w+6, y+16, label)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
