package cli

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textWidth is the columns that text for people takes.
const textWidth = 80

// newFacts returns a writer of tables of names and values: a value that does
// not fit goes on below itself.
func newFacts(w io.Writer) *textTable { return newTable(w) }

// wrapper breaks lines that are longer than textWidth at blanks. What goes on
// is indented to the second column of a table, else by two.
type wrapper struct {
	w    io.Writer
	line []byte // that has no end yet
}

func (x *wrapper) Write(p []byte) (int, error) {
	n := len(p)
	for {
		k := bytes.IndexByte(p, '\n')
		if k < 0 {
			x.line = append(x.line, p...)
			return n, nil
		}
		x.line = append(x.line, p[:k]...)
		if _, err := io.WriteString(x.w, wrapLine(string(x.line))); err != nil {
			return 0, err
		}
		x.line, p = x.line[:0], p[k+1:]
	}
}

// wrapLine returns a line with its end, broken where it is too long.
func wrapLine(line string) string {
	if utf8.RuneCountInString(line) <= textWidth {
		return line + "\n"
	}
	indent := 2
	start := len(line) - len(strings.TrimLeft(line, " "))
	if k := strings.Index(line[start:], "  "); k > 0 && start == 0 {
		indent = utf8.RuneCountInString(line[:k]) + len(line[k:]) - len(strings.TrimLeft(line[k:], " "))
	} else if start > 0 {
		indent = start
	}
	if indent > textWidth/2 {
		indent = 2
	}
	var out strings.Builder
	words := glue(strings.SplitAfter(line[start:], " "))
	out.WriteString(line[:start])
	at := start
	for _, w := range words {
		size := utf8.RuneCountInString(strings.TrimRight(w, " "))
		if at+size > textWidth && at > indent {
			out.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		}
		out.WriteString(w)
		at += utf8.RuneCountInString(w)
	}
	lines := strings.Split(out.String(), "\n")
	for k := range lines {
		lines[k] = strings.TrimRight(lines[k], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// glue joins numbers and their units, which no line break may part.
func glue(words []string) []string {
	out := words[:0]
	for _, w := range words {
		if n := len(out); n > 0 {
			before := strings.TrimRight(out[n-1], " ")
			number := before != "" && before[len(before)-1] >= '0' && before[len(before)-1] <= '9'
			if c, _ := utf8.DecodeRuneInString(w); number && (c == '%' || unicode.IsLetter(c)) && utf8.RuneCountInString(w) <= 8 {
				out[n-1] += w
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

// noteText writes a note, with how often it holds where that is more than once.
func noteText(text string, count int) string {
	if count > 1 {
		text += " (×" + comma(uint64(count)) + ")"
	}
	return wrapLine("note: " + text)
}
