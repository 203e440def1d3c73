package fit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/components/machine"
)

// Affine is the cost of one opcode for one size of elements, read off a
// trace: duration = mult×N + base cycles for N elements per partition.
type Affine struct {
	Opcode   string  `json:"opcode"`
	Engine   string  `json:"engine"`        // engine of the instructions
	ElemSize int     `json:"element_bytes"` // bytes of an element
	Mult     float64 `json:"mult"`          // cycles per element
	Base     float64 `json:"base"`          // cycles
	Clock    int     `json:"clock_10mhz"`   // clock of the engine, 10 MHz
	Samples  int     `json:"samples"`
	Sizes    int     `json:"distinct_sizes"`    // distinct sizes that were measured
	Residual float64 `json:"residual_ns"`       // median absolute
	Worst    float64 `json:"residual_worst_ns"` // largest residual of the fit, ns
}

// FromTraces fits the documented model's affine costs to durations that
// traces of the compiler's simulator give (or any module with durations and
// access patterns) and returns base with those costs replaced. Opcodes of
// which only one size was seen keep the documented slope; DMA and collectives
// are not affine in N and are left.
func FromTraces(ctx context.Context, modules []*components.Module, base *machine.Machine) ([]Affine, *machine.Machine, error) {
	type key struct {
		opcode string
		engine components.Engine
		size   int
	}
	ns, ds := map[key][]float64{}, map[key][]float64{}
	var parser fastjson.Parser
	for _, m := range modules {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if !m.HasMeasurement() {
			return nil, nil, fmt.Errorf("%s: %w", m.Name, errNoMeasurement)
		}
		in := &m.Instr
		for i := range in.Len() {
			e := in.Engine.At(i)
			if f := in.Flags.At(i); f&(components.FlagCollective|components.FlagHWDGE|components.FlagSWDGE|components.FlagSequencer|components.FlagLoop) != 0 ||
				in.Lane.At(i)%components.LanesPerCore == components.LaneDMA || in.MeasuredDur.At(i) == 0 || !hasSequencer(e) {
				continue
			}
			s, ok := shapeOf(m, i, &parser)
			if !ok {
				continue
			}
			k := key{m.OpcodeName(in.Opcode.At(i)), e, s.dtype.Size()}
			n := float64(s.elems)
			if e == components.PE && s.outElems > 0 {
				n = float64(s.outElems)
			}
			ns[k] = append(ns[k], n)
			ds[k] = append(ds[k], float64(in.MeasuredDur.At(i)))
		}
	}
	mach := clone(base)
	mach.Reference.Costs = maps.Clone(base.Reference.Costs)
	keys := slices.SortedFunc(maps.Keys(ns), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.opcode, b.opcode), cmp.Compare(a.engine, b.engine), cmp.Compare(a.size, b.size))
	})
	var out []Affine
	for _, k := range keys {
		cost := mach.Reference.Costs[k.opcode]
		clock := engineClock(mach, k.engine)
		a := Affine{Opcode: k.opcode, Engine: k.engine.String(), ElemSize: k.size, Clock: clock, Samples: len(ns[k]), Sizes: distinct(ns[k])}
		cycles := func(v float64) float64 { return v * float64(clock) / 100 }
		slope, start, ok := line(ns[k], ds[k])
		if !ok {
			slope = max(cost.Mult, 0) * 100 / float64(clock)
			var rest []float64
			for i := range ns[k] {
				rest = append(rest, ds[k][i]-slope*ns[k][i])
			}
			start = median(rest)
		}
		// Durations are whole ns, rounded down.
		a.Mult, a.Base = round(max(0, cycles(slope))), math.Round(max(0, cycles(start+0.5)))
		var res []float64
		for i := range ns[k] {
			r := math.Abs(ds[k][i] - math.Floor((a.Mult*ns[k][i]+a.Base)*100/float64(clock)))
			res = append(res, r)
			a.Worst = max(a.Worst, r)
		}
		a.Residual = median(res)
		out = append(out, a)
		cost.Form, cost.Mark, cost.Clock, cost.Min = "affine", machine.MarkFitted, "", 0
		switch k.size {
		case 2:
			cost.Mult16, cost.Base16 = a.Mult, int(a.Base)
		case 4:
			cost.Mult32, cost.Base32 = a.Mult, int(a.Base)
		}
		if cost.Mult == 0 || k.size != 2 && k.size != 4 {
			cost.Mult = a.Mult
		}
		if cost.Base == 0 || k.size != 2 && k.size != 4 {
			cost.Base = int(a.Base)
		}
		mach.Reference.Costs[k.opcode] = cost
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("no instruction has both a duration and a number of elements to fit to")
	}
	return out, mach, nil
}

func engineClock(m *machine.Machine, e components.Engine) int {
	switch e {
	case components.PE:
		return m.Clock.PE
	case components.Activation:
		return m.Clock.Activation
	case components.Pool:
		return m.Clock.Pool
	case components.DVE:
		return m.Clock.DVE
	}
	return m.Clock.SP
}
