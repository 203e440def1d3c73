package cost

import (
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

// The tables give what the formulas of the documents give, for every machine,
// opcode, engine, element type and combination of flags that a formula asks
// for.
func TestPlanEqualsReference(t *testing.T) {
	for _, name := range machine.Names() {
		mach, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		m := components.NewModule("random", "test")
		m.AddCoreLanes(0)
		m.AddCoreLanes(1)
		m.Opcode("OfNoMachine")
		const n = 60_000
		m.Instr.Grow(n)
		in := &m.Instr
		in.OutElems.Resize(n)
		in.DMABytes.Resize(n)
		for i := range n {
			in.Opcode.Set(i, components.Opcode(i%m.NumOpcodes()))
			in.Engine.Set(i, components.Engine(r.IntN(int(components.NumEngines))))
			in.Lane.Set(i, uint16(r.IntN(m.Lanes.Len())))
			in.Flags.Set(i, components.Flags(r.Uint32()))
			in.Elems.Set(i, r.Uint32()>>r.IntN(30))
			in.Parts.Set(i, uint16(r.IntN(129)))
			in.DType.Set(i, components.DType(r.IntN(256)))
			if r.IntN(2) == 0 {
				in.OutElems.Set(i, r.Uint32N(4096))
			}
			in.DMABytes.Set(i, uint64(r.Uint32()))
		}
		ref := newReference(m, mach)
		issue, latency := make([]uint32, n), make([]uint32, n)
		p := newPlan(ref)
		long, custom := 0, 0
		for lo := 0; lo < n; {
			hi := p.fill(lo, n, issue, latency)
			for i := lo; i < min(hi+1, n); i++ {
				is, lat := ref.row(i)
				if i == hi {
					if lat <= 1<<32-1 {
						t.Fatalf("%s: row %d takes %d ns and was called too long", name, i, lat)
					}
					long++
					continue
				}
				if uint64(issue[i]) != is || uint64(latency[i]) != lat {
					t.Fatalf("%s: row %d (%s, %s, flags %b): issue %d latency %d, the formulas give %d and %d", name, i,
						m.OpcodeName(in.Opcode.At(i)), in.Engine.At(i), in.Flags.At(i), issue[i], latency[i], is, lat)
				}
			}
			lo = hi + 1
		}
		for i := range n {
			if in.Opcode.At(i) == components.NumOpcodes {
				custom++
			}
		}
		if long == n || p.defaults[components.NumOpcodes] != custom {
			t.Errorf("%s: %d of %d rows are too long; %d rows have the default cost of a custom opcode, want %d", name, long, n, p.defaults[components.NumOpcodes], custom)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	mach, err := machine.Load("trn2")
	if err != nil {
		b.Fatal(err)
	}
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	m := components.NewModule("random", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(n)
	ops := []components.Opcode{components.OpcodeMatmult, components.OpcodeActivation, components.OpcodeTensorTensor, components.OpcodeTensorCopy, components.OpcodeDMACopy}
	engines := []components.Engine{components.PE, components.Activation, components.DVE, components.Pool, components.SP}
	for i := range n {
		k := r.IntN(len(ops))
		m.Instr.Opcode.Set(i, ops[k])
		m.Instr.Engine.Set(i, engines[k])
		m.Instr.Lane.Set(i, uint16(engines[k]))
		m.Instr.Elems.Set(i, r.Uint32N(512))
		m.Instr.DType.Set(i, components.BFloat16)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: Reference, Jobs: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := Fill(context.Background(), w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instruction")
}
