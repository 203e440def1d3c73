package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// late is demo whose events, causes, groups and counters come when they are
// asked for; its second block cannot be opened.
func late(events int) *Program {
	d := demo(events)
	rows := d.Sections[0].Rows
	d.Sections[0].Rows = []Row{{Name: "PE", Busy: 7}, {Name: "DVE"}}
	d.Sections[0].Fill = func() []Row { return rows }
	why := rows[0].Cause
	rows[0].Cause = nil
	d.Attribute = func() (func(), error) { return func() { d.Sections[0].Rows[0].Cause = why }, nil }
	d.Classes = []string{"PE"}
	d.Groups = func() []Group { return []Group{{Name: "layer", Parent: -1, Path: "scope:layer", Busy: []uint64{40}}} }
	d.Counters = func() ([]Counter, string) { return nil, "a reason" }
	p := program(d)
	p.Blocks = append(p.Blocks, Block{Name: "f/c"})
	open := p.Open
	p.Open = func(n int) (*Dataset, error) {
		if n == 1 {
			return nil, errors.New("damaged")
		}
		return open(n)
	}
	return p
}

// Every part of the page answers, filled when it is first asked for.
func TestLateParts(t *testing.T) {
	srv := httptest.NewServer(handler(late(10)))
	defer srv.Close()
	get := func(path string, v any) int {
		t.Helper()
		resp, err := http.Get(srv.URL + "/api/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if v != nil {
			if err := json.Unmarshal(b, v); err != nil {
				t.Fatalf("%s: %v: %s", path, err, b)
			}
		}
		return resp.StatusCode
	}
	var p metaProgram
	if get("program", &p); p.Title != "demo" || len(p.Blocks) != 2 {
		t.Errorf("program %+v", p)
	}
	var m struct {
		Sections []struct {
			Rows []struct {
				Name         string
				Events, Busy int
				Load         []int
			}
		}
	}
	// The first row has the 5 events 0, 2, … of 80 ns every 100 ns.
	if get("meta?b=0", &m); len(m.Sections) != 1 || m.Sections[0].Rows[0].Events != 5 || len(m.Sections[0].Rows[0].Load) != mapCells {
		t.Errorf("meta %+v", m)
	}
	var causes []string
	if get("why?b=0", &causes); strings.Join(causes, " ") != "start flow" {
		t.Errorf("causes %q", causes)
	}
	var groups []Group
	if get("groups?b=0", &groups); len(groups) != 1 || groups[0].Busy[0] != 40 {
		t.Errorf("groups %+v", groups)
	}
	var c metaCounters
	if get("counters?b=0", &c); c.Reason != "a reason" || c.Counters == nil {
		t.Errorf("counters %+v", c)
	}
	// From 40 to 150 on both rows: 40 of the first event of row 0 and 50 of its
	// second, of row 1 the whole of 50 to 130.
	var sum []Work
	if get("sum?b=0&s=0&t0=40&t1=150&rows=0,1", &sum); len(sum) != 2 || sum[0] != (Work{0, 2, 90}) || sum[1] != (Work{1, 1, 80}) {
		t.Errorf("sum %+v", sum)
	}
	for path, want := range map[string]int{"sum?b=0&s=0&t0=1&t1=2&rows=2": 400, "sum?b=0&s=0&t0=1&t1=2&rows=": 400, "sum?b=0&s=0&t0=2&t1=1&rows=0": 400,
		"section?b=0&s=1": 400, "section?b=0&s=0": 200, "meta?b=-1": 400, "meta?b=x": 400, "meta?b=1": 500} {
		if got := get(path, nil); got != want {
			t.Errorf("%s gets %d, want %d", path, got, want)
		}
	}
}

// What a lane does in a cell of the overview, by hand: events of 10 ns at 0 and
// 90, a loop from 20 to 80 busy for 30, of which single events show the last
// iteration, 70 to 80.
func TestLoadOfLoops(t *testing.T) {
	r := Row{Start: []uint64{0, 70, 90}, End: []uint64{10, 75, 100}, ID: []uint32{0, 1, 2}, Kind: make([]uint16, 3),
		Loops: []Loop{{Start: 20, Last: 70, End: 80, Busy: 30}, {Start: 70, Last: 72, End: 75, Busy: 5, Depth: 1}}}
	r.prepare()
	for _, c := range []struct{ t0, t1, want uint64 }{{0, 10, 10}, {0, 20, 10}, {20, 40, 10}, {70, 80, 5}, {80, 100, 10}, {0, 100, 50}, {10, 20, 0}} {
		if got := r.load(c.t0, c.t1); got != c.want {
			t.Errorf("busy from %d to %d: %d ns, want %d", c.t0, c.t1, got, c.want)
		}
	}
}

// A page as one file of more events than it may hold draws short ones together,
// says so, and keeps the time that lanes are busy.
func TestReportIsSampled(t *testing.T) {
	for _, room := range []int{100, 50_000} {
		var b bytes.Buffer
		if err := Report(&b, program(demo(20_000)), ReportOptions{Events: room, Static: static}); err != nil {
			t.Fatal(err)
		}
		_, data, _ := strings.Cut(b.String(), `id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Program metaProgram
			Pages   []struct {
				Meta     struct{ Work []Work }
				IDs      []int
				Sections []struct{ Rows []struct{ D, H []uint64 } }
			}
		}
		if err := json.NewDecoder(z).Decode(&page); err != nil {
			t.Fatal(err)
		}
		boxes, busy := 0, 0.0
		for _, r := range page.Pages[0].Sections[0].Rows {
			boxes += len(r.D)
			for i, d := range r.D {
				share := 1.0
				if r.H != nil {
					share = float64(r.H[i]) / 255
				}
				busy += float64(d) * share
			}
		}
		if sampled := room < 20_000; boxes > max(room, 20_000) || sampled && boxes > room || sampled != (page.Program.Sampled != "") || sampled == (len(page.Pages[0].IDs) == 20_000) {
			t.Errorf("room for %d: %d boxes, %d ids, %q", room, boxes, len(page.Pages[0].IDs), page.Program.Sampled)
		}
		// The key has all events: half of the 20,000 are of each kind.
		if w := page.Pages[0].Meta.Work; len(w) != 2 || w[0] != (Work{0, 10_000, 800_000}) || w[1] != (Work{1, 10_000, 800_000}) {
			t.Errorf("room for %d: the key has %+v", room, w)
		}
		if want := 20_000 * 80.0; busy < .99*want || busy > 1.01*want {
			t.Errorf("room for %d: busy for %.0f ns, want %.0f", room, busy, want)
		}
	}
}
