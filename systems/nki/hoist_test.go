package nki

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
)

// expanded is a kernel in which four iterations of loop 0 load the same 32 KiB
// into blocks of their own and copy them; a store writes what they add up to.
const expanded = `{"perfsim_nki":1,"kernel":"k","generation":"old","grid":[],"files":["k.py"],"args":[]}
["t",0,"x","float32","hbm",[128,64],0,"ExternalInput",-1,-1,null,null]
["t",1,"a","float32","sbuf",[4,128,64],1,"Internal",-1,-1,null,null]
["t",2,"b","float32","sbuf",[4,128,64],1,"Internal",-1,-1,null,null]
["t",3,"y","float32","hbm",[512,64],0,"ExternalOutput",-1,-1,null,null]
["t",4,"c","float32","sbuf",[128,64],0,"Internal",-1,-1,null,null]
["f",0,"DMACopy","",{},0,8,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[64,128],[1,64]],0]]]
["f",1,"TensorCopy","DVE",{},0,9,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[1,64]],0]]]
["f",2,"DMACopy","",{},0,10,[["float32",128,1,[[64,128],[1,64]],0]],[["float32",128,1,[[1,64]],0]]]
["p",0,[]]
["l",0,4]
[0,1,[0,0,1],0,0,0,FROM]
[1,2,[0,0,1],0,0,1,[0,0,1],0,0]
[2,3,[0,0,8192],2,[0,0,1],0,0]
["e"]
["z",3]
`

// What a loop computes anew each time is computed once: one load and one copy
// for four stores. Nothing is where the load moves with the loop, where what is
// loaded is written in it, where a block is used after it, and in the new API.
func TestHoisting(t *testing.T) {
	t.Parallel()
	same := strings.Replace(expanded, "FROM", "0", 1)
	for _, c := range []struct {
		name, text string
		want       string
	}{
		{"same", same, "1 1 4"},
		{"moves", strings.Replace(expanded, "FROM", "[0,0,8192]", 1), "4 4 4"},
		{"new API", strings.Replace(same, `"old"`, `"new"`, 1), "4 4 4"},
		{"one block", strings.NewReplacer(`"a","float32","sbuf",[4,128,64],1`, `"a","float32","sbuf",[128,64],0`, `[0,1,[0,0,1],0,0`, `[0,1,0,0,0`, `1,[0,0,1],0,0]`, `1,0,0,0]`).Replace(same), "4 4 4"},
		{"written in the loop", strings.Replace(same, "[2,3,[0,0,8192],2", "[2,0,0,2", 1), "4 4 4"},
		{"used after", strings.Replace(same, `["e"]`, "[\"e\"]\n[1,4,0,0,0,1,3,0,0]", 1), "4 5 4"},
		{"another block", strings.Replace(same, `[0,0,1],0,0,1,[0,0,1],0,0]`, `[0,0,1],0,0,1,2,0,0]`, 1), "4 4 4"},
	} {
		m := lower(t, c.text)
		var loads, copies, stores int
		for i, op := range m.Instr.Opcode.Slice() {
			switch {
			case op == components.OpcodeTensorCopy:
				copies++
			case m.Instr.Flags.At(i).Has(components.FlagDstDRAM):
				stores++
			default:
				loads++
			}
		}
		if got := fmt.Sprint(loads, copies, stores); got != c.want {
			t.Errorf("%s: loads, copies, stores %s, want %s", c.name, got, c.want)
		}
	}
	if m := lower(t, same); len(m.Notes) != 1 || m.Notes[0].Code != "nki-hoist" || m.Notes[0].Count != 6 {
		t.Errorf("notes %v", m.Notes)
	}
	// All stores read what the one copy wrote.
	m := lower(t, same)
	for i := 2; i < m.Instr.Len(); i++ {
		if p := m.Edges.Preds.Row(i); len(p) == 0 || p[0]&(1<<30-1) != 1 {
			t.Errorf("store %d depends on rows %v", i, p)
		}
	}
}
