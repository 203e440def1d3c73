package whatif

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

var (
	ctx    = context.Background()
	engine = scenario.Engine{Cost: cost.Fill, Place: place.Run}
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in, want string // texts, or "!" and a part of the error
	}{
		{"pe.clock=1.2x", "1.2x"},
		{"pe.clock=1.4GHz", "1.4GHz"},
		{"latency.DVE=-20%", "-20%"},
		{"dma.engines=8,16,32", "8 16 32"},
		{"dma.engines=8..64*2", "8 16 32 64"},
		{"dma.engines=1..3/1", "1 2 3"},
		{"pe.clock=0.5x..1.5x", "0.5x 0.75x 1x 1.25x 1.5x"},
		{"pe.clock=0.5..1.5x/0.5", "0.5x 1x 1.5x"},
		{"latency.PE=-20%..+20%/20%", "-20% 0% +20%"},
		{"drop=anti,output,anti:buffer=k", "anti output anti:buffer=k"},
		{`drop=anti:buffer="a, b of c",output`, `anti:buffer="a, b of c" output`},
		{"drop=anti:buffer=it's,output", "anti:buffer=it's output"},
		{"latency.a<x=1>=0.5x", "0.5x"},
		{"x", "!not an assignment"},
		{"=3", "!not an assignment"},
		{"x=", "!not an assignment"},
		{"x=1,,2", "!missing"},
		{"x=0x", "!not a factor"},
		{"x=-100%", "!not a change"},
		{"x=5..1", "!not above"},
		{"x=1..2x..3", "!not a"},
		{"x=1..100%", "!not of one kind"},
		{"x=a..b", "!not a range"},
		{"x=1..2/0", "!not a step"},
		{"x=1..2*1", "!not a factor"},
		{"x=1..1e9/1e-3", "!not a step"},
		{"x=-10..-8/1", "-10 -9 -8"},
		{"x=1..8 * 2x", "1 2 4 8"},
		{"x=0% .. 4% / 2% ", "0% +2% +4%"},
		{"x=-1e300..1e300/1e300", "-1e+300 0 1e+300"},
		{"x=1e299..1e300*10", "1e+299 1e+300"},
		{"x=1..1.0000000000000002/2e-20", "!not a step"},
		{"x=-1.7e308..1.7e308", "!not a range"},
		{"x=1..1.7976931348623157e308*2", "!not a range"},
		{"x=0..1.7976931348623157e308/1e307", "!not a range"},
		{"x=1..2*1.0000000000000002", "!not a factor"},
		{"drop=" + strings.Repeat("a,", maxPoints+1), "!more than 10000"},
	} {
		a, err := Parse(c.in)
		if want, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want one with %q", c.in, err, want)
			}
			continue
		}
		var got []string
		for _, v := range a.Values {
			got = append(got, v.Text)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v (%v), want %s", c.in, got, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"pe.clock=1.2x", "a=1..2*1.5", "drop=anti", "a=-5%..5%/1%", "b=1GHz,2", "a=1e308..1e309", "a=1..1.79e308*2", "a=-1.7e308..1.7e308", "c=1e308GHz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			return
		}
		if len(a.Values) == 0 && a.Name != "drop" || len(a.Values) > maxPoints {
			t.Fatalf("%q gives %d values", s, len(a.Values))
		}
		for _, v := range a.Values {
			if !(math.Abs(v.Value) <= 2*maxNumber) {
				t.Fatalf("%q gives %v", s, v.Value)
			}
		}
	})
}

