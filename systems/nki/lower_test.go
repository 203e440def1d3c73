package nki

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	kernels "perfsim/io/neuron/nki"
	"perfsim/systems/sched"
)

// lower reads a record and lowers it in program order for trn2.
func lower(t *testing.T, text string, change ...func(*Options)) *components.Module {
	t.Helper()
	return lowerFor(t, "trn2", text, change...)
}

func lowerFor(t *testing.T, name, text string, change ...func(*Options)) *components.Module {
	t.Helper()
	src, err := format.FromBytes("k.nki.jsonl", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := kernels.Read(context.Background(), src, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mach, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Policy = sched.Keep
	for _, c := range change {
		c(&o)
	}
	m, err := Lower(context.Background(), rec, mach, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const head = `{"perfsim_nki":1,"kernel":"k","generation":"new","grid":[],"files":["k.py"],"args":[]}
["t",0,"x","float32","hbm",[1024,64],0,"ExternalInput",-1,-1,null,null]
["t",1,"a","float32","sbuf",[128,64],0,"Internal",0,-1,[0,7],null]
["t",2,"y","float32","hbm",[1024,64],0,"ExternalOutput",-1,-1,null,null]
["f",0,"DMACopy","",{},0,8,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[64,128],[1,64]],0]]]
["f",1,"DMACopy","",{},0,9,[["float32",128,1,[[64,128],[1,64]],0]],[["float32",128,1,[[1,64]],0]]]
`

// A loop of eight loads and stores of 128 × 64 × 4 bytes: each iteration has a
// tile of its own, so the only dependency is of a store on its load.
const copyLoop = head + `["p",0,[]]
["l",0,8]
[0,1,0,0,0,0,[0,0,8192]]
[1,2,[0,0,8192],1,0,0,0]
["e"]
["z",2]
`

func TestLoopsAreWrittenOut(t *testing.T) {
	m := lower(t, copyLoop)
	if m.Instr.Len() != 16 {
		t.Fatalf("%d instructions", m.Instr.Len())
	}
	var bytes uint64
	for i := range m.Instr.Len() {
		bytes += m.Instr.DMABytes.At(i)
		want := "k.py:8"
		if i%2 == 1 {
			want = "k.py:9"
			if p := m.Edges.Preds.Row(i); len(p) != 1 || p[0]&(1<<30-1) != uint32(i-1) {
				t.Errorf("store %d depends on %v", i, p)
			}
		} else if p := m.Edges.Preds.Row(i); len(p) != 0 {
			t.Errorf("load %d depends on %v", i, p)
		}
		if got := m.Symbols.String(m.Instr.Source.At(i)); got != want {
			t.Errorf("row %d is from %s", i, got)
		}
	}
	if bytes != 2*1024*64*4 {
		t.Errorf("%d bytes", bytes)
	}
	// Load k reads row 128 k of x: 128 × 64 × 4 bytes further each time.
	for k := range 8 {
		lo, _ := m.Operands.Range(components.InstrID(2 * k))
		if a := m.Operands.Address.At(lo); a != uint64(k*32768) {
			t.Errorf("load %d reads at %d", k, a)
		}
	}
}

// Hardware makes the descriptors of kernels in the new API on trn2, commanded
// by SP for loads and by Activation for stores. Kernels in the old one, and
// all on trn1, have descriptors made before the run, unless options say so.
func TestWhoMakesDescriptors(t *testing.T) {
	static := func(o *Options) { o.StaticDMA = true }
	dynamic := func(o *Options) { o.DynamicDMA = true }
	none := func(*Options) {}
	for _, c := range []struct {
		api, machine string
		change       func(*Options)
		want         components.Flags
	}{
		{"new", "trn2", none, components.FlagHWDGE}, {"new", "trn2", static, components.FlagStaticDMA}, {"new", "trn1", none, components.FlagStaticDMA},
		{"old", "trn2", none, components.FlagStaticDMA}, {"old", "trn2", dynamic, components.FlagHWDGE},
	} {
		m := lowerFor(t, c.machine, strings.Replace(copyLoop, `"generation":"new"`, `"generation":"`+c.api+`"`, 1), c.change)
		load, store := m.Instr.Engine.At(0), m.Instr.Engine.At(1)
		wantStore := components.Pool
		if c.want == components.FlagHWDGE {
			wantStore = components.Activation
		}
		both := components.FlagHWDGE | components.FlagStaticDMA
		if f := m.Instr.Flags.At(0) & both; f != c.want || load != components.SP || store != wantStore {
			t.Errorf("%s API on %s: flags %v, load by %v, store by %v", c.api, c.machine, f, load, store)
		}
	}
}

// A transfer says itself how its descriptors are made, and by whom.
func TestAskedDescriptors(t *testing.T) {
	for ask, want := range map[string]components.Flags{"none": components.FlagStaticDMA, "swdge": components.FlagSWDGE, "hwdge": components.FlagHWDGE} {
		m := lower(t, strings.Replace(copyLoop, `"DMACopy","",{},0,8`, `"DMACopy","",{"dge":"`+ask+`"},0,8`, 1))
		if f := m.Instr.Flags.At(0); !f.Has(want) {
			t.Errorf("%s: flags %v", ask, f)
		}
	}
	m := lower(t, strings.Replace(copyLoop, `"DMACopy","",{},0,9`, `"DMACopy","SP",{},0,9`, 1))
	if e := m.Instr.Engine.At(1); e != components.SP {
		t.Errorf("a store on SP is triggered by %v", e)
	}
}

// The order follows from the API, the memset goes to the DVE.
func TestOrderByAPI(t *testing.T) {
	for api, want := range map[bool]sched.Policy{true: sched.Greedy, false: sched.TimeAware} {
		o := DefaultOptions()
		o.resolve(api, 30)
		if o.Policy != want {
			t.Errorf("new API %v: policy %d", api, o.Policy)
		}
	}
	o := Options{Policy: sched.Keep}
	if o.resolve(true, 30); o.Policy != sched.Keep {
		t.Errorf("policy %d", o.Policy)
	}
	m := lower(t, strings.Replace(strings.Replace(product, "%s", "new", 1), "ATTR", "", 1))
	if e := m.Instr.Engine.At(0); m.Instr.Opcode.At(0) != components.OpcodeMemset || e != components.DVE {
		t.Errorf("memset on %v", e)
	}
}

// With room for two tiles, load k waits for store k-2.
func TestBuffersComeBackOldestFirst(t *testing.T) {
	m := lower(t, copyLoop, func(o *Options) { o.SBUF = 512 })
	for k := 2; k < 8; k++ {
		p := m.Edges.Preds.Row(2 * k)
		found := false
		for _, w := range p {
			found = found || w&(1<<30-1) == uint32(2*(k-2)+1)
		}
		if !found {
			t.Errorf("load %d depends on rows %v", k, p)
		}
	}
	if m.Attribute("nki.spill_bytes") != "" {
		t.Error("two tiles fit, and one is alive at a time")
	}
}

const product = `{"perfsim_nki":1,"kernel":"k","generation":"%s","grid":[],"files":["k.py"],"args":[]}
["t",0,"s","bfloat16","sbuf",[128,128],0,"Internal",-1,-1,null,null]
["t",1,"m","bfloat16","sbuf",[128,512],0,"Internal",-1,-1,null,null]
["t",2,"p","float32","psum",[128,512],0,"Internal",-1,0,null,null]
["t",3,"r","float32","sbuf",[128,512],0,"Internal",-1,-1,null,null]
["f",0,"Memset","",{},0,4,[["bfloat16",128,1,[[1,128]],0]],[]]
["f",1,"Memset","",{},0,5,[["bfloat16",128,1,[[1,512]],0]],[]]
["f",2,"Matmult","PE",{ATTR},0,6,[["float32",128,1,[[1,512]],0]],[["bfloat16",128,1,[[1,512]],0],["bfloat16",128,1,[[1,128]],0]]]
["f",3,"TensorCopy","",{},0,7,[["float32",128,1,[[1,512]],0]],[["float32",128,1,[[1,512]],0]]]
["p",0,[]]
[0,0,0,0,0]
[1,1,0,0,0]
["l",0,3]
[2,2,0,0,0,1,0,0,0,0,0,0,0]
["e"]
[3,3,0,0,0,2,0,0,0]
["z",6]
`

// Whether a matmul starts a group follows from the first write, unless the
// kernel says so. Zeros that matmuls overwrite are not written.
func TestAccumulationGroups(t *testing.T) {
	for _, c := range []struct {
		generation, attr, want string
	}{
		{"new", ``, "1 0 0"},
		{"new", `"accumulate":false`, "1 1 1"},
		{"new", `"accumulate":true`, "0 0 0"},
		{"old", ``, "1 1 1"},
		{"old", `"accumulate":true,"implied":true`, "1 0 0"},
	} {
		m := lower(t, strings.Replace(strings.Replace(product, "%s", c.generation, 1), "ATTR", c.attr, 1))
		var got []string
		memsets := 0
		for i, op := range m.Instr.Opcode.Slice() {
			if op.IsMatmul() {
				if m.Instr.Flags.At(i).Has(components.FlagAccStart) {
					got = append(got, "1")
				} else {
					got = append(got, "0")
				}
			}
			if op == components.OpcodeMemset {
				memsets++
			}
		}
		if s := strings.Join(got, " "); s != c.want || memsets != 2 {
			t.Errorf("%s {%s}: starts %s, want %s; %d memsets", c.generation, c.attr, s, c.want, memsets)
		}
	}
}

// Copies without an engine go to DVE and Activation by work so far.
func TestEnginesByLoad(t *testing.T) {
	text := strings.Replace(strings.Replace(product, "%s", "new", 1), "ATTR", "", 1)
	text = strings.Replace(text, `[3,3,0,0,0,2,0,0,0]`, strings.Repeat("[3,3,0,0,0,2,0,0,0]\n", 9)+`[3,3,0,0,0,2,0,0,0]`, 1)
	m := lower(t, text)
	count := map[components.Engine]int{}
	for i, op := range m.Instr.Opcode.Slice() {
		if op == components.OpcodeTensorCopy {
			count[m.Instr.Engine.At(i)]++
		}
	}
	if count[components.DVE] < 3 || count[components.Activation] < 3 || count[components.DVE]+count[components.Activation] != 10 {
		t.Errorf("copies by engine: %v", count)
	}
}

func TestSpillsAreFlagged(t *testing.T) {
	m := lower(t, strings.Replace(strings.Replace(product, "%s", "new", 1), "ATTR", "", 1), func(o *Options) { o.SBUF = 1280 })
	// 256 + 1024 bytes are alive at the matmuls; the copy's 2,048 do not fit.
	if got := m.Attribute("nki.spill_bytes"); got != "262144" {
		t.Errorf("spill bytes %q", got)
	}
}

func TestSpaceTakesFreshMemoryThenTheOldest(t *testing.T) {
	s := newSpace(256, 64, false)
	at := func(n int64) int64 {
		a, ok := s.take(n)
		if !ok {
			t.Fatalf("%d bytes do not fit", n)
		}
		return a
	}
	a, b := at(64), at(64)
	s.give(a, 64, 1)
	c := at(128) // fresh memory before what was used
	s.give(b, 64, 5)
	if d := at(64); a != 0 || b != 64 || c != 128 || d != 0 {
		t.Errorf("%d %d %d %d", a, b, c, d)
	}
	s.give(0, 64, 9)
	if e := at(128); e != 0 {
		t.Errorf("two neighbours of different age make one place: %d", e)
	}
	if _, ok := s.take(64); ok {
		t.Error("256 bytes are taken")
	}
}

// Cores meet at barriers: what core 1 does after the barrier comes after all
// that core 0 does before it.
func TestTwoCores(t *testing.T) {
	m := lower(t, head+`["t",3,"b","float32","sbuf",[128,64],0,"Internal",-1,-1,null,null]
["f",2,"SendRecv","",{"to":1,"source":1},0,10,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[1,64]],0]]]
["f",3,"SendRecv","",{"to":0,"source":0},0,10,[["float32",128,1,[[1,64]],0]],[["float32",128,1,[[1,64]],0]]]
["t",4,"c","float32","sbuf",[128,64],0,"Internal",-1,-1,null,null]
["p",0,[0]]
[0,3,0,0,0,0,0]
[2,4,0,0,0,3,0,0,0]
[1,2,0,4,0,0,0]
["p",1,[1]]
[0,3,0,0,0,0,8192]
[3,4,0,0,0,3,0,0,0]
[1,2,8192,4,0,0,0]
["z",6]
`)
	if m.Instr.Len() != 6 || m.Lanes.Len() != 2*components.LanesPerCore {
		t.Fatalf("%d rows, %d lanes", m.Instr.Len(), m.Lanes.Len())
	}
	// Rows 0 and 1 load, 2 and 3 exchange, 4 and 5 store what was received:
	// core 0's store waits for core 1's transfer and the other way round.
	for row, want := range map[int]uint32{2: 0, 3: 1, 4: 3, 5: 2} {
		found := false
		for _, w := range m.Edges.Preds.Row(row) {
			found = found || w&(1<<30-1) == want
		}
		if !found {
			t.Errorf("row %d depends on %v, not on row %d", row, m.Edges.Preds.Row(row), want)
		}
	}
}
