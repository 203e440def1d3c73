package kineto

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/io/internal/timeline"
)

func noteOf(m *components.Module, code string) string {
	for _, n := range m.Notes {
		if n.Code == code {
			return n.Text
		}
	}
	return ""
}

// Lanes that repeat the operators in larger pieces are no work; operators
// inside a loop have their own time and the loop the rest.
func TestDeviceLanes(t *testing.T) {
	m, err := readText("t.json", `{"traceEvents":[
 {"ph":"M","name":"process_name","pid":3,"args":{"name":"/device:TPU:0"}},
 {"ph":"M","name":"thread_name","pid":3,"tid":1,"args":{"name":"Steps"}},
 {"ph":"M","name":"thread_name","pid":3,"tid":2,"args":{"name":"XLA Modules"}},
 {"ph":"M","name":"thread_name","pid":3,"tid":3,"args":{"name":"XLA Ops"}},
 {"ph":"M","name":"thread_name","pid":3,"tid":4,"args":{"name":"Framework Ops"}},
 {"ph":"X","name":"0","pid":3,"tid":1,"ts":10,"dur":90},
 {"ph":"X","name":"jit_f","pid":3,"tid":2,"ts":10,"dur":90},
 {"ph":"X","name":"while.1","pid":3,"tid":3,"ts":10,"dur":60},
 {"ph":"X","name":"dot.2","pid":3,"tid":3,"ts":15,"dur":20},
 {"ph":"X","name":"dot.2","pid":3,"tid":3,"ts":40,"dur":30},
 {"ph":"X","name":"copy.3","pid":3,"tid":3,"ts":70,"dur":30},
 {"ph":"X","name":"f/dot","pid":3,"tid":4,"ts":10,"dur":90}
]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `XLA Ops 3 | while.1 while.1 | 0+5000 |
XLA Ops 3 | dot.2 dot.2 | 5000+20000 |
XLA Ops 3 | while.1 while.1 | 25000+5000 |
XLA Ops 3 | dot.2 dot.2 | 30000+30000 |
XLA Ops 3 | copy.3 copy.3 | 60000+30000 |
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := noteOf(m, "summary-lane"), "slices of lanes that repeat the work of others (Steps, XLA Modules, Framework Ops): not work of their own"; got != want {
		t.Errorf("note %q, want %q", got, want)
	}
	if !m.Instr.Flags.At(2).Has(components.FlagContinued) || m.Instr.Flags.At(0).Has(components.FlagContinued) {
		t.Error("the second piece of the loop is an instruction of its own")
	}
}

// Beside the streams of a GPU the operators are one more view of the kernels.
func TestStreamsAndOperators(t *testing.T) {
	m, err := readText("t.json", `{"traceEvents":[
 {"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}},
 {"ph":"M","name":"thread_name","pid":1,"tid":13,"args":{"name":"Stream #13(Compute)"}},
 {"ph":"M","name":"thread_name","pid":1,"tid":103,"args":{"name":"XLA Ops"}},
 {"ph":"X","name":"gemm","pid":1,"tid":13,"ts":10,"dur":90},
 {"ph":"X","name":"dot.1","pid":1,"tid":103,"ts":10,"dur":90,"args":{"max":Infinity,"min":-Infinity,"mean":NaN}}
]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(m), "Stream #13(Compute) | gemm gemm | 0+90000 |\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Annotations of begin and end events: the operator inside has 40 of 100 µs.
func TestAnnotationsOfBeginAndEnd(t *testing.T) {
	m, err := readText("t.json", `[
 {"ph":"B","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":0},
 {"ph":"B","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10},
 {"ph":"E","pid":1,"tid":1,"ts":50},
 {"ph":"E","pid":1,"tid":1,"ts":100}]`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 1 | Host Host | 0+10000 |
thread 1 | aten::mm aten::mm | 10000+40000 |
thread 1 | Host Host | 50000+50000 |
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Annotations and Python functions are host time around operators.
func TestAnnotations(t *testing.T) {
	m, err := readText("t.json", `[
 {"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":0,"dur":50},
 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":60},
 {"ph":"X","cat":"python_function","name":"forward","pid":1,"tid":1,"ts":5,"dur":40},
 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10,"dur":20},
 {"ph":"X","cat":"cpu_op","name":"aten::mm_out","pid":1,"tid":1,"ts":12,"dur":10},
 {"ph":"X","cat":"cpu_op","name":"aten::relu","pid":1,"tid":1,"ts":40,"dur":10}
]`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 1 | Host Host | 0+10000 |
thread 1 | aten::mm aten::mm | 10000+20000 |
thread 1 | Host Host | 30000+10000 |
thread 1 | aten::relu aten::relu | 40000+10000 |
thread 1 | Host Host | 50000+10000 |
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// Without anything else the annotations are all there is.
	m, err = readText("t.json", `[{"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":0,"dur":50}]`)
	if err != nil || m.Instr.Len() != 1 {
		t.Errorf("%v, %d instructions", err, m.Instr.Len())
	}
}

// The categories of PyTorch 1.8 to 1.11, and streams named in tid.
func TestOldCategories(t *testing.T) {
	m, err := readText("t.json", `{"traceEvents":[
 {"ph":"X","cat":"Operator","name":"aten::mm","pid":5,"tid":"100","ts":1000,"dur":9},
 {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":5,"tid":"100","ts":1002,"dur":3,"args":{"correlation":1}},
 {"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":1010,"dur":10,"args":{"correlation":1,"stream":7}},
 {"ph":"X","cat":"Memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":"stream 7","ts":1020,"dur":4,"args":{"stream":7,"bytes":64}}
]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 100 host | Host aten::mm | 0+2000 |
thread 100 host | cudaLaunchKernel cudaLaunchKernel | 2000+3000 | 0
stream 7 (waits) | Wait wait | 5000+5000 | 1
stream 7 | gemm gemm | 10000+10000 | 1 2
stream 7 | Memcpy DtoH Memcpy DtoH (Device -> Pageable) | 20000+4000 |
`
	if got := strings.ReplaceAll(list(m), "| 2000+3000 |\n", "| 2000+3000 | 0\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if e := m.Instr.Engine.At(4); e != components.DMA {
		t.Errorf("the copy is on %s", e)
	}
}

// A slice that runs over later ones of its stream is named.
func TestOverrun(t *testing.T) {
	m, err := readText("t.json", `[
 {"ph":"X","cat":"kernel","name":"k0","pid":0,"tid":7,"ts":0,"dur":5.5,"args":{"stream":7}},
 {"ph":"X","cat":"kernel","name":"lost_end","pid":0,"tid":7,"ts":10,"dur":5000,"args":{"stream":7}},
 {"ph":"X","cat":"kernel","name":"k1","pid":0,"tid":7,"ts":20,"dur":5,"args":{"stream":7}},
 {"ph":"X","cat":"kernel","name":"k2","pid":0,"tid":7,"ts":30,"dur":5,"args":{"stream":7}}
]`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := noteOf(m, "overrun"), "lost_end on stream 7 runs 5000.000 µs from 10.000 µs on, over 2 later ones of its stream: its duration is suspect"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Kernels whose name says nothing are called by their template argument.
func TestKernelNames(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"void cutlass::device_kernel<my::GemmKernelA<128> >(my::Params)", "GemmKernelA"},
		{"void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(cutlass_80::Params)", "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8"},
		{"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int, 2> > >(Params)", "enable_sm90"},
		{"void ck::kentry<256, 2, ck_tile::FmhaFwdKernel<1> >(A)", "FmhaFwdKernel"},
		{"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)", "vectorized_elementwise_kernel"},
		{"void kernel<4, true>(int)", "kernel"},
		{"device_kernel<", "device_kernel"},
	} {
		if got := opcodeOf(&event{cat: catDevice}, c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Kernels of one name are told apart by the template arguments that differ.
func TestTemplateArguments(t *testing.T) {
	names := map[string]string{
		"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}> >(int, float)": "elementwise_kernel<gpu_kernel_impl_nocast<direct_copy_kernel_cuda>>",
		"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float> > >(int, float)":                                                                               "elementwise_kernel<gpu_kernel_impl_nocast<CUDAFunctor_add<float> >>",
		"void copy<float>(float*)": "copy<float>",
		"void copy<half>(half*)":   "copy<half>",
		"void one<int, 4>(int*)":   "one",
		"void one<int, 4>(char*)":  "one",
		"plain":                    "plain",
	}
	tr := newTrace(timeline.New("t", "kineto"))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		tr.events = append(tr.events, event{cat: catDevice, name: tr.b.M.Symbols.InternString(name)})
	}
	got := tr.opcodes()
	for name, want := range names {
		if g := got[tr.b.M.Symbols.InternString(name)]; g != want {
			t.Errorf("%s: %s, want %s", name, g, want)
		}
	}
}
