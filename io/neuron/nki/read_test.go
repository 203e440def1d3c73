package nki

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/nkirecord"
	"perfsim/io/format"
)

const small = `{"perfsim_nki":1,"kernel":"k","generation":"new","grid":[],"files":["k.py"],"args":[{"name":"x","dtype":"float32","shape":[256,64]}]}
["t",0,"x","float32","hbm",[256,64],0,"ExternalInput",-1,-1,null,null]
["t",1,"","float32","sbuf",[128,64],0,"Internal",0,-1,[0,7],null]
["f",0,"DMACopy","",{},0,8,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[64,128],[1,64]],0]]]
["p",0,[]]
["l",0,2]
[0,1,0,0,0,0,[0,0,8192]]
["e"]
["n","remark",3]
["z",1]
`

func read(t *testing.T, text string) (*nkirecord.Record, error) {
	t.Helper()
	src, err := format.FromBytes("k.nki.jsonl", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !Importer.Sniff([]byte(text)) && strings.HasPrefix(text, "{") {
		t.Fatal("not recognised")
	}
	return Read(context.Background(), src, format.Options{})
}

func TestRead(t *testing.T) {
	r, err := read(t, small)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kernel != "k" || len(r.Tensors) != 2 || len(r.Forms) != 1 || r.Loops != 1 || r.Recorded() != 1 {
		t.Fatalf("%+v", r)
	}
	if x := r.Tensors[1]; x.Memory != components.MemSBUF || x.Parts() != 128 || x.Bytes() != 256 || x.Loop != 0 || x.Line != 7 {
		t.Errorf("tile %+v", x)
	}
	p := r.Programs[0]
	last := p.Values[len(p.Values)-1]
	if last.C != 0 || last.N != 1 || p.Terms[last.First] != (nkirecord.Term{Loop: 0, K: 8192}) {
		t.Errorf("offset %+v, terms %+v", last, p.Terms)
	}
	if len(r.Notes) != 1 || r.Notes[0] != (nkirecord.Note{Text: "remark", Count: 3}) {
		t.Errorf("notes %+v", r.Notes)
	}
}

func TestReadNamesTheLine(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`["z",1]` + "\n", "", "k.nki.jsonl:9: the record ends without its last line"},
		{`"perfsim_nki":1`, `"perfsim_nki":2`, "k.nki.jsonl:1: record version 2; 1 is known"},
		{`["t",1,`, `["t",5,`, "k.nki.jsonl:3: tensor 5 where 1 comes next"},
		{`"sbuf"`, `"rom"`, `k.nki.jsonl:3: memory "rom" is not known`},
		{`[128,64],0,"Internal"`, `[256,64],0,"Internal"`, "k.nki.jsonl:3: a tile without a partition axis"},
		{`"f",0`, `"f",1`, "k.nki.jsonl:4: form 1 where 0 comes next"},
		{`["float32",128,1,[[1,64]],0]`, `["float33",128,1,[[1,64]],0]`, `k.nki.jsonl:4: element type "float33" is not known`},
		{`[0,1,0,0,0,0,[0,0,8192]]`, `[0,1,0,0,0,0]`, "k.nki.jsonl:7: an instruction with too few numbers"},
		{`[0,1,0,0,0,0,[0,0,8192]]`, `[0,1,0,0,0,0,0,1]`, "k.nki.jsonl:7: an instruction with too many numbers"},
		{`[0,1,0,0,0,0,[0,0,8192]]`, `[7,1,0,0,0,0,0]`, "k.nki.jsonl:7: form 7 is not known"},
		{`[0,0,8192]]`, `[0,3,8192]]`, "k.nki.jsonl:7: an expression of loop 3 outside it"},
		{`["e"]`, `["e"]` + "\n" + `["e"]`, "k.nki.jsonl:9: the end of a loop that did not begin"},
		{`["e"]` + "\n", "", "k.nki.jsonl:9: the record ends inside a loop"},
		{`["p",0,[]]` + "\n", "", "k.nki.jsonl:5: a loop outside a program"},
	} {
		_, err := read(t, strings.Replace(small, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: %v, want %s", c.old, c.new, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(strings.Replace(small, "[0,0,8192]", "[0,0,-8192]", 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, err := format.FromBytes("fuzz", b)
		if err != nil {
			return
		}
		r, err := Read(context.Background(), src, format.Options{})
		if err == nil && r == nil {
			t.Fatal("no record and no error")
		}
	})
}
