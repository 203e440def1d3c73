package lower_test

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/io/xla/hlo"
	"perfsim/io/xla/stablehlo"
	"perfsim/systems/lower"
)

// fromText reads one module of HLO or MLIR text.
func fromText(t testing.TB, text string) *opgraph.Graph {
	t.Helper()
	read := hlo.ReadText
	if stablehlo.Sniff([]byte(text)) {
		read = stablehlo.Read
	}
	graphs, err := read("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return graphs[0]
}

// latencyOf lowers and predicts a text with the reference model.
func latencyOf(t testing.TB, text string, opt lower.Options) (uint64, *lower.Result) {
	t.Helper()
	mach := loadMachine(t, "trn2")
	g := fromText(t, text)
	g.DeriveTripCounts()
	res := lowered(t, g, mach, opt)
	return predict(t, res.Module, mach, components.Reference)[0], res
}

func noteText(m *components.Module, code string) string {
	var list []string
	for _, n := range m.Notes {
		if n.Code == code {
			list = append(list, n.Text)
		}
	}
	return strings.Join(list, "; ")
}

// The markers and functions of the Neuron compiler's custom-calls cost what
// the operators cost that they stand for.
func TestNeuronCustomCalls(t *testing.T) {
	head := "HloModule m\n"
	add := "add {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y)\n}\nmost {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y)\n}\n"
	softmax := ` z = f32[] constant(0)
 m = f32[64]{0} reduce(a, z), dimensions={1}, to_apply=most
 mb = f32[64,512]{1,0} broadcast(m), dimensions={0}
 d = f32[64,512]{1,0} subtract(a, mb)
 e = f32[64,512]{1,0} exponential(d)
 s = f32[64]{0} reduce(e, z), dimensions={1}, to_apply=add
 sb = f32[64,512]{1,0} broadcast(s), dimensions={0}
 ROOT r = f32[64,512]{1,0} divide(e, sb)
}
`
	for _, c := range []struct{ name, with, plain string }{
		{"ring marker", `ENTRY e {
 a = f32[64,512]{1,0} parameter(0)
 b = f32[64,512]{1,0} custom-call(a), custom_call_target="AwsNeuronTransferWithStaticRing"
 ROOT r = f32[64,512]{1,0} negate(b)
}
`, "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = f32[64,512]{1,0} negate(a)\n}\n"},
		{"marker of two", `ENTRY e {
 a = f32[64,512]{1,0} parameter(0)
 c = f32[64,512]{1,0} parameter(1)
 m = (f32[64,512]{1,0}, f32[64,512]{1,0}) custom-call(a, c), custom_call_target="AwsNeuronModuleMarkerStart-Forward"
 x = f32[64,512]{1,0} get-tuple-element(m), index=0
 y = f32[64,512]{1,0} get-tuple-element(m), index=1
 ROOT r = f32[64,512]{1,0} add(x, y)
}
`, "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n c = f32[64,512]{1,0} parameter(1)\n ROOT r = f32[64,512]{1,0} add(a, c)\n}\n"},
		{"SiLU", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = f32[64,512]{1,0} custom-call(a), custom_call_target=\"AwsNeuronSilu\"\n}\n",
			"ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = f32[64,512]{1,0} tanh(a)\n}\n"},
		{"gradient of GELU", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n b = f32[64,512]{1,0} parameter(1)\n ROOT r = f32[64,512]{1,0} custom-call(a, b), custom_call_target=\"AwsNeuronGeluBackward\"\n}\n",
			"ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n b = f32[64,512]{1,0} parameter(1)\n d = f32[64,512]{1,0} tanh(b)\n ROOT r = f32[64,512]{1,0} multiply(a, d)\n}\n"},
		{"softmax", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = f32[64,512]{1,0} custom-call(a), custom_call_target=\"AwsNeuronSoftmax\", backend_config=\"1\"\n}\n",
			add + "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n" + softmax},
		{"top 8", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = (f32[64,8]{1,0}, s32[64,8]{1,0}) custom-call(a), custom_call_target=\"AwsNeuronTopK\", backend_config=\"8\"\n}\n",
			"ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = (f32[64,8]{1,0}, s32[64,8]{1,0}) topk(a), k=8, largest=true\n}\n"},
		{"place of the largest", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n ROOT r = s32[64,1]{1,0} custom-call(a), custom_call_target=\"AwsNeuronArgMax\", backend_config=\"1\"\n}\n",
			"ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n t = (f32[64,1]{1,0}, s32[64,1]{1,0}) topk(a), k=1, largest=true\n ROOT r = s32[64,1]{1,0} get-tuple-element(t), index=1\n}\n"},
		{"dropout", "ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n p = f32[] parameter(1)\n ROOT r = f32[64,512]{1,0} custom-call(a, p), custom_call_target=\"AwsNeuronDropout\"\n}\n",
			"ENTRY e {\n a = f32[64,512]{1,0} parameter(0)\n p = f32[] parameter(1)\n z = f32[] constant(0)\n o = f32[] constant(1)\n zs = f32[64,512]{1,0} broadcast(z), dimensions={}\n n = f32[64,512]{1,0} rng(z, o), distribution=rng_uniform\n k = pred[64,512]{1,0} compare(n, zs), direction=LT\n ROOT r = f32[64,512]{1,0} select(k, a, zs)\n}\n"},
	} {
		got, res := latencyOf(t, head+c.with, lower.DefaultOptions())
		want, _ := latencyOf(t, head+c.plain, lower.DefaultOptions())
		if got != want || want == 0 {
			t.Errorf("%s: %d ns, want %d", c.name, got, want)
		}
		if s := noteText(res.Module, components.NoteEstimated); s != "" {
			t.Errorf("%s: %s", c.name, s)
		}
	}
}

// What has no rule is named and counted in one headline.
func TestEstimatedHeadline(t *testing.T) {
	_, res := latencyOf(t, `HloModule m
ENTRY e {
 a = f32[64,512]{1,0} parameter(0)
 b = f32[64,512]{1,0} my-op(a)
 c = f32[64,512]{1,0} custom-call(b), custom_call_target="Mystery"
 ROOT r = f32[64,512]{1,0} my-op(c)
}
`, lower.DefaultOptions())
	if got, want := noteText(res.Module, components.NoteEstimated), "3 operators estimated: my-op ×2, Mystery"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Fused attention of the GPU stack: 4·B·H·Q·K·D FLOPs forward, 10 backward,
// from the shapes of its operands.
func TestAttentionCalls(t *testing.T) {
	for _, c := range []struct {
		name, text string
		flops      int64
		note       string
	}{
		{"packed queries, keys and values", `ENTRY e {
 a = bf16[2,256,3,8,64]{4,3,2,1,0} parameter(0)
 z = bf16[0]{0} parameter(1)
 s = f32[1]{0} parameter(2)
 ROOT r = (bf16[2,256,8,64]{3,2,1,0}, f32[2,8,256,1]{3,2,1,0}, u8[16]{0}) custom-call(a, z, z, s), custom_call_target="te_fused_attn_forward_ffi"
}`, 4 * 2 * 8 * 256 * 256 * 64, "attention (batch 2, 8 heads, 256 queries, 256 keys, head size 64)"},
		{"grouped heads, sequence first", `ENTRY e {
 q = bf16[2,128,8,64]{3,2,1,0} parameter(0)
 k = bf16[2,512,2,64]{3,2,1,0} parameter(1)
 v = bf16[2,512,2,64]{3,2,1,0} parameter(2)
 ROOT r = (bf16[2,128,8,64]{3,2,1,0}, f32[2,8,128]{2,1,0}) custom-call(q, k, v), custom_call_target="flash_attn_fwd"
}`, 4 * 2 * 8 * 128 * 512 * 64, "attention (batch 2, 8 heads, 128 queries, 512 keys, head size 64)"},
		{"heads first by the statistics", `ENTRY e {
 q = bf16[2,8,128,64]{3,2,1,0} parameter(0)
 k = bf16[2,8,512,64]{3,2,1,0} parameter(1)
 v = bf16[2,8,512,64]{3,2,1,0} parameter(2)
 ROOT r = (bf16[2,8,128,64]{3,2,1,0}, f32[2,8,128]{2,1,0}) custom-call(q, k, v), custom_call_target="flash_mha_fwd"
}`, 4 * 2 * 8 * 128 * 512 * 64, "attention (batch 2, 8 heads, 128 queries, 512 keys, head size 64)"},
		{"cuDNN by the shape of its scores", `ENTRY e {
 q = bf16[4,256,16,64]{3,2,1,0} parameter(0)
 k = bf16[4,256,16,64]{3,2,1,0} parameter(1)
 v = bf16[4,256,16,64]{3,2,1,0} parameter(2)
 ROOT r = (bf16[4,16,256,64]{3,1,2,0}, u8[0]{0}) custom-call(q, k, v), custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"element_type":"BF16","dimensions":["4","16","256","256"]}}}
}`, 4 * 4 * 16 * 256 * 256 * 64, "attention (batch 4, 16 heads, 256 queries, 256 keys, head size 64)"},
		{"heads first by cuDNN's configuration", `ENTRY e {
 q = bf16[2,8,64,64]{3,2,1,0} parameter(0)
 k = bf16[2,8,64,64]{3,2,1,0} parameter(1)
 v = bf16[2,8,64,64]{3,2,1,0} parameter(2)
 ROOT r = (bf16[2,8,64,64]{3,2,1,0}, u8[0]{0}) custom-call(q, k, v), custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config":{"bmm1_dot_dimension_numbers":{"lhs_contracting_dimensions":["3"],"rhs_contracting_dimensions":["3"],"lhs_batch_dimensions":["0","1"],"rhs_batch_dimensions":["0","1"]}}}
}`, 4 * 2 * 8 * 64 * 64 * 64, "attention (batch 2, 8 heads, 64 queries, 64 keys, head size 64)"},
		{"1024 are no heads", `ENTRY e {
 q = bf16[2,8,1024,64]{3,2,1,0} parameter(0)
 k = bf16[2,8,1024,64]{3,2,1,0} parameter(1)
 v = bf16[2,8,1024,64]{3,2,1,0} parameter(2)
 ROOT r = bf16[2,8,1024,64]{3,2,1,0} custom-call(q, k, v), custom_call_target="flash_attn_fwd"
}`, 4 * 2 * 8 * 1024 * 1024 * 64, "attention (batch 2, 8 heads, 1024 queries, 1024 keys, head size 64)"},
		{"one query after 512 keys, heads first", `ENTRY e {
 q = bf16[2,8,1,64]{3,2,1,0} parameter(0)
 k = bf16[2,2,512,64]{3,2,1,0} parameter(1)
 v = bf16[2,2,512,64]{3,2,1,0} parameter(2)
 ROOT r = bf16[2,8,1,64]{3,2,1,0} custom-call(q, k, v), custom_call_target="flash_attn_fwd"
}`, 4 * 2 * 8 * 1 * 512 * 64, "attention (batch 2, 8 heads, 1 queries, 512 keys, head size 64)"},
		{"backward", `ENTRY e {
 q = bf16[2,256,8,64]{3,2,1,0} parameter(0)
 k = bf16[2,256,8,64]{3,2,1,0} parameter(1)
 v = bf16[2,256,8,64]{3,2,1,0} parameter(2)
 g = bf16[2,256,8,64]{3,2,1,0} parameter(3)
 ROOT r = (bf16[2,256,8,64]{3,2,1,0}, bf16[2,256,8,64]{3,2,1,0}, bf16[2,256,8,64]{3,2,1,0}) custom-call(q, k, v, g), custom_call_target="te_fused_attn_backward_ffi"
}`, 10 * 2 * 8 * 256 * 256 * 64, "the gradient of attention (batch 2, 8 heads, 256 queries, 256 keys, head size 64)"},
	} {
		_, res := latencyOf(t, "HloModule m\n"+c.text, lower.DefaultOptions())
		if res.Report.FLOPs != c.flops || !strings.HasSuffix(noteText(res.Module, "expanded"), c.note) {
			t.Errorf("%s: %d FLOPs, want %d; %q, want %q", c.name, res.Report.FLOPs, c.flops, noteText(res.Module, "expanded"), c.note)
		}
		if s := noteText(res.Module, components.NoteEstimated); s != "" {
			t.Errorf("%s: %s", c.name, s)
		}
	}
}

// Open dimensions are an error that names them; sizes given by name spread to
// what follows.
func TestOpenDimensions(t *testing.T) {
	text := `HloModule m
ENTRY e {
 a = f32[?,512]{1,0} parameter(0)
 w = f32[512,?]{1,0} parameter(1)
 n = f32[?,512]{1,0} negate(a)
 ROOT d = f32[?,?]{1,0} dot(n, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`
	opt := lower.DefaultOptions()
	for _, c := range []struct {
		dims map[string]int64
		want string
	}{
		{nil, "the module has dimensions without a size: a.0 (f32[?,512]{1,0}), w.1 (f32[512,?]{1,0}); give it with --dim a.0=N --dim w.1=N, or all with --dim '?=N'"},
		{map[string]int64{"a": 64}, "the module has a dimension without a size: w.1 (f32[512,?]{1,0}); give it with --dim w.1=N, or all with --dim '?=N'"},
		{map[string]int64{"a": 64, "w": 8, "b": 2}, "--dim b: no unknown dimension has this name; the unknown dimensions are a.0, w.1"},
	} {
		opt.Dims = c.dims
		if _, err := lower.Lower(context.Background(), fromText(t, text), loadMachine(t, "trn2"), opt); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.dims, err, c.want)
		}
	}
	opt.Dims = map[string]int64{"a.0": 64, "w": 128}
	got, res := latencyOf(t, text, opt)
	if res.Report.FLOPs != 2*64*512*128 {
		t.Errorf("%d FLOPs, want %d", res.Report.FLOPs, 2*64*512*128)
	}
	whole := strings.NewReplacer("f32[?,512]", "f32[64,512]", "f32[512,?]", "f32[512,128]", "f32[?,?]", "f32[64,128]").Replace(text)
	if want, _ := latencyOf(t, whole, lower.DefaultOptions()); got != want {
		t.Errorf("%d ns, want %d as with the sizes written", got, want)
	}
	opt.Dims = map[string]int64{"a.0": 64}
	if _, err := lower.Lower(context.Background(), fromText(t, whole), loadMachine(t, "trn2"), opt); err == nil || err.Error() != "--dim a.0: the module has no unknown dimensions" {
		t.Error(err)
	}
}

