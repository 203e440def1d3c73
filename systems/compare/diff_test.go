package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
	"perfsim/io/neuron/profile"
)

var ctx = context.Background()

// row is one instruction of a module built by hand; preds are rows it waits
// for.
type row struct {
	name, op string
	engine   components.Engine
	start    uint64
	dur      uint32
	id       uint64
	pc       uint32 // compiler's, plus one
	preds    []components.InstrID
	flags    components.Flags
}

func module(t testing.TB, rows []row) *components.Module {
	t.Helper()
	m := components.NewModule("hand", "test")
	lanes := m.AddCoreLanes(0)
	n := len(rows)
	m.Instr.Grow(n)
	for _, c := range []interface{ Resize(int) []uint32 }{&m.Instr.MeasuredDur, &m.Instr.CompilerPC} {
		c.Resize(n)
	}
	m.Instr.MeasuredStart.Resize(n)
	m.Instr.Ref.Resize(n)
	m.Instr.Name.Resize(n)
	compiled := false
	var edges components.EdgeSet
	for i, x := range rows {
		m.Instr.Opcode.Set(i, m.Opcode(x.op))
		m.Instr.Engine.Set(i, x.engine)
		m.Instr.Lane.Set(i, lanes+uint16(x.engine))
		m.Instr.Flags.Set(i, x.flags|components.FlagMeasured)
		m.Instr.MeasuredStart.Set(i, x.start)
		m.Instr.MeasuredDur.Set(i, x.dur)
		m.Instr.Ref.Set(i, x.id)
		if x.name != "" {
			m.Instr.Name.Set(i, m.Symbols.InternString(x.name))
		}
		m.Instr.CompilerPC.Set(i, x.pc)
		compiled = compiled || x.pc > 0
		for _, p := range x.preds {
			edges.Add(components.InstrID(i), p, components.Flow)
		}
	}
	if !compiled {
		m.Instr.CompilerPC.Resize(0)
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&edges); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return m
}

func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

const (
	dve = components.DVE
	act = components.Activation
	pe  = components.PE
)

