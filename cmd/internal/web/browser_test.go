package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// demo is a dataset of two rows: event 2k on the first, 2k+1 on the second,
// each of 80 ns every 100 ns, and event i depends on event i-1.
func demo(events int) *Dataset {
	d := &Dataset{Kinds: []string{"MATMUL", "COPY"}, Causes: []string{"start", "flow"},
		Facts: []Fact{{"machine", "test"}}}
	s := Section{Name: "run A", Rows: []Row{{Name: "PE"}, {Name: "DVE"}}}
	for i := range events {
		r := &s.Rows[i%2]
		start := uint64(i) * 50
		r.Start = append(r.Start, start)
		r.End = append(r.End, start+80)
		r.ID = append(r.ID, uint32(i))
		r.Kind = append(r.Kind, uint16(i%2))
		r.Cause = append(r.Cause, uint8(min(i, 1))+1)
		r.Critical = append(r.Critical, i%2 == 0)
		s.Span = start + 80
	}
	d.Sections = []Section{s}
	at := func(i int) Link {
		return Link{ID: uint32(i), Row: i % 2, Name: fmt.Sprintf("I-%d", i), Start: uint64(i) * 50, End: uint64(i)*50 + 80, Kind: "Flow"}
	}
	d.Detail = func(_ int, id uint32) (Detail, bool) {
		i := int(id)
		if i >= events {
			return Detail{}, false
		}
		l := at(i)
		e := Detail{ID: id, Row: l.Row, Name: l.Name, Start: l.Start, End: l.End, Source: "kernel.py:7", Facts: []Fact{{"opcode", d.Kinds[i%2]}}}
		if i > 0 {
			e.Preds = []Link{at(i - 1)}
		}
		if i+1 < events {
			e.Succs = []Link{at(i + 1)}
		}
		return e, true
	}
	d.Search = func(text string, limit int) (hits []Hit) {
		for i := 0; i < events && len(hits) < limit; i++ {
			if name := fmt.Sprintf("I-%d", i); Contains(name, strings.ToLower(text)) {
				hits = append(hits, Hit{0, i % 2, uint32(i), name, uint64(i) * 50, uint64(i)*50 + 80})
			}
		}
		return hits
	}
	return d
}

// program is a program of one block.
func program(d *Dataset) *Program {
	return &Program{Title: "demo", Facts: d.Facts, Blocks: []Block{{Name: "f/b", Runs: 1, NS: 1000, Total: 1000, Events: d.events()}},
		Open: func(int) (*Dataset, error) { return d, nil }}
}

// browser starts headless Chromium, or skips where there is none, and watches
// for console errors and for requests that leave the machine.
func browser(t *testing.T) (context.Context, func() []string) {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on this machine")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.WindowSize(1300, 800))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute) // the machine may be busy
	t.Cleanup(cancel)
	var mu sync.Mutex
	var bad []string
	chromedp.ListenTarget(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			bad = append(bad, "exception: "+ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError {
				bad = append(bad, fmt.Sprintf("console error: %v", ev.Args))
			}
		case *log.EventEntryAdded:
			if ev.Entry.Level == log.LevelError || ev.Entry.Source == log.SourceSecurity {
				bad = append(bad, "log: "+ev.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			u, err := url.Parse(ev.Request.URL)
			if err != nil || u.Hostname() != "127.0.0.1" && u.Scheme != "data" && u.Scheme != "file" && u.Scheme != "blob" {
				bad = append(bad, "request beyond this machine: "+ev.Request.URL)
			}
		}
	})
	if err := chromedp.Run(ctx, network.Enable(), log.Enable()); err != nil {
		t.Fatal(err)
	}
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return bad
	}
}

// wait waits until a JavaScript expression is true.
func wait(expr string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for range 2400 {
			var ok bool
			if err := chromedp.Evaluate("!!("+expr+")", &ok).Do(ctx); err != nil {
				return err
			}
			if ok {
				return nil
			}
			time.Sleep(25 * time.Millisecond)
		}
		return fmt.Errorf("in a minute it never came true that %s", expr)
	})
}

// text evaluates to the text of an element.
func text(id string, into *string) chromedp.Action {
	return chromedp.Evaluate("document.getElementById('"+id+"').innerText", into)
}

type pageState struct {
	T0, T1  float64
	Loading bool
	Sel     *struct {
		ID   int
		Name string
	}
}

