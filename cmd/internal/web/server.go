package web

import (
	"cmp"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// Serve serves the dataset on the loopback interface until ctx ends. port 0
// takes a free one; ready is told the address.
func Serve(ctx context.Context, d *Dataset, port int, ready func(url string)) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("the page needs a port on this machine: %w", err)
	}
	srv := &http.Server{Handler: handler(d), ReadHeaderTimeout: 10 * time.Second}
	ready("http://" + l.Addr().String() + "/")
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		stop, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
}

// handler returns the page and what it asks for. Requests that do not name
// this machine as their host are refused, so that a page from elsewhere
// cannot read the data through a name that it points here.
func handler(d *Dataset) http.Handler {
	d.prepare()
	mux := http.NewServeMux()
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	files := http.FileServerFS(static)
	mux.Handle("GET /", files)
	mux.HandleFunc("GET /api/meta", func(w http.ResponseWriter, _ *http.Request) { reply(w, newMeta(d)) })
	mux.HandleFunc("GET /api/tiles", func(w http.ResponseWriter, r *http.Request) { tiles(d, w, r) })
	mux.HandleFunc("GET /api/event", func(w http.ResponseWriter, r *http.Request) { event(d, w, r) })
	mux.HandleFunc("GET /api/search", func(w http.ResponseWriter, r *http.Request) {
		hits := []Hit{}
		if q := r.FormValue("q"); q != "" && d.Search != nil {
			hits = append(hits, d.Search(q, maxHits)...)
		}
		reply(w, hits)
	})
	return local(mux)
}

// maxHits bounds what a search returns.
const maxHits = 200

func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && host != "127.0.0.1" && host != "::1" {
			http.Error(w, "this page is for this machine only", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// meta is what the page has to know first.
type meta struct {
	Title  string   `json:"title"`
	Facts  []Fact   `json:"facts"`
	Blocks []Fact   `json:"blocks,omitempty"`
	Kinds  []string `json:"kinds"`
	Quiet  []bool   `json:"quiet"`
	Colors []int    `json:"colors"` // rank of each kind, see colors
	Causes []string `json:"causes"`
	// Occurring are the causes that some event has: what a legend explains.
	Occurring []string      `json:"occurring"`
	Events    int           `json:"events"`
	Sections  []metaSection `json:"sections"`
	// Work is what the first section is made of, by kind: the key to the colours.
	Work []metaWork `json:"work"`
}

// metaWork is the events of a kind.
type metaWork struct {
	Kind   int    `json:"kind"`
	Events int    `json:"events"`
	Time   uint64 `json:"time"` // ns, as drawn
}

type metaSection struct {
	Name string    `json:"name"`
	Span uint64    `json:"span"`
	Rows []metaRow `json:"rows"`

	Folded bool `json:"folded"`
}

type metaRow struct {
	Name   string `json:"name"`
	Events int    `json:"events"`
	Busy   uint64 `json:"busy"`
	// Load is the share of each of mapCells cells of the span that is busy, 0 to
	// 255: the overview.
	Load []uint8 `json:"load"`
}

// mapCells is the resolution of the overview.
const mapCells = 512

func newMeta(d *Dataset) meta {
	m := meta{Title: d.Title, Facts: d.Facts, Blocks: d.Blocks, Kinds: d.Kinds, Quiet: d.Quiet, Colors: colors(d), Causes: d.Causes, Occurring: occurring(d), Events: d.events(), Work: work(d)}
	for _, s := range d.Sections {
		ms := metaSection{Name: s.Name, Span: s.Span, Folded: s.Folded, Rows: []metaRow{}}
		for i := range s.Rows {
			r := &s.Rows[i]
			row := metaRow{Name: r.Name, Events: len(r.Start), Busy: r.busy[len(r.Start)], Load: make([]uint8, mapCells)}
			for c := range row.Load {
				t0 := uint64(float64(s.Span) * float64(c) / mapCells)
				t1 := uint64(float64(s.Span) * float64(c+1) / mapCells)
				if t1 > t0 {
					row.Load[c] = uint8(r.Busy(t0, t1) * 255 / (t1 - t0))
				}
			}
			ms.Rows = append(ms.Rows, row)
		}
		m.Sections = append(m.Sections, ms)
	}
	return m
}

// mostWork bounds the key to the colours.
const mostWork = 40

// work sums the events of the first section by kind, work before what is drawn
// pale, the longest first.
func work(d *Dataset) []metaWork {
	all := make([]metaWork, len(d.Kinds))
	for k := range all {
		all[k].Kind = k
	}
	if len(d.Sections) > 0 {
		for _, r := range d.Sections[0].Rows {
			for i, k := range r.Kind {
				all[k].Events++
				all[k].Time += r.End[i] - r.Start[i]
			}
		}
	}
	all = slices.DeleteFunc(all, func(w metaWork) bool { return w.Events == 0 })
	quiet := func(w metaWork) int {
		if w.Kind < len(d.Quiet) && d.Quiet[w.Kind] {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b metaWork) int { return cmp.Or(cmp.Compare(quiet(a), quiet(b)), cmp.Compare(b.Time, a.Time)) })
	return all[:min(len(all), mostWork)]
}

// occurring returns the causes that some event of the dataset has.
func occurring(d *Dataset) []string {
	var has [256]bool
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			for _, c := range r.Cause {
				has[c] = true
			}
		}
	}
	out := []string{}
	for k, name := range d.Causes {
		if k+1 < len(has) && has[k+1] {
			out = append(out, name)
		}
	}
	return out
}

