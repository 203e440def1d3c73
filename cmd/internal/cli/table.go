package cli

import (
	"bytes"
	"io"
	"text/tabwriter"
)

// newTable returns a writer of tables: cells end with tabs, two blanks stand
// between columns and none at the ends of lines, which would wrap on a
// terminal that the text itself fits.
func newTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(&trimmer{w: w}, 0, 0, 2, ' ', 0)
}

// trimmer leaves out the blanks before the ends of lines.
type trimmer struct {
	w      io.Writer
	blanks int // that wait for what comes behind them
	buf    []byte
}

func (t *trimmer) Write(p []byte) (int, error) {
	t.buf = t.buf[:0]
	for rest := p; len(rest) > 0; {
		n := bytes.IndexAny(rest, " \n")
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			t.buf = append(append(t.buf, bytes.Repeat([]byte{' '}, t.blanks)...), rest[:n]...)
			t.blanks = 0
		}
		if n == len(rest) {
			break
		}
		if rest[n] == ' ' {
			t.blanks++
		} else {
			t.buf, t.blanks = append(t.buf, '\n'), 0
		}
		rest = rest[n+1:]
	}
	if _, err := t.w.Write(t.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}