// TestCompare works a small comparison out by hand. A, from its kernel's start
// at 100: copy 0-100, matmul 100-300, reduce 300-400, copy 350-450. B, from 10:
// copy 0-110, matmul 150-450, reduce 450-550, copy 500-600.
func TestCompare(t *testing.T) {
	a := Measured(module(t, []row{
		{"I0", "DRAIN", dve, 0, 20, 1, 0, nil, 0},
		{"I1", "COPY", dve, 100, 100, 2, 1, nil, 0},
		{"I2", "MATMUL", pe, 200, 200, 3, 2, []components.InstrID{1}, 0},
		{"I3", "REDUCE", dve, 400, 100, 4, 3, []components.InstrID{2}, 0},
		{"I4", "COPY", dve, 450, 100, 5, 4, []components.InstrID{2}, 0},
		{"I5", "NOTIFY", act, 600, 10, 6, 0, nil, 0},
	}))
	b := Measured(module(t, []row{
		{"I0", "DRAIN", dve, 0, 5, 1, 0, nil, 0},
		{"I1", "COPY", dve, 10, 110, 2, 1, nil, 0},
		{"I2", "MATMUL", pe, 160, 300, 3, 2, []components.InstrID{1}, 0},
		{"I3", "REDUCE", dve, 460, 100, 4, 3, []components.InstrID{2}, 0},
		{"I4", "COPY", dve, 510, 100, 5, 4, []components.InstrID{2}, 0},
		{"I9", "NOTIFY", act, 650, 10, 7, 0, nil, 0},
	}))
	r := Compare(a, b, Options{Worst: 2})
	if r.By != MatchWork || r.Matched != 6 || r.OnlyA != 0 || r.OnlyB != 0 || r.Align != AlignKernel {
		t.Errorf("%d matched by %s, %d and %d left, %s", r.Matched, r.By, r.OnlyA, r.OnlyB, r.Align)
	}
	near(t, "whole A", r.Whole.A, 610)
	near(t, "whole B", r.Whole.B, 660)
	near(t, "kernel A", r.Kernel.A, 450)
	near(t, "kernel B", r.Kernel.B, 600)
	near(t, "kernel's difference", r.Kernel.Percent, 100*150/450.0)
	wantPhases := []Named{{"before the kernel", 0, two(100, 10)}, {"kernel", 0, two(450, 600)}, {"after the kernel", 0, two(60, 50)}}
	if !slices.Equal(r.Phases, wantPhases) {
		t.Errorf("phases %+v, want %+v", r.Phases, wantPhases)
	}
	// The copy and the reduce of A overlap by 50.
	wantEngines := []Named{{"Activation", 1, two(10, 10)}, {"DVE", 4, two(270, 265)}, {"PE", 1, two(200, 300)}}
	if !slices.Equal(r.Engines, wantEngines) {
		t.Errorf("engines %+v, want %+v", r.Engines, wantEngines)
	}
	wantOpcodes := []Named{{"Activation NOTIFY", 1, two(10, 10)}, {"DVE COPY", 2, two(200, 210)}, {"DVE DRAIN", 1, two(20, 5)}, {"DVE REDUCE", 1, two(100, 100)}, {"PE MATMUL", 1, two(200, 300)}}
	if !slices.Equal(r.Opcodes, wantOpcodes) {
		t.Errorf("opcodes %+v, want %+v", r.Opcodes, wantOpcodes)
	}
	// DVE: from the drain's end to the copy 80 in A, 5 in B, for nothing known;
	// from the copy's end to the reduce 200 and 340, for the matmul.
	wantWaits := []Wait{{"DVE", "PE", "flow", two(200, 340)}, {"DVE", "", "", two(80, 5)}}
	if !slices.Equal(r.Waits, wantWaits) {
		t.Errorf("waits %+v, want %+v", r.Waits, wantWaits)
	}
	wantChanges := []Change{
		{What: slower, Engine: "PE", Opcode: "MATMUL", N: 1, Two: two(200, 300)},
		{What: faster, Engine: "DVE", Opcode: "DRAIN", N: 1, Two: two(20, 5)},
		{What: slower, Engine: "DVE", Opcode: "COPY", N: 2, Two: two(200, 210)},
	}
	if !slices.Equal(r.Changes, wantChanges) {
		t.Errorf("changes %+v, want %+v", r.Changes, wantChanges)
	}
	// Starts differ by 0, 50, 150, 150.
	near(t, "starts, median", r.Start.P50, 150)
	near(t, "starts, most", r.Start.Max, 150)
	near(t, "starts, most in per cent", r.Start.MaxPercent, 100*150/450.0)
	// Durations by 10, 100, 0, 0.
	near(t, "durations, median", r.Duration.P50, 10)
	near(t, "durations, most", r.Duration.Max, 100)
	if len(r.Start.Worst) != 2 || r.Duration.Worst[0].Name != "I2" || r.Duration.Worst[0].Delta != 100 || r.Duration.Worst[0].DurA != 200 || r.Duration.Worst[0].DurB != 300 {
		t.Errorf("worst %+v, %+v", r.Start.Worst, r.Duration.Worst)
	}
	if !strings.Contains(r.Duration.Worst[0].Reason, "clock rate") {
		t.Errorf("reason of the matmul's duration: %q", r.Duration.Worst[0].Reason)
	}
	// One per cent of 450 is 4.5: the matmul is the first to part.
	near(t, "threshold", r.Limit, 4.5)
	if r.Part == nil || r.Part.Name != "I2" || r.Part.Delta != 50 || r.Part.StartA != 100 || r.Part.StartB != 150 {
		t.Errorf("parting %+v", r.Part)
	}
	if r := Compare(a, b, Options{Threshold: 50}); r.Part == nil || r.Part.Name != "I3" {
		t.Errorf("parting by more than 50: %+v", r.Part)
	}
	if r := Compare(a, b, Options{Threshold: 150}); r.Part != nil {
		t.Errorf("parting by more than 150: %+v", r.Part)
	}
	// Without moving, I1 differs by -90; from the first events, the same here.
	if r := Compare(a, b, Options{Align: AlignNone}); r.Part == nil || r.Part.Name != "I1" || r.Part.Delta != -90 {
		t.Errorf("not aligned: %+v", r.Part)
	}
}

