package neuronprofile

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/io/format"
)

func TestSmoke(t *testing.T) {
	for _, f := range []string{"trn2_attn_baseline_bf16_s1024", "trn2_attn_baseline_bf16_s512", "trn2_attn_baseline_fp32_s1024", "trn2_attn_fused_bf16_s512", "trn2_attn_fused_fp32_s512"} {
		src, err := format.Open(context.Background(), datadir.Path(t, "neuron-profiles", f+".profile.json.gz"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !sniff(src.Head()) {
			t.Error("not sniffed")
		}
		m, err := module(context.Background(), src, format.Options{Jobs: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(m.Name, m.FunctionName(0), m.Instr.Len(), m.Edges.Declared, m.Edges.Counts(), m.Bytes(), m.Notes)
		span, _ := m.MeasuredSpan()
		t.Log(span, m.Packets.Start.Len(), m.Windows.K.Len(), m.SemUpdates.ID.Len(), m.Operands.Len(), m.Syncs.ID.Len(), len(m.Attributes), m.Arch, m.Queues.Len(), m.Locations.Len())
		if f == "trn2_attn_fused_bf16_s512" {
			for i := range m.Instr.Len() {
				id := components.InstrID(i)
				lo, hi := m.Operands.Range(id)
				var ap []components.AccessPattern
				for r := lo; r < hi; r++ {
					ap = append(ap, m.Operands.At(r))
				}
				t.Log(i, m.LaneName(m.Instr.Lane.At(i)), m.InstrName(id), m.OpcodeName(m.Instr.Opcode.At(i)), m.Symbols.String(m.Instr.Func.At(i)), m.Instr.Elems.At(i), m.Instr.OutElems.At(i), m.Instr.Parts.At(i), m.Instr.DType.At(i), m.Instr.Banks.At(i), m.Instr.DMABytes.At(i), m.Instr.DMARow.At(i), m.Instr.Queue.At(i), m.Instr.Flags.At(i), ap, m.Symbols.String(m.Instr.Text.At(i)))
			}
		}
	}
}
