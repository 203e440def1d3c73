package hlo

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components/opgraph"
)

// one reads a text of one module.
func one(t *testing.T, text string) *opgraph.Graph {
	t.Helper()
	g, err := ReadText("t.hlo", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(g) != 1 {
		t.Fatalf("%d modules", len(g))
	}
	roundTrip(t, "t.hlo", g[0])
	return g[0]
}

// dump describes a graph in short lines, for tables.
func dump(g *opgraph.Graph) string {
	var b strings.Builder
	for c := range opgraph.CompID(g.NumComps()) {
		if c == g.Entry {
			b.WriteString("ENTRY ")
		}
		fmt.Fprintf(&b, "%s:", g.CompText(c))
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			b.WriteByte(' ')
			if op == g.Comps.Root[c] && op != g.Comps.End[c]-1 {
				b.WriteString("ROOT ")
			}
			fmt.Fprintf(&b, "%s=%s", g.OpText(op), g.Ops.Kind[op])
			for i, o := range g.Operands(op) {
				b.WriteString([]string{"(", ","}[min(i, 1)])
				b.WriteString(g.OpText(o.Op))
				for _, k := range g.Path(o.Path) {
					fmt.Fprintf(&b, "#%d", k)
				}
			}
			if len(g.Operands(op)) > 0 {
				b.WriteByte(')')
			}
			fmt.Fprintf(&b, ":%s", g.ShapeText(g.Ops.Shape[op]))
			for _, c := range g.Calls(op) {
				fmt.Fprintf(&b, "@%s", g.CompText(c.Comp))
			}
			for _, p := range g.Control(op) {
				fmt.Fprintf(&b, "<%s", g.OpText(p))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestGrammar reads the forms HLO text comes in.
func TestGrammar(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"percent, operand shapes", "HloModule m\n\nENTRY %e (a: f32[2]) -> f32[2] {\n  %a = f32[2]{0} parameter(0)\n  ROOT %s = f32[2]{0} add(f32[2]{0} %a, f32[2]{0} %a)\n}\n",
			"ENTRY e: a=parameter:f32[2]{0} s=add(a,a):f32[2]{0}\n"},
		{"bare names equal to opcodes", "HloModule m\nENTRY e {\n copy = f32[2] parameter(0)\n tuple.1-x = f32[2] copy(copy)\n}",
			"ENTRY e: copy=parameter:f32[2] tuple.1-x=copy(copy):f32[2]\n"},
		{"no shapes", "HloModule m\nENTRY e {\n a = f32[2,3] parameter(0)\n b = f32[3,5] parameter(1)\n c = dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT d = tuple(c, a)\n}",
			"ENTRY e: a=parameter:f32[2,3] b=parameter:f32[3,5] c=dot(a,b):f32[2,5] d=tuple(c,a):(f32[2,5], f32[2,3])\n"},
		{"no ENTRY: the last; no ROOT: the last", "HloModule m\nf {\n x = f32[] parameter(0)\n}\ng {\n y = f32[] parameter(0)\n z = f32[] call(y), to_apply=f\n}",
			"f: x=parameter:f32[]\nENTRY g: y=parameter:f32[] z=call(y):f32[]@f\n"},
		{"root first", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n c = f32[] negate(b)\n}",
			"ENTRY e: a=parameter:f32[] ROOT b=negate(a):f32[] c=negate(b):f32[]\n"},
		{"many lines, comments", "// RUN: x\nHloModule m // c\nENTRY e {\n a = (f32[2], /*index=1*/ s32[]) /* y */\n   parameter(0)\n b = f32[2]\n get-tuple-element(a),\n index=0 // end\n}",
			"ENTRY e: a=parameter:(f32[2], s32[]) b=get-tuple-element(a):f32[2]\n"},
		{"compact tuple access", "HloModule m\nENTRY e {\n a = ((f32[2], s32[3]), f32[]) parameter(0)\n b = f32[2] negate(a#0#0)\n}",
			"ENTRY e: a=parameter:((f32[2], s32[3]), f32[]) b=negate(a#0#0):f32[2]\n"},
		{"nested anonymous operands", "HloModule m\nENTRY e {\n a = f32[2] parameter(0)\n b = f32[2] add(a, f32[2] multiply(a, f32[2] broadcast(f32[] constant(2)), dimensions={}))\n}", ""},
		{"nested", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] add(f32[] multiply(f32[] a, f32[] constant(2)), a)\n}",
			"ENTRY e: a=parameter:f32[] constant.1=constant:f32[] multiply.2=multiply(a,constant.1):f32[] b=add(multiply.2,a):f32[]\n"},
		{"scopes are per computation", "HloModule m\nf {\n a = f32[] parameter(0)\n ROOT b = f32[] negate(a)\n}\nENTRY e {\n a = s32[] parameter(0)\n b = s32[] negate(a)\n}",
			"f: a=parameter:f32[] b=negate(a):f32[]\nENTRY e: a=parameter:s32[] b=negate(a):s32[]\n"},
		{"control predecessors", "HloModule m, is_scheduled=true\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] negate(a)\n c = f32[] abs(a), control-predecessors={%b, a}\n}",
			"ENTRY e: a=parameter:f32[] b=negate(a):f32[] c=abs(a):f32[]<b<a\n"},
		{"braced computations", "HloModule m\nf {\n a = f32[] parameter(0)\n}\nENTRY e {\n a = f32[] parameter(0)\n p = s32[] constant(0)\n b = f32[] call(a), to_apply={%f}\n c = f32[] conditional(p, a, b), branch_computations={f, %f}\n}",
			"f: a=parameter:f32[]\nENTRY e: a=parameter:f32[] p=constant:s32[] b=call(a):f32[]@f c=conditional(p,a,b):f32[]@f@f\n"},
		{"a computation that comes later", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = call(a), to_apply=f\n c = negate(b)\n}\nf {\n x = f32[] parameter(0)\n y = s32[] convert(x)\n}",
			"ENTRY e: a=parameter:f32[] b=call(a):s32[]@f c=negate(b):s32[]\nf: x=parameter:f32[] y=convert(x):s32[]\n"},
		{"inline computation", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] call(a), to_apply={\n a = f32[] parameter(0)\n ROOT n = negate(a)\n }, control-predecessors={a}\n}",
			"ENTRY e: a=parameter:f32[] b=call(a):f32[]@inline_b<a\ninline_b: a=parameter:f32[] n=negate(a):f32[]\n"},
		{"async sugar", "HloModule m\nENTRY e {\n a = f32[2,2] parameter(0)\n s = ((f32[2,2], f32[2,2]), f32[2,2], s32[]) dot-start(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, async_execution_thread=\"t\"\n u = ((f32[2,2], f32[2,2]), f32[2,2], s32[]) dot-update(s)\n d = f32[2,2] dot-done(u)\n}",
			"ENTRY e: a=parameter:f32[2,2] s=async-start(a,a):((f32[2,2], f32[2,2]), f32[2,2], s32[])@async_s u=async-update(s):((f32[2,2], f32[2,2]), f32[2,2], s32[]) d=async-done(u):f32[2,2]\nasync_s: param_0=parameter:f32[2,2] param_1=parameter:f32[2,2] dot=dot(param_0,param_1):f32[2,2]\n"},
		{"real pairs stay", "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n s = (f32[4], f32[4], u32[]) copy-start(a)\n d = f32[4] copy-done(s)\n}",
			"ENTRY e: a=parameter:f32[4] s=copy-start(a):(f32[4], f32[4], u32[]) d=copy-done(s):f32[4]\n"},
		{"an opcode nobody knows", "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n s = f32[4] frobnicate(a), how={1,2}\n}",
			"ENTRY e: a=parameter:f32[4] s=unknown(a):f32[4]\n"},
		{"instructions only", "a = f32[4] parameter(0)\nROOT b = negate(a)\n", "ENTRY entry: a=parameter:f32[4] b=negate(a):f32[4]\n"},
		{"one instruction without a name", "f32[8] add(f32[8] x, f32[8] %y), metadata={op_name=\"q\"}", "ENTRY entry: x=parameter:f32[8] y=parameter:f32[8] add.2=add(x,y):f32[8]\n"},
		{"computation without a module", "ENTRY %e (a: f32[]) -> f32[] {\n %a = f32[] parameter(0)\n}", "ENTRY e: a=parameter:f32[]\n"},
		{"dynamic and unbounded dimensions", "HloModule m\nENTRY e {\n a = f32[<=8,?,2]{2,1,0} parameter(0)\n b = b(f32[2]) parameter(1)\n}",
			"ENTRY e: a=parameter:f32[<=8,?,2]{2,1,0} b=parameter:b(f32[2])\n"},
		{"space before the dimensions", "HloModule m\nENTRY e {\n a = s32 [5,4] parameter(0)\n}", "ENTRY e: a=parameter:s32[5,4]\n"},
		{"tokens", "HloModule m\nENTRY e {\n t = token[] after-all()\n u = after-all(t, t)\n}", "ENTRY e: t=after-all:token[] u=after-all(t,t):token[]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" { // only an error is wanted: attributes inside operands
				if _, err := ReadText("t", []byte(c.in)); err == nil {
					t.Error("read")
				}
				return
			}
			if got := dump(one(t, c.in)); got != c.want {
				t.Errorf("got  %swant %s", got, c.want)
			}
		})
	}
}

