package hlo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components/opgraph"
)

// mustEnd panics when the function it returns is not called within a minute:
// long enough for a machine under load, no input of a fuzz target takes a
// second.
func mustEnd(b []byte) (stop func() bool) {
	return time.AfterFunc(time.Minute, func() { panic("hangs: " + string(b)) }).Stop
}

// FuzzReadText: no input makes the reader panic or hang; what it reads
// satisfies the invariants of a graph and survives writing.
func FuzzReadText(f *testing.F) {
	for _, text := range seedTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkText(t, string(b)) })
}

// seedTexts are small texts that together have most of the grammar.
func seedTexts() []string {
	return []string{
		attributesText,
		loop(0, 10, 3, "LT", `, backend_config={"known_trip_count":{"n":"4"}}`),
		"f32[8] add(f32[8] x, f32[8] %y), metadata={op_name=\"q\"}",
		"HloModule m\nENTRY e {\n a = f32[2,2] parameter(0)\n s = ((f32[2,2], f32[2,2]), f32[2,2], s32[]) dot-start(a, a)\n d = f32[2,2] dot-done(s)\n}",
		"HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] call(a), to_apply={\n a = f32[] parameter(0)\n ROOT n = negate(a)\n }\n}",
		"HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n b = f32[4] all-to-all(a), replica_groups=mesh['x'=2,'y'=4]{'y':(2)2}\n}",
		"HloModule %//a, x={\"\xfe\"}\nf {\n a = (f32[<=8,?,2]{2,1,0:T(8)S(1)}, b(s4[3]), token[]) parameter(0)\n ROOT b = f32[<=8,?,2]{2,1,0:T(8)S(1)} copy(%a#0), metadata={op_name=\"\\376\" source_file=\"x\" source_line=4294967295 stack_frame_id=1}\n}, execution_thread=\"\xfe\"\nENTRY e {\n a = s32[] constant(-1)\n c = c64[2] constant({(1, nan), (-inf, 0)})\n b = f32[] conditional(a, c, c), branch_computations={f, %f}, control-predecessors={c}, backend_config=\"{\"\n}\n// -----\n%x = pred[] constant(true)\n",
		"HloModule m\nENTRY e {\n a = bf16[2,8]{1,0} parameter(0), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}\n s = ((bf16[2,8]{1,0}), bf16[4,8]{1,0}) all-gather-start(a), channel_id=3, replica_groups={{0,1},{2,3}}, dimensions={0}, frontend_attributes={k=\"v\",n={\"a\":1}}\n ROOT d = bf16[4,8]{1,0} all-gather-done(s)\n}",
	}
}

// protoField appends a length-delimited field.
func protoField(dst []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), v)
}

