package lower_test

import (
	"math/big"
	"testing"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/systems/lower"
)

// recount adds up from the operands of the lowered module, each row as often
// as it runs, what the lowering says of itself: the FLOPs of products on the PE
// and of multiply-adds on DVE, and the bytes that are stored to every output.
// Only products of vectors (VectorFLOPs) are taken from the report: their
// instructions do not tell multiplications from others.
func recount(t *testing.T, res *lower.Result) {
	t.Helper()
	m := res.Module
	flops := new(big.Int)
	stored := map[uint32]*big.Int{}
	loaded := map[uint32]*big.Int{}
	add := func(sums map[uint32]*big.Int, where uint32, n, times uint64) {
		if sums[where] == nil {
			sums[where] = new(big.Int)
		}
		sums[where].Add(sums[where], product(n, times))
	}
	runs := runCounts(m)
	for i := range m.Instr.Len() {
		times := runs[i]
		var ins []components.AccessPattern
		var out components.AccessPattern
		lo, hi := m.Operands.Range(components.InstrID(i))
		for r := lo; r < hi; r++ {
			o := m.Operands.At(r)
			if o.Role == components.RoleOut {
				out = o
			} else {
				ins = append(ins, o)
			}
			if !o.Memory.InDRAM() || m.Instr.Lane.At(i) != components.LaneDMA {
				continue
			}
			n := uint64(max(o.DType.Size(), 1))
			for _, c := range o.Counts {
				n *= c
			}
			switch {
			case o.Memory == components.MemOutput && o.Role == components.RoleOut:
				add(stored, o.Where, n, times)
			case o.Memory == components.MemInput && o.Role == components.RoleIn:
				add(loaded, o.Where, n, times)
			}
		}
		flags := m.Instr.Flags.At(i)
		switch op := m.Instr.Opcode.At(i); {
		case op == components.OpcodeMatmult && flags&components.FlagTranspose == 0 && len(ins) == 2:
			// Rows of the contraction times stationary columns (partitions of the
			// result) times moving columns.
			flops.Add(flops, product(2*ins[0].Partitions()*out.Partitions()*out.Elems(), times))
		case op == components.OpcodeTensorScalarPtr && flags&components.FlagScalarTT != 0:
			flops.Add(flops, product(2*out.Partitions()*out.Elems(), times))
		}
	}
	flops.Add(flops, big.NewInt(res.Report.VectorFLOPs))
	if want := big.NewInt(res.Report.Graph.FLOPs); flops.Cmp(want) != 0 && res.Report.Graph.FLOPs < opgraph.MaxSize {
		t.Errorf("%s: the instructions do %v FLOPs, the graph asks for %v", m.Name, flops, want)
	}
	once, more, whole, part := 0, 0, 0, 0
	for r := range m.Locations.Name.Len() {
		size := new(big.Int).SetUint64(m.Locations.Bytes.At(r))
		switch m.Locations.Memory.At(r) {
		case components.MemOutput:
			n := stored[uint32(r+1)]
			switch {
			case n == nil: // made by a collective or a function, or empty
			case n.Cmp(size) < 0:
				t.Errorf("%s: %v bytes are stored to output %s, which has %v", m.Name, n, m.Symbols.String(m.Locations.Name.At(r)), size)
			case n.Cmp(size) == 0:
				once++
			default:
				more++ // updated in place after a copy
			}
		case components.MemInput:
			if n := loaded[uint32(r+1)]; n != nil && n.Cmp(size) >= 0 {
				whole++
			} else if n != nil {
				part++
			}
		}
	}
	t.Logf("recounted: %v FLOPs; %d outputs stored byte for byte, %d more than once; %d inputs loaded whole or more, %d in part", flops, once, more, whole, part)
}

func product(a, b uint64) *big.Int {
	x := new(big.Int).SetUint64(a)
	return x.Mul(x, new(big.Int).SetUint64(b))
}

// runCounts returns how often each row runs: its function's calls times the
// trip counts of the loops around it.
func runCounts(m *components.Module) []uint64 {
	runs := make([]uint64, m.Instr.Len())
	t := &m.Blocks
	for b := range t.Len() { // loops follow what is around them
		n := m.Functions.Runs.At(int(t.Function.At(b)))
		if p := t.Parent.At(b); p > 0 {
			n = runs[p-1] * t.Trip.At(b)
		}
		for i := t.First.At(b); i < t.End.At(b); i++ {
			runs[i] = n
		}
	}
	return runs
}