// TestModules reads several modules from one text.
func TestModules(t *testing.T) {
	for _, c := range []struct {
		in    string
		names string
	}{
		{"// RUN: hlo-opt %s\n\nHloModule a\nENTRY e {\n x = f32[] parameter(0)\n}\n// CHECK: foo {\n// -----\n\nHloModule b\nENTRY e {\n x = f32[] parameter(0)\n}\n  // -----  \n// only a comment\n", "a b"},
		{"HloModule a\nENTRY e {\n x = f32[] parameter(0)\n}\nHloModule b\nENTRY e {\n x = f32[] parameter(0)\n}", "a b"},
		{"// -----\n// -----\nHloModule a, replica_count=2\nENTRY e {\n x = f32[] parameter(0)\n}", "a"},
	} {
		graphs, err := ReadText("t", []byte(c.in))
		if err != nil {
			t.Error(err)
			continue
		}
		var names []string
		for _, g := range graphs {
			names = append(names, g.Text(g.Name))
		}
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("modules %q, want %q", got, c.names)
		}
	}
}

// TestAttributes reads each attribute with a form of its own.
func TestAttributes(t *testing.T) {
	g := one(t, attributesText)
	ops := map[string]opgraph.OpID{}
	for op := range opgraph.OpID(g.NumOps()) {
		ops[g.OpText(op)] = op
	}
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("module", []any{g.IsScheduled, g.Replicas, g.Partitions, len(g.Aliases), len(g.ModuleAttrs)}, "[true 2 4 2 1]")
	check("alias 0", fmt.Sprint(g.Path(g.Aliases[0].Output), g.Aliases[0].Parameter, g.Path(g.Aliases[0].Param), g.Aliases[0].Must), "[0] 1 [] true")
	check("alias 1", fmt.Sprint(g.Path(g.Aliases[1].Output), g.Aliases[1].Parameter, g.Path(g.Aliases[1].Param), g.Aliases[1].Must), "[1] 0 [0] false")
	check("space", g.Shapes.Space(g.Ops.Shape[ops["in"]]), 1)
	check("op_name", g.Text(g.Ops.OpName[ops["in"]]), `jit(f)/a="b", {c}`)
	file, line := g.Source(ops["in"])
	check("source", fmt.Sprintf("%s:%d", file, line), "x.py:7")
	file, line = g.Source(ops["ar"])
	check("frame", fmt.Sprintf("%s:%d %d %s", file, line, g.Frames[1].Parent, g.Text(g.Frames[1].Function)), `b "q".py:20 1 g`)
	check("sharding", g.AttrStr(ops["p0"], opgraph.AttrSharding), `{{devices=[1,2,4]<=[8] metadata={op_name="x, y"}}}`)
	check("window", g.Window(ops["conv"], nil), "[{3 1 1 1 1 1 false} {3 1 1 1 1 1 true}]")
	d, _ := g.ConvDims(ops["conv"])
	check("dim_labels", d, "{0 3 2 3 0 3 [1 2] [0 1] [1 2]}")
	// 8 images, 16 output and 4 input features; along each side of 6 with a
	// padding of 1 the three taps meet 5, 6 and 5 elements.
	check("conv FLOPs", g.FLOPs(ops["conv"]), 2*8*16*4*16*16)
	r, _ := g.ReplicaGroups(ops["ar"])
	check("groups", fmt.Sprint(r.Count(), r.Size(), r.AppendGroup(nil, 0), r.AppendGroup(nil, 1)), "2 4 [0 2 4 6] [1 3 5 7]")
	check("channel", g.IntOr(ops["ar"], opgraph.AttrChannelID, 0), 7)
	check("global ids", g.Has(ops["ar"], opgraph.AttrUseGlobalDeviceIDs), true)
	check("pairs", g.Ints(ops["cp"], opgraph.AttrSourceTargetPairs), "[0 1 1 2]")
	check("slice", g.Ints(ops["sl"], opgraph.AttrSlice), "[0 8 1 1 5 2 0 6 1 0 16 1]")
	check("padding", g.Ints(ops["pad"], opgraph.AttrPadding), "[0 0 0 0 0 0 1 -3 1 0 0 0]")
	check("frontend", g.AttrStr(ops["t"], opgraph.AttrFrontend), `{k="v}",n={"a":1}}`)
	check("backend", g.AttrStr(ops["t"], opgraph.AttrBackendConfig), `{"x":[1,{"y":"}"}]}`)
	in, out := g.CollectiveBytes(ops["ar"])
	check("collective bytes", fmt.Sprint(in, out), fmt.Sprint(8*6*6*16*4, 8*6*6*16*4))
}

