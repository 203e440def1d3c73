package sweep

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"perfsim/io/workq"
	"perfsim/io/workq/local"
)

var ctx = context.Background()

// plain resolves no options.
func plain(options []string) (Choice, error) {
	if len(options) > 0 {
		return Choice{}, errors.New("no options here")
	}
	return Choice{}, nil
}

func testPlan(t *testing.T, s Spec) *Plan {
	t.Helper()
	p, err := NewPlan(ctx, &s, "", "test", plain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func examples() Spec {
	return Spec{Inputs: []string{"../../examples/*.bir.json"}, Machines: []string{"trn1", "trn2"},
		WhatIf: []string{"pe.clock=0.5x..2x", "latency.DVE=2x dma.rate=1x,2x", "nope=1", "drop=anti"}}
}

// queueFunc is a queue made of a function.
type queueFunc func(ctx context.Context, tasks []workq.Task, take func([]workq.Result) error) error

func (f queueFunc) Run(ctx context.Context, tasks []workq.Task, take func([]workq.Result) error) error {
	return f(ctx, tasks, take)
}

// finish runs a plan to its end and returns the table.
func finish(t *testing.T, p *Plan, dir string, jobs int) string {
	t.Helper()
	r, err := OpenRecord(filepath.Join(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e, err := NewEvaluator(p, plain, nil, jobs, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(ctx, &local.Queue{Jobs: jobs, Do: e.Do}, r, Range{To: p.Len()}, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "t.csv")
	if _, err := p.WriteTable(r, path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A sweep that is stopped again and again, its record cut at any byte between,
// ends with the table of one that was left alone, and predicts nothing twice
// that was kept.
func TestStopAndGoOn(t *testing.T) {
	t.Parallel()
	p := testPlan(t, examples())
	want := finish(t, p, t.TempDir(), 2)
	if n := strings.Count(want, "\n"); n != p.Len()+1 {
		t.Fatalf("%d lines for %d cases", n, p.Len())
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "r")
	rnd := rand.New(rand.NewPCG(5, 5))
	for round := 0; ; round++ {
		r, err := OpenRecord(path)
		if err != nil {
			t.Fatal(err)
		}
		before := len(r.have)
		e, err := NewEvaluator(p, plain, nil, 3, "")
		if err != nil {
			t.Fatal(err)
		}
		stop, cancel := context.WithCancel(ctx)
		var done atomic.Int32
		limit := int32(5 + rnd.IntN(10))
		counts, err := p.Run(stop, &local.Queue{Jobs: 3, Room: 4, Do: func(ctx context.Context, t workq.Task) ([]byte, error) {
			if done.Add(1) > limit {
				cancel()
			}
			return e.Do(ctx, t)
		}}, r, Range{To: p.Len()}, nil)
		cancel()
		if counts.Before != before || int(counts.Predicted) != len(r.have)-before {
			t.Errorf("round %d: %+v with %d results before and %d after", round, counts, before, len(r.have))
		}
		r.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || round > p.Len() {
			t.Fatal(round, err)
		}
		if st, err := os.Stat(path); err != nil || os.Truncate(path, max(1, st.Size()-int64(rnd.IntN(60)))) != nil {
			t.Fatal(err)
		}
	}
	if got := finish(t, p, dir, 1); got != want {
		t.Error("the table differs from that of a sweep left alone")
	}
}

// What a queue brings twice, or for cases that nobody asked for, makes no
// second row; a case that no worker finished is a row that says so.
func TestWhatQueuesBring(t *testing.T) {
	t.Parallel()
	p := testPlan(t, Spec{Inputs: []string{"../../examples/loop.bir.json"}, WhatIf: []string{"pe.clock=2x"}})
	r, err := OpenRecord(filepath.Join(t.TempDir(), "r"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	row := []byte(`{"latency_ns":5}`)
	counts, err := p.Run(ctx, queueFunc(func(_ context.Context, tasks []workq.Task, take func([]workq.Result) error) error {
		a, b := tasks[0].ID, tasks[1].ID
		for _, list := range [][]workq.Result{{{ID: a, Body: row}}, {{ID: a, Body: []byte(`{"latency_ns":6}`)}, {ID: "other", Body: row}}, {{ID: b, Dead: workq.GaveUp()}}} {
			if err := take(list); err != nil {
				return err
			}
		}
		return nil
	}), r, Range{To: p.Len()}, nil)
	if err != nil || counts != (Counts{Cases: 2, Predicted: 2, Failed: 1}) {
		t.Errorf("%+v, %v", counts, err)
	}
	var bad error
	rows := slices.Collect(p.rows(r, 0, p.Len(), &bad))
	if bad != nil || len(rows) != 2 || *rows[0].Latency != 5 || rows[1].Error == nil || *rows[1].Error != workq.GaveUp() || *rows[1].WhatIf != "pe.clock=2x" {
		t.Errorf("rows %+v, %v", rows, bad)
	}
	if again := p.tasks(r, Range{To: p.Len()}); len(again) != 0 {
		t.Errorf("%d tasks are left", len(again))
	}
	if again := p.tasks(r, Range{To: p.Len(), Retry: true}); len(again) != 1 || again[0].ID != rows[1].ID {
		t.Errorf("tasks to try again: %+v", again)
	}
}

// A case keeps its address under another folder, and gets another one with any
// part of its content.
func TestAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, c, d := write("x/a.json", "{"), write("y/a.json", "{"), write("y/b.json", "{"), write("z/a.json", "{ ")
	p := testPlan(t, Spec{Inputs: []string{a, b, c, d}, Machines: []string{"trn1", "trn2"}, Models: []string{"reference", "calibrated"}, WhatIf: []string{"pe.clock=2x,3x"}})
	ids := map[string][]int{}
	for n := range p.Len() {
		k := p.Case(n)
		if k.Number != n {
			t.Fatalf("case %d has number %d", n, k.Number)
		}
		ids[k.ID] = append(ids[k.ID], n)
	}
	per := p.Len() / 4
	if len(ids) != 3*per {
		t.Errorf("%d addresses of %d cases, want %d: only x/a.json and y/a.json are equal", len(ids), p.Len(), 3*per)
	}
	if p.Case(0).ID != p.Case(per).ID {
		t.Error("the same file in another folder has another address")
	}
	other := testPlan(t, Spec{Inputs: []string{a}, Machines: []string{"trn1"}})
	if other.Engine = "next"; len(ids[other.Case(0).ID]) > 0 {
		t.Error("another version of the engine has the address of this one")
	}
	// Both copies count as predicted, and one result serves both.
	r, err := OpenRecord(filepath.Join(dir, "record"))
	if err != nil {
		t.Fatal(err)
	}
	worked := 0
	counts, err := p.Run(ctx, queueFunc(func(_ context.Context, tasks []workq.Task, take func([]workq.Result) error) error {
		for _, task := range tasks {
			worked++
			if err := take([]workq.Result{{ID: task.ID, Body: []byte(`{"error":"x"}`)}}); err != nil {
				return err
			}
		}
		return nil
	}), r, Range{To: p.Len()}, nil)
	if err != nil || counts != (Counts{Cases: p.Len(), Predicted: p.Len(), Failed: p.Len()}) || worked != 3*per {
		t.Errorf("%+v of %d cases, %d worked on, %v", counts, p.Len(), worked, err)
	}
	r.Close()
	// The errors of both copies name their own file.
	text := finish(t, p, dir, 2)
	for _, path := range []string{a, b, c, d} {
		if !strings.Contains(text, path+":1:") && !strings.Contains(text, path+": ") {
			t.Errorf("no row has an error that names %s:\n%s", path, text)
		}
	}
}

// Cases of one module share what is made once, and a maker that is stopped
// leaves the work to who waits.
func TestCache(t *testing.T) {
	t.Parallel()
	c := cache[int]{room: 2}
	var made atomic.Int32
	stopped, cancel := context.WithCancel(ctx)
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.get(stopped, "a", func() (int, error) { close(started); <-stopped.Done(); return 0, stopped.Err() }); err == nil {
			t.Error("no error of a stopped maker")
		}
	})
	<-started
	for range 8 {
		wg.Go(func() {
			if v, err := c.get(ctx, "a", func() (int, error) { made.Add(1); return 7, nil }); v != 7 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	cancel()
	wg.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
	bad := errors.New("bad")
	for range 2 {
		if _, err := c.get(ctx, "b", func() (int, error) { made.Add(1); return 0, bad }); !errors.Is(err, bad) {
			t.Error(err)
		}
	}
	if made.Load() != 2 {
		t.Error("an error is not kept")
	}
	c.get(ctx, "c", func() (int, error) { return 1, nil })
	if len(c.entries) != 2 || c.entries["a"] != nil {
		t.Errorf("%d entries, the oldest among them: %v", len(c.entries), c.entries["a"] != nil)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", " a  b ": "a|b", `drop=anti:buffer="a b" x=1`: `drop=anti:buffer="a b"|x=1`, "it's a": "it's|a", "'a b'": "'a b'"} {
		if got := strings.Join(words(in), "|"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
