package web

import (
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
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed assets
var assets embed.FS

// Serve serves the program on the loopback interface until ctx ends. port 0
// takes a free one; ready is called with the address.
func Serve(ctx context.Context, p *Program, port int, ready func(url string)) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("the page needs a port on this machine: %w", err)
	}
	srv := &http.Server{Handler: handler(p), ReadHeaderTimeout: 10 * time.Second}
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
func handler(p *Program) http.Handler {
	all := newPages(p)
	mux := http.NewServeMux()
	static, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	mux.Handle("GET /", http.FileServerFS(static))
	mux.HandleFunc("GET /api/program", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, metaProgram{Title: p.Title, Facts: p.Facts, Blocks: p.Blocks, First: p.First})
	})
	memory := sync.OnceValues(func() ([]Memory, error) {
		if p.Memory == nil {
			return nil, nil
		}
		return p.Memory()
	})
	mux.HandleFunc("GET /api/memory", func(w http.ResponseWriter, _ *http.Request) {
		list, err := memory()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		reply(w, orEmpty(list))
	})
	// Everything else is about the block that the request names.
	block := func(path string, serve func(x *page, w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc("GET /api/"+path, func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.FormValue("b"))
			if err != nil {
				http.Error(w, path+" takes the number of a block: b", http.StatusBadRequest)
				return
			}
			x, err := all.open(n)
			switch {
			case errors.Is(err, errNoBlock):
				http.Error(w, err.Error(), http.StatusBadRequest)
			case err != nil:
				http.Error(w, err.Error(), http.StatusInternalServerError)
			default:
				serve(x, w, r)
			}
		})
	}
	block("meta", func(x *page, w http.ResponseWriter, _ *http.Request) { reply(w, x.meta()) })
	block("section", (*page).section)
	block("tiles", (*page).tiles)
	block("event", (*page).event)
	block("sum", (*page).sum)
	block("why", (*page).whyReply)
	block("groups", func(x *page, w http.ResponseWriter, _ *http.Request) { reply(w, orEmpty(x.groups())) })
	block("counters", func(x *page, w http.ResponseWriter, _ *http.Request) {
		list, reason := x.counters()
		reply(w, metaCounters{orEmpty(list), reason})
	})
	block("search", func(x *page, w http.ResponseWriter, r *http.Request) {
		hits := []Hit{}
		if q := r.FormValue("q"); q != "" && x.d.Search != nil {
			hits = append(hits, x.d.Search(q, maxHits)...)
		}
		reply(w, hits)
	})
	return local(mux)
}

// metaCounters are the counters of a block, or the reason why there are none.
type metaCounters struct {
	Counters []Counter `json:"counters"`
	Reason   string    `json:"reason,omitempty"`
}

// orEmpty returns a list that JSON does not write as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// maxHits bounds what a search returns.
const maxHits = 200

// servedPolicy allows the served page its own files and nothing else.
const servedPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

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
		h.Set("Content-Security-Policy", servedPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // the client is gone where this fails
}

// sectionOf reads the section that a request names.
func (x *page) sectionOf(r *http.Request) (int, bool) {
	s, err := strconv.Atoi(r.FormValue("s"))
	return s, err == nil && s >= 0 && s < len(x.d.Sections)
}

// section answers with the description of one section, filled.
func (x *page) section(w http.ResponseWriter, r *http.Request) {
	s, ok := x.sectionOf(r)
	if !ok {
		http.Error(w, "section takes s", http.StatusBadRequest)
		return
	}
	sec := x.fill(s)
	x.mu.RLock()
	m := metaOf(sec)
	x.mu.RUnlock()
	reply(w, m)
}

// whyReply answers when causes and the critical path are known, with the causes
// that occur.
func (x *page) whyReply(w http.ResponseWriter, _ *http.Request) {
	if err := x.attribute(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	x.mu.RLock()
	list := occurring(x.d)
	x.mu.RUnlock()
	reply(w, list)
}

// maxPixels bounds what a tile request may ask for.
const maxPixels = 20000

// tiles answers with the boxes of all rows of a section between t0 and t1 at
// a resolution of px boxes. The answer is binary, little-endian: the number
// of rows, then per row the number of boxes, then per box 28 bytes: start
// and end (float64 ns), id, and kind, cause, share and flags.
func (x *page) tiles(w http.ResponseWriter, r *http.Request) {
	section, ok := x.sectionOf(r)
	t0, err2 := strconv.ParseFloat(r.FormValue("t0"), 64)
	t1, err3 := strconv.ParseFloat(r.FormValue("t1"), 64)
	px, err4 := strconv.Atoi(r.FormValue("px"))
	if err := errors.Join(err2, err3, err4); err != nil || !ok || !(t0 < t1) || px < 1 || px > maxPixels {
		http.Error(w, "tiles takes s, t0 < t1 and px", http.StatusBadRequest)
		return
	}
	s := x.fill(section)
	x.mu.RLock()
	out := tileBytes(s, t0, t1, px)
	x.mu.RUnlock()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(out) // the client is gone where this fails
}

func tileBytes(s *Section, t0, t1 float64, px int) []byte {
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
	return out
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

// sum answers with the events of an area, by kind: those of the rows named by
// their numbers between t0 and t1, cut there.
func (x *page) sum(w http.ResponseWriter, r *http.Request) {
	section, ok := x.sectionOf(r)
	t0, err1 := strconv.ParseFloat(r.FormValue("t0"), 64)
	t1, err2 := strconv.ParseFloat(r.FormValue("t1"), 64)
	if errors.Join(err1, err2) != nil || !ok || !(t0 <= t1) {
		http.Error(w, "sum takes s, t0 <= t1 and rows", http.StatusBadRequest)
		return
	}
	s := x.fill(section)
	var rows []int
	for _, text := range strings.Split(r.FormValue("rows"), ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(s.Rows) {
			http.Error(w, "sum takes the numbers of rows", http.StatusBadRequest)
			return
		}
		rows = append(rows, n)
	}
	x.mu.RLock()
	out := sumOf(x.d, s, rows, clamp(t0, s.Span), clamp(t1, s.Span))
	x.mu.RUnlock()
	reply(w, out)
}

// sumOf adds up the events of rows between t0 and t1 by kind, the longest
// first.
func sumOf(d *Dataset, s *Section, rows []int, t0, t1 uint64) []Work {
	all := make([]Work, len(d.Kinds))
	for k := range all {
		all[k].Kind = k
	}
	for _, n := range rows {
		r := &s.Rows[n]
		for i := r.from(t0); i < len(r.Start) && r.Start[i] < t1; i++ {
			w := &all[r.Kind[i]]
			w.Events++
			w.Time += min(r.End[i], t1) - max(r.Start[i], t0)
		}
	}
	return work(d, all)
}

func (x *page) event(w http.ResponseWriter, r *http.Request) {
	section, ok := x.sectionOf(r)
	id, err := strconv.ParseUint(r.FormValue("id"), 10, 32)
	if err != nil || x.d.Detail == nil || !ok {
		http.Error(w, "event takes s and id", http.StatusBadRequest)
		return
	}
	e, ok := x.d.Detail(section, uint32(id))
	if !ok {
		http.Error(w, "no such event", http.StatusNotFound)
		return
	}
	e.Facts, e.Preds, e.Succs = orEmpty(e.Facts), orEmpty(e.Preds), orEmpty(e.Succs)
	reply(w, e)
}

// Contains reports whether text holds lower, which is in lower case, in any case.
func Contains(text, lower string) bool { return strings.Contains(strings.ToLower(text), lower) }
