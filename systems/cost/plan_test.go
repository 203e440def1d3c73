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
			in.Parts.Set(i, uint16(r.Uint32())>>r.IntN(17))
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

// Transfers cost what the documents' divisions of integers give, whatever the
// constants of a machine, where the quotient is whole, next to it, or beyond
// what a row can have.
func TestTransfersEqualReference(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(2, seed))
		mach := &machine.Machine{Clock: machine.Clock{PE: 1 + r.IntN(300), Activation: 140, Pool: 140, DVE: 96, SP: 140}}
		d := machine.DMACost{ReadInit: r.Uint32N(2000), DGENone: r.IntN(50), DGESW: r.IntN(1000), DGEHW: r.IntN(1000), DGEClock: 1 + r.IntN(300), DGEPlain: r.IntN(2) == 0,
			Div: 1 + r.IntN(1<<r.IntN(16)), Div8: 1 + r.IntN(1<<r.IntN(16)), Engines: r.IntN(1 << r.IntN(14))}
		mach.Reference = machine.Reference{DMA: d, OverlapCompute: 64, OverlapDMA: 1300, Costs: map[string]machine.Cost{"DMACopy": {Form: "dma"}}}
		m := components.NewModule("transfers", "test")
		m.AddCoreLanes(0)
		const n = 1000
		m.Instr.Grow(n)
		in := &m.Instr
		for i := range n {
			in.Opcode.Set(i, components.OpcodeDMACopy)
			in.Lane.Set(i, components.LaneDMA)
			in.Flags.Set(i, components.Flags(r.Uint32())&^components.FlagLoop)
			in.Parts.Set(i, uint16(r.Uint32())>>r.IntN(17))
			in.DType.Set(i, []components.DType{components.BFloat16, components.Float32, components.Uint8}[r.IntN(3)])
			in.Elems.Set(i, r.Uint32()>>r.IntN(33))
			if r.IntN(2) == 0 { // the quotient is whole or almost
				in.Parts.Set(i, 16)
				in.Elems.Set(i, uint32(d.Div*(1+r.IntN(1000))+r.IntN(3)-1))
			}
		}
		ref := newReference(m, mach)
		issue, latency := make([]uint32, n), make([]uint32, n)
		p := newPlan(ref)
		for lo := 0; lo < n; {
			hi := p.fill(lo, n, issue, latency)
			for i := lo; i < min(hi+1, n); i++ {
				is, lat := ref.row(i)
				if i == hi && lat > 1<<32-1 {
					continue
				}
				if i == hi || uint64(issue[i]) != is || uint64(latency[i]) != lat {
					t.Fatalf("seed %d, row %d, %d parts of %d elements: issue %d latency %d, the formulas give %d and %d", seed, i,
						in.Parts.At(i), in.Elems.At(i), issue[i], latency[i], is, lat)
				}
			}
			lo = hi + 1
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
