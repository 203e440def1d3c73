package components

import (
	"strings"
	"testing"
)

// chain makes a module of n instructions on DVE in one block.
func chain(n int) *Module {
	m := NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(n)
	for i := range n {
		m.Instr.Engine.Set(i, DVE)
		m.Instr.Lane.Set(i, LaneDVE)
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	return m
}

func TestLinkMergesByMaximumKind(t *testing.T) {
	m := chain(3)
	var e EdgeSet
	e.Add(2, 0, Anti)
	e.Add(2, 0, Flow)
	e.Add(2, 0, Ordered)
	e.Add(2, 1, Anti)
	if err := m.Link(&e); err != nil {
		t.Fatal(err)
	}
	got := m.Edges.Counts()
	if got[Flow] != 1 || got[Anti] != 1 || got[Ordered] != 0 {
		t.Errorf("counts after merging %v", got)
	}
	if m.Edges.Declared != [NumEdgeKinds]uint64{Ordered: 1, Anti: 2, Flow: 1} {
		t.Errorf("declared %v", m.Edges.Declared)
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestLinkFindsCycles(t *testing.T) {
	m := chain(4)
	var e EdgeSet
	e.Add(1, 3, Flow)
	e.Add(3, 2, Flow)
	e.Add(2, 1, Anti)
	err := m.Link(&e)
	if err == nil || !strings.Contains(err.Error(), "cycle") || !strings.Contains(err.Error(), "I-3") {
		t.Errorf("error %v", err)
	}
	m = chain(2)
	e = EdgeSet{}
	e.Add(1, 1, Flow)
	if err := m.Link(&e); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("error %v", err)
	}
}

func TestLinkSetsScopes(t *testing.T) {
	m := chain(6)
	// Row 1 is a loop whose body is rows 2 and 3.
	m.Instr.Flags.Set(1, FlagLoop)
	b := m.Blocks.Add(m.Symbols.InternString("body"), 0, 2, 2, 10)
	m.Blocks.End.Set(b, 4)
	m.Functions.EndBlock.Set(0, 2)
	var e EdgeSet
	e.Add(3, 2, Flow)           // inside the body
	e.Add(2, 0, Flow)           // from the body to the block around it
	e.Add(4, 1, Flow)           // to the loop
	e.Add(4, 5, Ordered)        // to a later instruction
	e.AddCarried(2, 3, Flow, 1) // to the iteration before
	if err := m.Link(&e); err != nil {
		t.Fatal(err)
	}
	if got := m.Edges.Preds.Len(); got != 1 {
		t.Errorf("%d edges honoured, want 1", got)
	}
	want := []EdgeScope{ScopeRegion, ScopeLoop, ScopeLater, ScopeCarried}
	if got := m.Edges.Other.Scope.Slice(); len(got) != len(want) {
		t.Fatalf("scopes %v, want %v", got, want)
	} else {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("scopes %v, want %v", got, want)
				break
			}
		}
	}
	if len(m.Notes) != 1 || m.Notes[0].Code != "later-producer" {
		t.Errorf("notes %v", m.Notes)
	}
}

func TestAccessPatternGeometry(t *testing.T) {
	// 128 partitions of 4 rows of 16 bf16 elements, rows 32 elements apart.
	o := AccessPattern{DType: BFloat16, Memory: MemSBUF, Address: 64, Steps: []int64{512, 32, 1}, Counts: []uint64{128, 4, 16}}
	if o.Partitions() != 128 || o.Elems() != 64 {
		t.Errorf("partitions %d, elements %d, want 128 and 64", o.Partitions(), o.Elems())
	}
	if lo, hi := o.Span(); lo != 64 || hi != 64+2*(3*32+15)+2 {
		t.Errorf("span %d..%d, want 64..%d", lo, hi, 64+2*(3*32+15)+2)
	}
	// In device memory the first pair is a stride of the same linear space.
	o = AccessPattern{DType: Float32, Memory: MemDRAM, Address: 0, Steps: []int64{100, 1}, Counts: []uint64{3, 10}}
	if lo, hi := o.Span(); lo != 0 || hi != 4*(2*100+9)+4 {
		t.Errorf("span %d..%d, want 0..%d", lo, hi, 4*(2*100+9)+4)
	}
	// Absurd counts saturate.
	o.Counts = []uint64{1, 1 << 40, 1 << 40}
	o.Steps = []int64{1, 1, 1}
	if o.Elems() != 1<<32-1 {
		t.Errorf("elements %d, want saturation", o.Elems())
	}
}

func TestNamesOfTypes(t *testing.T) {
	for d := range NumDTypes {
		if got, ok := ParseDType(d.String()); !ok || got != d {
			t.Errorf("dtype %d %q reads back as %d", d, d.String(), got)
		}
	}
	for e := range NumEngines {
		if got, ok := ParseEngine(e.String()); !ok || got != e {
			t.Errorf("engine %d %q reads back as %d", e, e, got)
		}
	}
	for k := range NumEdgeKinds {
		if got, ok := ParseEdgeKind(k.String()); !ok || got != k {
			t.Errorf("edge kind %d %q reads back as %d", k, k, got)
		}
	}
	// Spot checks of the documented ordinals.
	for op, name := range map[Opcode]string{8: "Matmult", 32: "DMACopy", 48: "CollectiveCompute", 67: "DMATrigger", 105: "Loop", 109: "TongaReduceMacroSymbolic"} {
		if OpcodeName(op) != name {
			t.Errorf("opcode %d is %q, want %q", op, OpcodeName(op), name)
		}
	}
}

func TestModuleOpcodes(t *testing.T) {
	m := NewModule("m", "test")
	a, b := m.Opcode("MATMUL"), m.Opcode("Matmult")
	if a != NumOpcodes || b != OpcodeMatmult || m.Opcode("MATMUL") != a || m.OpcodeName(a) != "MATMUL" {
		t.Errorf("MATMUL is %d %q, Matmult %d", a, m.OpcodeName(a), b)
	}
}

func TestCheckFindsBadTables(t *testing.T) {
	for name, damage := range map[string]func(m *Module){
		"lane":         func(m *Module) { m.Instr.Lane.Set(1, 99) },
		"opcode":       func(m *Module) { m.Instr.Opcode.Set(1, 500) },
		"column":       func(m *Module) { m.Instr.Elems.Resize(1) },
		"block":        func(m *Module) { m.Blocks.End.Set(0, 99) },
		"function":     func(m *Module) { m.Blocks.Function.Set(0, 7) },
		"instructions": func(m *Module) { *m = *NewModule("m", "test") },
	} {
		m := chain(3)
		damage(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
