package lower_test

import (
	"context"
	"sort"
	"testing"

	"perfsim/components/datadir"
	"perfsim/systems/lower"
)

func TestDbg(t *testing.T) {
	mach := loadMachine(t, "trn2")
	for _, x := range []string{"ROCm__xla__llama3_8b__module_0099.jit_train_step.before_optimizations.txt.gz", "openxla__xla__hlo_llama31_405b_fp8_64x8.hlo"} {
		g := readAll(t, datadir.Path(t, "hlo_text", x))[0]
		opt := lower.DefaultOptions()
		res, _ := lower.Lower(context.Background(), g, mach, opt)
		m := res.Module
		t.Logf("%+v", res.Report.Graph)
		n := m.Instr.Len()
		mult := make([]uint64, n)
		for b := range m.Blocks.Len() {
			tr := m.Blocks.Trip.At(b)
			if m.Blocks.Parent.At(b) == 0 {
				tr = m.Functions.Runs.At(int(m.Blocks.Function.At(b)))
				for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
					mult[i] = tr
				}
				continue
			}
			for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
				mult[i] *= tr
			}
		}
		by := map[string]uint64{}
		for i := range n {
			by[m.OpcodeName(m.Instr.Opcode.At(i))+" "+m.Symbols.String(m.Instr.HLO.At(i))] += mult[i]
		}
		var k []string
		for s := range by {
			k = append(k, s)
		}
		sort.Slice(k, func(i, j int) bool { return by[k[i]] > by[k[j]] })
		for _, s := range k[:25] {
			t.Log(by[s], s)
		}
	}
}
