package web

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/klauspost/compress/gzip"
)

// Static is what a page as one file needs beyond the dataset, because no server
// answers its questions: names and dependencies of the events that it holds, in
// the order of their ids.
type Static struct {
	Names   []string // Names[0] is "": the implicit name I-<id>
	Name    []uint32
	Sources []string // Sources[0] is ""
	Source  []uint32
	Scopes  []string // Scopes[0] is ""
	Scope   []uint32
	// Off holds how many dependencies each event has; Back and Kind, in the
	// same order, how many ids before it each producer is and of what kind.
	Off       []uint32
	Back      []uint32
	Kind      []uint32
	EdgeKinds []string
}

// ReportOptions say what the page as one file holds.
type ReportOptions struct {
	// Events bounds the events and merged boxes that it holds; 0 is
	// defaultEvents.
	Events int
	// Static describes the events of a block whose ids ascend.
	Static func(block int, ids []uint32) (Static, error)
}

// defaultEvents is about what a browser reads in two seconds, 15 MB.
const defaultEvents = 1_000_000

// Report writes the page as one file that needs no server and asks for
// nothing. It holds the first block, and the others as far as there is room.
// Of a block with more events than there is room for, the short ones are drawn
// together, which the page says.
func Report(w io.Writer, p *Program, o ReportOptions) error {
	before, after, err := aroundData()
	if err != nil {
		return err
	}
	room := cmp.Or(o.Events, defaultEvents)
	all := newPages(p)
	m := metaProgram{Title: p.Title, Facts: p.Facts, Blocks: p.Blocks, First: p.First, Held: []int{}}
	var held []*page
	add := func(block int) error {
		x, err := all.open(block)
		if err != nil {
			return err
		}
		x.fillAll()
		if err := x.attribute(); err != nil {
			return err
		}
		m.Held, held = append(m.Held, block), append(held, x)
		return nil
	}
	if len(p.Blocks) > 0 {
		if err := add(p.First); err != nil {
			return err
		}
		first := held[0].d
		n := first.events()
		if n > room {
			whole := held[0].meta()
			held[0].whole = &whole
			grain := sample(first, room)
			m.Sampled = fmt.Sprintf("%s boxes for %s events in all timelines, those shorter than %s ns drawn together",
				humanize.Comma(int64(first.events())), humanize.Comma(int64(n)), humanize.Comma(int64(grain)))
		}
		room -= min(room, first.events())
	}
	for b := range p.Blocks {
		if n := p.Blocks[b].Events * len(held[0].d.Sections); b != p.First && n <= room {
			if err := add(b); err != nil {
				return err
			}
			room -= n
		}
	}
	if _, err := io.WriteString(w, before); err != nil {
		return err
	}
	text := base64.NewEncoder(base64.StdEncoding, w)
	z, err := gzip.NewWriterLevel(text, gzipLevel)
	if err != nil {
		return err
	}
	out := &dataWriter{w: bufio.NewWriterSize(z, 1<<16)}
	out.text(`{"program":`)
	out.value(m)
	var memory []Memory
	if p.Memory != nil {
		if memory, err = p.Memory(); err != nil {
			return err
		}
	}
	out.text(`,"memory":`)
	out.value(orEmpty(memory))
	out.text(`,"pages":[`)
	for n, x := range held {
		if n > 0 {
			out.text(",")
		}
		ids := idsOf(x.d)
		s, err := o.Static(m.Held[n], ids)
		if err != nil {
			return err
		}
		out.page(x, ids, s)
	}
	out.text("]}\n")
	if err := errors.Join(out.err, out.w.Flush(), z.Close(), text.Close()); err != nil {
		return err
	}
	_, err = io.WriteString(w, after)
	return err
}

// sample replaces the events of a block by boxes, at most room of them, and
// returns the grain below which events are drawn together, in ns.
func sample(d *Dataset, room int) uint64 {
	grain := uint64(2)
	boxes := func(grain uint64, keep bool) int {
		n := 0
		var list []Box
		for s := range d.Sections {
			for r := range d.Sections[s].Rows {
				row := &d.Sections[s].Rows[r]
				list = row.Boxes(list[:0], 0, d.Sections[s].Span, grain)
				n += len(list)
				if keep {
					row.take(list)
				}
			}
		}
		return n
	}
	for boxes(grain, false) > room {
		grain *= 2
	}
	boxes(grain, true)
	return grain
}

// take makes boxes the events of a row.
func (r *Row) take(list []Box) {
	out := Row{Name: r.Name, Busy: r.Busy, Parent: r.Parent, Loops: r.Loops}
	for _, b := range list {
		out.Start, out.End, out.ID, out.Kind = append(out.Start, b.Start), append(out.End, b.End), append(out.ID, b.ID), append(out.Kind, b.Kind)
		out.Share = append(out.Share, b.Share)
		if r.Cause != nil {
			out.Cause = append(out.Cause, b.Cause)
		}
		if r.Critical != nil {
			out.Critical = append(out.Critical, b.Critical)
		}
	}
	out.prepare()
	*r = out
}

// idsOf returns the ids of the events that a block holds, ascending.
func idsOf(d *Dataset) []uint32 {
	most := 0
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			for _, id := range r.ID {
				if id != noID {
					most = max(most, int(id)+1)
				}
			}
		}
	}
	has := make([]bool, most)
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			for _, id := range r.ID {
				if id != noID {
					has[id] = true
				}
			}
		}
	}
	var ids []uint32
	for id, ok := range has {
		if ok {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// reportPolicy allows the page as one file its own script and styles, and
// nothing from elsewhere.
const reportPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

// gzipLevel is klauspost's level with a tenth of the time of the standard
// library's best compression, for 8 % more bytes.
const gzipLevel = 6

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

// page writes a block.
func (o *dataWriter) page(x *page, ids []uint32, s Static) {
	d := x.d
	m := x.whole
	if m == nil {
		own := x.meta()
		m = &own
	}
	counters, reason := x.counters()
	for _, part := range []struct {
		key   string
		value any
	}{{"meta", m}, {"occurring", occurring(d)}, {"groups", orEmpty(x.groups())}, {"counters", metaCounters{orEmpty(counters), reason}}} {
		o.text([]string{",", "{"}[btoi(part.key == "meta")] + `"` + part.key + `":`)
		o.value(part.value)
	}
	o.text(`,"sections":[`)
	for n, sec := range d.Sections {
		if n > 0 {
			o.text(",")
		}
		o.text(`{"rows":[`)
		for n := range sec.Rows {
			if n > 0 {
				o.text(",")
			}
			o.row(&sec.Rows[n])
		}
		o.text("]}")
	}
	o.text(`],"ids":`)
	o.list(len(ids), func(i int) int64 {
		if i == 0 {
			return int64(ids[0])
		}
		return int64(ids[i] - ids[i-1])
	})
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
	texts("scopes", s.Scopes)
	numbers("scope", s.Scope)
	numbers("off", s.Off)
	numbers("back", s.Back)
	numbers("kind", s.Kind)
	texts("edgeKinds", s.EdgeKinds)
	o.text("}")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
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
	if r.Share != nil {
		o.text(`,"h":`)
		o.list(n, func(i int) int64 { return int64(r.Share[i]) })
	}
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
