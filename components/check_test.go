package components

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"perfsim/ecs"
)

// twoBlocks is a module of two top-level blocks of n rows, the first with a
// loop of two bodies, each row depending on the one before it in its block.
func twoBlocks(n int) *Module {
	m := NewModule("two", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(2 * n)
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	add := func(name string, parent, first, end int) {
		b := m.Blocks.Add(m.Symbols.InternString(name), uint32(f), uint32(parent), InstrID(first), 1)
		m.Blocks.End.Set(b, uint32(end))
	}
	add("a", 0, 0, n)
	m.Instr.Flags.Set(1, FlagLoop)
	add("body", 2, 2, 4)
	add("more", 2, 4, 5)
	add("b", 0, n, 2*n)
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	for i := range 2 * n {
		if i%n == 0 {
			m.Edges.Preds.AppendRow(nil)
		} else {
			m.Edges.Preds.AppendRow([]uint32{ecs.Word(ClassFlow, uint32(i-1))})
		}
	}
	m.Operands.Add(AccessPattern{Steps: []int64{1}, Counts: []uint64{2}})
	m.Operands.EndRow()
	return m
}

// Blocks times lanes are bounded: placement takes time for each pair.
func TestBlocksTimesLanes(t *testing.T) {
	m := NewModule("m", "test")
	for range 60_000 {
		m.Lanes.Add(0, DVE, LaneEngine, 0)
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	const n = 3000
	m.Instr.Grow(n)
	for i := range n {
		m.Blocks.Add(0, uint32(f), 0, InstrID(i), 1)
		m.Blocks.End.Set(i, uint32(i+1))
	}
	m.Functions.EndBlock.Set(f, n)
	if err := m.Check(); err == nil || !strings.Contains(err.Error(), "3000 top-level blocks on 60000 lanes") {
		t.Errorf("error %v", err)
	}
}

// A module without edges gets empty rows, so that systems can take the rows
// of the edges without asking.
func TestCheckGivesEmptyRows(t *testing.T) {
	m := twoBlocks(8)
	m.Edges.Preds.Reset()
	if err := m.Check(); err != nil || len(m.Edges.Preds.Offsets()) != 17 {
		t.Errorf("%d offsets, %v", len(m.Edges.Preds.Offsets()), err)
	}
}

// The innermost block of every row, also where bodies of a loop follow one
// another.
func TestRegions(t *testing.T) {
	m := twoBlocks(8)
	want := []uint32{0, 0, 1, 1, 2, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3}
	if got := m.regions(); !slices.Equal(got, want) {
		t.Errorf("regions %v, want %v", got, want)
	}
}

// Every way to break a module that a file could bring is refused with an
// error that says where.
func TestCheckRefuses(t *testing.T) {
	if err := twoBlocks(8).Check(); err != nil {
		t.Fatalf("the module that is to be broken: %v", err)
	}
	for name, c := range map[string]struct {
		change func(m *Module)
		want   string
	}{
		"lane":             {func(m *Module) { m.Instr.Lane.Set(3, 12) }, "I-3 is on lane 12 of 12"},
		"opcode":           {func(m *Module) { m.Instr.Opcode.Set(3, NumOpcodes) }, "I-3 has opcode"},
		"engine":           {func(m *Module) { m.Instr.Engine.Set(3, NumEngines) }, "I-3 has engine"},
		"queue":            {func(m *Module) { m.Instr.Queue.Resize(16); m.Instr.Queue.Set(3, 1) }, "I-3 is on queue 1 of 0"},
		"short column":     {func(m *Module) { m.Instr.Banks.Resize(15) }, "instr.banks has 15 rows"},
		"optional column":  {func(m *Module) { m.Instr.Ref.Resize(1) }, "instr.ref has 1 rows"},
		"half a pair":      {func(m *Module) { m.Instr.MeasuredStart.Resize(16) }, "instr.measured_start is there without instr.measured_dur"},
		"edge forward":     {func(m *Module) { m.Edges.Preds.Words()[2] = 3 }, "I-3 depends on I-3"},
		"edge far forward": {func(m *Module) { m.Edges.Preds.Words()[2] = ecs.TargetMask }, "not before it"},
		"edge across":      {func(m *Module) { m.Edges.Preds.Words()[8] = 7 }, "I-10 depends on I-7, which is in another block"},
		"offsets":          {func(m *Module) { m.Edges.Preds.Offsets()[5] = 1 }, "its edges 3 to 1"},
		"offsets end":      {func(m *Module) { m.Edges.Preds.Offsets()[16]++ }, "do not cover"},
		"block order":      {func(m *Module) { m.Blocks.First.Set(3, 7) }, "inside the block before it"},
		"block end":        {func(m *Module) { m.Blocks.End.Set(3, 17) }, "spans rows 8 to 17 of 16"},
		"block backwards":  {func(m *Module) { m.Blocks.End.Set(3, 7) }, "spans rows 8 to 7"},
		"function":         {func(m *Module) { m.Blocks.Function.Set(0, 1) }, "function 1 of 1"},
		"function blocks":  {func(m *Module) { m.Functions.EndBlock.Set(0, 5) }, "spans blocks 0 to 5 of 4"},
		"body elsewhere":   {func(m *Module) { m.Blocks.First.Set(1, 3) }, "not the body of a loop"},
		"body too long":    {func(m *Module) { m.Blocks.End.Set(2, 9) }, "not the body of a loop"},
		"body of no loop":  {func(m *Module) { m.Instr.Flags.Set(1, 0) }, "not the body of a loop"},
		"parent nowhere":   {func(m *Module) { m.Blocks.Parent.Set(1, 13) }, "in no block before it"},
		"table columns":    {func(m *Module) { m.Lanes.Core.Resize(3) }, "lanes.core has 3 rows"},
		"lane engine":      {func(m *Module) { m.Lanes.Engine.Set(2, 99) }, "has engine 99"},
		"operand pairs":    {func(m *Module) { m.Operands.NumDims.Set(0, 2) }, "operand 0 has dimensions 0 to 2 of 1"},
		"operand location": {func(m *Module) { m.Operands.Where.Set(0, 1) }, "location 1 of 0"},
		"operand offsets":  {func(m *Module) { m.Operands.Offsets.Set(1, 2) }, "operands: offsets"},
		"gap":              {func(m *Module) { m.Blocks.First.Set(3, 9); m.Edges.Preds.Reset() }, "rows 8 to 9 are in no block"},
		"uncovered end":    {func(m *Module) { m.Blocks.End.Set(3, 15); m.Edges.Preds.Reset() }, "rows 15 to 16 are in no block"},
		"no function":      {func(m *Module) { m.Functions.EndBlock.Set(0, 3) }, "blocks 3 to 4 are in no function"},
		"no words":         {func(m *Module) { m.Edges.Preds.Columns()[1].Reset() }, "offsets do not cover"},
		"element type":     {func(m *Module) { m.Instr.DType.Set(3, NumDTypes) }, "element type 20 of 20"},
		"late start": {func(m *Module) {
			m.Instr.MeasuredStart.Resize(16)[3] = 1<<63 - 1
			m.Instr.MeasuredDur.Resize(16)[3] = 1
		}, "I-3 starts at 9223372036854775807 ns and takes 1 ns, beyond 2^63"},
		"lane kind":       {func(m *Module) { m.Lanes.Kind.Set(2, 9) }, "has kind 9"},
		"semaphore":       {func(m *Module) { m.Syncs.Add(9, 'S', 0, 0, 0) }, "semaphore operation 0 has kind 9"},
		"no empty symbol": {func(m *Module) { m.Symbols.Columns()[1].Reset() }, "the empty symbol is missing"},
		"other edge":      {func(m *Module) { m.Edges.Other.Add(0, 16, Flow, ScopeLater, 0) }, "row 0 to 16 of 16"},
	} {
		m := twoBlocks(8)
		c.change(m)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// The branch-free look at edges says what a loop over them says.
func TestEdgesInside(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50_000 {
		rows := 1 + r.IntN(5)
		first := r.Uint32N(10)
		off := make([]uint32, int(first)+rows+1)
		var words []uint32
		want := int(first) + rows
		for i := int(first); i < int(first)+rows; i++ {
			off[i] = uint32(len(words))
			for range r.IntN(8) {
				to := first + r.Uint32N(uint32(i)-first+1)
				if r.IntN(20) == 0 {
					to = r.Uint32N(ecs.MaxRows)
				}
				if (to < first || to >= uint32(i)) && want > i {
					want = i
				}
				words = append(words, ecs.Word(uint8(r.IntN(4)), to))
			}
			off[i+1] = uint32(len(words))
		}
		if got := edgesInside(off, words, int(first), int(first)+rows, first, 0); got != want {
			t.Fatalf("words %x, offsets %d, from row %d: first bad row %d, want %d", words, off, first, got, want)
		}
	}
}

// The error does not depend on the number of goroutines.
func TestCheckIsRepeatable(t *testing.T) {
	m := twoBlocks(1 << 20)
	for _, i := range []int{2_000_000, 700_000, 1_900_000} {
		m.Instr.Lane.Set(i, 99)
	}
	one := m.CheckJobs(context.Background(), 1)
	for range 5 {
		if err := m.CheckJobs(context.Background(), 8); err == nil || err.Error() != one.Error() {
			t.Fatalf("eight goroutines: %v, one: %v", err, one)
		}
	}
	if !strings.Contains(one.Error(), "I-700000") {
		t.Errorf("the first bad row is 700000, the error %v", one)
	}
}
