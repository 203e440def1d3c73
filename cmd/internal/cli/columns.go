package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// columns prints a table: texts to the left, numbers to the right.
type columns struct {
	left int // the first columns hold texts
	rows [][]string
}

func (t *columns) add(cells ...string) { t.rows = append(t.rows, cells) }

// leastLabel is the least width of a label in a table that is too wide.
const leastLabel = 16

// print writes the rows, two blanks between columns and none at line ends. A
// table that is too wide has its labels shortened, and is then continued below
// with the columns that found no room, behind the labels again.
func (t *columns) print(w io.Writer) error {
	for first := t.left; ; {
		part := columns{left: t.left}
		next := t.part(first, &part)
		if err := part.write(w); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		first = next
	}
}

// widths returns the width of every column in letters.
func (t *columns) widths() []int {
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	return width
}

// part gathers labels and as many columns from first on as fit; next is the
// first that does not, 0 where all do.
func (t *columns) part(first int, p *columns) (next int) {
	width := t.widths()
	total := 0
	for _, n := range width {
		total += n + 2
	}
	label := func(i int) int { return width[i] }
	if total > textWidth {
		label = func(i int) int { return min(width[i], max(leastLabel, 32/max(t.left, 1))) }
	}
	total = 0
	for i := range min(t.left, len(width)) {
		total += label(i) + 2
	}
	end := first
	for end < len(width) && (end == first || total+width[end]+2 <= textWidth) {
		total += width[end] + 2
		end++
	}
	for _, r := range t.rows {
		var cells []string
		for i := range min(t.left, len(r)) {
			cells = append(cells, shortCell(r[i], label(i)))
		}
		if first < len(r) {
			cells = append(cells, r[first:min(end, len(r))]...)
		}
		p.add(cells...)
	}
	if end < len(width) {
		next = end
	}
	return next
}

func (t *columns) write(w io.Writer) error {
	width := t.widths()
	var b strings.Builder
	for _, r := range t.rows {
		line := b.Len()
		for i, c := range r {
			b.WriteString("  ")
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i < t.left {
				b.WriteString(c + pad)
			} else {
				b.WriteString(pad + c)
			}
		}
		s := strings.TrimRight(b.String()[line:], " ")
		if _, err := io.WriteString(w, s+"\n"); err != nil {
			return err
		}
		b.Reset()
	}
	return nil
}