const attributesText = `HloModule m, is_scheduled=true, input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {0}) }, replica_count=2, num_partitions=4, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

FileNames
1 "a.py"
2 "b \"q\".py"

FunctionNames
1 "f"
2 "g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=11 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=20 end_line=21 column=3 end_column=4}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

ENTRY %e {
  %p0 = (f32[8,6,6,4]{3,2,1,0:T(8,128)S(1)}) parameter(0), sharding={{devices=[1,2,4]<=[8] metadata={op_name="x, y"}}}
  %p1 = f32[3,3,4,16] parameter(1)
  %in = f32[8,6,6,4]{3,2,1,0:T(8,128)S(1)} get-tuple-element(%p0), index=0, metadata={op_name="jit(f)/a=\"b\", {c}" source_file="x.py" source_line=7}
  %conv = f32[8,6,6,16] convolution(%in, %p1), window={size=3x3 pad=1_1x1_1 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, feature_group_count=1
  %ar = f32[8,6,6,16] all-reduce(%conv), channel_id=7, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true, to_apply=%add, metadata={op_type="x" stack_frame_id=2}
  %cp = f32[8,6,6,16] collective-permute(%ar), source_target_pairs={{0,1},{1,2}}
  %sl = f32[8,2,6,16] slice(%cp), slice={[0:8], [1:5:2], [0:6], [0:16]}
  %z = f32[] constant(0)
  %pad = f32[8,2,9,16] pad(%sl, %z), padding=0_0x0_0x1_-3_1x0_0
  ROOT %t = (f32[3,3,4,16], f32[8,2,9,16]) tuple(%p1, %pad), frontend_attributes={k="v}",n={"a":1}}, backend_config={"x":[1,{"y":"}"}]}
}
`

