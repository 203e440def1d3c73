package birjson

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// readText reads a module given as text.
func readText(t testing.TB, text string, jobs int) (*components.Module, error) {
	t.Helper()
	src, err := format.FromBytes("test.bir.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Read(context.Background(), src, format.Options{Jobs: jobs})
}

// appendixA is a minimal document with all parts
// where a difference must show.
const appendixA = `{
  "version": 2,
  "arch": "gen3",
  "attributes": {"neuron_core_id": 0},
  "functions": [{
    "name": "sg0000",
    "attributes": [],
    "allocations": [
      {"Skind": "memory_location_set", "name": "x_set", "kind": "ExternalInput", "tensor_class": "Tensor",
       "addr_space": "Local", "dtype": "bfloat16", "partition_dim": 0, "tensor_shape": [128, 512],
       "memorylocations": [{"Skind": "memory_location", "name": "x", "type": "Input", "addr": 0,
                            "dims": [128, 1024], "bank": 0, "base": 0, "allocated": true}]},
      {"Skind": "memory_location_set", "name": "t_set", "kind": "Internal", "tensor_class": "NeuronSBTensor",
       "dtype": "bfloat16", "partition_dim": 0, "tensor_shape": [128, 512],
       "memorylocations": [{"Skind": "memory_location", "name": "t", "type": "SB", "addr": 4096,
                            "dims": [128, 1024], "bank": 0, "base": 0, "allocated": true}]}
    ],
    "blocks": [{"name": "Block1", "instructions": [
      {"opcode": "DMACopy", "name": "I-0", "engine": "SP", "mode": "Copy", "queue": "qSPIO0", "dge_type": "HWDGE",
       "ins":  [{"kind": "physical_ap", "ap": [[512, 128], [1, 512]], "offset": 0, "dtype": "bfloat16", "memref": "x", "memsetref": "x_set"}],
       "outs": [{"kind": "physical_ap", "ap": [[512, 128], [1, 512]], "offset": 0, "dtype": "bfloat16", "memref": "t", "memsetref": "t_set"}]},
      {"opcode": "TensorScalar", "name": "I-1", "engine": "DVE", "op0": "mult", "const0": 2.0, "reverse0": false,
       "op1": "bypass", "const1": 0.0, "reverse1": false,
       "dependencies": [["I-0", "Flow"]],
       "ins":  [{"kind": "physical_ap", "ap": [[512, 128], [1, 512]], "offset": 0, "dtype": "bfloat16", "memref": "t", "memsetref": "t_set"}],
       "outs": [{"kind": "physical_ap", "ap": [[512, 128], [1, 512]], "offset": 0, "dtype": "bfloat16", "memref": "t", "memsetref": "t_set"}]}
    ]}]
  }]
}`

func TestAppendixA(t *testing.T) {
	for _, jobs := range []int{1, 2} {
		m, err := readText(t, appendixA, jobs)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", m.Notes)
		in := &m.Instr
		if in.Len() != 2 || in.Elems.At(0) != 512 || in.Parts.At(0) != 128 || in.DType.At(0) != components.BFloat16 ||
			in.Lane.At(0) != components.LaneDMA || in.Lane.At(1) != components.LaneDVE {
			t.Errorf("instructions: %v %v %v %v", in.Elems.Slice(), in.Parts.Slice(), in.DType.Slice(), in.Lane.Slice())
		}
		if in.DMABytes.At(0) != 128*1024 || in.DMARow.At(0) != 1024 || in.DMABytes.At(1) != 0 {
			t.Errorf("DMA geometry: %v bytes, rows of %v", in.DMABytes.Slice(), in.DMARow.Slice())
		}
		if n := m.Edges.Preds.Len(); n != 1 || m.Edges.Preds.Row(1)[0] != 0 {
			t.Errorf("%d edges", n)
		}
		if o := m.Operands.At(1); o.Address != 4096 || o.Memory != components.MemSBUF || o.Where != 2 {
			t.Errorf("output of I-0: %+v", o)
		}
		if got := m.Symbols.String(in.Text.At(1)); got != `{"const0":2.0,"const1":0.0,"op0":"mult","op1":"bypass","reverse0":false,"reverse1":false}` {
			t.Errorf("text %s", got)
		}
		if m.Attribute("neuron_core_id") != "0" || m.Arch != "gen3" || m.Name != "test" {
			t.Errorf("attributes %v, arch %s, name %s", m.Attributes, m.Arch, m.Name)
		}
	}
}

// An open loop has a row before its name is known: until then it is not
// called I-<row>, whether the name behind the body is another or that one.
func TestNumberedNamesInLoops(t *testing.T) {
	loop := func(name, body string) string {
		return `{"opcode":"Loop","name":"` + name + `","LoopAxis":{"lb":0,"ub":4,"stride":1},"blocks":[{"name":"x","instructions":[` + body + `]}]}`
	}
	m, err := readText(t, one(loop("L0", loop("L1", `{"opcode":"NoOp","name":"I-1"},{"opcode":"NoOp","name":"I-0","dependencies":["I-1"]}`))+
		`,{"opcode":"NoOp","name":"z","dependencies":["I-0"]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"L0", "L1", "I-1", "I-0", "z"} {
		if got := m.InstrName(components.InstrID(i)); got != want {
			t.Errorf("row %d is called %s, want %s", i, got, want)
		}
	}
	if got := m.Edges.Preds.Row(3); len(got) != 1 || got[0]&ecs.TargetMask != 2 {
		t.Errorf("I-0 depends on %v, want row 2", got)
	}
	_, err = readText(t, one(loop("I-0", `{"opcode":"NoOp","name":"I-0"}`)), 1)
	if err == nil || !strings.Contains(err.Error(), "two instructions of one function are called I-0") {
		t.Errorf("a loop and its body share a name: %v", err)
	}
}
