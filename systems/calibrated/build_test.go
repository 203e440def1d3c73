package calibrated

import (
	"context"
	"math"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

var ctx = context.Background()

func trn2(t testing.TB) (*machine.Machine, *Constants) {
	t.Helper()
	m, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

// instr is one instruction of a module built by hand.
type instr struct {
	op     string
	engine components.Engine
	flags  components.Flags
	n      uint32 // elements per partition
	dtype  components.DType
	bytes  uint64 // of a DMA
	row    uint32
	syncs  []sync
	preds  []pred
}

type sync struct {
	op    components.SyncOp
	id    uint32
	value int64
}

type pred struct {
	row  components.InstrID
	kind components.EdgeKind
}

// module builds one block on one core. Semaphores are used where an
// instruction has any.
func module(t testing.TB, list []instr) *components.Module {
	t.Helper()
	m := components.NewModule("hand", "test")
	lanes := m.AddCoreLanes(0)
	n := len(list)
	m.Instr.Grow(n)
	m.Instr.OutElems.Resize(n)
	m.Instr.DMABytes.Resize(n)
	m.Instr.DMARow.Resize(n)
	m.Instr.Queue.Resize(n)
	var edges components.EdgeSet
	syncs := false
	for _, x := range list {
		syncs = syncs || len(x.syncs) > 0
	}
	for i, x := range list {
		m.Instr.Opcode.Set(i, m.Opcode(x.op))
		m.Instr.Engine.Set(i, x.engine)
		m.Instr.Lane.Set(i, lanes+uint16(x.engine))
		m.Instr.Flags.Set(i, x.flags)
		m.Instr.Elems.Set(i, x.n)
		m.Instr.OutElems.Set(i, x.n)
		m.Instr.Parts.Set(i, 128)
		m.Instr.DType.Set(i, x.dtype)
		m.Instr.DMABytes.Set(i, x.bytes)
		m.Instr.DMARow.Set(i, x.row)
		if x.bytes > 0 {
			m.Instr.Lane.Set(i, lanes+components.LaneDMA)
		}
		for _, p := range x.preds {
			edges.Add(components.InstrID(i), p.row, p.kind)
		}
		if syncs {
			for _, s := range x.syncs {
				m.Syncs.Add(s.op, 'S', s.id, s.value, 0)
			}
			m.Syncs.EndRow()
		}
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

func predict(t testing.TB, m *components.Module, opt Options) *Prediction {
	t.Helper()
	mach, _ := trn2(t)
	p, err := Predict(ctx, m, mach, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
