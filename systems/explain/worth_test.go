package explain

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
	"perfsim/systems/whatif"
)

// No what-if of one cause alone gains more than explain says that the cause is
// worth at most: its work faster by its opcode, its lane or its clock, its
// transfers by their rate, its constraint dropped.
func TestNoWhatIfGainsMoreThanACauseIsWorth(t *testing.T) {
	t.Parallel()
	both := map[components.Model]scenario.Engine{cost.Reference: engine, cost.Calibrated: {Cost: cost.Fill, Place: calibrated.Run}}
	tried := map[string]int{}
	check := func(name string, m *components.Module, mach string, model components.Model, loops components.Loops) {
		t.Helper()
		mc, err := machine.Load(mach)
		if err != nil {
			t.Fatal(err)
		}
		w := &components.World{Module: m, Machine: mc, Config: components.Config{Model: model, Jobs: 1, Loops: loops, Why: true}, Events: components.NewEvents()}
		if err := both[model].Cost(ctx, w); err != nil {
			t.Fatal(err)
		}
		if err := both[model].Place(ctx, w); err != nil {
			t.Fatal(err)
		}
		x, err := Analyse(ctx, w, both[model], Options{Block: -1, Top: 30, Buffers: -1})
		if err != nil {
			t.Fatal(err)
		}
		r, err := x.Report(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Causes {
			if !c.Bounded {
				continue
			}
			list := changesOf(w, &c)
			for _, s := range list {
				a, err := whatif.Parse(s)
				if err != nil {
					t.Fatal(err)
				}
				points, err := whatif.Points([]whatif.Assignment{a})
				if err != nil {
					t.Fatal(err)
				}
				res, err := whatif.Sweep(ctx, w, both[model], points, nil)
				if err != nil {
					if model == cost.Calibrated && strings.Contains(err.Error(), "no cost of its own") {
						continue
					}
					t.Fatalf("%s: %v", name, err)
				}
				kind, _, _ := strings.Cut(s, "=")
				tried[model.String()+" "+c.Kind+" "+kind]++
				for k, p := range res.Points {
					if p.NS+c.AtMost < r.SpanNS {
						t.Errorf("%s, %v: %s is worth at most %d of %d (exact: %v), %v gains %d", name, model, c.Name, c.AtMost, r.SpanNS, c.Exact, points[k][0], r.SpanNS-p.NS)
					}
				}
			}
		}
	}
	files, err := filepath.Glob("../../examples/*.bir.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	models := []components.Model{cost.Reference, cost.Calibrated}
	for _, f := range files {
		for _, model := range models {
			src, err := format.Open(ctx, f, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := birjson.Importer.Module(ctx, src, format.Options{Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			check(filepath.Base(f), m, "trn2", model, components.Trips)
			if err := src.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for k := range proptest.Cases(2_000) {
		n := uint64(k)
		for _, model := range models {
			mach, streams := [...]string{"trn1", "trn2", "trn3"}[n%3], [...]int{4, 2, 2}[n%3]
			m := randmod.Module(rand.New(rand.NewPCG(71, n)), randmod.Options{Streams: streams, Most: 60, Blocks: n%2 == 0, Nested: n%4 == 0, NoCollectives: n%3 == 1, Transfers: n%5 == 0})
			check(fmt.Sprintf("module %d", n), m, mach, model, [...]components.Loops{components.Once, components.Trips}[n%2])
		}
	}
	for _, want := range []string{"reference work pe.clock", "reference work dve.clock", "reference work latency.Matmult", "reference work dma.rate", "reference constraint drop"} {
		if tried[want] == 0 {
			t.Errorf("%s was never tried: %v", want, tried)
		}
	}
}

// changesOf returns what-if changes that touch the cause and nothing else.
func changesOf(w *components.World, c *Cause) []string {
	if c.Kind == "constraint" {
		for _, r := range place.Table() {
			if r.Constraint == c.Name && r.Cause != components.CauseBarrier {
				return []string{"drop=" + c.Name}
			}
		}
		return nil
	}
	if c.Kind != "work" {
		return nil
	}
	m := w.Module
	// What else has the opcode, the lane, the clock or is a transfer.
	opcode, lane, transfer, clock := true, true, true, true
	var op, laneName, engineName string
	own := func(i int) bool {
		return m.LaneName(m.Instr.Lane.At(i))+" "+m.OpcodeName(m.Instr.Opcode.At(i)) == c.Name
	}
	clockOf := func(i int) string {
		cost := w.Machine.Reference.Costs[m.OpcodeName(m.Instr.Opcode.At(i))]
		if w.Config.Model == components.Reference && cost.Clock != "" {
			return cost.Clock
		}
		return strings.ToLower(m.Instr.Engine.At(i).String())
	}
	for i := range m.Instr.Len() {
		if own(i) {
			op, laneName, engineName = m.OpcodeName(m.Instr.Opcode.At(i)), m.LaneName(m.Instr.Lane.At(i)), clockOf(i)
			break
		}
	}
	for i := range m.Instr.Len() {
		if own(i) {
			clock = clock && clockOf(i) == engineName
			transfer = transfer && m.OpcodeName(m.Instr.Opcode.At(i)) == "DMACopy"
			continue
		}
		form := w.Machine.Reference.Costs[m.OpcodeName(m.Instr.Opcode.At(i))].Form
		opcode = opcode && m.OpcodeName(m.Instr.Opcode.At(i)) != op
		lane = lane && m.LaneName(m.Instr.Lane.At(i)) != laneName
		clock = clock && clockOf(i) != engineName
		transfer = transfer && form != "dma" && m.Instr.Flags.At(i)&(components.FlagTrigger|components.FlagCollective) == 0
	}
	var out []string
	if opcode {
		out = append(out, "latency."+op+"=0.999x,0.5x,0.01x", "issue."+op+"=0.5x")
	}
	// The name of an engine stands for the engine on every core.
	if _, engine := components.ParseEngine(laneName); lane && !engine && w.Config.Model == components.Reference {
		out = append(out, "latency."+laneName+"=0.5x")
	}
	short := map[string]string{"pe": "pe", "activation": "act", "dve": "dve", "pool": "pool"}[engineName]
	if clock && short != "" {
		out = append(out, short+".clock=1.1x,2x,100x")
	}
	if transfer {
		out = append(out, "dma.rate=2x,100x")
	}
	return out
}
