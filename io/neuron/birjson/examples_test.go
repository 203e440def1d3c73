package birjson

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs/golden"
)

// kernel writes a small module and works out its dependencies: for a read the
// last writers of the tile, for a write also the readers since.
type kernel struct {
	source string
	allocs []string
	buf    map[string]*buffer
	blocks []string // instructions of the open blocks, innermost last
	loops  []string // headers of the open loops
	n      int
}

type buffer struct {
	dtype  string
	parts  int
	free   int
	access []access
}

type access struct {
	by       string
	from, to int // columns
	write    bool
}

func newKernel(source string) *kernel {
	return &kernel{source: source, buf: map[string]*buffer{}, blocks: []string{""}}
}

var dtypeBytes = map[string]int{"bfloat16": 2, "float32": 4}

// alloc places a tensor of parts partitions and free elements in each.
func (k *kernel) alloc(name, kind, mem, dtype string, parts, free, addr, bank int) {
	k.buf[name] = &buffer{dtype: dtype, parts: parts, free: free}
	k.allocs = append(k.allocs, fmt.Sprintf(`{"Skind":"memory_location_set","name":"%s_set","kind":"%s","dtype":"%s","tensor_shape":[%d,%d],"partition_dim":0,`+
		"\n       "+`"memorylocations":[{"Skind":"memory_location","name":"%s","type":"%s","addr":%d,"dims":[%d,%d],"bank":%d,"base":0,"allocated":true}]}`,
		name, kind, dtype, parts, free, name, mem, addr, parts, free*dtypeBytes[dtype], bank))
}

// tile is a piece of a buffer: columns from on, n of them in each partition.
type tile struct {
	buf     string
	from, n int
}

func all(buf string) tile { return tile{buf: buf} }

func (k *kernel) operand(t tile) string {
	b := k.buf[t.buf]
	n := t.n
	if n == 0 {
		n = b.free
	}
	return fmt.Sprintf(`{"kind":"physical_ap","ap":[[%d,%d],[1,%d]],"offset":%d,"dtype":"%s","memref":"%s","memsetref":"%s_set"}`,
		b.free, b.parts, n, t.from, b.dtype, t.buf, t.buf)
}

// before calls f for the accesses of the tile that an access to it has to wait
// for: back to where writes have covered it.
func (k *kernel) before(t tile, f func(a access)) (from, to int) {
	b := k.buf[t.buf]
	from, to = t.from, t.from+t.n
	if t.n == 0 {
		to = b.free
	}
	covered := make([]bool, b.free)
	for i := len(b.access) - 1; i >= 0; i-- {
		a := b.access[i]
		meets := false
		for c := max(a.from, from); c < min(a.to, to); c++ {
			meets = meets || !covered[c]
			covered[c] = covered[c] || a.write
		}
		if meets {
			f(a)
		}
	}
	return from, to
}

// op adds an instruction; extra is further members of it.
func (k *kernel) op(line int, opcode, engine, extra string, outs, ins []tile) string {
	name := fmt.Sprintf("I-%d", k.n)
	k.n++
	var deps []string
	seen := map[string]string{}
	order := []string{}
	add := func(on, kind string) {
		if on == "" || on == name {
			return
		}
		if old, ok := seen[on]; !ok {
			order = append(order, on)
		} else if old == "Flow" || old == "Output" && kind == "Anti" {
			return
		}
		seen[on] = kind
	}
	accumulates := strings.Contains(extra, `"start_tensor_calc":false`)
	for _, t := range ins {
		k.before(t, func(a access) {
			if a.write {
				add(a.by, "Flow")
			}
		})
	}
	for _, t := range outs {
		k.before(t, func(a access) {
			switch {
			case !a.write:
				add(a.by, "Anti")
			case accumulates:
				add(a.by, "Flow")
			default:
				add(a.by, "Output")
			}
		})
	}
	for i, t := range append(append([]tile(nil), ins...), outs...) {
		from, to := k.before(t, func(access) {})
		k.buf[t.buf].access = append(k.buf[t.buf].access, access{name, from, to, i >= len(ins)})
	}
	for _, on := range order {
		deps = append(deps, fmt.Sprintf(`["%s","%s"]`, on, seen[on]))
	}
	var in, out []string
	for _, t := range ins {
		in = append(in, k.operand(t))
	}
	for _, t := range outs {
		out = append(out, k.operand(t))
	}
	text := fmt.Sprintf(`{"name":"%s","opcode":"%s","engine":"%s"`, name, opcode, engine)
	if extra != "" {
		text += "," + extra
	}
	if len(deps) > 0 {
		text += `,"dependencies":[` + strings.Join(deps, ",") + "]"
	}
	text += fmt.Sprintf(`,"debug":{"filename":"%s","lineno":%d}`, k.source, line)
	text += ",\n       \"ins\":[" + strings.Join(in, ",\n              ") + "],\n       \"outs\":[" + strings.Join(out, ",\n               ") + "]}"
	k.push(text)
	return name
}

