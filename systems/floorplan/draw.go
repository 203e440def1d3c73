package floorplan

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"strings"

	"perfsim/io/svg"
)

// symbols mark operators in text maps.
const symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// drawable bounds pictures.
const drawable = 64

// Text draws the grid of one chip: a letter for each operator, '.' for an
// idle core, '#' for a core that two operators claim. A legend follows.
func (c *Chip) Text(g Grid) string {
	var b strings.Builder
	if g.Rows > drawable || g.Cols > drawable {
		return fmt.Sprintf("a grid of %dx%d is not drawn\n", g.Rows, g.Cols)
	}
	cell := make([]byte, g.Cores())
	for i := range cell {
		cell[i] = '.'
	}
	for i := range c.Ops {
		p := &c.Ops[i]
		for y := p.Row; y < min(p.Row+p.Rows, g.Rows); y++ {
			for x := p.Col; x < min(p.Col+p.Cols, g.Cols); x++ {
				if cell[y*g.Cols+x] != '.' {
					cell[y*g.Cols+x] = '#'
				} else {
					cell[y*g.Cols+x] = symbols[i%len(symbols)]
				}
			}
		}
	}
	for y := range g.Rows {
		fmt.Fprintf(&b, "  %2d ", y)
		for x := range g.Cols {
			b.WriteByte(' ')
			b.WriteByte(cell[y*g.Cols+x])
		}
		b.WriteByte('\n')
	}
	for i := range c.Ops {
		p := &c.Ops[i]
		fmt.Fprintf(&b, "  %c %-14s %2dx%-2d at %d,%d  %s\n", symbols[i%len(symbols)], p.Op.Type, p.Rows, p.Cols, p.Row, p.Col, p.Op.Name)
	}
	return b.String()
}

// SVG draws every epoch and chip of a report that works, one grid next to the
// other, without scripts or outside references. Operators of one type share
// a colour; names show under the pointer. At most limit grids are drawn (0
// for 256).
func (r *Report) SVG(limit int) []byte {
	const cell, gap, head, perRow = 22, 28, 64, 4
	if limit <= 0 {
		limit = 256
	}
	g := r.Grid
	var b bytes.Buffer
	total := 0
	for i := range r.Epochs {
		total += len(r.Epochs[i].Chips)
	}
	n := min(total, limit)
	if g.Rows > drawable || g.Cols > drawable {
		n = 0
	}
	rows := (n + perRow - 1) / perRow
	gw, gh := g.Cols*cell, g.Rows*cell
	if n == 0 {
		gw, gh = 100, 0
	}
	w, h := perRow*(gw+gap)+gap, head+rows*(gh+gap+22)+gap
	svg.Open(&b, w, h, 11)
	fmt.Fprintf(&b, `<text x="%d" y="24" font-size="15">%s</text>`+"\n", gap, svg.Escape(r.Name))
	fmt.Fprintf(&b, `<text x="%d" y="44">%s %dx%d cores, %d epochs, mean utilization %.1f %%, %d of %d grids drawn</text>`+"\n", gap, svg.Escape(g.Source), g.Rows, g.Cols, len(r.Epochs), 100*r.Mean, n, total)
	k := 0
	for i := range r.Epochs {
		e := &r.Epochs[i]
		for j := range e.Chips {
			if k >= n {
				break
			}
			c := &e.Chips[j]
			x0, y0 := gap+(k%perRow)*(gw+gap), head+(k/perRow)*(gh+gap+22)+22
			k++
			fmt.Fprintf(&b, `<text x="%d" y="%d">epoch %d chip %d: %d cores, %.1f %%</text>`, x0, y0-6, e.Index, c.Device, c.Cores, 100*c.Share())
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#eee" stroke="#999"/>`+"\n", x0, y0, gw, gh)
			for o := range c.Ops {
				p := &c.Ops[o]
				ph, pw := min(p.Row+p.Rows, g.Rows)-p.Row, min(p.Col+p.Cols, g.Cols)-p.Col
				if ph <= 0 || pw <= 0 {
					continue
				}
				edge := "#333"
				if p.OutOfGrid || len(p.Overlaps) > 0 {
					edge = "#d00"
				}
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="%s"><title>%s (%s) %dx%d at %d,%d</title></rect>`,
					x0+p.Col*cell, y0+p.Row*cell, pw*cell, ph*cell, colour(p.Op.Type), edge, svg.Escape(p.Op.Name), svg.Escape(p.Op.Type), p.Rows, p.Cols, p.Row, p.Col)
			}
			b.WriteByte('\n')
		}
	}
	svg.Close(&b)
	return b.Bytes()
}

// colour gives a type a light colour that depends on its name alone.
func colour(typ string) string {
	h := fnv.New32a()
	h.Write([]byte(typ))
	return fmt.Sprintf("hsl(%d,60%%,75%%)", h.Sum32()%360)
}
