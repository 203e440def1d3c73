package gen

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/io/psim"
	"perfsim/io/tenstorrent/profilelog"
)

// Text is a synthetic input of one format, for measuring its reader. Make
// returns about as many bytes as it is asked for.
type Text struct {
	Name string
	Make func(size int) ([]byte, error)
}

// Texts returns an input for every kind of reader. They have the keys and the
// lengths of real files; the values are counted up.
func Texts() []Text {
	return []Text{
		{"snapshot", snapshotText},
		{"BIR JSON", birJSON},
		{"Neuron profile", repeated(`{"metadata":[{"ntff_version":6,"first_hw_timestamp":0}],"instruction":[`, ",", `]}`, profileRow)},
		{"HLO text", repeated("HloModule layers, is_scheduled=true\n\nENTRY main {\n  p = f32[128,4096]{1,0} parameter(0)\n  v0 = f32[128,4096]{1,0} copy(p)\n", "", "  ROOT end = f32[128,4096]{1,0} copy(v0)\n}\n", hloRow)},
		{"HLO proto", hloProto},
		{"StableHLO text", repeated("module @layers {\n  func.func public @main(%arg0: tensor<128x4096xf32>) -> tensor<128x4096xf32> {\n    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n    %0 = stablehlo.negate %arg0 : tensor<128x4096xf32>\n", "", "    return %0 : tensor<128x4096xf32>\n  }\n}\n", stableHLORow)},
		{"Kineto", repeated(`{"schemaVersion":1,"traceEvents":[`, ",\n", `]}`, kinetoRow)},
		{"Catapult", repeated(`{"traceEvents":[`, ",\n", `]}`, chromeRow)},
		{"Chakra", chakra},
		{"GOAL", repeated("num_ranks 1\nrank 0 {\nl0: calc 100\n", "", "}\n", goalRow)},
		{"PyTorch execution trace", repeated(`{"schema":"1.1.0-chakra.0.0.4","pid":1,"nodes":[{"id":1,"name":"[pytorch|profiler|execution_trace|process]","ctrl_deps":1,"inputs":{"values":[],"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[]},`, ",\n", `]}`, pytorchRow)},
		{"Tenstorrent CSV", deviceLog},
	}
}

// repeated returns a maker of a text of rows, between commas where sep is one.
func repeated(head, sep, tail string, row func(b []byte, i int) []byte) func(int) ([]byte, error) {
	return func(size int) ([]byte, error) {
		b := append(make([]byte, 0, size+4096), head...)
		for i := 1; len(b) < size || i == 1; i++ {
			if i > 1 {
				b = append(b, sep...)
			}
			b = row(b, i)
		}
		return append(b, tail...), nil
	}
}