func (k *kernel) push(text string) {
	b := &k.blocks[len(k.blocks)-1]
	if *b != "" {
		*b += ",\n      "
	}
	*b += text
}

// begin opens a loop, end closes it.
func (k *kernel) begin(axis string, trips int) {
	k.loops = append(k.loops, fmt.Sprintf(`{"name":"L-%d","opcode":"Loop","engine":"ALL","LoopAxis":{"name":"%s","lb":0,"ub":%d,"stride":1}`, k.n, axis, trips))
	k.n++
	k.blocks = append(k.blocks, "")
}

func (k *kernel) end(name string) {
	n := len(k.blocks) - 1
	body := k.blocks[n]
	k.blocks = k.blocks[:n]
	head := k.loops[len(k.loops)-1]
	k.loops = k.loops[:len(k.loops)-1]
	k.push(head + `,"blocks":[{"name":"` + name + "\",\"instructions\":[\n      " + body + "\n      ]}]}")
}

func (k *kernel) String() string {
	return "{\"version\":2,\"arch\":\"gen3\",\"attributes\":{\"neuron_core_id\":0},\n \"functions\":[{\"name\":\"sg0000\",\"attributes\":[],\n" +
		"    \"allocations\":[\n      " + strings.Join(k.allocs, ",\n      ") + "],\n    \"blocks\":[{\"name\":\"Block1\",\"instructions\":[\n      " +
		k.blocks[0] + "\n    ]}]}]}\n"
}

const load = `"queue":"qSPDynamicHW","dge_type":"HWDGE","mode":"Copy"`

// tiledMatmul is C = A x B for A of 256 x 512 and B of 512 x 1024 in bf16:
// tiles of 128 x 128 and 128 x 512, four of them summed up in one PSUM bank.
func tiledMatmul() string {
	k := newKernel("tiled_matmul.py")
	k.alloc("a", "ExternalInput", "Input", "bfloat16", 512, 256, 0, 0)
	k.alloc("b", "ExternalInput", "Input", "bfloat16", 512, 1024, 0, 0)
	k.alloc("c", "ExternalOutput", "Output", "bfloat16", 256, 1024, 0, 0)
	addr := 0
	place := func(name string, free int, n int) {
		for i := range n {
			k.alloc(fmt.Sprintf("%s%d", name, i), "Internal", "SB", "bfloat16", 128, free, addr, 0)
			addr += free * 2
		}
	}
	place("ta", 256, 4)
	place("tb", 1024, 4)
	place("tc", 512, 2)
	for i := range 4 {
		k.alloc(fmt.Sprintf("acc%d", i), "Internal", "PSUM", "float32", 128, 512, 0, i)
	}
	for i := range 4 {
		k.opDRAM(12, load, "SP", all(fmt.Sprintf("ta%d", i)), "a", i*128*256, 128, 256, true)
		k.opDRAM(13, load, "SP", all(fmt.Sprintf("tb%d", i)), "b", i*128*1024, 128, 1024, true)
	}
	for mi := range 2 {
		for ni := range 2 {
			acc := fmt.Sprintf("acc%d", mi*2+ni)
			for ki := range 4 {
				flags := fmt.Sprintf(`"start_tensor_calc":%t,"stop_tensor_calc":%t`, ki == 0, ki == 3)
				k.op(18, "Matmult", "PE", flags, []tile{all(acc)},
					[]tile{{fmt.Sprintf("tb%d", ki), ni * 512, 512}, {fmt.Sprintf("ta%d", ki), mi * 128, 128}})
			}
			out := fmt.Sprintf("tc%d", ni)
			k.op(20, "TensorCopy", "DVE", "", []tile{all(out)}, []tile{all(acc)})
			k.opDRAM(21, strings.Replace(load, "qSP", "qAct", 1), "Activation", all(out), "c", mi*128*1024+ni*512, 128, 512, false)
		}
	}
	return k.String()
}

