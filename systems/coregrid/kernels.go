package coregrid

import (
	"context"
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/components/machine/grid"
)

// KernelTime returns how long one kernel of an operator takes on all cores,
// in ns: the slowest of the multiplier, the vector lanes and the memory, and
// the time to the next launch.
func (m Model) KernelTime(o *Op, k *Kernel) float64 {
	mach := m.Mach
	cores := float64(mach.Cores())
	var compute float64
	if k.Product {
		t := mach.Matrix.Tile
		z := m.tilesOf(o)
		compute = math.Ceil(float64(z.blocks*z.m*z.n)/cores) * float64(z.k) * float64(t*t*t) / mach.Matrix.MACs * m.Passes
		// Products narrower than a tile go to the vector lanes where that is faster.
		compute = min(compute, float64(o.MACs)/cores/mach.VectorLanes)
	}
	compute += float64(k.Vector)/cores/mach.VectorLanes + float64(k.Transcendental)/cores/mach.TranscendentalLanes
	memory := float64(k.Read+k.Write) * m.Bytes / mach.Memory.DRAMRate()
	return max(m.ns(compute), memory) + mach.Overheads.Launch
}

// SimulateKernels makes a module of the operators' kernels, one after another
// on one lane, and places it.
func SimulateKernels(ctx context.Context, m Model, ops []Op, name string) (*Result, error) {
	if m.Mach.Style != grid.Kernels {
		return nil, fmt.Errorf("machine %s places operators side by side: it runs no kernels", m.Mach.Name)
	}
	mod := components.NewModule(name, "cores")
	mod.Arch = m.Mach.Name
	total := 0
	for i := range ops {
		total += len(ops[i].Kernels)
	}
	b := newBuilder(mod, total)
	f := mod.Functions.Add(mod.Symbols.InternString(name), 0)
	lane := mod.Lanes.Add(mod.Symbols.InternString("kernels"), components.Unassigned, components.LaneThread, 0)
	block := mod.Blocks.Add(mod.Symbols.InternString("forward"), uint32(f), 0, 0, 1)
	for i := range ops {
		for k := range ops[i].Kernels {
			t := m.KernelTime(&ops[i], &ops[i].Kernels[k])
			b.instr(mod.Opcode(ops[i].Kind), components.Unassigned, lane, t, t)
		}
	}
	mod.Blocks.End.Set(block, uint32(b.next))
	mod.Functions.EndBlock.Set(f, uint32(mod.Blocks.Len()))
	if b.err != nil {
		return nil, b.err
	}
	return run(ctx, mod, &components.EdgeSet{})
}
