package web

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// Static is what the page as one file needs beyond the dataset, because
// nobody answers its questions: names and dependencies by event id.
type Static struct {
	Names   []string `json:"names"` // Names[0] is "": the implicit name I-<id>
	Name    []uint32 `json:"name"`
	Sources []string `json:"sources"` // Sources[0] is ""
	Source  []uint32 `json:"source"`
	// Off holds how many dependencies each event has; Back and Kind, in the
	// same order, how many ids before it each producer is and of what kind.
	Off       []uint32 `json:"off"`
	Back      []uint32 `json:"back"`
	Kind      []uint32 `json:"kind"`
	EdgeKinds []string `json:"edgeKinds"`
}

// maxText bounds the data of the page as one file: the longest text that a
// browser parses (2^29 - 24 characters in Chromium, the least of all).
const maxText = 1<<29 - 24

// reportPolicy allows the page as one file its own script and styles, and
// nothing from elsewhere.
const reportPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// gzipLevel is klauspost's level with a tenth of the time of the standard
// library's best compression, for 8 % more bytes.
const gzipLevel = 6

// Report writes the page as one file that needs no server and asks for
// nothing.
func Report(w io.Writer, d *Dataset, s Static) error {
	before, after, err := aroundData()
	if err != nil {
		return err
	}
	d.prepare()
	if _, err := io.WriteString(w, before); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	z, err := gzip.NewWriterLevel(text, gzipLevel)
	if err != nil {
		return err
	}
	out := &dataWriter{w: bufio.NewWriterSize(z, 1<<16)}
	out.data(d, s)
	if err := errors.Join(out.err, out.w.Flush(), z.Close(), text.Close()); err != nil {
		return err
	}
	if out.n > maxText {
		return fmt.Errorf("a page of %d events holds %d bytes of data, more than a browser parses at once (%d); view without -o has no such limit", d.events(), out.n, maxText)
	}
	_, err = io.WriteString(w, after)
	return err
}

// dataWriter writes the data of the page as JSON, list by list: whole, they
// would take several times the memory of the events.
type dataWriter struct {
	w   *bufio.Writer
	n   int64
	buf []byte
	err error
}

func (o *dataWriter) bytes(b []byte) {
	o.n += int64(len(b))
	if _, err := o.w.Write(b); err != nil && o.err == nil {
		o.err = err
	}
}

func (o *dataWriter) text(s string) { o.bytes([]byte(s)) }

// value writes anything that is small.
func (o *dataWriter) value(v any) {
	b, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.bytes(b)
}

// list writes the numbers that at gives for n indexes.
func (o *dataWriter) list(n int, at func(i int) int64) {
	o.buf = append(o.buf[:0], '[')
	for i := range n {
		if i > 0 {
			o.buf = append(o.buf, ',')
		}
		o.buf = strconv.AppendInt(o.buf, at(i), 10)
		if len(o.buf) > 1<<15 {
			o.bytes(o.buf)
			o.buf = o.buf[:0]
		}
	}
	o.bytes(append(o.buf, ']'))
}

func (o *dataWriter) data(d *Dataset, s Static) {
	o.text(`{"meta":`)
	o.value(newMeta(d))
	for n, sec := range d.Sections {
		o.text([]string{`,"sections":[`, ","}[min(n, 1)])
		o.text(`{"rows":[`)
		for n := range sec.Rows {
			if n > 0 {
				o.text(",")
			}
			o.row(&sec.Rows[n])
		}
		o.text("]}")
	}
	if len(d.Sections) > 0 {
		o.text("]")
	}
	numbers := func(key string, v []uint32) {
		o.text(`,"` + key + `":`)
		o.list(len(v), func(i int) int64 { return int64(v[i]) })
	}
	texts := func(key string, v []string) {
		o.text(`,"` + key + `":[`)
		for i, t := range v {
			if i > 0 {
				o.text(",")
			}
			o.value(t)
		}
		o.text("]")
	}
	texts("names", s.Names)
	numbers("name", s.Name)
	texts("sources", s.Sources)
	numbers("source", s.Source)
	numbers("off", s.Off)
	numbers("back", s.Back)
	numbers("kind", s.Kind)
	texts("edgeKinds", s.EdgeKinds)
	o.text("}\n")
}

// row writes the events of a row, starts and ids as differences, which
// compress well.
func (o *dataWriter) row(r *Row) {
	n := len(r.Start)
	o.text(`{"s":`)
	o.list(n, func(i int) int64 {
		if i == 0 {
			return int64(r.Start[0])
		}
		return int64(r.Start[i] - r.Start[i-1])
	})
	o.text(`,"d":`)
	o.list(n, func(i int) int64 { return int64(r.End[i] - r.Start[i]) })
	o.text(`,"i":`)
	o.list(n, func(i int) int64 {
		if i == 0 {
			return int64(r.ID[0])
		}
		return int64(r.ID[i]) - int64(r.ID[i-1])
	})
	o.text(`,"k":`)
	o.list(n, func(i int) int64 { return int64(r.Kind[i]) })
	if r.Cause != nil {
		o.text(`,"c":`)
		o.list(n, func(i int) int64 { return int64(r.Cause[i]) })
	}
	if r.Critical != nil {
		var critical []int
		for i, c := range r.Critical {
			if c {
				critical = append(critical, i)
			}
		}
		o.text(`,"x":`)
		o.list(len(critical), func(i int) int64 { return int64(critical[i]) })
	}
	o.text("}")
}

// aroundData returns the page, with style and script in it, up to the data and
// behind them.
func aroundData() (before, after string, err error) {
	var part [3]string
	for i, name := range []string{"index.html", "style.css", "app.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return "", "", err
		}
		part[i] = string(b)
	}
	const style, script = `<link rel="stylesheet" href="style.css">`, `<script src="app.js"></script>`
	head, rest, ok := strings.Cut(part[0], style)
	if !ok {
		return "", "", fmt.Errorf("the page has no %s", style)
	}
	body, foot, ok := strings.Cut(rest, script)
	if !ok {
		return "", "", fmt.Errorf("the page has no %s", script)
	}
	policy := `<meta http-equiv="Content-Security-Policy" content="` + reportPolicy + `">` + "\n"
	return head + policy + "<style>\n" + part[1] + "</style>" + body + `<script type="text/plain" id="data">`,
		"</script>\n<script>\n" + part[2] + "</script>" + foot, nil
}
