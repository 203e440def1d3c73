package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// textTable writes tables: cells end with tabs, two blanks stand between columns
// and none at the ends of lines. Lines that are too long for textWidth lose
// parts of their texts, never of their numbers; what is too long even so, and
// sentences in the last column, goes on in the next line.
type textTable struct {
	w   io.Writer
	buf bytes.Buffer
}

func newTable(w io.Writer) *textTable { return &textTable{w: w} }

func (t *textTable) Write(p []byte) (int, error) { return t.buf.Write(p) }

// Flush writes what was gathered.
func (t *textTable) Flush() error {
	tw := tabwriter.NewWriter(&trimmer{w: &wrapper{w: t.w}}, 0, 0, 2, ' ', 0)
	text := strings.TrimSuffix(t.buf.String(), "\n")
	if text == "" && t.buf.Len() == 0 {
		return nil
	}
	t.buf.Reset()
	lines := strings.Split(text, "\n")
	for from := 0; from < len(lines); {
		if !strings.Contains(lines[from], "\t") {
			if _, err := io.WriteString(tw, lines[from]+"\n"); err != nil {
				return err
			}
			from++
			continue
		}
		to := from
		var rows [][]string
		for to < len(lines) && strings.Contains(lines[to], "\t") {
			rows = append(rows, strings.Split(lines[to], "\t"))
			to++
		}
		for _, r := range fitRows(rows, textWidth) {
			if _, err := io.WriteString(tw, strings.Join(r, "\t")+"\n"); err != nil {
				return err
			}
		}
		from = to
	}
	return tw.Flush()
}

// leastText is the least width of a column of texts.
const leastText = 10

// fitRows shortens texts until the rows are at most room wide, the widest
// column first. Sentences in the last column go on in rows of their own.
func fitRows(rows [][]string, room int) [][]string {
	var width []int // of columns
	var words []int // cells that are texts
	wraps := false  // the last column has sentences
	last := 0
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width, words = append(width, 0), append(words, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
			if isName(c) {
				words[i]++
			}
			if c != "" {
				last = max(last, i)
			}
		}
	}
	for _, r := range rows {
		wraps = wraps || last < len(r) && strings.Count(r[last], " ") >= 4
	}
	total := 0
	for i := range last + 1 {
		total += width[i] + 2
	}
	total -= 2
	if total <= room {
		return rows
	}
	limit := slices.Clone(width)
	if wraps {
		limit[last] = min(width[last], max(room/3, room-(total-width[last])))
		total -= width[last] - limit[last]
	}
	for total > room {
		widest := -1
		for i := range last + 1 {
			text := 2*words[i] > len(rows) && !(wraps && i == last)
			if least := max(leastText, utf8.RuneCountInString(rows[0][min(i, len(rows[0])-1)])); text && limit[i] > least && (widest < 0 || limit[i] > limit[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		limit[widest]--
		total--
	}
	var out [][]string
	for _, r := range rows {
		var more []string
		for i := range r[:min(len(r), last+1)] {
			switch {
			case limit[i] >= width[i]:
			case wraps && i == last:
				more = fill(r[i], limit[i])
				r[i] = more[0]
			default:
				r[i] = shortCell(r[i], limit[i])
			}
		}
		out = append(out, r)
		for _, text := range more[min(1, len(more)):] {
			next := make([]string, last+2)
			next[last] = text
			out = append(out, next)
		}
	}
	return out
}

// fill breaks a sentence into lines of at most n characters.
func fill(text string, n int) []string {
	lines := []string{""}
	for _, w := range glue(strings.SplitAfter(text, " ")) {
		k := len(lines) - 1
		if lines[k] != "" && utf8.RuneCountInString(lines[k]+strings.TrimRight(w, " ")) > n {
			lines[k] = strings.TrimRight(lines[k], " ")
			lines, k = append(lines, ""), k+1
		}
		lines[k] += w
	}
	return lines
}

// isName distinguishes a name or a sentence from a number with its unit.
func isName(c string) bool {
	c = strings.TrimLeft(c, " │├└┌↳")
	if c == "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(c)
	return !unicode.IsDigit(first) && !strings.ContainsRune("+-–×≤≥~", first) || strings.Count(c, " ") > 4
}

// shortCell shortens a path or an instruction's name at its front, where it
// differs least from others, and other texts at their end.
func shortCell(c string, n int) string {
	r := []rune(c)
	if len(r) <= n {
		return c
	}
	// An opcode and where it stands: the opcode stays.
	if head, place, ok := strings.Cut(c, " "); ok && strings.ContainsAny(place, "./") && !strings.Contains(place, " ") && utf8.RuneCountInString(head)+7 < n {
		return head + " " + shortCell(place, n-utf8.RuneCountInString(head)-1)
	}
	if strings.Contains(strings.TrimSpace(c), " ") || !strings.ContainsAny(c, "./") {
		return strings.TrimRight(string(r[:n-1]), " ") + "…"
	}
	lead := len(c) - len(strings.TrimLeft(c, " "))
	return c[:lead] + "…" + string(r[len(r)-(n-lead-1):])
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