// opDRAM moves n rows of free elements between a tensor in device memory,
// from element offset on, and the tile t.
func (k *kernel) opDRAM(line int, extra, engine string, t tile, tensor string, offset, rows, free int, in bool) {
	b := k.buf[tensor]
	dram := fmt.Sprintf(`{"kind":"physical_ap","ap":[[%d,%d],[1,%d]],"offset":%d,"dtype":"%s","memref":"%s","memsetref":"%s_set"}`,
		b.free, rows, free, offset, b.dtype, tensor, tensor)
	// Loads read inputs that nothing writes, stores write pieces that nothing
	// else touches: only the tile makes dependencies.
	if in {
		k.op(line, "DMACopy", engine, extra, []tile{t}, nil)
		k.patch(`"ins":[]`, `"ins":[`+dram+`]`)
	} else {
		k.op(line, "DMACopy", engine, extra, nil, []tile{t})
		k.patch(`"outs":[]`, `"outs":[`+dram+`]`)
	}
}

// patch replaces the last old in the instruction added last.
func (k *kernel) patch(old, with string) {
	b := &k.blocks[len(k.blocks)-1]
	i := strings.LastIndex(*b, old)
	*b = (*b)[:i] + with + (*b)[i+len(old):]
}

// attention is one head of softmax(Q K') V over four tiles of 512 keys, in two
// passes: the maxima first, then probabilities and their product with V. There
// is one buffer for K tiles, one for V tiles and one for probabilities, so
// that loads wait for the last reader: anti-dependencies that cost time.
func attention() string {
	k := newKernel("attention.py")
	k.alloc("q", "ExternalInput", "Input", "bfloat16", 128, 128, 0, 0)
	k.alloc("k", "ExternalInput", "Input", "bfloat16", 128, 2048, 0, 0)
	k.alloc("v", "ExternalInput", "Input", "bfloat16", 2048, 128, 0, 0)
	k.alloc("eye", "Const", "Input", "bfloat16", 128, 128, 0, 0)
	k.alloc("o", "ExternalOutput", "Output", "bfloat16", 128, 128, 0, 0)
	addr := 0
	place := func(name, dtype string, free int) {
		k.alloc(name, "Internal", "SB", dtype, 128, free, addr, 0)
		addr += free * dtypeBytes[dtype]
	}
	place("tq", "bfloat16", 128)
	place("ident", "bfloat16", 128)
	place("tk", "bfloat16", 512)
	place("tv", "bfloat16", 512)
	place("p", "bfloat16", 512)
	place("pt", "bfloat16", 512)
	place("peaks", "float32", 4)
	place("peak", "float32", 1)
	place("sums", "float32", 4)
	place("sum", "float32", 1)
	place("inv", "float32", 1)
	place("to", "bfloat16", 128)
	k.alloc("scores", "Internal", "PSUM", "float32", 128, 512, 0, 0)
	k.alloc("turned", "Internal", "PSUM", "bfloat16", 128, 512, 0, 1)
	k.alloc("acc", "Internal", "PSUM", "float32", 128, 128, 0, 2)
	k.opDRAM(9, load, "SP", all("tq"), "q", 0, 128, 128, true)
	k.opDRAM(10, load, "SP", all("ident"), "eye", 0, 128, 128, true)
	const whole = `"start_tensor_calc":true,"stop_tensor_calc":true`
	for i := range 4 {
		k.opDRAM(12, load, "SP", all("tk"), "k", i*512, 128, 512, true)
		k.op(13, "Matmult", "PE", whole, []tile{all("scores")}, []tile{all("tk"), all("tq")})
		k.op(14, "TensorReduce", "DVE", `"op":"max","axis":"X","negate":true`, []tile{{"peaks", i, 1}}, []tile{all("scores")})
	}
	k.op(15, "TensorReduce", "DVE", `"op":"min","axis":"X"`, []tile{all("peak")}, []tile{all("peaks")})
	for i := range 4 {
		k.opDRAM(17, load, "SP", all("tk"), "k", i*512, 128, 512, true)
		for j := range 4 {
			k.opDRAM(18, strings.Replace(load, "qSP", "qAct", 1), "Activation", tile{"tv", j * 128, 128}, "v", (i*4+j)*128*128, 128, 128, true)
		}
		k.op(19, "Matmult", "PE", whole, []tile{all("scores")}, []tile{all("tk"), all("tq")})
		k.op(20, "Activation", "Activation", `"func":"Exp","scale":1.0`, []tile{all("p"), {"sums", i, 1}}, []tile{all("scores"), all("peak")})
		for j := range 4 {
			k.op(22, "Matmult", "PE", whole+`,"is_transpose":true`, []tile{{"turned", j * 128, 128}}, []tile{{"p", j * 128, 128}, all("ident")})
		}
		k.op(23, "TensorCopy", "DVE", "", []tile{all("pt")}, []tile{all("turned")})
		for j := range 4 {
			flags := fmt.Sprintf(`"start_tensor_calc":%t,"stop_tensor_calc":%t`, i == 0 && j == 0, i == 3 && j == 3)
			k.op(25, "Matmult", "PE", flags, []tile{all("acc")}, []tile{{"tv", j * 128, 128}, {"pt", j * 128, 128}})
		}
	}
	k.op(27, "TensorReduce", "DVE", `"op":"add","axis":"X"`, []tile{all("sum")}, []tile{all("sums")})
	k.op(28, "Reciprocal", "DVE", "", []tile{all("inv")}, []tile{all("sum")})
	k.op(29, "TensorScalarPtr", "DVE", `"op0":"mult"`, []tile{all("to")}, []tile{all("acc"), all("inv")})
	k.opDRAM(30, load, "SP", all("to"), "o", 0, 128, 128, false)
	return k.String()
}