// colors ranks the kinds, those with most events in the first section first
// and what no engine computes last: the page has few colours, and the kinds
// one sees most must not share one.
func colors(d *Dataset) []int {
	count := make([]int, len(d.Kinds))
	if len(d.Sections) > 0 {
		for _, r := range d.Sections[0].Rows {
			for _, k := range r.Kind {
				count[k]++
			}
		}
	}
	order := make([]int, len(d.Kinds))
	for k := range order {
		order[k] = k
		if k < len(d.Quiet) && d.Quiet[k] {
			count[k] -= math.MaxInt / 2
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[b], count[a]) })
	rank := make([]int, len(d.Kinds))
	for r, k := range order {
		rank[k] = r
	}
	return rank
}

// MarshalJSON writes the overview as numbers rather than base64.
func (r metaRow) MarshalJSON() ([]byte, error) {
	load := make([]int, len(r.Load))
	for i, v := range r.Load {
		load[i] = int(v)
	}
	return json.Marshal(map[string]any{"name": r.Name, "events": r.Events, "busy": r.Busy, "load": load})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // the client is gone where this fails
}

// maxPixels bounds what a tile request may ask for.
const maxPixels = 20000

// tiles answers with the boxes of all rows of a section between t0 and t1 at
// a resolution of px boxes. The answer is binary, little-endian: the number
// of rows, then per row the number of boxes, then per box 28 bytes: start
// and end (float64 ns), id, and kind, cause, share and flags.
func tiles(d *Dataset, w http.ResponseWriter, r *http.Request) {
	section, err1 := strconv.Atoi(r.FormValue("s"))
	t0, err2 := strconv.ParseFloat(r.FormValue("t0"), 64)
	t1, err3 := strconv.ParseFloat(r.FormValue("t1"), 64)
	px, err4 := strconv.Atoi(r.FormValue("px"))
	if err := errors.Join(err1, err2, err3, err4); err != nil || section < 0 || section >= len(d.Sections) || !(t0 < t1) || px < 1 || px > maxPixels {
		http.Error(w, "tiles takes s, t0 < t1 and px", http.StatusBadRequest)
		return
	}
	s := &d.Sections[section]
	lo, hi := clamp(t0, s.Span), clamp(t1, s.Span)
	grain := uint64(math.Ceil((t1 - t0) / float64(px)))
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(s.Rows)))
	var boxes []Box
	for i := range s.Rows {
		boxes = s.Rows[i].Boxes(boxes[:0], lo, hi, grain)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(boxes)))
		for _, b := range boxes {
			out = appendBox(out, b)
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(out) // the client is gone where this fails
}

func appendBox(out []byte, b Box) []byte {
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(b.Start)))
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(b.End)))
	out = binary.LittleEndian.AppendUint32(out, b.ID)
	out = binary.LittleEndian.AppendUint16(out, b.Kind)
	flags := uint8(0)
	if b.Critical {
		flags = 1
	}
	return append(out, b.Cause, b.Share, flags, 0, 0, 0)
}

func clamp(t float64, span uint64) uint64 {
	if !(t > 0) {
		return 0
	}
	if t >= float64(span) {
		return span
	}
	return uint64(t)
}

func event(d *Dataset, w http.ResponseWriter, r *http.Request) {
	section, err1 := strconv.Atoi(r.FormValue("s"))
	id, err2 := strconv.ParseUint(r.FormValue("id"), 10, 32)
	if err := errors.Join(err1, err2); err != nil || d.Detail == nil || section < 0 || section >= len(d.Sections) {
		http.Error(w, "event takes s and id", http.StatusBadRequest)
		return
	}
	e, ok := d.Detail(section, uint32(id))
	if !ok {
		http.Error(w, "no such event", http.StatusNotFound)
		return
	}
	if e.Facts == nil {
		e.Facts = []Fact{}
	}
	if e.Preds == nil {
		e.Preds = []Link{}
	}
	if e.Succs == nil {
		e.Succs = []Link{}
	}
	reply(w, e)
}

// Contains tells whether text holds lower, which is in lower case, in any case.
func Contains(text, lower string) bool { return strings.Contains(strings.ToLower(text), lower) }