func protoInt(dst []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// smallProto encodes parameter → negate of f32[n], wrapped as HloProto.
func smallProto(dim uint64, operand uint64) []byte {
	shape := protoInt(protoInt(nil, 2, 11), 3, dim)
	p := protoField(protoField(protoField(nil, 1, []byte("p")), 2, []byte("parameter")), 3, shape)
	p = protoInt(p, 35, 7)
	n := protoField(protoField(protoField(nil, 1, []byte("n")), 2, []byte("negate")), 3, shape)
	n = protoField(protoInt(n, 35, 9), 36, protowire.AppendVarint(nil, operand))
	comp := protoField(protoField(protoField(nil, 1, []byte("main")), 2, p), 2, n)
	comp = protoInt(protoInt(comp, 5, 3), 6, 9)
	mod := protoField(protoField(protoField(nil, 1, []byte("m")), 2, []byte("main")), 3, comp)
	return protoField(nil, 1, protoInt(mod, 6, 3))
}

// TestSmallProto reads a hand-made proto, and reports its mistakes.
func TestSmallProto(t *testing.T) {
	g, err := ReadProto("t", smallProto(5, 7))
	if err != nil {
		t.Fatal(err)
	}
	want := "ENTRY main: p=parameter:f32[5] n=negate(p):f32[5]\n"
	if got := dump(g[0]); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "t: byte 0: no HloModuleProto in it"},
		{[]byte("HloModule"), "t: byte 2: field 13 is cut off or malformed"},
		{smallProto(5, 8), `t: byte 46: instruction "n": operand 8 is not defined before it`},
		{smallProto(1<<63+5, 7), "t: byte 37: dimension 0 is negative: -9223372036854775803"},
	} {
		if _, err := ReadProto("t", c.in); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// FuzzReadProto: likewise for HloProto. Names may be anything in a proto and
// change when written; all the rest must survive.
func FuzzReadProto(f *testing.F) {
	for _, b := range seedProtos() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer mustEnd(b)()
		graphs, err := ReadProto("fuzz", b)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		for _, g := range graphs {
			if err := g.Check(); err != nil {
				t.Fatalf("a graph that was read does not pass: %v", err)
			}
			g.Totals(1)
			text := AppendText(nil, g)
			back, err := ReadText("written", text)
			if err != nil {
				t.Fatalf("written text does not read: %v\n%s", err, text)
			}
			if len(back) != 1 || back[0].NumOps() != g.NumOps() || back[0].NumComps() != g.NumComps() {
				t.Fatal("written and read graph differ in size")
			}
			renameLike(g, back[0])
			if d := graphDiff(g, back[0], diffOptions{}); d != "" {
				t.Fatalf("written and read graph differ: %s\n%s", d, text)
			}
			if again := AppendText(nil, back[0]); !bytes.Equal(text, again) {
				t.Fatalf("writing twice gives different text:\n%s\n%s", text, again)
			}
		}
	})
}