func TestPoints(t *testing.T) {
	parse := func(s string) Assignment {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	points, err := Points([]Assignment{parse("a=1,2"), parse("b=3,4,5")})
	if err != nil || len(points) != 6 || points[1][0].Text != "1" || points[1][1].Text != "4" || points[5][0].Text != "2" {
		t.Errorf("%v, %v", points, err)
	}
	if _, err := Points([]Assignment{parse("a=1"), parse("a=2")}); err == nil {
		t.Error("one parameter was assigned twice")
	}
	if _, err := Points([]Assignment{parse("a=1..5000/1"), parse("b=1,2,3")}); err == nil {
		t.Error("a sweep without bounds")
	}
}

func world(t testing.TB, seed uint64, mach string, model components.Model) *components.World {
	t.Helper()
	m := randmod.Module(rand.New(rand.NewPCG(31, seed)), randmod.Options{Streams: map[string]int{"trn1": 4, "trn2": 2}[mach], Most: 80, Blocks: true})
	mc, err := machine.Load(mach)
	if err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mc, Config: components.Config{Model: model, Jobs: 2, Loops: components.Once}, Events: components.NewEvents()}
	if err := engine.Cost(ctx, w); err != nil {
		t.Fatal(err)
	}
	if err := engine.Place(ctx, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func sweep(t testing.TB, w *components.World, assignments ...string) (*Result, error) {
	t.Helper()
	var list []Assignment
	for _, s := range assignments {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	points, err := Points(list)
	if err != nil {
		t.Fatal(err)
	}
	return Sweep(ctx, w, engine, points, nil)
}

// What changes nothing gives the same figures, and the base stays as it is.
func TestNothingChangedGivesTheSame(t *testing.T) {
	for seed := range uint64(20) {
		w := world(t, seed, "trn1", cost.Reference)
		issue, arrive := slices.Clone(w.Module.Instr.Issue.Slice()), slices.Clone(w.Events.Arrive.Slice())
		r, err := sweep(t, w, "clock=1x", "dma.engines=16", "dma.rate=1x", "latency.DVE=1x", "buffers=1", "reference.overlap_dma_ns=1x", "rule.banks=on")
		if err != nil {
			t.Fatal(err)
		}
		p := r.Points[0]
		if p.NS != r.Base.NS || p.NoAntiNS != r.Base.NoAntiNS || p.Bound != r.Base.Bound || p.Change != 0 {
			t.Fatalf("seed %d: %+v is not the base %+v", seed, p, r.Base)
		}
		if _, err := sweep(t, w, "clock=0.5x", "drop=output", "queue.depth=1", "latency.PE=3x"); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(issue, w.Module.Instr.Issue.Slice()) || !slices.Equal(arrive, w.Events.Arrive.Slice()) {
			t.Fatalf("seed %d: the base changed", seed)
		}
	}
}

func TestSettings(t *testing.T) {
	w := world(t, 3, "trn1", cost.Reference)
	get := func(assignments ...string) uint64 {
		t.Helper()
		r, err := sweep(t, w, assignments...)
		if err != nil {
			t.Fatal(err)
		}
		return r.Points[0].NS
	}
	base := w.Latency(components.RunA)
	if got := get("drop=anti"); got != w.Latency(components.RunB) {
		t.Errorf("drop=anti gives %d, run B %d", got, w.Latency(components.RunB))
	}
	// Removing constraints or time cannot make it longer, save where
	// collectives share; this module has none that do.
	for _, s := range []string{"drop=output", "drop=ordered", "drop=anti+output+ordered", "latency.DVE=0.1x", "rule.banks=off", "rule.couplings=off", "rule.rings=off"} {
		if got := get(s); got > base {
			t.Errorf("%s gives %d, more than %d", s, got, base)
		}
	}
	// The names of explain mean the same.
	for _, c := range [][2]string{{"drop=anti-dependencies", "drop=anti"}, {"drop=output dependencies", "drop=output"}, {"drop=ordering edges", "drop=ordered"},
		{"drop=PSUM banks", "rule.banks=off"}, {"drop=engine couplings", "rule.couplings=off"}, {"drop=DMA ring depth", "rule.rings=off"},
		{"drop=anti-dependencies+PSUM banks", "drop=anti+bank"}} {
		if a, b := get(c[0]), get(c[1]); a != b {
			t.Errorf("%s gives %d, %s %d", c[0], a, c[1], b)
		}
	}
	if got := get("latency.PE=10x", "latency.DVE=10x", "latency.Activation=10x", "latency.Pool=10x", "latency.SP=10x", "latency.DMA=10x"); got <= 9*base/2 {
		t.Errorf("everything ten times as long gives %d, was %d", got, base)
	}
	if a, b := get("clock=0.5x"), get("clock=2x"); !(a > base && b < base) {
		t.Errorf("clocks: %d, %d, %d", a, base, b)
	}
	if a, b := get("act.clock=700MHz"), get("act.clock=0.5x"); a != b {
		t.Errorf("700 MHz gives %d, half of 1400 MHz %d", a, b)
	}
	for _, c := range []struct{ s, want string }{
		{"nothing=1", "whatif --list"},
		{"pe.clock=1.4", "unit"},
		{"dma.engines=0", "not between"},
		{"dma.engines=2.5", "whole number"},
		{"latency.Nothing=2x", "neither an engine"},
		{"latency.PE=5", "factor"},
		{"drop=flow", "not anti"},
		{"drop=anti+", "name is missing"},
		{"drop=anti:engine=PE", "buffer=NAME"},
		{"drop=anti:buffer=nothing", "(unknown)"},
		{"queue.depth.nothing=3", "no queue or queue class is called \"nothing\" ("},
		{"rule.nothing=off", "banks, couplings"},
		{"rule.banks=2", "on or off"},
		{"reference=3", "fields of its own"},
		{"memory.psum_banks=99", "psum_banks"},
		{"buffers=0", "not between"},
	} {
		if _, err := sweep(t, w, c.s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.s, err, c.want)
		}
	}
}

func TestFieldsOfTheMachine(t *testing.T) {
	w := world(t, 5, "trn2", cost.Reference)
	for _, c := range []struct {
		s    string
		want func(m *machine.Machine) bool
	}{
		{"reference.overlap_compute_ns=50", func(m *machine.Machine) bool { return m.Reference.OverlapCompute == 50 }},
		{"memory.hbm_bytes_per_ns=0.5x", func(m *machine.Machine) bool { return m.Memory.HBMRate == w.Machine.Memory.HBMRate/2 }},
		{"reference.costs.Memset.base=75", func(m *machine.Machine) bool { return m.Reference.Costs["Memset"].Base == 75 }},
		{"reference.queues.dynamic.depth=9", func(m *machine.Machine) bool { return m.Reference.Queues[10].Depth == 9 }},
		{"queue.depth.dynamic=9", func(m *machine.Machine) bool {
			return m.Reference.Queues[10].Depth == 9 && m.Reference.Queues[12].Depth == 1
		}},
		{"reference.dma.dge_plain_ns=true", func(m *machine.Machine) bool { return m.Reference.DMA.DGEPlain }},
		{"governor.slow_rate=0.75", func(m *machine.Machine) bool { return m.Calibrated.Constants["governor.slow_rate"].Value == 0.75 }},
		{"dma.rate=2x", func(m *machine.Machine) bool {
			return m.Reference.DMA.Div == 46 && m.Reference.DMA.Div8 == 736 && m.Memory.DMARate == 46
		}},
	} {
		p := &plan{base: w, w: scenario.Fork(w)}
		p.w.Machine = clone(w.Machine)
		a, err := Parse(c.s)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.apply(a.Values[0]); err != nil {
			t.Errorf("%s: %v", c.s, err)
			continue
		}
		if !c.want(p.w.Machine) {
			t.Errorf("%s did not reach the machine", c.s)
		}
	}
}

func TestReplayTakesNoMachine(t *testing.T) {
	w := world(t, 7, "trn2", cost.Reference)
	w.Config.Model = cost.Replay
	if _, err := sweep(t, w, "pe.clock=2x"); err == nil || !strings.Contains(err.Error(), "replay") {
		t.Errorf("error %v", err)
	}
}

// Elasticities against the definition, by sweeps.
func TestElasticities(t *testing.T) {
	w := world(t, 3, "trn1", cost.Reference)
	list, err := Elasticities(ctx, w, engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 5 {
		t.Fatalf("only %d parameters matter", len(list))
	}
	base := float64(w.Latency(components.RunA))
	for k, e := range list {
		if k > 0 && math.Abs(e.Value) > math.Abs(list[k-1].Value) {
			t.Errorf("%s is not sorted", e.Name)
		}
		r, err := sweep(t, w, e.Name+"=0.95x,1.05x")
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := r.Points[0].NS, r.Points[1].NS
		if want := (float64(hi) - float64(lo)) / 0.1 / base; lo != e.Low || hi != e.High || math.Abs(want-e.Value) > 1e-9 {
			t.Errorf("%s: %+v, want %d, %d, %v", e.Name, e, lo, hi, want)
		}
	}
}
