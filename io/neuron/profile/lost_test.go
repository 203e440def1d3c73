package profile

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
)

// Two engines raise and wait in turn; the Vector engine lost its fourth step.
// A stand-in raises and waits as the steps around it do: from waits for 1, 2, 3
// and 5 it follows that the lost one waits for 4.
func TestLostStep(t *testing.T) {
	var list []string
	add := func(id, pc int, label, opcode, operands string) {
		list = append(list, fmt.Sprintf(`{"id":%d,"timestamp":%d,"duration":10,"label":%q,"opcode":%q,"operands":%q,"pc":%d,"predecessors":[]}`, id, 100*id, label, opcode, operands, pc))
	}
	for k := 1; k <= 6; k++ {
		add(k, 10+k, "Scalar", "COPY", "S[4] (Scalar)++@complete")
	}
	for k := 1; k <= 6; k++ {
		if k != 4 {
			add(10+k, 20+k, "Vector", "COPY", fmt.Sprintf("S[4] (Scalar)>=%d S[5] (Vector)++@complete", k))
		}
	}
	list = append(list, `{"id":30,"timestamp":3000,"duration":10,"label":"Sync","opcode":"NOP","operands":"S[5] (Vector)>=6","pc":5,"predecessors":[{"id":14,"type":"FLOW_DEPENDENCE"}]}`)
	m, err := parse(t, "lost", []byte(`{"instruction":[`+strings.Join(list, ",")+`]}`), 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Instr.Len() != 13 {
		t.Fatalf("%d instructions, want 13: 12 and a stand-in", m.Instr.Len())
	}
	found := false
	for i := range m.Instr.Len() {
		if m.Instr.Engine.At(i) != components.DVE || m.Instr.PC.At(i) != 24 {
			continue
		}
		found = true
		off := m.Syncs.Offsets.Slice()
		var waits, raises int64
		for s := off[i]; s < off[i+1]; s++ {
			switch {
			case m.Syncs.Op.At(int(s)) == components.WaitGE && m.Syncs.ID.At(int(s)) == 4:
				waits = m.Syncs.Value.At(int(s))
			case m.Syncs.ID.At(int(s)) == 5:
				raises += m.Syncs.Value.At(int(s))
			}
		}
		if waits != 4 || raises != 1 {
			t.Errorf("the stand-in waits for %d and raises by %d, want 4 and 1", waits, raises)
		}
	}
	if !found {
		t.Error("no stand-in at the gap")
	}
	notes := map[string]string{}
	for _, n := range m.Notes {
		notes[n.Code] = n.Text
	}
	if want := "the profile lost 1 record (Vector 1: gaps of the program counter), 1 inferred from like places: the kernel time is not known exactly"; notes[components.NoteInferred] != want {
		t.Errorf("%q, want %q", notes[components.NoteInferred], want)
	}
	if want := "dependencies on ids that no record has: left out; the profile lost at least 1 instruction"; notes[components.NoteLostIDs] != want {
		t.Errorf("%q, want %q", notes[components.NoteLostIDs], want)
	}
}