// TestReasons follows a difference to where it arises.
func TestReasons(t *testing.T) {
	dma := components.FlagHWDGE
	rows := []row{
		{"load", "DMA_DIRECT2D", components.SP, 0, 50, 1, 0, nil, dma},
		{"copy", "COPY", dve, 2000, 100, 2, 0, []components.InstrID{0}, 0},
		{"add", "ADD", dve, 2100, 100, 3, 0, nil, 0},
		{"exp", "ACTIVATE", act, 2230, 300, 4, 0, []components.InstrID{2}, 0},
	}
	a := Measured(module(t, rows))
	late := slices.Clone(rows)
	for i := 1; i < 4; i++ {
		late[i].start += 500
	}
	r := Compare(a, Measured(module(t, late)), Options{})
	for _, w := range r.Start.Worst[:3] {
		if !strings.Contains(w.Reason, "the transfer of load takes 500 ns more") {
			t.Errorf("%s: %q", w.Name, w.Reason)
		}
		if since := strings.HasPrefix(w.Reason, "since copy at 2.00 µs"); since != (w.Name != "copy") {
			t.Errorf("%s: %q", w.Name, w.Reason)
		}
	}
	slow := slices.Clone(rows)
	slow[2].dur += 200
	slow[3].start += 200
	r = Compare(a, Measured(module(t, slow)), Options{})
	if w := r.Start.Worst[0]; len(r.Start.Worst) != 1 || w.Name != "exp" || w.Reason != "add at 2.10 µs takes 200 ns more: cost of the operation" {
		t.Errorf("%+v", r.Start.Worst)
	}
	early := slices.Clone(rows)
	early[2].start -= 40
	early[3].start -= 40
	r = Compare(a, Measured(module(t, early)), Options{})
	if w := r.Start.Worst[0]; !strings.Contains(w.Reason, "40 ns less passes between the end of copy and it") {
		t.Errorf("%s: %q", w.Name, w.Reason)
	}
}

