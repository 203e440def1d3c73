package cost_test

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/systems/cost"
)

// Inline machine code takes what the compiler estimated: 250 ns on DVE keep
// the engine for 150 ns (an overlap window of 100), 60 ns are below the
// window, no estimate and a word are no cost.
func TestInlineASMTakesItsEstimate(t *testing.T) {
	text := `{"functions":[{"name":"f","blocks":[{"name":"b","instructions":[
		{"opcode":"InlineASMBytes","name":"a","engine":"DVE","asm_bytes":[1],"latency_estimate":250},
		{"opcode":"InlineASMBytes","name":"b","engine":"DVE","asm_bytes":[1],"latency_estimate":60},
		{"opcode":"InlineASMBytes","name":"c","engine":"DVE","asm_bytes":[2]},
		{"opcode":"InlineASMBytes","name":"d","engine":"DVE","asm_bytes":[2],"latency_estimate":"inf"},
		{"opcode":"InlineASMBytes","name":"e","engine":"DVE","asm_bytes":[1],"latency_estimate":250}]}]}]}`
	src, err := format.Open(context.Background(), "-", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := birjson.Read(context.Background(), src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}}
	if err := cost.Fill(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	want := [][2]uint32{{150, 250}, {60, 60}, {0, 0}, {0, 0}, {150, 250}}
	for i, v := range want {
		if got := [2]uint32{m.Instr.Issue.At(i), m.Instr.Latency.At(i)}; got != v {
			t.Errorf("%s keeps its lane for %d and takes %d ns, want %v", m.InstrName(components.InstrID(i)), got[0], got[1], v)
		}
	}
	var notes []string
	for _, n := range m.Notes {
		if n.Code == "inline-asm" {
			notes = append(notes, n.Text)
		}
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "latency in ns") || !strings.Contains(notes[1], "not used") {
		t.Errorf("notes %q", notes)
	}
}
