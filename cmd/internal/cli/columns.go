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

// print writes the rows, two blanks between columns and none at line ends.
func (t *columns) print(w io.Writer) error {
	var width []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
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