// loop is an elementwise kernel over 16 x 4 tiles in two static loops; the
// buffers of one iteration are those of the next.
func loop() string {
	k := newKernel("loop.py")
	k.alloc("x", "ExternalInput", "Input", "bfloat16", 2048, 2048, 0, 0)
	k.alloc("y", "ExternalOutput", "Output", "bfloat16", 2048, 2048, 0, 0)
	k.alloc("bias", "Internal", "SB", "float32", 128, 1, 0, 0)
	k.alloc("tx", "Internal", "SB", "bfloat16", 128, 512, 64, 0)
	k.alloc("ty", "Internal", "SB", "bfloat16", 128, 512, 1088, 0)
	k.op(7, "Memset", "Pool", `"mode":"Const","constant":0.0`, []tile{all("bias")}, nil)
	k.begin("i", 16)
	k.begin("j", 4)
	k.opDRAM(10, load, "SP", all("tx"), "x", 0, 128, 512, true)
	k.patch(`"debug"`, `"loop_carried_dependencies":[["I-4","Anti",[0,1]]],"debug"`)
	k.op(11, "Activation", "Activation", `"func":"Gelu","scale":1.0`, []tile{all("ty")}, []tile{all("tx"), all("bias")})
	k.patch(`"debug"`, `"loop_carried_dependencies":[["I-5","Anti",[0,1]]],"debug"`)
	k.opDRAM(12, strings.Replace(load, "qSP", "qPool", 1), "Pool", all("ty"), "y", 0, 128, 512, false)
	k.end("Block1_LoopBody_2")
	k.end("Block1_LoopBody_1")
	return k.String()
}