// A size that only the other operand of an elementwise operator gives.
func TestSizeOfTheOtherOperand(t *testing.T) {
	opt := lower.DefaultOptions()
	opt.Dims = map[string]int64{"x": 64}
	_, res := latencyOf(t, `func.func @main(%x: tensor<?x512xf32>, %n: tensor<2xi32>, %b: tensor<512xf32>) -> tensor<?x512xf32> {
  %y = stablehlo.dynamic_broadcast_in_dim %b, %n, dims = [1] : (tensor<512xf32>, tensor<2xi32>) -> tensor<?x512xf32>
  %r = stablehlo.add %x, %y : tensor<?x512xf32>
  return %r : tensor<?x512xf32>
}
`, opt)
	if want := int64(4 * 64 * 512); res.Report.OutputBytes != want {
		t.Errorf("%d bytes of results, want %d", res.Report.OutputBytes, want)
	}
}

// Broadcasts whose size the program computes from the size of an argument.
func TestComputedBroadcast(t *testing.T) {
	opt := lower.DefaultOptions()
	opt.Dims = map[string]int64{lower.AnyDim: 64}
	_, res := latencyOf(t, `func.func @main(%x: tensor<?x512xf32>, %b: tensor<512xf32>) -> tensor<?x512xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x512xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c = stablehlo.constant dense<512> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %y = stablehlo.dynamic_broadcast_in_dim %b, %s, dims = [1] : (tensor<512xf32>, tensor<2xi32>) -> tensor<?x512xf32>
  %r = stablehlo.add %x, %y : tensor<?x512xf32>
  return %r : tensor<?x512xf32>
}
`, opt)
	if res.Report.OutputBytes != 64*512*4 || noteText(res.Module, components.NoteEstimated) != "" {
		t.Errorf("%d bytes of outputs; %s", res.Report.OutputBytes, noteText(res.Module, components.NoteEstimated))
	}
}