// TestFailures has one case for each mistake that users of other readers
// reported as a crash, a hang or an unhelpful message, and for the limits.
func TestFailures(t *testing.T) {
	e := func(body string) string { return "HloModule m\nENTRY e {\n" + body + "\n}\n" }
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "t:1:1: no HLO module: the text is empty"},
		{"comment only", "// x\n", "t:1:1: no HLO module: the text is empty"},
		{"no computation", "HloModule m", "t:1:1: the module has no computation"},
		{"to_apply of nothing", e("  a = f32[] parameter(0)\n  b = f32[] call(a), to_apply={%nope}"), `t:4:32: computation "nope" does not exist`},
		{"reshape", e("  a = f32[4,8] parameter(0)\n  b = f32[31] reshape(a)"), `t:4:3: reshape "b": operand f32[4,8] has 32 elements, result f32[31] has 31`},
		{"all-gather dimensions={}", e("  a = f32[4] parameter(0)\n  b = f32[8] all-gather(a), dimensions={}"), `t:4:3: all-gather "b": dimensions=[], want one dimension`},
		{"all-gather out of range", e("  a = f32[4] parameter(0)\n  b = f32[8] all-gather(a), dimensions={9}"), `t:4:3: all-gather "b": operand dimension 9 is outside rank 1`},
		{"dot dims out of range", e("  a = f32[4] parameter(0)\n  b = f32[] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), `t:4:3: dot "b": lhs contracting dimension 1 is outside rank 1`},
		{"contracting sizes", e("  a = f32[4] parameter(0)\n  c = f32[5] parameter(1)\n  b = f32[] dot(a, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}"), `t:5:3: dot "b": contracting dimensions differ: lhs 0 has size 4, rhs 0 has 5`},
		{"cut in a string", e("  a = f32[] parameter(0), metadata={op_name=\"x"), "t:3:45: string is not closed"},
		{"cut in a computation", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n", `t:2:7: computation "e" is not closed`},
		{"operand from nowhere", e("  a = f32[] negate(b)"), `t:3:20: operand "b" is not defined before in the computation`},
		{"itself as an operand", e("  a = f32[] negate(a)"), `t:3:20: operand "a" is not defined before in the computation`},
		{"twice the same name", e("  a = f32[] parameter(0)\n  a = f32[] parameter(1)"), `t:4:3: instruction "a" is defined twice in the computation`},
		{"twice the same computation", "HloModule m\nf {\n a = f32[] parameter(0)\n}\nf {\n a = f32[] parameter(0)\n}", `t:5:1: computation "f" is defined twice`},
		{"twice the same parameter", e("  a = f32[] parameter(0)\n  b = f32[] parameter(0)"), `t:4:3: parameter "b": parameter number 0 occurs twice in the computation`},
		{"parameters with a gap", e("  a = f32[] parameter(5)"), `t:3:3: parameter "a": parameter number 5, but the computation has 1 parameters`},
		{"recursion", "HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] call(a), to_apply=e\n}", `t:4:2: call "b": it calls computation "e", which calls it: recursion`},
		{"unknown type", e("  a = f33[2] parameter(0)"), `t:3:7: unknown element type "f33"`},
		{"negative dimension", e("  a = f32[-2] parameter(0)"), "t:3:11: dimension -2 is negative"},
		{"dimension above 63 bits", e("  a = f32[99999999999999999999] parameter(0)"), "t:3:11: integer does not fit in 64 bits"},
		{"while without a body", e("  a = f32[] parameter(0)\n  b = f32[] while(a), condition=e"), `t:4:3: while "b": a while needs one body= and one condition=`},
		{"bracket", e("  a = f32[] parameter(0), sharding={(}"), `t:3:38: '}' where ')' is expected`},
		{"no opcode", e("  a = f32[] "), `t:4:1: expected an opcode, found "}"`},
		{"index of no tuple", e("  a = f32[] parameter(0)\n  b = f32[] get-tuple-element(a), index=0"), `t:4:3: get-tuple-element "b": index=0 is outside f32[]`},
		{"binary", "\x00\x01\x02", `t:1:1: expected a name, found "\x00"`},
		{"a scalar of another type", e("  a = s32[] constant(1.5)"), `t:3:13: constant "1.5" is no value of s32[]`},
		{"broadcast sizes", e("  a = f32[3] parameter(0)\n  b = f32[4,5] broadcast(a), dimensions={1}"), `t:4:3: broadcast "b": operand dimension 0 has size 3, result dimension 1 has 5`},
		{"convolution window", e("  a = f32[1,4,2] parameter(0)\n  k = f32[3,2,2] parameter(1)\n  b = f32[1,4,2] convolution(a, k), window={size=5 pad=1_1}, dim_labels=b0f_0io->b0f"), `t:5:3: convolution "b": window dimension 0 has size 5, the kernel has 3`},
		{"window of stride 0", e("  a = f32[1,4,2] parameter(0)\n  k = f32[3,2,2] parameter(1)\n  b = f32[1,4,2] convolution(a, k), window={size=3 stride=0}, dim_labels=b0f_0io->b0f"), "t:5:45: window sizes must not be negative, strides and dilations positive"},
		{"alias of nothing", "HloModule m, input_output_alias={ {3}: (0, {}) }\nENTRY e {\n a = f32[] parameter(0)\n}", "t:1:1: input_output_alias: the output has no element [3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadText("t", []byte(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

// TestNotFailures are what other readers refuse and this one must read.
func TestNotFailures(t *testing.T) {
	// The state of a while need not be a tuple; layouts may be missing; a
	// mesh name in frontend_attributes is nobody's business here.
	g := one(t, `HloModule m
c {
  x = s32[] parameter(0)
  n = s32[] constant(10)
  ROOT r = pred[] compare(x, n), direction=LT
}
b {
  x = s32[] parameter(0)
  k = s32[] constant(3)
  ROOT r = s32[] add(x, k)
}
ENTRY e {
  z = s32[] constant(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, []>]>"}
  ROOT w = s32[] while(z), condition=c, body=b
}`)
	w := g.Comps.Root[g.Entry]
	// 0, 3, 6 and 9 are below 10.
	if n, from := g.TripCount(w); n != 4 || from == opgraph.TripUnknown {
		t.Errorf("trip count %d (%v) of a state that is one number, want 4", n, from)
	}
}

// TestDepth refuses deep nesting with an error instead of running out of stack.
func TestDepth(t *testing.T) {
	const n = 100_000
	for _, c := range []struct{ in, want string }{
		{"HloModule m\nENTRY e {\n a = " + strings.Repeat("(", n) + strings.Repeat(")", n) + " parameter(0)\n}", "shape is nested more than"},
		{"HloModule m\nENTRY e {\n a = f32[] " + strings.Repeat("negate(f32[] ", n) + "constant(1)" + strings.Repeat(")", n) + "\n}", "instructions are nested more than"},
		{"HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] " + strings.Repeat("call(a), to_apply={ a = f32[] parameter(0)\n b = f32[] ", n) + "}\n}", "not closed"},
		{"HloModule m\nENTRY e {\n a = f32[] parameter(0), x=" + strings.Repeat("{", n) + strings.Repeat("}", n) + "\n}", ""},
	} {
		_, err := ReadText("t", []byte(c.in))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %.200v, want %q", err, c.want)
		}
	}
	var b strings.Builder
	b.WriteString("HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] call(a), to_apply={")
	for range 300 {
		b.WriteString(" a = f32[] parameter(0)\n b = f32[] call(a), to_apply={")
	}
	b.WriteString(" a = f32[] parameter(0) " + strings.Repeat("}", 302))
	if _, err := ReadText("t", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "computations are nested more than") {
		t.Errorf("error %.200v", err)
	}
}

// loop is a while over (counter, float): init, bound, step and direction.
func loop(init, bound, step int, dir string, config string) string {
	return fmt.Sprintf(`HloModule m
c {
  p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(%d)
  ROOT r = pred[] compare(i, n), direction=%s
}
b {
  p = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[] get-tuple-element(p), index=1
  k = s32[] constant(%d)
  j = s32[] add(i, k)
  ROOT t = (s32[], f32[]) tuple(j, x)
}
ENTRY e {
  z = s32[] constant(%d)
  x = f32[] parameter(0)
  s = (s32[], f32[]) tuple(z, x)
  ROOT w = (s32[], f32[]) while(s), condition=c, body=b%s
}`, bound, dir, step, init, config)
}

// TestTripCountForms derives counts by hand-checked rules, and takes the
// stated one in the forms dumps have.
func TestTripCountForms(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int64
		from opgraph.TripSource
	}{
		{loop(0, 10, 1, "LT", ""), 10, opgraph.TripDerived},
		{loop(0, 10, 3, "LT", ""), 4, opgraph.TripDerived}, // 0 3 6 9: the step does not divide the bound
		{loop(0, 9, 3, "LE", ""), 4, opgraph.TripDerived},
		{loop(10, 0, -4, "GT", ""), 3, opgraph.TripDerived}, // 10 6 2
		{loop(8, 0, -4, "GE", ""), 3, opgraph.TripDerived},
		{loop(0, 9, 3, "NE", ""), 3, opgraph.TripDerived},
		{loop(0, 10, 3, "NE", ""), 0, opgraph.TripUnknown}, // steps over its end
		{loop(5, 5, 3, "EQ", ""), 1, opgraph.TripDerived},
		{loop(10, 0, 1, "LT", ""), 0, opgraph.TripDerived},
		{loop(0, 10, 0, "LT", ""), 0, opgraph.TripUnknown}, // never ends
		{loop(0, 10, -1, "LT", ""), 0, opgraph.TripUnknown},
		{loop(0, 10, 1, "LT", `, backend_config={"known_trip_count":{"n":"25"},"x":1}`), 25, opgraph.TripKnown},
		{loop(0, 10, 1, "LT", `, backend_config="{\"known_trip_count\":{\"n\":\"26\"}}"`), 26, opgraph.TripKnown},
		{loop(0, 10, 1, "LT", `, backend_config={"known_trip_count":{"n":27}}`), 27, opgraph.TripKnown},
		{loop(0, 10, 1, "LT", `, backend_config={"known_trip_count":{"n":"many"}}`), 10, opgraph.TripDerived},
		{loop(0, 10, 1, "LT", `, backend_config="not JSON"`), 10, opgraph.TripDerived},
		{strings.Replace(loop(0, 10, 2, "LT", ""), "compare(i, n)", "compare(n, i)", 1), 0, opgraph.TripDerived}, // 10 < 0
		{strings.Replace(loop(0, 10, 2, "GT", ""), "compare(i, n)", "compare(n, i)", 1), 5, opgraph.TripDerived},
		{strings.Replace(loop(0, 10, 2, "LT", ""), "add(i, k)", "multiply(i, k)", 1), 0, opgraph.TripUnknown},
		{strings.Replace(loop(10, 0, 2, "GT", ""), "add(i, k)", "subtract(i, k)", 1), 5, opgraph.TripDerived},
		{strings.Replace(loop(0, 10, 2, "LT", ""), "s32[] constant(0)", "s32[] parameter(1)", 1), 0, opgraph.TripUnknown},
		{strings.ReplaceAll(loop(0, 10, 2, "LT", ""), "(s32[], f32[]) tuple(j, x)", "(s32[], f32[]) tuple(i, x)"), 0, opgraph.TripUnknown},
		// The bound is an element of the state that the body hands on.
		{`HloModule m
c {
  p = (s32[], s32[]) parameter(0)
  ROOT r = pred[] compare(p#0, p#1), direction=LT
}
b {
  p = (s32[], s32[]) parameter(0)
  k = s32[] constant(2)
  j = s32[] add(p#0, k)
  q = s32[] copy(p#1)
  ROOT t = (s32[], s32[]) tuple(j, q)
}
ENTRY e {
  z = s32[] constant(1)
  n = s32[] constant(8)
  s = (s32[], s32[]) tuple(z, n)
  o = (s32[], s32[]) opt-barrier(s)
  ROOT w = (s32[], s32[]) while(o), condition=c, body=b
}`, 4, opgraph.TripDerived},
		// Condition and increment inside fusions.
		{`HloModule m
f {
  x = s32[] parameter(0)
  n = s32[] constant(7)
  ROOT r = pred[] compare(x, n), direction=LT
}
g {
  x = s32[] parameter(0)
  k = s32[] constant(1)
  ROOT r = s32[] add(x, k)
}
c {
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ROOT r = pred[] fusion(i), kind=kLoop, calls=f
}
b {
  p = (s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  j = s32[] fusion(i), kind=kLoop, calls=g
  ROOT t = (s32[]) tuple(j)
}
ENTRY e {
  z = s32[] constant(0)
  s = (s32[]) tuple(z)
  ROOT w = (s32[]) while(s), condition=c, body=b
}`, 7, opgraph.TripDerived},
	} {
		g := one(t, c.text)
		n, from := g.TripCount(g.Comps.Root[g.Entry])
		if n != c.n || from != c.from {
			t.Errorf("trip count %d %v, want %d %v\n%s", n, from, c.n, c.from, c.text)
		}
	}
}

// TestConstants keeps the value of scalars.
func TestConstants(t *testing.T) {
	for _, c := range []struct {
		shape, in string
		want      string
	}{
		{"s32[]", "-7", "-7"}, {"u64[]", "18446744073709551615", "-1"}, {"pred[]", "true", "1"}, {"pred[]", "0", "0"},
		{"f32[]", "0.1", "0.10000000149011612"}, {"bf16[]", "0.1", "0.10009765625"}, {"f16[]", "0.1", "0.0999755859375"},
		{"f16[]", "65519", "65504"}, {"f16[]", "1e9", "+Inf"}, {"f16[]", "5.9604645e-08", "5.960464477539063e-08"},
		{"f64[]", "-inf", "-Inf"}, {"f32[]", "nan(0x1)", "NaN"}, {"f32[]", "-nan", "NaN"}, {"f32[]", "1e+100", "+Inf"},
		{"f32[2]", "{1, 2}", "text {1, 2}"}, {"f32[9]", "{...}", ""}, {"c64[]", "(inf, 0)", "text (inf, 0)"},
		{"(f32[], s32[])", "(1, 2)", "text (1, 2)"}, {"f32[2,2]", "{ { 1, 2 }, { /*i=1*/ 3, 4 } }", "text { { 1, 2 }, { /*i=1*/ 3, 4 } }"},
	} {
		g := one(t, "HloModule m\nENTRY e {\n a = "+c.shape+" constant("+c.in+")\n}")
		got := ""
		if v, ok := g.Int(0, opgraph.AttrConstInt); ok {
			got = fmt.Sprint(v)
		} else if v, ok := g.Float(0); ok {
			got = fmt.Sprint(v)
		} else if s := g.AttrStr(0, opgraph.AttrLiteral); s != "" {
			got = "text " + s
		}
		if got != c.want {
			t.Errorf("%s constant(%s) is %q, want %q", c.shape, c.in, got, c.want)
		}
	}
}