func state(t *testing.T, ctx context.Context) pageState {
	t.Helper()
	var text string
	if err := chromedp.Run(ctx, chromedp.Evaluate(`JSON.stringify(perfsim.state)`, &text)); err != nil {
		t.Fatal(err)
	}
	var s pageState
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// twice is demo with a second run, folded, in which everything is 30 ns later.
func twice(events int) *Dataset {
	d := demo(events)
	later := Section{Name: "run B", Span: d.Sections[0].Span + 30, Folded: true}
	for _, r := range d.Sections[0].Rows {
		o := Row{Name: r.Name, ID: r.ID, Kind: r.Kind}
		for i := range r.Start {
			o.Start, o.End = append(o.Start, r.Start[i]+30), append(o.End, r.End[i]+30)
		}
		later.Rows = append(later.Rows, o)
	}
	d.Sections = append(d.Sections, later)
	one := d.Detail
	d.Detail = func(section int, id uint32) (Detail, bool) {
		e, ok := one(section, id)
		e.Others = []Other{{Section: 1, Start: e.Start + 30, End: e.End + 30}}
		return e, ok
	}
	return d
}

// static describes the events of demo: each depends on the one before it.
func static(_ int, ids []uint32) (Static, error) {
	s := Static{Names: []string{""}, Sources: []string{"", "kernel.py:7"}, Scopes: []string{""}, EdgeKinds: []string{"Flow"}}
	for _, id := range ids {
		s.Name, s.Source, s.Scope = append(s.Name, 0), append(s.Source, 1), append(s.Scope, 0)
		s.Off = append(s.Off, min(id, 1))
		if id > 0 {
			s.Back, s.Kind = append(s.Back, 1), append(s.Kind, 0)
		}
	}
	return s, nil
}

// A person opens the page, zooms with the keyboard, searches, selects and
// follows a dependency. Run on the served page and on the page as one file.
func TestBrowser(t *testing.T) {
	srv := httptest.NewServer(handler(program(twice(1000))))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := Report(f, program(twice(1000)), ReportOptions{Static: static}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"served": srv.URL + "/", "one file": "file://" + file} {
		t.Run(name, func(t *testing.T) {
			ctx, bad := browser(t)
			run := func(a ...chromedp.Action) {
				t.Helper()
				if err := chromedp.Run(ctx, a...); err != nil {
					t.Fatal(err)
				}
			}
			var title string
			run(chromedp.Navigate(address), wait(`window.perfsim && perfsim.state.T1 > 1 && !perfsim.state.loading`),
				text("title", &title))
			if title != "demo" {
				t.Errorf("title %q", title)
			}
			var key string
			run(text("detail", &key))
			for _, want := range []string{"MATMUL", "COPY", "500 ×", "40.00 µs"} { // 500 events of 80 ns each
				if !strings.Contains(key, want) {
					t.Errorf("the key to the colours lacks %s:\n%s", want, key)
				}
			}
			all := state(t, ctx)
			if all.T1-all.T0 < 50030 {
				t.Errorf("the page opens on %v to %v, not on everything", all.T0, all.T1)
			}
			run(chromedp.KeyEvent("w"), chromedp.KeyEvent("w"))
			if z := state(t, ctx); z.T1-z.T0 > (all.T1-all.T0)*.6 {
				t.Errorf("w does not zoom in: %v to %v", z.T0, z.T1)
			}
			before := state(t, ctx)
			run(chromedp.KeyEvent("d"))
			if z := state(t, ctx); z.T0 <= before.T0 {
				t.Errorf("d does not move: %v, then %v", before.T0, z.T0)
			}
			// The driver types the character of a key whose default was prevented,
			// which a person's keyboard does not; selecting it lets the text replace it.
			run(chromedp.KeyEvent("/"), chromedp.Evaluate(`document.activeElement.select()`, nil), chromedp.KeyEvent("i-501"), wait(`document.querySelector("#hits li b")`), chromedp.KeyEvent("\r"),
				wait(`perfsim.state.sel && perfsim.state.sel.id === 501`))
			var detail string
			run(text("detail", &detail))
			for _, want := range []string{"I-501", "I-500", "I-502", "kernel.py:7", "Flow", "run B", "30 ns later"} {
				if !strings.Contains(detail, want) {
					t.Errorf("the details do not tell %s:\n%s", want, detail)
				}
			}
			if z := state(t, ctx); z.T0 > 501*50 || z.T1 < 501*50 || z.T1-z.T0 > 5000 {
				t.Errorf("the search does not go there: %v to %v", z.T0, z.T1)
			}
			run(chromedp.KeyEvent("p"), wait(`perfsim.state.sel.id === 500`))
			var hash string
			run(chromedp.Sleep(400*time.Millisecond), chromedp.Evaluate(`location.hash`, &hash))
			if !strings.Contains(hash, "sel=0%3A500") {
				t.Errorf("the address %q does not name the selected event", hash)
			}
			run(chromedp.KeyEvent("?"), wait(`!document.getElementById("keys").hidden`), chromedp.KeyEvent("?"), chromedp.KeyEvent("t"), chromedp.KeyEvent("0"),
				wait(`!perfsim.state.loading`))
			if z := state(t, ctx); z.T1-z.T0 < 50030 {
				t.Errorf("0 does not show everything: %v to %v", z.T0, z.T1)
			}
			// Without a mouse: comma and period go along a lane, brackets across, and
			// each event is told to screen readers.
			var said, role string
			run(chromedp.KeyEvent("\x1b"), chromedp.Evaluate(`document.getElementById("view").focus()`, nil))
			for range 22 {
				run(chromedp.KeyEvent("w"))
			}
			run(wait(`!perfsim.state.loading`), chromedp.KeyEvent("."), wait(`perfsim.state.sel`), chromedp.KeyEvent("]"), wait(`perfsim.state.sel.row === 1`), chromedp.KeyEvent("."),
				chromedp.Sleep(100*time.Millisecond), text("say", &said), chromedp.Evaluate(`document.getElementById("view").getAttribute("role")`, &role))
			if !strings.Contains(said, "COPY I-") || !strings.Contains(said, "on DVE") || !strings.Contains(said, "takes 80 ns") || role != "application" {
				t.Errorf("screen readers hear %q from a canvas of role %q", said, role)
			}
			// An area of everything adds up to all events.
			run(chromedp.KeyEvent("0"), wait(`!perfsim.state.loading`), area(30, 90), wait(`perfsim.state.area && perfsim.state.area.sums`))
			var sums string
			run(chromedp.Evaluate(`perfsim.state.area.sums.map(w => w.events + " " + Math.round(w.time)).join()`, &sums))
			if sums != "500 40000,500 40000" {
				t.Errorf("the area holds %s", sums)
			}
			// Two fingers that part by twice their distance show half the time.
			run(chromedp.KeyEvent("0"), wait(`!perfsim.state.loading`))
			before = state(t, ctx)
			run(touch(input.TouchStart, 500, 700), touch(input.TouchMove, 450, 750), touch(input.TouchMove, 400, 800), touch(input.TouchEnd))
			if z := state(t, ctx); z.T1-z.T0 > (before.T1-before.T0)*.55 || z.T1-z.T0 < (before.T1-before.T0)*.45 {
				t.Errorf("two fingers change the time shown from %v to %v", before.T1-before.T0, z.T1-z.T0)
			}
			if b := bad(); len(b) > 0 {
				t.Errorf("%v", b)
			}
			// The policy blocked nothing so far. It is in force: what the page does not
			// need is refused.
			var refused string
			run(chromedp.Evaluate(`new Promise(done => {
				addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));
				const f = document.createElement('iframe');
				f.src = 'http://127.0.0.1:1/';
				document.body.append(f);
				setTimeout(() => done('nothing'), 5000);
			})`, &refused, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if refused != "frame-src" {
				t.Errorf("the policy refused %s", refused)
			}
		})
	}
}

// area drags with Shift over all of the lanes between two heights.
func area(y0, y1 float64) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var box struct{ X, Y, W float64 }
		if err := chromedp.Evaluate(`(r => ({x: r.x, y: r.y, w: r.width}))(document.getElementById("view").getBoundingClientRect())`, &box).Do(ctx); err != nil {
			return err
		}
		for _, e := range []struct {
			kind input.MouseType
			x, y float64
		}{{input.MousePressed, 151, y0}, {input.MouseMoved, 200, y1}, {input.MouseMoved, box.W - 2, y1}, {input.MouseReleased, box.W - 2, y1}} {
			if err := input.DispatchMouseEvent(e.kind, box.X+e.x, box.Y+e.y).WithButton(input.Left).WithButtons(1).WithClickCount(1).WithModifiers(input.ModifierShift).Do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// touch moves fingers, each at one place across the page, to the lanes.
func touch(kind input.TouchType, xs ...float64) chromedp.Action {
	var points []*input.TouchPoint
	for n, x := range xs {
		points = append(points, &input.TouchPoint{X: x, Y: 200, ID: float64(n + 1)})
	}
	return chromedp.ActionFunc(func(ctx context.Context) error { return input.DispatchTouchEvent(kind, points).Do(ctx) })
}

// Panning over a million events keeps drawing. The rate is logged, not
// judged: a busy machine is no fault of the page.
func TestBrowserMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("a million events take a few seconds")
	}
	srv := httptest.NewServer(handler(program(demo(1_000_000))))
	t.Cleanup(srv.Close)
	ctx, bad := browser(t)
	var frames, opened float64
	err := chromedp.Run(ctx, chromedp.Navigate(srv.URL+"/"), wait(`window.perfsim && perfsim.state.T1 > 1 && !perfsim.state.loading`),
		chromedp.Evaluate(`performance.now()`, &opened),
		chromedp.Evaluate(`(async () => {
			for (let i = 0; i < 4; i++) dispatchEvent(new KeyboardEvent('keydown', {key: 'w'}));
			const end = performance.now() + 2000;
			perfsim.frames.length = 0;
			let n = 0;
			while (performance.now() < end) {
				dispatchEvent(new KeyboardEvent('keydown', {key: n++ % 60 < 30 ? 'd' : 'a'}));
				await new Promise(requestAnimationFrame);
			}
			const f = perfsim.frames;
			return (f.length - 1) * 1000 / (f[f.length - 1] - f[0]);
		})()`, &frames, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("opened in %.0f ms, %.0f frames/s while panning over a million events", opened, frames)
	if frames <= 0 {
		t.Error("nothing was drawn while panning")
	}
	if b := bad(); len(b) > 0 {
		t.Errorf("%v", b)
	}
}