func snapshotText(size int) ([]byte, error) {
	m, err := Module(context.Background(), Default(max(size/40, 1)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = psim.Write(context.Background(), &b, m, format.Options{Jobs: 1})
	return b.Bytes(), err
}

func birJSON(size int) ([]byte, error) {
	opt := Default(max(size/420, 1))
	opt.Operands = true
	m, err := Module(context.Background(), opt)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = birjson.Write(context.Background(), &b, m, format.Options{Jobs: 1})
	return b.Bytes(), err
}

func deviceLog(size int) ([]byte, error) {
	var b bytes.Buffer
	_, _, err := profilelog.Generate(&b, profilelog.GenOptions{Rows: int64(max(size/140, 1)), Seed: 1})
	return b.Bytes(), err
}

func profileRow(b []byte, i int) []byte {
	engine, before := [...]string{"Tensor", "Vector", "Scalar", "GpSimd"}[i%4], ""
	if i > 4 {
		before = fmt.Sprintf(`{"id":%d,"type":"Flow"}`, 5_000_000_000_000_000_000+i-3)
	}
	return fmt.Appendf(b, `{"crc_in":65535,"activation_fn":"","crc_out":65535,"raw_bir_id":0,"bir_instruction_name":"I-%d","evt_wait_time":%d,"duration":21,"layer":"","subgroup":"%s","subgraph":"sg00","timestamp":%d,"operands":"src=fp32@$SB[0x%x][1,1,1][512,1,1] dst=fp32@$SB[0x%x][1,1,1][512,1,1] ","bir_id":"sg0000:%d","raw_penguin_id":0,"hlo_attrs":"","hlo_name":"%%add.%d","penguin_id":"","opcode":"TENSOR_TENSOR","pc":%d,"instruction_type":"","fully_qualified_subgraph":"/sg00","id":%d,"label":"%s","predecessors":[%s]}`,
		i, i%50, engine, 20*i, 2048*(i%64), 2048*((i+1)%64), i, i, i, 5_000_000_000_000_000_000+i, engine, before)
}

func hloRow(b []byte, i int) []byte {
	return fmt.Appendf(b, "  v%d = f32[128,4096]{1,0} add(v%d, v%d), metadata={op_name=\"jit(step)/layer_%d/add\" source_file=\"model.py\" source_line=%d}\n", i, i-1, i/2, i%96, i%500+1)
}

func stableHLORow(b []byte, i int) []byte {
	n := 3*i - 2
	b = fmt.Appendf(b, "    %%%d = stablehlo.broadcast_in_dim %%cst, dims = [] : (tensor<f32>) -> tensor<128x4096xf32>\n", n)
	b = fmt.Appendf(b, "    %%%d = stablehlo.multiply %%%d, %%%d : tensor<128x4096xf32>\n", n+1, n, n-1)
	return fmt.Appendf(b, "    %%%d = stablehlo.transpose %%%d, dims = [0, 1] : (tensor<128x4096xf32>) -> tensor<128x4096xf32>\n", n+2, n+1)
}

func kinetoRow(b []byte, i int) []byte {
	if i%2 == 1 {
		return fmt.Appendf(b, `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":4711,"tid":4711,"ts":%d.125,"dur":4.250,"args":{"External id":%d,"cbid":211,"correlation":%d}}`, 10*i, i, i)
	}
	return fmt.Appendf(b, `{"ph":"X","cat":"kernel","name":"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, at::detail::Array<char*, 3>>(int, float)","pid":0,"tid":7,"ts":%d.500,"dur":9.000,"args":{"External id":%d,"queued":0,"device":0,"context":1,"stream":7,"correlation":%d,"registers per thread":32,"shared memory":0,"blocks per SM":1.5,"grid":[128,1,1],"block":[128,1,1],"est. achieved occupancy %%":60}}`, 10*i, i, i-1)
}

func chromeRow(b []byte, i int) []byte {
	return fmt.Appendf(b, `{"pid":%d,"tid":%d,"ts":%d,"ph":"X","cat":"toplevel","name":"MessageLoop::RunTask %d","args":{"src_file":"../../base/loop.cc","src_func":"PostTask"},"dur":12,"tdur":11,"tts":%d}`, i%3, i%7, 20*i, i%100, 19*i)
}

func goalRow(b []byte, i int) []byte {
	return fmt.Appendf(b, "l%d: calc %d cpu %d\nl%d requires l%d\n", i, 100+i%900, i%4, i, i-1)
}

func pytorchRow(b []byte, i int) []byte {
	i++
	return fmt.Appendf(b, `{"id":%d,"name":"aten::add","ctrl_deps":1,"inputs":{"values":[[%d,%d,0,4096,4,"cuda:1"],[%d,%d,0,4096,4,"cuda:1"],1],"shapes":[[64,64],[64,64],[]],"types":["Tensor(float)","Tensor(float)","Int"]},"outputs":{"values":[[%d,%d,0,4096,4,"cuda:1"]],"shapes":[[64,64]],"types":["Tensor(float)"]},"attrs":[{"name":"rf_id","type":"uint64","value":%d},{"name":"fw_parent","type":"uint64","value":0},{"name":"seq_id","type":"int64","value":-1},{"name":"scope","type":"uint64","value":0},{"name":"tid","type":"uint64","value":1},{"name":"op_schema","type":"string","value":"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"}]}`,
		i, i-1, i-1, max(i-2, 1), max(i-2, 1), i, i, i)
}

// field and number append fields of a protobuf message.
func field[S string | []byte](b []byte, num protowire.Number, text S) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), []byte(text))
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// hloProto is an HloProto of one computation that adds again and again.
func hloProto(size int) ([]byte, error) {
	shape := number(number(number(nil, 2, 11), 3, 128), 3, 4096) // F32
	comp := field(nil, 1, "main")
	op := func(id int, opcode string, operands ...uint64) {
		b := field(field(field(nil, 1, fmt.Append(nil, opcode, ".", id)), 2, opcode), 3, shape)
		b = field(b, 7, field(field(nil, 1, "add"), 2, "jit(step)/layer/add"))
		b = number(b, 35, uint64(id))
		for _, o := range operands {
			b = number(b, 36, o)
		}
		comp = field(comp, 2, b)
	}
	op(1, "parameter")
	last := 1
	for len(comp) < size {
		last++
		op(last, "add", uint64(last-1), uint64(last/2))
	}
	comp = number(number(comp, 5, 1), 6, uint64(last))
	module := field(field(nil, 1, "layers"), 2, "main")
	module = number(field(module, 3, comp), 6, 1)
	return field(nil, 1, module), nil
}

// chakra is an execution trace in Chakra's protobuf: a chain of compute nodes.
func chakra(size int) ([]byte, error) {
	attr := func(b []byte, name string, v uint64) []byte {
		return field(b, 10, number(field(nil, 1, name), 9, v))
	}
	b := protowire.AppendBytes(nil, field(nil, 1, "0.0.4"))
	for i := uint64(1); len(b) < size; i++ {
		n := number(field(number(nil, 1, i), 2, fmt.Appendf(nil, "layer_%d_matmul", i)), 3, 4)
		if i > 1 {
			n = number(n, 5, i-1)
		}
		n = attr(attr(number(n, 7, 3), "num_ops", 1_000_000), "tensor_size", 4096)
		b = protowire.AppendBytes(b, n)
	}
	return b, nil
}