// A trip count that nobody has, and one that contradicts its condition.
func TestTripNotes(t *testing.T) {
	text := `HloModule m
body { p = (s32[], f32[128,512]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[128,512]{1,0} get-tuple-element(p), index=1
  st = s32[] constant(3)
  n = s32[] add(i, st)
  e = f32[128,512]{1,0} exponential(v)
  ROOT t = (s32[], f32[128,512]{1,0}) tuple(n, e) }
cond { p = (s32[], f32[128,512]{1,0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(i, lim), direction=LT }
ENTRY main {
  z = s32[] constant(0)
  a = f32[128,512]{1,0} parameter(0)
  t0 = (s32[], f32[128,512]{1,0}) tuple(z, a)
  ROOT loop = (s32[], f32[128,512]{1,0}) while(t0), condition=cond, body=body, backend_config={"known_trip_count":{"n":"7"}}
}
`
	_, res := latencyOf(t, text, lower.DefaultOptions())
	if got, want := noteText(res.Module, "trip-count-contradicts"), "loop states 7 iterations (known_trip_count), its condition gives 4; 7 is used (--trip-count loop=4 takes the other)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	opt := lower.DefaultOptions()
	for _, name := range []string{"loop", "body"} {
		opt.Trips = map[string]int64{name: 4}
		if _, res := latencyOf(t, text, opt); noteText(res.Module, "trip-count-contradicts") != "" || res.Report.Trips[0].Count != 4 {
			t.Errorf("%s=4: %v %s", name, res.Report.Trips, noteText(res.Module, "trip-count-contradicts"))
		}
	}
	opt.Trips = map[string]int64{"nope": 3}
	if _, err := lower.Lower(context.Background(), fromText(t, text), loadMachine(t, "trn2"), opt); err == nil || err.Error() != `--trip-count nope: no while or while body is called "nope"; the whiles are loop` {
		t.Error(err)
	}
}

