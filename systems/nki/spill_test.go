package nki

import (
	"strings"
	"testing"

	"perfsim/components"
)

// crowded makes three tiles of 1,024 bytes a partition where two fit: a is
// loaded, b is a copy of a, c one of b; then c, a and b are stored. c needs the
// place of a, which is stored after c.
const crowded = `{"perfsim_nki":1,"kernel":"k","generation":"new","grid":[],"files":["k.py"],"args":[]}
["t",0,"x","float32","hbm",[128,256],0,"ExternalInput",-1,-1,null,null]
["t",1,"y","float32","hbm",[384,256],0,"ExternalOutput",-1,-1,null,null]
["t",2,"a","float32","sbuf",[128,256],0,"Internal",-1,-1,null,null]
["t",3,"b","float32","sbuf",[128,256],0,"Internal",-1,-1,null,null]
["t",4,"c","float32","sbuf",[128,256],0,"Internal",-1,-1,null,null]
["f",0,"DMACopy","",{},0,4,[["float32",128,1,[[1,256]],0]],[["float32",128,1,[[256,128],[1,256]],0]]]
["f",1,"TensorCopy","DVE",{},0,5,[["float32",128,1,[[1,256]],0]],[["float32",128,1,[[1,256]],0]]]
["f",2,"DMACopy","",{},0,6,[["float32",128,1,[[256,128],[1,256]],0]],[["float32",128,1,[[1,256]],0]]]
["f",3,"Memset","DVE",{"zero":true},0,4,[["float32",128,1,[[1,256]],0]],[]]
["p",0,[]]
MAKE
[1,3,0,0,0,2,0,0,0]
[1,4,0,0,0,3,0,0,0]
[2,1,0,4,0,0,0]
[2,1,32768,2,0,0,0]
[2,1,65536,3,0,0,0]
["z",6]
`

// What is computed is saved and loaded; where only loads and constants do not
// fit, nothing is, and the kernel is marked.
func TestSpill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, make     string
		rows           int
		saves, reloads int
		bytes          string
	}{
		{"loaded", `[0,2,0,0,0,0,0]`, 6, 0, 0, "131072"},
		{"constant", `[3,2,0,0,0]`, 6, 0, 0, "131072"},
		{"computed", "[3,2,0,0,0]\n[1,2,0,0,0,2,0,0,0]", 9, 1, 1, "262144"},
	} {
		text := strings.Replace(crowded, "MAKE", c.make, 1)
		if c.name == "computed" {
			text = strings.Replace(text, `["z",6]`, `["z",7]`, 1)
		}
		m := lower(t, text, func(o *Options) { o.SBUF = 2048 })
		saves, reloads := 0, 0
		for i := range m.Instr.Len() {
			f := m.Instr.Flags.At(i)
			switch {
			case !f.Has(components.FlagSpill):
			case f.Has(components.FlagDstDRAM):
				saves++
			default:
				reloads++
			}
		}
		if m.Instr.Len() != c.rows || saves != c.saves || reloads != c.reloads || m.Attribute("nki.spill_bytes") != c.bytes {
			t.Errorf("%s: %d rows, %d saves, %d reloads, %q bytes; want %d, %d, %d, %q", c.name, m.Instr.Len(), saves, reloads,
				m.Attribute("nki.spill_bytes"), c.rows, c.saves, c.reloads, c.bytes)
		}
		// Every store reads what its tile was last given, wherever that lies now.
		for i := range m.Instr.Len() {
			if m.Instr.Flags.At(i).Has(components.FlagDstDRAM) && len(m.Edges.Preds.Row(i)) == 0 {
				t.Errorf("%s: store %d waits for nothing", c.name, i)
			}
		}
	}
}

// A row of tiles that all fit is left as it is.
func TestNoSpill(t *testing.T) {
	t.Parallel()
	m := lower(t, strings.Replace(crowded, "MAKE", `[0,2,0,0,0,0,0]`, 1), func(o *Options) { o.SBUF = 3072 })
	if m.Instr.Len() != 6 || m.Attribute("nki.spill_bytes") != "" {
		t.Errorf("%d rows, %q bytes spilled", m.Instr.Len(), m.Attribute("nki.spill_bytes"))
	}
}

// Loads of the right side of nl.matmul that do the same again are made once on
// trn1: loop 0 of two iterations loads both halves of x each time.
func TestLoadOnce(t *testing.T) {
	t.Parallel()
	text := `{"perfsim_nki":1,"kernel":"k","generation":"old","grid":[],"files":["k.py"],"args":[]}
["t",0,"x","float32","hbm",[128,256],0,"ExternalInput",-1,-1,null,null]
["t",1,"w","float32","sbuf",[128,128],0,"Internal",1,-1,null,null]
["t",2,"s","float32","sbuf",[128,128],0,"Internal",-1,-1,null,null]
["t",3,"p","float32","psum",[128,128],0,"Internal",-1,0,null,null]
["f",0,"DMACopy","",{},0,4,[["float32",128,1,[[1,128]],0]],[["float32",128,1,[[256,128],[1,128]],0]]]
["f",1,"Matmult","PE",{"high":true},0,5,[["float32",128,1,[[1,128]],0]],[["float32",128,1,[[1,128]],0],["float32",128,1,[[1,128]],0]]]
["f",2,"Memset","DVE",{},0,3,[["float32",128,1,[[1,128]],0]],[]]
["p",0,[]]
[2,2,0,0,0]
["l",0,2]
["l",1,2]
[0,1,0,0,0,0,[0,1,128]]
[1,3,0,0,0,1,0,0,0,2,0,0,0]
["e"]
["e"]
["z",3]
`
	for _, c := range []struct {
		machine string
		loads   int
	}{{"trn1", 2}, {"trn2", 4}} {
		m := lowerFor(t, c.machine, text)
		loads := 0
		for _, op := range m.Instr.Opcode.Slice() {
			if op == components.OpcodeDMACopy {
				loads++
			}
		}
		if loads != c.loads {
			t.Errorf("%s: %d loads, want %d", c.machine, loads, c.loads)
		}
	}
}