// collective is a layer split over cores: a matmul whose partial sums are
// reduced over all cores while the weights of the next one are gathered on a
// second stream and the vector engine works on.
func collective() string {
	k := newKernel("collective.py")
	k.alloc("x", "ExternalInput", "Input", "bfloat16", 128, 512, 0, 0)
	k.alloc("w", "ExternalInput", "Input", "bfloat16", 128, 128, 0, 0)
	k.alloc("part", "Internal", "DRAM", "float32", 128, 512, 0, 0)
	k.alloc("reduced", "Internal", "DRAM", "float32", 128, 512, 1<<20, 0)
	k.alloc("shard", "Internal", "DRAM", "bfloat16", 128, 128, 2<<20, 0)
	k.alloc("weights", "Internal", "DRAM", "bfloat16", 128, 1024, 3<<20, 0)
	k.alloc("y", "ExternalOutput", "Output", "float32", 128, 512, 0, 0)
	k.alloc("tx", "Internal", "SB", "bfloat16", 128, 512, 0, 0)
	k.alloc("tw", "Internal", "SB", "bfloat16", 128, 128, 1024, 0)
	k.alloc("tp", "Internal", "SB", "float32", 128, 512, 2048, 0)
	k.alloc("tr", "Internal", "SB", "float32", 128, 512, 4096, 0)
	k.alloc("side", "Internal", "SB", "float32", 128, 512, 6144, 0)
	k.alloc("acc", "Internal", "PSUM", "float32", 128, 512, 0, 0)
	k.opDRAM(8, load, "SP", all("tx"), "x", 0, 128, 512, true)
	k.opDRAM(9, load, "SP", all("tw"), "w", 0, 128, 128, true)
	k.op(10, "Matmult", "PE", `"start_tensor_calc":true,"stop_tensor_calc":true`, []tile{all("acc")}, []tile{all("tx"), all("tw")})
	k.op(11, "TensorCopy", "DVE", "", []tile{all("tp")}, []tile{all("acc")})
	k.op(12, "DMACopy", "SP", load, []tile{all("part")}, []tile{all("tp")})
	k.op(13, "CollectiveCompute", "Pool", `"stream_id":0,"cc_channel":{"kind":"AllReduce","op":"add","replica_groups":[[0,1,2,3,4,5,6,7]]}`, []tile{all("reduced")}, []tile{all("part")})
	k.op(14, "CollectiveCompute", "Pool", `"stream_id":1,"cc_channel":{"kind":"AllGather","replica_groups":[[0,1,2,3,4,5,6,7]]}`, []tile{all("weights")}, []tile{all("shard")})
	for i := range 4 {
		k.op(16, "TensorScalar", "DVE", `"op0":"mult","const0":0.5`, []tile{{"side", i * 128, 128}}, []tile{{"tp", i * 128, 128}})
	}
	k.op(18, "DMACopy", "SP", load, []tile{all("tr")}, []tile{all("reduced")})
	k.op(19, "TensorTensor", "DVE", `"op":"add"`, []tile{all("tr")}, []tile{all("tr"), all("side")})
	k.opDRAM(20, load, "SP", all("tr"), "y", 0, 128, 512, false)
	return k.String()
}

// The examples of the repository are what this file makes, and they read as
// they should.
func TestExamples(t *testing.T) {
	type shape struct {
		instrs, blocks int
		trips          uint64 // of the innermost block
		lanes          int    // lanes in use
	}
	for name, x := range map[string]struct {
		text func() string
		want shape
	}{
		"tiled_matmul": {tiledMatmul, shape{8 + 4*(4+2), 1, 1, 3}},
		"attention":    {attention, shape{2 + 4*3 + 1 + 4*(1+4+1+1+4+1+4) + 4, 1, 1, 4}},
		"loop":         {loop, shape{1 + 2 + 3, 3, 4, 3}},
		"collective":   {collective, shape{14, 1, 1, 5}},
	} {
		text := x.text()
		golden.Check(t, filepath.Join("..", "..", "..", "examples", name+".bir.json"), []byte(text))
		m, err := readText(t, text, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lanes := map[uint16]bool{}
		for i, l := range m.Instr.Lane.Slice() {
			if m.Instr.Flags.At(i)&components.FlagLoop == 0 {
				lanes[l] = true
			}
		}
		g := shape{m.Instr.Len(), m.Blocks.Len(), m.Blocks.Trip.At(m.Blocks.Len() - 1), len(lanes)}
		if g != x.want {
			t.Errorf("%s: %+v, not %+v", name, g, x.want)
		}
		if len(m.Notes) > 0 {
			t.Errorf("%s: notes %v", name, m.Notes)
		}
		if name == "attention" && m.Edges.Counts()[components.Anti] < 10 {
			t.Errorf("attention has %v edges by kind: too few anti-dependencies", m.Edges.Counts())
		}
		t.Logf("%s: %d bytes, edges %v", name, len(text), m.Edges.Counts())
	}
}