// TestMatch matches by what the inputs have.
func TestMatch(t *testing.T) {
	rows := []row{{"a", "COPY", dve, 0, 10, 11, 0, nil, 0}, {"b", "COPY", dve, 10, 10, 12, 0, nil, 0}, {"c", "ADD", act, 20, 10, 13, 0, nil, 0}}
	left := Measured(module(t, rows))
	change := func(f func(i int, x *row)) *Side {
		c := slices.Clone(rows)
		for i := range c {
			f(i, &c[i])
		}
		return Measured(module(t, c))
	}
	turned := []row{rows[1], rows[0], rows[2]}
	for _, y := range []struct {
		name, how, by string
		right         *Side
		want          [][2]int
	}{
		{"ids", MatchID, MatchID, change(func(i int, x *row) { x.name = "" }), [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{"ids out of order", MatchID, MatchID, Measured(module(t, turned)), [][2]int{{0, 1}, {1, 0}, {2, 2}}},
		{"other ids and names", "", MatchWork, change(func(i int, x *row) { x.id += 100; x.name = "" }), [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{"the same names for other work", "", MatchWork, Measured(module(t, []row{{"c", "COPY", dve, 0, 10, 11, 0, nil, 0}, {"a", "ADD", act, 10, 10, 12, 0, nil, 0}})), [][2]int{{0, 0}, {2, 1}}},
		{"names for other opcodes", MatchName, MatchName, Measured(module(t, []row{{"c", "COPY", dve, 0, 10, 11, 0, nil, 0}, {"b", "COPY", dve, 10, 10, 12, 0, nil, 0}})), [][2]int{{1, 1}}},
		{"another vocabulary, ids of no use", "", MatchName, change(func(i int, x *row) { x.op, x.id = "X"+x.op, x.id+100 }), [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{"order asked for", MatchOrder, MatchOrder, Measured(module(t, turned)), [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{"names asked for", MatchName, MatchName, Measured(module(t, turned)), [][2]int{{0, 1}, {1, 0}, {2, 2}}},
		{"one gone", MatchOrder, MatchOrder, Measured(module(t, rows[1:])), [][2]int{{0, 0}, {2, 1}}},
		{"ids asked for", MatchID, MatchID, change(func(i int, x *row) { x.id += 100 }), nil},
	} {
		x, by, err := match(left, y.right, y.how)
		if got := x.pairs(); err != nil || by != y.by || !slices.Equal(got, y.want) {
			t.Errorf("%s: %v by %s, want %v by %s; %v", y.name, got, by, y.want, y.by, err)
		}
	}
	if _, _, err := match(left, left, "colour"); err == nil {
		t.Error("matched by colour")
	}
}

// TestWork: what was removed, added, moved and resized is said as such.
func TestWork(t *testing.T) {
	rows := []row{{op: "COPY", engine: dve, dur: 10}, {op: "ADD", engine: dve, dur: 20}, {op: "MATMUL", engine: pe, dur: 30}, {op: "EXP", engine: act, dur: 40}, {op: "MAX", engine: dve, dur: 50}}
	for i := range rows {
		rows[i].start, rows[i].id = uint64(100*i), uint64(i+1)
	}
	other := slices.Clone(rows)
	other[0], other[1] = other[1], other[0] // ADD before COPY
	other[3] = row{op: "LOG", engine: act, start: 300, dur: 44, id: 4}
	other[4].engine = components.Pool
	ma, mb := module(t, rows), module(t, other)
	ma.Instr.Elems.Set(2, 512)
	mb.Instr.Elems.Set(2, 256)
	r := Compare(Measured(ma), Measured(mb), Options{})
	var got []string
	for _, c := range r.Changes {
		got = append(got, c.What+" "+c.Engine+" "+c.Opcode)
	}
	slices.Sort(got)
	want := []string{"added Activation LOG", "changed PE MATMUL", "moved DVE COPY", "moved DVE MAX", "removed Activation EXP"}
	if !slices.Equal(got, want) && !slices.Equal(got, slices.Replace(slices.Clone(want), 2, 3, "moved DVE ADD")) {
		t.Errorf("%q, want %q", got, want)
	}
	if r.Matched != 4 || r.OnlyA != 1 || r.OnlyB != 1 {
		t.Errorf("%d matched, %d and %d left", r.Matched, r.OnlyA, r.OnlyB)
	}
}

// TestWaitsInLoops: a body's gap counts as often as it runs, the way into it
// and out of it not at all.
func TestWaitsInLoops(t *testing.T) {
	m := module(t, []row{{op: "COPY", engine: dve, start: 0, dur: 10, id: 1}, {op: "ADD", engine: dve, start: 900, dur: 10, id: 2},
		{op: "MAX", engine: dve, start: 930, dur: 10, id: 3}, {op: "COPY", engine: dve, start: 1000, dur: 10, id: 4}, {op: "MAX", engine: dve, start: 1015, dur: 5, id: 5}})
	b := m.Blocks.Add(0, 0, 1, 1, 30)
	m.Blocks.End.Set(b, 3)
	s := Measured(m)
	s.times = components.NewExecutions(m, components.Trips)
	r := Compare(s, s, Options{})
	// 20 ns in the body, 30 times, and 5 behind the loop.
	if len(r.Waits) != 1 || r.Waits[0].A != 30*20+5 {
		t.Errorf("%+v", r.Waits)
	}
}

// TestSelf compares random timelines with themselves and with themselves moved
// as a whole: nothing may differ.
func TestSelf(t *testing.T) {
	engines := []components.Engine{pe, act, dve, components.Pool, components.SP}
	ops := []string{"COPY", "MATMUL", "NOTIFY"}
	proptest.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(r, "n")
		by := rapid.Uint64Range(0, 1000).Draw(r, "by")
		rows, moved := make([]row, n), make([]row, n)
		for i := range rows {
			rows[i] = row{op: rapid.SampledFrom(ops).Draw(r, "op"), engine: rapid.SampledFrom(engines).Draw(r, "engine"), start: rapid.Uint64Range(0, 5000).Draw(r, "start"),
				dur: rapid.Uint32Range(0, 900).Draw(r, "dur"), id: uint64(i + 1)}
			moved[i] = rows[i]
			moved[i].start += by
		}
		a, b := Measured(module(t, rows)), Measured(module(t, moved))
		for _, other := range []*Side{a, b} {
			x := Compare(a, other, Options{Threshold: 0.5})
			if x.Matched != n || x.OnlyA != 0 || x.OnlyB != 0 || x.Start.Max != 0 || x.Duration.Max != 0 || x.Part != nil || x.Kernel.A != x.Kernel.B {
				r.Fatalf("a timeline differs from itself: %+v", x)
			}
		}
		checkTrace(r, Compare(a, b, Options{}), a, b)
	})
}

// checkTrace reads a written trace back: it is JSON, has every instruction of
// both sides once, no negative time and no overlap on a thread.
func checkTrace(r *rapid.T, x *Report, a, b *Side) {
	var out bytes.Buffer
	if err := x.WriteTrace(ctx, &out, a, b); err != nil {
		r.Fatal(err)
	}
	var events []struct {
		Name, Ph string
		Pid, Tid int
		Ts, Dur  float64
		Args     map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &events); err != nil {
		r.Fatalf("%v in %s", err, out.Bytes())
	}
	count := map[int]int{}
	until := map[[2]int]float64{}
	named := map[[2]int]bool{}
	for _, e := range events {
		k := [2]int{e.Pid, e.Tid}
		if e.Ph == "M" {
			named[k] = true
			continue
		}
		count[e.Pid]++
		if e.Ts < until[k]-1e-6 || !named[k] {
			r.Fatalf("%+v starts before %v on its thread", e, until[k])
		}
		until[k] = e.Ts + e.Dur
	}
	if count[1] != a.count() || count[2] != b.count() {
		r.Fatalf("%v slices of %d and %d instructions", count, a.count(), b.count())
	}
	var again bytes.Buffer
	if err := x.WriteTrace(ctx, &again, a, b); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		r.Fatalf("a second trace differs, %v", err)
	}
}

// TestTraceOfOddNames: names may hold any bytes, JSON may not.
func TestTraceOfOddNames(t *testing.T) {
	a := Measured(module(t, []row{{"a\x01\"\x7f\xff", "CO\x02PY", dve, 0, 10, 1, 0, nil, 0}}))
	var out bytes.Buffer
	if err := Compare(a, a, Options{}).WriteTrace(ctx, &out, a, a); err != nil {
		t.Fatal(err)
	}
	if want := `"CO\u0002PY"`; !json.Valid(out.Bytes()) || !utf8.Valid(out.Bytes()) || !strings.Contains(out.String(), want) {
		t.Errorf("no JSON with %s:\n%q", want, out.String())
	}
}

func TestTraceOfCancelled(t *testing.T) {
	a := Measured(module(t, []row{{"a", "COPY", dve, 0, 10, 1, 0, nil, 0}}))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := Compare(a, a, Options{}).WriteTrace(gone, &bytes.Buffer{}, a, a); err == nil {
		t.Error("a cancelled context was not seen")
	}
}

// TestUnmeasuredRows leaves rows without times out.
func TestUnmeasuredRows(t *testing.T) {
	m := module(t, []row{{"a", "COPY", dve, 500, 10, 1, 0, nil, 0}, {"b", "COPY", dve, 0, 0, 2, 0, nil, 0}, {"c", "COPY", dve, 510, 20, 3, 0, nil, 0}})
	m.Instr.Flags.Set(1, 0)
	s := Measured(m)
	if r := Compare(s, s, Options{}); r.Matched != 2 || r.Whole.A != 30 {
		t.Errorf("%d matched, %v ns", r.Matched, r.Whole.A)
	}
}

// TestRealProfiles compares two real profiles of one kernel in two types: the
// figures are those of the profiles themselves.
func TestRealProfiles(t *testing.T) {
	read := func(name string) *Side {
		src, err := format.Open(ctx, datadir.Path(t, "neuron-profiles", name), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := profile.Importer.Module(ctx, src, format.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := Measured(m)
		s.Name = name
		return s
	}
	a, b := read("trn2_attn_fused_bf16_s512.profile.json.gz"), read("trn2_attn_fused_fp32_s512.profile.json.gz")
	r := Compare(a, b, Options{})
	if r.Kernel.A < 15_000 || r.Kernel.B < r.Kernel.A || r.Kernel.A > r.Whole.A || r.Matched < 300 {
		t.Errorf("kernels of %v and %v ns, %d matched by %s", r.Kernel.A, r.Kernel.B, r.Matched, r.By)
	}
	sumA := 0.0
	for _, p := range r.Phases {
		sumA += p.A
	}
	near(t, "phases of A together", sumA, r.Whole.A)
	if len(r.Start.Worst) != 10 || r.Part == nil || r.Part.Reason == "" {
		t.Errorf("%d rows, parting %+v", len(r.Start.Worst), r.Part)
	}

	// Attention in one kernel instead of three: the transfers of scores and
	// probabilities to device memory and back are gone, 8 of 14, and the
	// instructions left are matched by what they do.
	base := read("trn2_attn_baseline_bf16_s512.profile.json.gz")
	r = Compare(base, a, Options{})
	transfers, only := 0, 0
	for _, c := range r.Changes {
		if c.What == removed {
			only += c.N
			if c.BytesA > 0 {
				transfers += c.N
			}
		}
	}
	if r.By != MatchWork || transfers != 8 || only != r.OnlyA || r.OnlyA != 18 || r.OnlyB != 2 {
		t.Errorf("matched by %s, %d transfers of %d instructions removed, %d and %d left", r.By, transfers, only, r.OnlyA, r.OnlyB)
	}
}
