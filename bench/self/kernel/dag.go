// Package kernel measures the placement against C: it makes a module of a
// known shape, hands its arrays to a C program of ours (c/kernel.c, built with
// the machine's C compiler) and lets both take turns.
package kernel

import (
	"math/rand/v2"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Shape is the form of a generated graph.
type Shape struct {
	Instructions int
	Seed         uint64
	// Far is the share of edges, in percent, that go to any earlier
	// instruction; the others go back at most Near rows.
	Far, Near int
}

// degrees is how many in a hundred instructions have 0, 1, 2, … edges: 2.94
// on average, the shape that the figures of other programs were taken with.
var degrees = []int{4, 10, 20, 34, 21, 7, 4}

// DAG makes one block on the eleven lanes of a core: flow edges (six in
// ten), output edges (one) and anti-dependencies (three). Issue intervals
// and latencies are filled. It is made in one pass without sorting, so that
// a hundred million instructions take seconds.
func DAG(s Shape) *components.Module {
	n := s.Instructions
	r := rand.New(rand.NewPCG(s.Seed, 0x9e3779b97f4a7c15))
	m := components.NewModule("dag", "generated")
	m.AddCoreLanes(0)
	m.Instr.Grow(n)
	in := &m.Instr
	opcode, engine, lane := in.Opcode.Slice(), in.Engine.Slice(), in.Lane.Slice()
	elems, parts, dtype := in.Elems.Slice(), in.Parts.Slice(), in.DType.Slice()
	issue, latency := in.Issue.Resize(n), in.Latency.Resize(n)
	m.Edges.Preds.Reserve(n, n*3)
	var pick []int
	for d, share := range degrees {
		for range share {
			pick = append(pick, d)
		}
	}
	var row []uint32
	for i := range n {
		l := uint16(r.Uint32N(11))
		if l >= components.LaneBarrier {
			l++
		}
		k := kinds[l]
		lane[i], opcode[i], engine[i] = l, k.opcode, k.engine
		elems[i], parts[i], dtype[i] = 1+r.Uint32N(512), 128, components.BFloat16
		issue[i] = 10 + r.Uint32N(190)
		latency[i] = issue[i] + r.Uint32N(400)
		row = row[:0]
		for range min(pick[r.Uint32N(uint32(len(pick)))], i) {
			to := uint32(i) - 1 - r.Uint32N(uint32(min(s.Near, i)))
			if int(r.Uint32N(100)) < s.Far {
				to = r.Uint32N(uint32(i))
			}
			if slices.ContainsFunc(row, func(w uint32) bool { return w&ecs.TargetMask == to }) {
				continue
			}
			class := components.ClassFlow
			if c := r.Uint32N(10); c >= 7 {
				class = components.ClassAnti
			} else if c == 6 {
				class = components.ClassOutput
			}
			m.Edges.Declared[components.KindOfClass(class)]++
			row = append(row, ecs.Word(class, to))
		}
		m.Edges.Preds.AppendRow(row)
	}
	f := m.Functions.Add(m.Symbols.InternString("main"), 0)
	m.Blocks.Add(m.Symbols.InternString("entry"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	return m
}

// kinds are the instructions of each lane.
var kinds = [components.LanesPerCore]struct {
	opcode components.Opcode
	engine components.Engine
}{
	components.LaneUnassigned: {components.OpcodeNoOp, components.Unassigned},
	components.LanePool:       {components.OpcodeIota, components.Pool},
	components.LaneActivation: {components.OpcodeActivation, components.Activation},
	components.LanePE:         {components.OpcodeMatmult, components.PE},
	components.LaneDMA:        {components.OpcodeDMACopy, components.SP},
	components.LaneDVE:        {components.OpcodeTensorTensor, components.DVE},
	components.LaneSP:         {components.OpcodeDrain, components.SP},
	components.LaneCC0:        {components.OpcodeCopyPredicated, components.Pool},
	components.LaneCC0 + 1:    {components.OpcodeMemset, components.Pool},
	components.LaneCC0 + 2:    {components.OpcodeTensorCopy, components.Pool},
	components.LaneCC0 + 3:    {components.OpcodeTensorReduce, components.Pool},
}