// seedProtos are small protos that together have most of the fields.
func seedProtos() [][]byte {
	ints := func(v ...uint64) (b []byte) { // packed
		for _, x := range v {
			b = protowire.AppendVarint(b, x)
		}
		return b
	}
	pick := func(num protowire.Number, v ...uint64) (b []byte) { // fields num, num+1, …
		for i, x := range v {
			b = protoInt(b, num+protowire.Number(i), x)
		}
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	in := func(num protowire.Number, parts ...[]byte) []byte { return protoField(nil, num, join(parts...)) }
	text := func(num protowire.Number, v string) []byte { return protoField(nil, num, []byte(v)) }
	shape := func(num protowire.Number) []byte {
		layout := in(5, in(1, ints(1, 0)), in(6, in(1, ints(8, 128))), pick(7, 4, 5), protoInt(nil, 16, 2))
		return in(num, pick(2, 11), in(3, ints(4, 6)), layout, in(6, ints(1, 0)))
	}
	op := func(id uint64, opcode string, fields ...[]byte) []byte {
		return in(2, text(1, opcode), text(2, opcode), shape(3), protoInt(nil, 35, id), join(fields...))
	}
	comp := func(id, root uint64, name string, ops ...[]byte) []byte {
		return in(3, text(1, name), join(ops...), protoInt(nil, 5, id), protoInt(nil, 6, root), text(8, "t"))
	}
	args := func(v ...uint64) []byte { return in(36, ints(v...)) }
	p := op(1, "parameter", in(7, text(2, "jit(f)/x\xfe"), text(3, "a.py"), protoInt(nil, 4, 7), protoInt(nil, 15, 1)))
	custom := op(2, "custom-call", args(1), text(28, "__cublas$gemm"), text(43, `{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}`),
		in(40, protoInt(nil, 1, 3), in(3, ints(2, 1)), in(9, ints(2)), in(10, ints(0)), in(8, ints(4))), in(68, in(1, text(1, "k"), text(2, "v\xff"))),
		in(15, in(1, pick(1, 3, 1, 1, 1, 2, 1, 1))), in(16, pick(3, 0, 1), in(6, ints(2)), pick(7, 0, 1, 0, 1), in(11, ints(2)), in(12, ints(2))),
		in(74, in(1, ints(0)), protoInt(nil, 2, 0), in(3, ints(1))), text(79, "thread"), in(51, in(1, ints(1, 2))), pick(80, 3, 2), in(14, ints(0, 1)))
	coll := op(3, "collective-permute", args(1), protoInt(nil, 26, 5), in(52, pick(1, 0, 1)), in(52, pick(1, 1, 0)), protoInt(nil, 71, 1), in(37, ints(2)))
	groups := op(4, "all-to-all", args(1), in(49, in(1, ints(0, 1))), in(49, in(1, ints(2))))
	iota := op(5, "all-to-all", args(1), in(87, in(2, pick(1, 2, 4), in(3, ints(4, 2)), in(4, ints(1, 0)))))
	call := op(6, "call", args(1), in(38, ints(1)))
	slice := op(7, "slice", args(1), in(17, pick(1, 0, 4, 1)), in(17, pick(1, 0, 6, 2)))
	pad := op(8, "pad", args(1, 1), in(21, in(1, pick(1, 1, 2, 0)), in(1, pick(1, 0, 0, 1))))
	gather := op(9, "gather", args(1, 1), in(33, in(1, ints(0)), in(2, ints(1)), in(3, ints(1)), protoInt(nil, 4, 1), in(5, ints(0)), in(6, ints(0))), in(34, ints(1, 6)))
	dot := op(10, "dot", args(1, 1), in(30, in(1, ints(1)), in(2, ints(1))))
	cmp := op(11, "compare", args(1, 1), text(63, "LT"))
	module := join(text(1, "m\xfe"), text(2, "e"), comp(1, 1, "f", p),
		comp(2, 11, "e", p, custom, coll, groups, iota, call, slice, pad, gather, dot, cmp), protoInt(nil, 6, 2),
		in(7, in(1, protoInt(nil, 1, 1), in(2, in(1, ints(1)))), in(1, protoInt(nil, 1, 2), in(2, in(1, ints(1, 2, 4, 3, 5, 6, 7, 8, 9, 10, 11))))),
		in(8, in(1, protoInt(nil, 2, 0), protoInt(nil, 4, 2))), in(15, pick(1, 2, 4)),
		in(17, text(1, "a.py"), text(2, "f"), in(3, pick(1, 1, 1, 10, 2, 11, 3)), in(4, pick(1, 1, 0)), in(4, pick(1, 1, 1))))
	return [][]byte{
		smallProto(5, 7), smallProto(0, 7)[2:], module,
		instrOf("constant", 11, in(8, protoInt(nil, 5, 7), protowire.AppendFixed32(protowire.AppendTag(nil, 8, protowire.Fixed32Type), 0x3f800000))),
		instrOf("constant", 2, in(8, protoInt(nil, 4, 300))),
		instrOf("iota", 11, in(14, ints(0))), instrOf("dot-start", 11, text(28, "x")),
	}
}

// TestSeedProtos: the seeds are read, so that mutation begins deep inside.
func TestSeedProtos(t *testing.T) {
	for i, b := range seedProtos() {
		g, err := ReadProto("t", b)
		if i == 5 { // an iota of a scalar
			if err == nil || !strings.Contains(err.Error(), "iota_dimension=0 is outside rank 0") {
				t.Errorf("seed %d: error %v", i, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v", i, err)
		} else if i == 2 && (g[0].NumOps() != 12 || !g[0].IsScheduled || len(g[0].Frames) != 2 || len(g[0].Aliases) != 1) {
			t.Errorf("seed %d is read as\n%s", i, AppendText(nil, g[0]))
		}
	}
}

// renameLike gives the module, the computations, the operators and the opcodes
// nobody knows of g the names they have in like.
func renameLike(g, like *opgraph.Graph) {
	g.Name = g.Str(like.Text(like.Name))
	for c := range g.Comps.Name {
		g.Comps.Name[c] = g.Str(like.CompText(opgraph.CompID(c)))
	}
	for op := range g.Ops.Name {
		id := opgraph.OpID(op)
		g.Ops.Name[op] = g.Str(like.OpText(id))
		if g.Ops.Kind[op] == opgraph.OpUnknown {
			g.SetAttrStr(id, opgraph.AttrOpcode, like.AttrStr(id, opgraph.AttrOpcode))
		}
	}
}
