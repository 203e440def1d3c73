package web

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// Whatever the resolution, boxes ascend, do not overlap, cover every event
// that is in the stretch, and hold no idle time that is a grain or longer
// unless it is inside one grain.
func TestBoxesCoverEvents(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		var r Row
		at := uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			at += uint64(rapid.IntRange(0, 30).Draw(t, "gap"))
			r.Start = append(r.Start, at)
			at += uint64(rapid.IntRange(0, 40).Draw(t, "dur"))
			r.End = append(r.End, at)
			r.ID = append(r.ID, uint32(len(r.ID)))
			r.Kind = append(r.Kind, 0)
		}
		row := &r
		row.prepare()
		t0 := uint64(rapid.IntRange(0, 500).Draw(t, "t0"))
		t1 := t0 + uint64(rapid.IntRange(1, 500).Draw(t, "width"))
		grain := uint64(rapid.IntRange(1, 60).Draw(t, "grain"))
		boxes := row.Boxes(nil, t0, t1, grain)
		for i, b := range boxes {
			if b.End < b.Start || i > 0 && b.Start < boxes[i-1].End {
				t.Fatalf("boxes %+v", boxes)
			}
			if b.ID == noID && b.End-b.Start > 2*grain {
				t.Fatalf("a box of several events is %d ns wide at a grain of %d", b.End-b.Start, grain)
			}
		}
		for i := range r.Start {
			if r.End[i] <= t0 || r.Start[i] > t1 {
				continue
			}
			covered := false
			for _, b := range boxes {
				covered = covered || b.Start <= r.Start[i] && r.End[i] <= b.End
			}
			if !covered {
				t.Fatalf("event %d (%d to %d) is in no box of %+v", i, r.Start[i], r.End[i], boxes)
			}
		}
		var busy uint64
		for i := range r.Start {
			if lo, hi := max(r.Start[i], t0), min(r.End[i], t1); hi > lo {
				busy += hi - lo
			}
		}
		if got := row.between(t0, t1); got != busy {
			t.Fatalf("busy time %d, want %d", got, busy)
		}
	})
}

// A million events cost no more boxes than the screen has room for.
func TestBoxesAreBounded(t *testing.T) {
	d := demo(1_000_000)
	row := &d.Sections[0].Rows[0]
	row.prepare()
	if n := len(row.Boxes(nil, 0, d.Sections[0].Span, d.Sections[0].Span/1000)); n > 2002 {
		t.Errorf("%d boxes for 1000 pixels", n)
	}
}

func TestHandler(t *testing.T) {
	srv := httptest.NewServer(handler(program(demo(10))))
	defer srv.Close()
	get := func(path, host string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequest("GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b
	}
	if code, b := get("/", ""); code != 200 || !bytes.Contains(b, []byte("app.js")) {
		t.Errorf("the page: %d", code)
	}
	if code, _ := get("/", "evil.example:80"); code != http.StatusForbidden {
		t.Errorf("a foreign host name gets %d", code)
	}
	code, b := get("/api/tiles?b=0&s=0&t0=0&t1=600&px=600", "")
	if code != 200 || binary.LittleEndian.Uint32(b) != 2 || binary.LittleEndian.Uint32(b[4:]) != 5 || len(b) != 4+2*4+10*28 {
		t.Errorf("tiles: %d, %d bytes", code, len(b))
	}
	for _, bad := range []string{"/api/tiles", "/api/tiles?b=1&s=0&t0=0&t1=1&px=1", "/api/tiles?b=0&s=9&t0=0&t1=1&px=1", "/api/tiles?b=0&s=0&t0=5&t1=1&px=1", "/api/tiles?b=0&s=0&t0=NaN&t1=1&px=1",
		"/api/tiles?b=0&s=0&t0=0&t1=1&px=999999999", "/api/event?b=0&s=0&id=-1", "/api/event?b=0&s=7&id=1"} {
		if code, _ := get(bad, ""); code != http.StatusBadRequest {
			t.Errorf("%s gets %d", bad, code)
		}
	}
	if code, _ := get("/api/event?b=0&s=0&id=99", ""); code != http.StatusNotFound {
		t.Errorf("an event that is not there gets %d", code)
	}
	if code, b := get("/api/search?b=0&q=i-3", ""); code != 200 || !bytes.Contains(b, []byte(`"name":"I-3"`)) {
		t.Errorf("search: %d %s", code, b)
	}
	if code, b := get("/api/search?b=0&q=", ""); code != 200 || string(bytes.TrimSpace(b)) != "[]" {
		t.Errorf("empty search: %d %s", code, b)
	}
}

// A block of a hundred thousand events stays below two megabytes.
func TestReportSize(t *testing.T) {
	const n = 100_000
	d := demo(n)
	rnd := uint32(1)
	describe := func(_ int, ids []uint32) (Static, error) {
		s := Static{Names: []string{""}, Name: make([]uint32, n), Sources: []string{""}, Source: make([]uint32, n), Scopes: []string{""}, Scope: make([]uint32, n), EdgeKinds: []string{"Flow"}}
		for i := range ids {
			preds := min(i, 3)
			s.Off = append(s.Off, uint32(preds))
			for range preds {
				rnd = rnd*1664525 + 1013904223
				s.Back = append(s.Back, 1+rnd>>24%uint32(i))
				s.Kind = append(s.Kind, 0)
			}
		}
		return s, nil
	}
	// Times as irregular as those of a real module.
	for r := range d.Sections[0].Rows {
		row := &d.Sections[0].Rows[r]
		for i := range row.Start {
			rnd = rnd*1664525 + 1013904223
			row.Start[i] += uint64(rnd >> 28)
			row.End[i] = row.Start[i] + 20 + uint64(rnd>>27)
		}
	}
	var b bytes.Buffer
	if err := Report(&b, program(d), ReportOptions{Static: describe}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2_000_000 {
		t.Errorf("the page is %d bytes", b.Len())
	}
}

// The page as one file says itself that it needs nothing from elsewhere.
func TestReportPolicy(t *testing.T) {
	before, after, err := aroundData()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(before, `http-equiv="Content-Security-Policy" content="default-src 'none';`) {
		t.Error("the page has no policy")
	}
	if page := before + after; strings.Contains(page, "'vscode://file/' + m[1] +") || !strings.Contains(page, "encodeURIComponent") {
		t.Error("the path of a source link is not escaped")
	}
}