// The state of a loop may be one scalar.
func TestScalarLoop(t *testing.T) {
	g := fromText(t, `HloModule m
body { i = s32[] parameter(0)
  one = s32[] constant(2)
  ROOT n = s32[] add(i, one) }
cond { i = s32[] parameter(0)
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(i, lim), direction=LT }
ENTRY main {
  z = s32[] constant(1)
  ROOT w = s32[] while(z), condition=cond, body=body
}
`)
	g.DeriveTripCounts()
	if n, from := g.TripCount(g.Comps.Root[g.Entry]); n != 5 || from != opgraph.TripDerived {
		t.Errorf("%d trips, %s; want 5 (1, 3, 5, 7, 9), derived", n, from)
	}
}

// Channel ids are names: any renaming gives the same figure.
func TestChannelIDsChooseNothing(t *testing.T) {
	text := func(a, b, c string) string {
		return `HloModule m, num_partitions=4
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT s = f32[] add(x,y) }
ENTRY e {
  a = f32[128,512]{1,0} parameter(0)
  r = f32[128,512]{1,0} all-reduce(a), channel_id=` + a + `, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  s = f32[128,512]{1,0} all-reduce(a), channel_id=` + b + `, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  t = f32[128,512]{1,0} all-reduce(r), channel_id=` + c + `, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=add
  ROOT o = (f32[128,512]{1,0}, f32[128,512]{1,0}) tuple(s, t)
}
`
	}
	want, res := latencyOf(t, text("1", "2", "3"), lower.DefaultOptions())
	for _, ids := range [][3]string{{"2", "4", "6"}, {"3", "5", "7"}, {"9", "9", "9"}, {"100", "1", "50"}} {
		if got, _ := latencyOf(t, text(ids[0], ids[1], ids[2]), lower.DefaultOptions()); got != want {
			t.Errorf("channels %v: %d ns, want %d", ids, got, want)
		}
	}
	// r and t go over the same groups, so they share a stream; s has another.
	var lanes []uint16
	m := res.Module
	for i := range m.Instr.Len() {
		if m.Instr.Opcode.Slice()[i] == components.OpcodeCollectiveCompute {
			lanes = append(lanes, m.Instr.Lane.Slice()[i])
		}
	}
	if len(lanes) != 3 || lanes[0] != lanes[2] || lanes[0] == lanes[1] {
		t.Errorf("streams %v", lanes)
	}
}
