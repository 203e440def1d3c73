package stablehlo

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"perfsim/components/datadir"
	"perfsim/components/opgraph"
	"perfsim/io/xla/hlo"
)

// one reads a text of one module and returns its HLO text without the header.
func one(t *testing.T, text string) string {
	t.Helper()
	graphs, err := Read("t.mlir", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(graphs) != 1 {
		t.Fatalf("%d modules", len(graphs))
	}
	return written(t, graphs[0])
}

// written writes a graph as HLO text, checks that it reads back equal, and
// returns it without the header and signatures.
func written(t testing.TB, g *opgraph.Graph) string {
	t.Helper()
	text := hlo.AppendText(nil, g)
	back, err := hlo.ReadText("written", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := hlo.AppendText(nil, back[0]); string(again) != string(text) {
		t.Fatalf("written, read and written again: %s\n%s", again, text)
	}
	_, out, _ := strings.Cut(string(text), "\n\n")
	return signature.ReplaceAllString(out, "$1 {\n")
}

var signature = regexp.MustCompile(`(?m)^((?:ENTRY )?%\S+) \(.*\) -> .* \{\n`)

// TestForms reads operations in their pretty and generic forms; both give
// the same HLO.
func TestForms(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"elementwise",
			`%0 = stablehlo.add %a, %b : tensor<4x8xf32>`,
			`%0 = f32[4,8] add(%a, %b)`},
		{"elementwise, functional type",
			`%0 = stablehlo.add %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`,
			`%0 = f32[4,8] add(%a, %b)`},
		{"elementwise, generic",
			`%0 = "stablehlo.add"(%a, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`,
			`%0 = f32[4,8] add(%a, %b)`},
		{"attributes before the type",
			`%0 = stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>} : tensor<4x8xf32>`,
			`%0 = f32[4,8] exponential(%a)`},
		{"location",
			`%0 = stablehlo.negate %a : tensor<4x8xf32> loc("jit(f)/neg"("m.py":12:3))`,
			`%0 = f32[4,8] negate(%a), metadata={op_name="jit(f)/neg" source_file="m.py" source_line=12}`},
		{"location alias defined later",
			`%0 = stablehlo.negate %a : tensor<4x8xf32> loc(#loc2)`,
			`%0 = f32[4,8] negate(%a), metadata={op_name="neg" source_file="n.py" source_line=7}`},
		{"dot_general",
			`%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>`,
			`%0 = f32[4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_batch_dims={0}, rhs_batch_dims={0}`},
		{"dot_general, generic",
			`%0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>`,
			`%0 = f32[4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_batch_dims={0}, rhs_batch_dims={0}`},
		{"dot",
			`%t = stablehlo.transpose %b, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
			 %0 = stablehlo.dot %a, %t : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>`,
			"%t = f32[8,4] transpose(%b), dimensions={1,0}\n  %0 = f32[4,4] dot(%a, %t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"},
		{"transpose, generic",
			`%0 = "stablehlo.transpose"(%a) {permutation = dense<[1, 0]> : tensor<2xi64>} : (tensor<4x8xf32>) -> tensor<8x4xf32>`,
			`%0 = f32[8,4] transpose(%a), dimensions={1,0}`},
		{"hexadecimal dense list",
			`%0 = "stablehlo.transpose"(%a) {permutation = dense<"0x01000000000000000000000000000000"> : tensor<2xi64>} : (tensor<4x8xf32>) -> tensor<8x4xf32>`,
			`%0 = f32[8,4] transpose(%a), dimensions={1,0}`},
		{"attribute alias",
			`%0 = "stablehlo.transpose"(%a) {permutation = #perm} : (tensor<4x8xf32>) -> tensor<8x4xf32>`,
			`%0 = f32[8,4] transpose(%a), dimensions={1,0}`},
		{"slice",
			`%0 = stablehlo.slice %a [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>`,
			`%0 = f32[4,4] slice(%a), slice={[0:4], [1:8:2]}`},
		{"slice, generic",
			`%0 = "stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 8>, strides = array<i64: 1, 2>}> : (tensor<4x8xf32>) -> tensor<4x4xf32>`,
			`%0 = f32[4,4] slice(%a), slice={[0:4], [1:8:2]}`},
		{"pad",
			`%c = stablehlo.constant dense<0.0> : tensor<f32>
			 %0 = stablehlo.pad %a, %c, low = [0, -1], high = [1, 0], interior = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<5x14xf32>`,
			"%c = f32[] constant(0)\n  %0 = f32[5,14] pad(%a, %c), padding=0_1x-1_0_1"},
		{"concatenate, reverse, reshape, convert",
			`%x = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
			 %y = stablehlo.reverse %x, dims = [0, 1] : tensor<8x8xf32>
			 %z = stablehlo.reshape %y : (tensor<8x8xf32>) -> tensor<64xf32>
			 %0 = stablehlo.convert %z : (tensor<64xf32>) -> tensor<64xbf16>`,
			"%x = f32[8,8] concatenate(%a, %b), dimensions={0}\n  %y = f32[8,8] reverse(%x), dimensions={0,1}\n  %z = f32[64] reshape(%y)\n  %0 = bf16[64] convert(%z)"},
		{"compare and select",
			`%x = stablehlo.compare  GE, %a, %b,  FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
			 %0 = stablehlo.select %x, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>`,
			"%x = pred[4,8] compare(%a, %b), direction=GE\n  %0 = f32[4,8] select(%x, %a, %b)"},
		{"compare, generic",
			`%0 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>`,
			"%0 = pred[4,8] compare(%a, %b), direction=LT"},
		{"splat constant",
			`%0 = stablehlo.constant dense<1.500000e+00> : tensor<2x3xbf16>`,
			"%0.value = bf16[] constant(1.5)\n  %0 = bf16[2,3] broadcast(%0.value), dimensions={}"},
		{"constants",
			`%p = stablehlo.constant dense<true> : tensor<i1>
			 %q = stablehlo.constant dense<0xFF800000> : tensor<f32>
			 %r = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
			 %s = stablehlo.constant dense<"0x0102"> : tensor<2xui8>
			 %u = stablehlo.constant dense<-7> : tensor<i64>
			 %v = "stablehlo.constant"() <{value = dense<3> : tensor<ui4>}> : () -> tensor<ui4>
			 %0 = stablehlo.constant dense_resource<__elided__> : tensor<7x7xf8E4M3FN>`,
			"%p = pred[] constant(true)\n  %q = f32[] constant(-inf)\n  %r = s32[2,2] constant({...})\n  %s = u8[2] constant({...})\n  %u = s64[] constant(-7)\n  %v = u4[] constant(3)\n  %0 = f8e4m3fn[7,7] constant({...})"},
		{"iota",
			`%0 = stablehlo.iota dim = 1 : tensor<4x8xi32>`,
			"%0 = s32[4,8] iota(), iota_dimension=1"},
		{"broadcast_in_dim",
			`%0 = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<4x8xf32>) -> tensor<8x3x4xf32>`,
			"%0 = f32[8,3,4] broadcast(%a), dimensions={2,0}"},
		{"broadcast_in_dim that stretches",
			`%x = stablehlo.slice %a [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32>
			 %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<5x8xf32>`,
			"%x = f32[1,8] slice(%a), slice={[0:1], [0:8]}\n  %reshape.3 = f32[8] reshape(%x)\n  %0 = f32[5,8] broadcast(%reshape.3), dimensions={1}"},
		{"reduce that applies",
			`%c = stablehlo.constant dense<0.0> : tensor<f32>
			 %0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>`,
			"%c = f32[] constant(0)\n  %0 = f32[4] reduce(%a, %c), to_apply=%region_maximum_f32, dimensions={1}"},
		{"reduce of two with a region",
			`%c = stablehlo.constant dense<0.0> : tensor<f32>
			 %0:2 = stablehlo.reduce(%a init: %c), (%b init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
			  reducer(%l: tensor<f32>, %m: tensor<f32>) (%n: tensor<f32>, %o: tensor<f32>)  {
			   %q = stablehlo.add %l, %m : tensor<f32>
			   stablehlo.return %q, %o : tensor<f32>, tensor<f32>
			 }`,
			"%c = f32[] constant(0)\n  %0 = (f32[4], f32[4]) reduce(%a, %b, %c, %c), to_apply=%reduce, dimensions={1}\n  %0.0 = f32[4] get-tuple-element(%0), index=0\n  %0.1 = f32[4] get-tuple-element(%0), index=1"},
		{"convolution",
			`%x = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<1x4x4x2xf32>
			 %k = stablehlo.constant dense_resource<k> : tensor<3x3x2x5xf32>
			 %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[1, 1], [0, 2]], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x4x2x5xf32>`,
			"%x = f32[1,4,4,2] reshape(%a)\n  %k = f32[3,3,2,5] constant({...})\n  %0 = f32[1,4,2,5] convolution(%x, %k), dim_labels=b01f_01io->b01f, window={size=3x3 stride=1x2 pad=1_1x0_2 rhs_reversal=0x1}"},
		{"convolution, generic",
			`%x = stablehlo.reshape %a : (tensor<4x8xf32>) -> tensor<1x4x4x2xf32>
			 %k = stablehlo.constant dense_resource<k> : tensor<3x3x1x4xf32>
			 %0 = "stablehlo.convolution"(%x, %k) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, window_strides = array<i64: 1, 2>, padding = dense<1> : tensor<2x2xi64>, feature_group_count = 2 : i64, batch_group_count = 1 : i64}> : (tensor<1x4x4x2xf32>, tensor<3x3x1x4xf32>) -> tensor<1x4x2x4xf32>`,
			"%x = f32[1,4,4,2] reshape(%a)\n  %k = f32[3,3,1,4] constant({...})\n  %0 = f32[1,4,2,4] convolution(%x, %k), dim_labels=b01f_01io->b01f, window={size=3x3 stride=1x2 pad=1_1x1_1}, feature_group_count=2"},
		{"reduce_window",
			`%c = stablehlo.constant dense<0.0> : tensor<f32>
			 %0 = "stablehlo.reduce_window"(%a, %c) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
			 ^bb0(%l: tensor<f32>, %m: tensor<f32>):
			   %q = stablehlo.maximum %l, %m : tensor<f32>
			   stablehlo.return %q : tensor<f32>
			 }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x4xf32>`,
			"%c = f32[] constant(0)\n  %0 = f32[4,4] reduce-window(%a, %c), to_apply=%reduce_window, window={size=1x3 stride=1x2 pad=0_0x1_1}"},
		{"all_reduce",
			`%0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2], [3, 4, -1]]> : tensor<2x3xi64>, use_global_device_ids}> ({
			 ^bb0(%l: tensor<f32>, %m: tensor<f32>):
			   %q = stablehlo.add %l, %m : tensor<f32>
			   stablehlo.return %q : tensor<f32>
			 }) : (tensor<4x8xf32>) -> tensor<4x8xf32>`,
			"%0 = f32[4,8] all-reduce(%a), to_apply=%all_reduce, channel_id=3, use_global_device_ids=true, replica_groups={{0,1,2},{3,4}}"},
		{"all_gather and permute",
			`%x = "stablehlo.all_gather"(%a) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x16xf32>
			 %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>`,
			"%x = f32[4,16] all-gather(%a), dimensions={1}, channel_id=1, replica_groups={{0,1}}\n  %0 = f32[4,16] collective-permute(%x), source_target_pairs={{0,1},{1,0}}"},
		{"gather",
			`%i = stablehlo.iota dim = 0 : tensor<3x1xi32>
			 %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<3x1xi32>) -> tensor<3x8xf32>`,
			"%i = s32[3,1] iota(), iota_dimension=0\n  %0 = f32[3,8] gather(%a, %i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"},
		{"custom_call",
			`%0 = stablehlo.custom_call @Sharding(%a) {backend_config = "x\22y", mhlo.sharding = "{devices=[1,2]<=[2]}"} : (tensor<4x8xf32>) -> tensor<4x8xf32>`,
			`%0 = f32[4,8] custom-call(%a), sharding={devices=[1,2]<=[2]}, custom_call_target="Sharding", backend_config="x\"y"`},
		{"several results",
			`%0:2 = stablehlo.optimization_barrier %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
			 %1 = stablehlo.add %0#0, %0#1 : tensor<4x8xf32>`,
			"%tuple.2 = (f32[4,8], f32[4,8]) tuple(%a, %b)\n  %0 = (f32[4,8], f32[4,8]) opt-barrier(%tuple.2)\n  %0.0 = f32[4,8] get-tuple-element(%0), index=0\n  %0.1 = f32[4,8] get-tuple-element(%0), index=1\n  %1 = f32[4,8] add(%0.0, %0.1)"},
		{"an operation without a twin",
			`%0 = stablehlo.dynamic_pad %a, %b, %a, %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>`,
			"%0 = f32[?,8] stablehlo.dynamic_pad(%a, %b, %a, %a, %a)"},
		{"quantized types",
			`%x = stablehlo.uniform_quantize %a : (tensor<4x8xf32>) -> tensor<4x8x!quant.uniform<i8:f32, 0.5:3>>
			 %0 = stablehlo.uniform_dequantize %x : (tensor<4x8x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x8xf32>`,
			"%x = s8[4,8] convert(%a)\n  %0 = f32[4,8] convert(%x)"},
		{"CHLO and bounds",
			`%x = chlo.erf %a : tensor<4x8xf32> -> tensor<4x8xf32>
			 %0 = stablehlo.custom_call @pad(%x) : (tensor<4x8xf32>) -> tensor<?x8xf32, #stablehlo.bounds<16, ?>>`,
			"%x = f32[4,8] erf(%a)\n  %0 = f32[<=16,8] custom-call(%x), custom_call_target=\"pad\""},
		{"Shardy",
			`%0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<4x8xf32>`,
			`%0 = f32[4,8] custom-call(%a), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}, custom_call_target="Sharding"`},
		{"Shardy, generic",
			`%0 = "sdy.sharding_constraint"(%a) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>`,
			`%0 = f32[4,8] custom-call(%a), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}, custom_call_target="Sharding"`},
		{"several result names",
			`%0, %y = "stablehlo.optimization_barrier"(%a, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
			 %z = stablehlo.add %0, %y : tensor<4x8xf32>`,
			"%tuple.2 = (f32[4,8], f32[4,8]) tuple(%a, %b)\n  %0 = (f32[4,8], f32[4,8]) opt-barrier(%tuple.2)\n  %0.0 = f32[4,8] get-tuple-element(%0), index=0\n" +
				"  %y = f32[4,8] get-tuple-element(%0), index=1\n  %z = f32[4,8] add(%0.0, %y)"},
		{"several result names with counts",
			`%x:2, %0 = "stablehlo.optimization_barrier"(%a, %b, %a) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
			 %z = stablehlo.add %x#1, %0 : tensor<4x8xf32>`,
			"%tuple.2 = (f32[4,8], f32[4,8], f32[4,8]) tuple(%a, %b, %a)\n  %x = (f32[4,8], f32[4,8], f32[4,8]) opt-barrier(%tuple.2)\n  %x.0 = f32[4,8] get-tuple-element(%x), index=0\n" +
				"  %x.1 = f32[4,8] get-tuple-element(%x), index=1\n  %0 = f32[4,8] get-tuple-element(%x), index=2\n  %z = f32[4,8] add(%x.1, %0)"},
		{"an operation of another dialect",
			`%x = stablehlo.negate %a : tensor<4x8xf32>
			 %0 = "my.op"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>`,
			"%x = f32[4,8] negate(%a)\n  %0 = f32[4,8] my.op(%x)"},
		{"arithmetic of other dialects",
			`%c = arith.constant dense<2.0> : tensor<4x8xf32>
			 %x = arith.addf %a, %c : tensor<4x8xf32>
			 %t = arith.truncf %x : tensor<4x8xf32> to tensor<4x8xbf16>
			 %p = arith.cmpf ogt, %a, %b : tensor<4x8xf32>
			 %q = "arith.cmpf"(%a, %b) <{predicate = 5 : i64}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
			 %s = arith.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>
			 %0 = math.exp %s : tensor<4x8xf32>`,
			"%c.value = f32[] constant(2)\n  %c = f32[4,8] broadcast(%c.value), dimensions={}\n  %x = f32[4,8] add(%a, %c)\n  %t = bf16[4,8] convert(%x)\n  %p = pred[4,8] compare(%a, %b), direction=GT\n" +
				"  %q = pred[4,8] compare(%a, %b), direction=LE\n  %s = f32[4,8] select(%p, %a, %b)\n  %0 = f32[4,8] exponential(%s)"},
		{"CHLO that broadcasts",
			`%c = stablehlo.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
			 %x = chlo.broadcast_multiply %a, %c : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
			 %0 = chlo.square %x : tensor<4x8xf32> -> tensor<4x8xf32>`,
			"%c = f32[4,1] constant({...})\n  %reshape.3 = f32[4] reshape(%c)\n  %broadcast.4 = f32[4,8] broadcast(%reshape.3), dimensions={0}\n  %x = f32[4,8] multiply(%a, %broadcast.4)\n  %0 = f32[4,8] multiply(%x, %x)"},
		{"a sparse constant, and marks of Shardy",
			`%c = stablehlo.constant sparse<[[0, 0]], [1.0]> : tensor<4x8xf32>
			 %x = sdy.propagation_barrier %c allowed_direction=NONE : tensor<4x8xf32>
			 sdy.sharding_group %x group_id=3 : tensor<4x8xf32>
			 %0 = sdy.all_gather [{"x"}, {}] %x out_sharding=<@mesh, [{}, {}]> : tensor<4x8xf32>`,
			"%c = f32[4,8] constant({...})\n  %x = f32[4,8] opt-barrier(%c)\n  %0 = f32[4,8] custom-call(%x), frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, [{}, {}]>\"}, custom_call_target=\"Sharding\""},
		{"a named computation",
			`%0 = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%u: tensor<4x8xf32>) {
			 %y = stablehlo.negate %u : tensor<4x8xf32>
			 sdy.return %y : tensor<4x8xf32>
			 } : (tensor<4x8xf32>) -> tensor<4x8xf32>`,
			"%custom-call.4 = f32[4,8] custom-call(%a), custom_call_target=\"Sharding\", frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, [{}, {}]>\"}\n  %0 = f32[4,8] call(%custom-call.4), to_apply=%named_computation\n" +
				"  %custom-call.6 = f32[4,8] custom-call(%0), custom_call_target=\"Sharding\", frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, [{\\\"x\\\"}, {}]>\"}"},
		{"tokens",
			`%x = stablehlo.create_token : !stablehlo.token
			 %0 = stablehlo.after_all %x, %x : !stablehlo.token`,
			"%x = token[] after-all()\n  %0 = token[] after-all(%x, %x)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := "%0"
			if strings.Contains(c.in, "%0:2") {
				result = "%0#0"
			}
			text := "#perm = dense<[1, 0]> : tensor<2xi64>\nsdy.mesh @mesh = <[\"x\"=2]>\nfunc.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32> loc(\"b\")) {\n" + c.in +
				"\n return " + result + " : tensor<4x8xf32>\n}\n#loc1 = loc(\"n.py\":7:1)\n#loc2 = loc(\"neg\"(#loc1))\n"
			got := one(t, text)
			_, got, _ = strings.Cut(got, "ENTRY %main {\n  %a = f32[4,8] parameter(0)\n  %b = f32[4,8] parameter(1)\n  ")
			got = strings.ReplaceAll(strings.TrimSuffix(got, "\n}\n"), "ROOT ", "")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestControlFlow: regions become computations; what they use from outside
// is handed in, constants are repeated.
func TestControlFlow(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"manual computation", `module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
    %c = stablehlo.constant dense<2.0> : tensor<4x8xf32>
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
      %1 = stablehlo.multiply %b, %c : tensor<4x8xf32>
      sdy.return %1 : tensor<4x8xf32>
    } : (tensor<16x8xf32>) -> tensor<16x8xf32>
    return %0 : tensor<16x8xf32>
  }
}`, `%manual_computation {
  %b = f32[4,8] parameter(0)
  %c.value = f32[] constant(2)
  %c = f32[4,8] broadcast(%c.value), dimensions={}
  ROOT %1 = f32[4,8] multiply(%b, %c)
}

ENTRY %main {
  %a = f32[16,8] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  %c.value = f32[] constant(2)
  %c = f32[4,8] broadcast(%c.value), dimensions={}
  %custom-call.7 = f32[16,8] custom-call(%a), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  %custom-call.8 = f32[4,8] custom-call(%custom-call.7), custom_call_target="SPMDFullToShardShape", sharding={manual}
  %0 = f32[4,8] call(%custom-call.8), to_apply=%manual_computation
  ROOT %custom-call.10 = f32[16,8] custom-call(%0), custom_call_target="SPMDShardToFullShape", frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
}
`},
		{"shardings of results", `module @m {
  func.func public @main(%a: tensor<8xf32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%a) {mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}]>]>"}} : (tensor<8xf32>) -> tensor<8xf32>
    return %a, %0 : tensor<8xf32>, tensor<8xf32>
  }
}`, `ENTRY %main {
  %a = f32[8] parameter(0)
  %0 = f32[8] custom-call(%a), frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>"}, custom_call_target="xla.sdy.GlobalToLocalShape"
  ROOT %tuple.2 = (f32[8], f32[8]) tuple(%a, %0), frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{\"x\"}]>]>"}
}
`},
		{"while", `module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<10xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<10xf32> {mhlo.sharding = "{replicated}"}) -> tensor<10xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<10> : tensor<i32>
    %s = stablehlo.constant dense<3> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %x = %arg0) : tensor<i32>, tensor<10xf32>
     cond {
      %1 = stablehlo.compare  LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %s : tensor<i32>
      %2 = stablehlo.add %x, %arg1 : tensor<10xf32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<10xf32>
    }
    return %0#1 : tensor<10xf32>
  }
}`, `%while_cond {
  %state = (s32[], f32[10], f32[10]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[10] get-tuple-element(%state), index=1
  %arg1.0 = f32[10] get-tuple-element(%state), index=2
  %n = s32[] constant(10)
  ROOT %1 = pred[] compare(%i, %n), direction=LT
}

%while_body {
  %state = (s32[], f32[10], f32[10]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[10] get-tuple-element(%state), index=1
  %arg1.0 = f32[10] get-tuple-element(%state), index=2
  %s = s32[] constant(3)
  %1 = s32[] add(%i, %s)
  %2 = f32[10] add(%x, %arg1.0)
  ROOT %tuple.13 = (s32[], f32[10], f32[10]) tuple(%1, %2, %arg1.0)
}

ENTRY %main {
  %arg0 = f32[10] parameter(0)
  %arg1 = f32[10] parameter(1), sharding={replicated}
  %c = s32[] constant(0)
  %n = s32[] constant(10)
  %s = s32[] constant(3)
  %tuple.19 = (s32[], f32[10], f32[10]) tuple(%c, %arg0, %arg1)
  %0 = (s32[], f32[10], f32[10]) while(%tuple.19), condition=%while_cond, body=%while_body
  %0.0 = s32[] get-tuple-element(%0), index=0
  ROOT %0.1 = f32[10] get-tuple-element(%0), index=1
}
`},
		{"if, nested while, call of a later function", `module {
  func.func @main(%p: tensor<i1>, %a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %k = stablehlo.constant dense<2.0> : tensor<f32>
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.multiply %a, %k : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      %1 = func.call @f(%b) : (tensor<f32>) -> tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0, %a : tensor<f32>, tensor<f32>
  }
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
}`, `%if {
  %state = (f32[]) parameter(0)
  %a.0 = f32[] get-tuple-element(%state), index=0
  %k = f32[] constant(2)
  ROOT %1 = f32[] multiply(%a.0, %k)
}

%if.1 {
  %state = (f32[]) parameter(0)
  %b.0 = f32[] get-tuple-element(%state), index=0
  ROOT %1 = f32[] call(%b.0), to_apply=%f
}

ENTRY %main {
  %p = pred[] parameter(0)
  %a = f32[] parameter(1)
  %b = f32[] parameter(2)
  %k = f32[] constant(2)
  %tuple.11 = (f32[]) tuple(%a)
  %tuple.12 = (f32[]) tuple(%b)
  %0 = f32[] conditional(%p, %tuple.11, %tuple.12), branch_computations={%if, %if.1}
  ROOT %tuple.14 = (f32[], f32[]) tuple(%0, %a)
}

%f {
  ROOT %x = f32[] parameter(0)
}
`},
		{"everything generic", `"builtin.module"() <{sym_name = "g"}> ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "func.call"(%arg0) <{callee = @inner}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) {sym_visibility = "public"} : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "inner", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %c = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %1:2 = "stablehlo.while"(%c, %arg0) ({
    ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
      %2 = "stablehlo.compare"(%i, %c) <{comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%2) : (tensor<i1>) -> ()
    }, {
    ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
      %2 = "stablehlo.add"(%i, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%2, %x) : (tensor<i32>, tensor<4xf32>) -> ()
    }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
    "func.return"(%1#1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()`, `ENTRY %main {
  %arg0 = f32[4] parameter(0)
  ROOT %0 = f32[4] call(%arg0), to_apply=%inner
}

%while_cond {
  %state = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[4] get-tuple-element(%state), index=1
  %c = s32[] constant(1)
  ROOT %2 = pred[] compare(%i, %c), direction=LE
}

%while_body {
  %state = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[4] get-tuple-element(%state), index=1
  %c = s32[] constant(1)
  %2 = s32[] add(%i, %c)
  ROOT %tuple.12 = (s32[], f32[4]) tuple(%2, %x)
}

%inner {
  %arg0 = f32[4] parameter(0)
  %c = s32[] constant(1)
  %tuple.15 = (s32[], f32[4]) tuple(%c, %arg0)
  %1 = (s32[], f32[4]) while(%tuple.15), condition=%while_cond, body=%while_body
  %1.0 = s32[] get-tuple-element(%1), index=0
  ROOT %1.1 = f32[4] get-tuple-element(%1), index=1
}
`},
		{"send and recv", `func.func @main(%a: tensor<f32>, %t: !stablehlo.token) -> (tensor<f32>, !stablehlo.token) {
  %0 = "stablehlo.send"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
  %1:2 = "stablehlo.recv"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
  return %1#0, %1#1 : tensor<f32>, !stablehlo.token
}`, `ENTRY %main {
  %a = f32[] parameter(0)
  %t = token[] parameter(1)
  %send.2 = (f32[], u32[], token[]) send(%a, %t), is_host_transfer=true, channel_id=5
  %0 = token[] send-done(%send.2)
  %recv.4 = (f32[], u32[], token[]) recv(%0), is_host_transfer=true, channel_id=6
  %recv-done.5 = (f32[], token[]) recv-done(%recv.4)
  %get-tuple-element.6 = f32[] get-tuple-element(%recv-done.5), index=0
  %get-tuple-element.7 = token[] get-tuple-element(%recv-done.5), index=1
  ROOT %tuple.8 = (f32[], token[]) tuple(%get-tuple-element.6, %get-tuple-element.7)
}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := one(t, c.in); got != c.want {
				t.Errorf("got\n%s", got)
			}
		})
	}
	graphs, err := Read("t", []byte(`func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<10> : tensor<i32>
    %s = stablehlo.constant dense<4> : tensor<i32>
    %1:2 = stablehlo.while(%i = %c, %y = %x) : tensor<i32>, tensor<4xf32> cond {
      %2 = stablehlo.compare LE, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.add %i, %s : tensor<i32>
      stablehlo.return %2, %y : tensor<i32>, tensor<4xf32>
    }
    return %1#1 : tensor<4xf32>
}`))
	if err != nil {
		t.Fatal(err)
	}
	g := graphs[0]
	for op := range opgraph.OpID(g.NumOps()) {
		if g.Ops.Kind[op] == opgraph.OpWhile {
			if n, from := g.TripCount(op); n != 3 || from != opgraph.TripDerived { // 1 5 9
				t.Errorf("trip count %d %v, want 3 derived", n, from)
			}
		}
	}
}

// TestFailures has the mistakes, each with its place.
func TestFailures(t *testing.T) {
	f := func(body string) string {
		return "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + body + "\n  return %a : tensor<4xf32>\n}\n"
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "t:1:1: no module: the text is empty"},
		{"bytecode", "ML\xefR\x0d", "t: " + errBytecode.Error()},
		{"no function", "module @m {\n}", "t:1:1: the module has no function with a body"},
		{"only declarations", "module @m {\n func.func private @f(tensor<f32>) -> tensor<f32>\n}", "t:1:1: the module has no function with a body"},
		{"a foreign dialect", f("  %0 = \"ttir.exp\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"),
			"t:2:9: ttir.exp: this module is of the MLIR dialect ttir, which is not read; export it as StableHLO (stablehlo, mhlo and chlo are read)"},
		{"a foreign dialect in its own syntax", f("  %c = arith.constant 0 : index\n  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>]} ins(%a : tensor<4xf32>) {\n  ^bb0(%x: f32):\n    linalg.yield %x : f32\n  } -> tensor<4xf32>"),
			"t:3:8: linalg.generic: this module is of the MLIR dialect linalg, which is not read; export it as StableHLO (stablehlo, mhlo and chlo are read)"},
		{"nested device modules", "module @tt {\n  ttcore.device_module {\n  builtin.module {\n  func.func @main(%a: tensor<4xf32>) {\n  %1 = \"ttnn.exp\"(%a) <{x = #ttnn<y>}> : (tensor<4xf32>) -> tensor<4xf32>\n  return\n  }}}\n}",
			"t:2:3: ttcore.device_module: this module is of the MLIR dialects ttcore, ttnn, which are not read; export it as StableHLO (stablehlo, mhlo and chlo are read)"},
		{"a name twice in a result list", f("  %0, %0 = \"stablehlo.optimization_barrier\"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)"), "t:2:3: value %0 is defined twice"},
		{"unknown value", f("  %0 = stablehlo.negate %b : tensor<4xf32>"), "t:2:25: value %b is not defined before"},
		{"unknown type", f("  %0 = stablehlo.negate %a : tensor<4xf33>"), `t:2:30: unknown element type "f33"`},
		{"unknown function", f("  %0 = call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>"), "t:2:3: function @g does not exist or has no body"},
		{"twice the same value", f("  %0 = stablehlo.negate %a : tensor<4xf32>\n  %0 = stablehlo.negate %a : tensor<4xf32>"), "t:3:3: value %0 is defined twice"},
		{"open string", f("  %0 = stablehlo.custom_call @x(%a) {k = \"v} : (tensor<4xf32>) -> tensor<4xf32>"), "t:2:42: string is not closed"},
		{"open region", "module {\n func.func @main() {\n", "t:2:2: region is not closed"},
		{"rank", f("  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4xf32>) -> tensor<4xf32>"), `t:2:3: transpose "0": dimensions=[1 0] is no permutation of an operand of rank 1`},
		{"blocks", "func.func @main(%a: tensor<i1>) {\n  \"cf.br\"(%a)[^bb1] : (tensor<i1>) -> ()\n^bb1:\n  return\n}", "t:2:4: cf.br: control flow of the MLIR dialect cf is not read; export it as StableHLO (stablehlo.while, case and if are read)"},
		{"a loop of scf among StableHLO", f("  %r = scf.for %i = %a to %a step %a iter_args(%x = %a) -> (tensor<4xf32>) {\n  %1 = stablehlo.add %x, %x : tensor<4xf32>\n  %2 = stablehlo.add %1, %x : tensor<4xf32>\n  %3 = stablehlo.add %2, %x : tensor<4xf32>\n  scf.yield %3 : tensor<4xf32>\n  }"),
			"t:2:3: scf.for: control flow of the MLIR dialect scf is not read; export it as StableHLO (stablehlo.while, case and if are read)"},
		{"a loop of scf in the generic form", f("  %0 = stablehlo.negate %a : tensor<4xf32>\n  %1 = stablehlo.negate %a : tensor<4xf32>\n  %r = \"scf.execute_region\"() ({\n  %2 = stablehlo.negate %a : tensor<4xf32>\n  \"scf.yield\"(%2) : (tensor<4xf32>) -> ()\n  }) : () -> tensor<4xf32>"),
			"t:4:3: scf.execute_region: control flow of the MLIR dialect scf is not read; export it as StableHLO (stablehlo.while, case and if are read)"},
		{"a foreign operation among StableHLO", f("  %0 = stablehlo.negate %a : tensor<4xf32>\n  %1 = linalg.copy ins(%0 : tensor<4xf32>) outs(%0 : tensor<4xf32>) -> tensor<4xf32>"), "t:3:3: linalg.copy: the MLIR dialect linalg is not read; export it as StableHLO"},
		{"versioned", "\"vhlo.func_v1\"() <{sym_name = #vhlo.string_v1<\"main\">}> ({\n^bb0(%a: !vhlo.tensor_v1<4x!vhlo.f32_v1>):\n  \"vhlo.return_v1\"(%a) : (!vhlo.tensor_v1<4x!vhlo.f32_v1>) -> ()\n}) : () -> ()",
			"t:1:2: vhlo.func_v1: this is VHLO, the versioned form of StableHLO, which is not read; make StableHLO of it first: stablehlo-opt --vhlo-to-version=target=current --vhlo-legalize-to-stablehlo FILE"},
		{"without a return", "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.negate %a : tensor<f32>\n}", "t:1:1: a region without a return"},
		{"recursion", "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @main(%a) : (tensor<f32>) -> tensor<f32>\n  return %0 : tensor<f32>\n}", `t:2:3: call "0": it calls computation "main", which calls it: recursion`},
		{"capture of a reducer", `func.func @main(%a: tensor<4xf32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%a init: %b) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%x: tensor<f32>, %y: tensor<f32>)  {
    %1 = stablehlo.add %x, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}`, "t:4:28: the region of stablehlo.reduce uses %b from outside it"},
		{"a constant of another type", f("  %0 = stablehlo.constant dense<1.5> : tensor<i32>"), `t:2:3: constant "1.5" is no value of s32[]`},
		{"type nested deeply", f("  %0 = stablehlo.custom_call @x(%a) : (tensor<4xf32>) -> " + strings.Repeat("tuple<", 1000) + "f32" + strings.Repeat(">", 1000)), "t:2:58: type is nested more than 200 levels"},
		{"regions nested deeply", strings.Repeat("module {", 1000), "t:1:1608: regions are nested more than 200 levels"},
		{"module inside a module", "module { module { func.func @main() { return } } }", "t:1:10: a module inside a module is not supported"},
		{"while without regions", f("  %0 = \"stablehlo.while\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"), "t:2:3: while has 0 regions, want 2"},
		{"a name of two lines", f("  %0 = call @\"g\\0A\\FF" + strings.Repeat("x", 500) + "\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"),
			"t:2:3: function @g \uFFFD" + strings.Repeat("x", maxMessage-len("function @g \uFFFD")) + "…"},
		{"a name that is not UTF-8", f("  \"" + strings.Repeat("\x91", 500) + "\"()"), `t:3:3: expected ":" before the types of ` + strings.Repeat("\uFFFD", 123) + "…"},
		{"sort without operands", f("  %0 = \"stablehlo.sort\"() : () -> tensor<4xf32>"), "t:2:3: stablehlo.sort has no operands"},
		{"dot without operands", f("  %0 = \"stablehlo.dot\"() : () -> tensor<4xf32>"), "t:2:3: stablehlo.dot has 0 operands, want 2"},
		{"reduction of tuples", f("  %0 = stablehlo.reduce(%a init: %a) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<4xf32>) -> tuple<f32>"), `t:2:3: reduce applies "stablehlo.add"`},
		{"results of an argument", `func.func @main(%a: tensor<f32>, %c: tensor<i1>) {
  %1 = "stablehlo.if"(%c) ({
    stablehlo.return %a#1000000 : tensor<f32>
  }, {
    stablehlo.return %a : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return
}`, "t:3:22: value %a#1000000 is not defined before"},
		{"types that double", doubled(20) + f("  %0 = stablehlo.custom_call @x(%a) : (tensor<4xf32>) -> !t20"), "t:23:58: tuple of more than 16384 arrays"},
		{"cut", "module @m attributes {", "t:1:23: expected an attribute, found the end of the input"},
		{"HLO text", "HloModule m\n", `t:1:1: HloModule outside a function`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("t", []byte(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
	if _, err := Read("t", []byte(bytecodeMagic)); !errors.Is(err, errBytecode) {
		t.Error("bytecode is not told apart")
	}
}

// doubled defines the types !t0 to !tN, each a tuple of twice the one before.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString("!t0 = f32\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "!t%d = tuple<!t%d, !t%d>\n", i, i-1, i-1)
	}
	return b.String()
}

// TestShortHostile has short texts that name something of enormous size, and
// what is left of them.
func TestShortHostile(t *testing.T) {
	f := func(body string) string {
		return "func.func @main(%a: tensor<4xf32>, %b: tensor<1x1xf32>) {\n" + body + "\n return\n}\n"
	}
	add := "  %0 = stablehlo.add %a, %a : tensor<4xf32> loc(#l9)"
	locs := "#l0 = loc(\"n\"(\"f.py\":7:1))\n"
	for i := 1; i < 10; i++ {
		l := fmt.Sprintf("#l%d", i-1)
		locs += fmt.Sprintf("#l%d = loc(fused[%s])\n", i, strings.Repeat("unknown, "+l+", ", 30)+l)
	}
	for _, c := range []struct{ name, in, op, file string }{
		{"locations that multiply", f(add) + locs, "n", "f.py:7"},
		{"a location in itself", f(add) + "#l9 = loc(fused[#l9, #l9, #l9, \"n\"(#l9)])", "n", ":0"},
		{"a line of 2^32", f(strings.Replace(add, "#l9", `"f.py":4294967296:1`, 1)), "", "f.py:2147483647"},
		{"types that double", doubled(12) + f("  %0 = stablehlo.custom_call @x(%a) : (tensor<4xf32>) -> !t12"), "", ":0"},
		{"a window without a value", f("  %0 = stablehlo.convolution(%b, %b) dim_numbers = [b, f]x[i, o]->[b, f] {window} : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>"), "", ":0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			graphs, err := Read("t", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			g := graphs[0]
			op := opgraph.OpID(2) // after the arguments
			if got := g.Text(g.Ops.OpName[op]); got != c.op {
				t.Errorf("name %q, want %q", got, c.op)
			}
			if got := fmt.Sprintf("%s:%d", g.Text(g.Ops.SourceFile[op]), g.Ops.SourceLine[op]); got != c.file {
				t.Errorf("place %s, want %s", got, c.file)
			}
			written(t, g)
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestRealFiles reads the real files and compares the number of dots,
// convolutions, collectives and loops with what is written in them.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file    string
		modules int
		flops   int64
	}{
		{"EnzymeAD__Enzyme-JAX__while_is_copy.mlir", 10, 0},
		{"GleasonK__stablehlo-exports__jax_resnet_50.mlir", 1, 7892407808}, // without padding; the layers' 3.86 G multiplications with it
		{"GleasonK__stablehlo-exports__pt_bert.mlir", 1, 1192071168},
		{"tenstorrent__tt-mlir__ccl_ops_gspmd.mlir", 84, 0},
	} {
		b, err := os.ReadFile(datadir.Path(t, "stablehlo", c.file))
		if err != nil {
			t.Fatal(err)
		}
		if !Sniff(b[:min(len(b), 4096)]) || hlo.Sniff(b[:min(len(b), 4096)]) || hlo.SniffProto(b[:4096]) {
			t.Errorf("%s: sniffing", c.file)
		}
		graphs, err := Read(c.file, b)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(graphs) != c.modules {
			t.Errorf("%s: %d modules, want %d", c.file, len(graphs), c.modules)
		}
		got := map[string]int{}
		flops := int64(0)
		for _, g := range graphs {
			written(t, g)
			flops += g.Totals(1).FLOPs
			if n := g.Totals(1).UnknownTrips; len(n) != 0 {
				t.Errorf("%s: %d loops of unknown trip count", c.file, len(n))
			}
			for op, k := range g.Ops.Kind {
				if k == opgraph.OpUnknown {
					t.Errorf("%s: unknown operation %q", c.file, g.AttrStr(opgraph.OpID(op), opgraph.AttrOpcode))
				}
				got[k.String()]++
			}
		}
		if c.flops != 0 && flops != c.flops {
			t.Errorf("%s: %d FLOPs, want %d", c.file, flops, c.flops)
		}
		want := map[string]int{}
		for line := range strings.Lines(string(b)) {
			if m := operation.FindStringSubmatch(line); m != nil {
				want[m[1]]++
			}
		}
		for op, kind := range map[string]string{
			"dot_general": "dot", "convolution": "convolution", "while": "while", "all_reduce": "all-reduce",
			"all_gather": "all-gather", "reduce_scatter": "reduce-scatter", "collective_permute": "collective-permute",
			"custom_call": "custom-call", "reduce": "reduce", "gather": "gather", "transpose": "transpose",
		} {
			if got[kind] != want[op] {
				t.Errorf("%s: %d %s, the file has %d", c.file, got[kind], kind, want[op])
			}
		}
	}
	b, err := os.ReadFile(datadir.Path(t, "stablehlo", "GleasonK__stablehlo-exports__pt_bert.mlir.bc"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read("pt_bert.mlir.bc", b); !errors.Is(err, errBytecode) || !Sniff(b) {
		t.Errorf("bytecode: %v", err)
	}
}

// operation matches an operation at the start of a line that is no comment.
var operation = regexp.MustCompile(`^\s*(?:%\w+(?::\d+)? = )?"?stablehlo\.(\w+)`)

// FuzzRead: no input makes the reader panic or hang; what it reads is a valid
// graph that survives writing.
func FuzzRead(f *testing.F) {
	f.Add([]byte("module {\nsdy.mesh @m = <[\"x\"=2]>\nfunc.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {\n %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{\"x\", ?}, {}]>] out_shardings=[<@m, [{\"x\"}, {}]>] manual_axes={\"x\"} (%b: tensor<2x8xf32>) {\n %1 = chlo.broadcast_add %b, %b : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>\n sdy.return %1 : tensor<2x8xf32>\n } : (tensor<4x8xf32>) -> tensor<4x8xf32>\n %c, %d = \"stablehlo.optimization_barrier\"(%0, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)\n %e = arith.cmpf ogt, %c, %d : tensor<4x8xf32>\n %f = sdy.all_gather [{\"x\"}, {}] %c out_sharding=<@m, [{}, {}]> : tensor<4x8xf32>\n return %f : tensor<4x8xf32>\n}\n}"))
	f.Add([]byte("!q = !quant.uniform<i8:f32, 1.0:17>\nfunc.func @main(%a: tensor<?x8x!q, #stablehlo.bounds<4, ?>>) {\n %c = stablehlo.constant sparse<[[0]], [1.0]> : tensor<4xf32>\n %r = scf.if %c -> (tensor<4xf32>) {\n scf.yield %c : tensor<4xf32>\n }\n %t = arith.extf %c : tensor<4xf32> to tensor<4xf64>\n return\n}"))
	f.Add([]byte("module @m attributes {mhlo.num_partitions = 2 : i32} {\n func.func public @main(%a: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4x8xf32> {\n %0 = stablehlo.add %a, %a : tensor<4x8xf32> loc(#l)\n return %0 : tensor<4x8xf32>\n }\n}\n#l = loc(\"x\"(\"f.py\":1:2))"))
	f.Add([]byte("func.func @main(%x: tensor<4xf32>) {\n %c = stablehlo.constant dense<1> : tensor<i32>\n %1:2 = stablehlo.while(%i = %c, %y = %x) : tensor<i32>, tensor<4xf32> cond {\n %2 = stablehlo.compare LE, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\n stablehlo.return %2 : tensor<i1>\n } do {\n stablehlo.return %i, %x : tensor<i32>, tensor<4xf32>\n }\n return\n}"))
	f.Add([]byte("func.func @main(%a: tensor<4x8xf32>, %b: tensor<f32>) {\n %0 = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>\n %1 = stablehlo.slice %a [0:1, 0:8:2] : (tensor<4x8xf32>) -> tensor<1x4xf32>\n %2 = \"stablehlo.all_reduce\"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n ^bb0(%l: tensor<f32>, %m: tensor<f32>):\n stablehlo.return %l : tensor<f32>\n }) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n return\n}"))
	f.Add([]byte("func.func @main(%x: tensor<1x4x4x2xf32>, %k: tensor<3x3x2x5xf32>) {\n %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[1, 1], [0, 2]]} {batch_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x5xf32>) -> tensor<1x4x2x5xf32>\n return\n}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		late := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("hangs: %q", b)) })
		defer late.Stop()
		graphs, err := Read("fuzz", b)
		if err != nil {
			var e *Error
			if !errors.Is(err, errBytecode) && (!errors.As(err, &e) || e.Line < 1 || e.Col < 1) {
				t.Fatalf("error without a place: %v", err)
			}
			if s := err.Error(); len(s) > 600 || strings.Contains(s, "\n") || !utf8.ValidString(s) {
				t.Fatalf("error %q", s)
			}
			return
		}
		for _, g := range graphs {
			if err := g.Check(); err != nil {
				t.Fatalf("a graph that was read does not pass: %v", err)
			}
			g.Totals(1)
			if _, err := hlo.ReadText("written", hlo.AppendText(nil, g)); err != nil {
				t.Fatalf("written text does not read: %v", err)
			}
		}
	})
}
