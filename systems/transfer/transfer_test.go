package transfer_test

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/systems/cost"
	"perfsim/systems/place"
	"perfsim/systems/transfer"
)

// module is a trigger of a transfer of 128 rows of 512 bfloat16 numbers, its
// consumer, and an instruction that only follows the trigger.
const module = `{"version":2,"arch":"gen3","queues":[{"name":"q","blocks":[{"instructions":[{"opcode":"DMABlock","name":"d0","blocks":[{"instructions":[
	{"opcode":"DMADescriptorCopy","ins":[{"kind":"physical_ap","ap":[[512,128],[1,512]],"offset":0,"dtype":"bfloat16","memref":"x"}],
	 "outs":[{"kind":"physical_ap","ap":[[512,128],[1,512]],"offset":0,"dtype":"bfloat16","memref":"t"}]}]}]}]}]}],
"functions":[{"name":"f","allocations":[
	{"Skind":"memory_location_set","name":"xs","memorylocations":[{"Skind":"memory_location","name":"x","type":"DRAM","addr":0,"dims":[128,1024]}]},
	{"Skind":"memory_location_set","name":"ts","memorylocations":[{"Skind":"memory_location","name":"t","type":"SB","addr":0,"dims":[128,1024]}]}],
"blocks":[{"name":"b","instructions":[
	{"opcode":"DMATrigger","name":"go","engine":"SP","dge_type":"HWDGE","dma_blocks":["d0"]},
	{"opcode":"TensorScalar","name":"use","engine":"DVE","dependencies":[["go","Flow"]],
	 "ins":[{"kind":"physical_ap","ap":[[512,128],[1,512]],"offset":0,"dtype":"bfloat16","memref":"t"}],
	 "outs":[{"kind":"physical_ap","ap":[[512,128],[1,512]],"offset":0,"dtype":"bfloat16","memref":"t"}]},
	{"opcode":"Memset","name":"next","engine":"Pool","dependencies":[["go","Ordered"]],
	 "outs":[{"kind":"physical_ap","ap":[[512,128],[1,64]],"offset":0,"dtype":"bfloat16","memref":"t"}]}]}]}]}`

func read(t *testing.T) *components.Module {
	t.Helper()
	src, err := format.FromBytes("trigger.json", []byte(module))
	if err != nil {
		t.Fatal(err)
	}
	m, err := birjson.Importer.Module(context.Background(), src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The transfer takes 1300 + 700·100/120 + 8·1024/23 = 1300 + 583 + 356 ns on the
// DMA lane; its consumer waits for it, what is only ordered behind the trigger
// does not.
func TestExpand(t *testing.T) {
	was := read(t)
	m, err := transfer.Expand(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	if again, err := transfer.Expand(m); err != nil || again != m {
		t.Errorf("expanded twice: %v", err)
	}
	if was.Instr.Len() != 3 || m.Instr.Len() != 4 {
		t.Fatalf("%d rows became %d", was.Instr.Len(), m.Instr.Len())
	}
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
	if err := cost.Fill(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	if err := place.Run(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name       string
		id         uint64
		lane       uint16
		start, end uint64
	}{
		{"go", 0, components.LaneSP, 0, 0},
		{"go.transfer", 0, components.LaneDMA, 0, 2239},
		{"use", 1, components.LaneDVE, 2239, 2239 + (512+50)*100/96},
		{"next", 2, components.LanePool, 0, (64 + 50) * 100 / 96},
	} {
		start, end := w.Events.Span(m, components.InstrID(i), components.RunA)
		if m.InstrName(components.InstrID(i)) != want.name || m.Instr.Ref.At(i) != want.id || m.Instr.Lane.At(i) != want.lane || start != want.start || end != want.end {
			t.Errorf("row %d is %s (id %d) on lane %d from %d to %d, want %+v", i, m.InstrName(components.InstrID(i)), m.Instr.Ref.At(i), m.Instr.Lane.At(i), start, end, want)
		}
	}
	if m.Instr.DMABytes.Get(0) != 0 || m.Instr.DMABytes.Get(1) != 128*1024 {
		t.Fatalf("the trigger moves %d bytes, the transfer %d", m.Instr.DMABytes.Get(0), m.Instr.DMABytes.Get(1))
	}
}

// Sizes in bytes without sizes of rows, as a snapshot may have them.
func TestExpandWithoutRows(t *testing.T) {
	m := read(t)
	m.Instr.DMABytes.Resize(0)
	m.Instr.DMABytes.Resize(m.Instr.Len())
	m.Instr.DMARow.Resize(0)
	m, err := transfer.Expand(m)
	if err != nil {
		t.Fatal(err)
	}
	if m.Instr.Len() != 4 {
		t.Errorf("%d rows, want 4", m.Instr.Len())
	}
}
