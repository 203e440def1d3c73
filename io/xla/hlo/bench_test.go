package hlo

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"perfsim/components/datadir"
)

// readFile returns the content of a real file, unwrapped.
func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// cpuTime returns the processor time this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReadText reads real modules; MB/s is of the text, one core. Per
// second of processor time it is given on average, the collector's work
// included, and for the fastest reading, which a neighbour on the machine
// disturbs least. GOMAXPROCS=1 keeps the collector on the same core.
func BenchmarkReadText(b *testing.B) {
	for _, name := range []string{
		"hlo_text/ROCm__xla__gemma3_4b__module_0096.jit_train_step.before_optimizations.txt.gz",
		"hlo_text/ROCm__xla__llama3_8b__module_0099.jit_train_step.before_optimizations.txt.gz",
		"hlo_text/openxla__xla__dlrm_keras_jax_f32_train_step.hlo",
		"hlo_text/openxla__xla__hlo_llama31_405b_fp8_64x8.hlo",
		"hlo_text/openxla__xla__hlo_llama3_8b_bf16_activation_offloading_1x8.hlo",
		"hlo_text/openxla__xla__hlo_mixtral_8x7b_bf16_2x8.hlo.gz",
		"hlo_text/openxla__xla__jax.issue.33666.linx.slow_0428.module_0006.hlo.gz",
		"hlo_text/openxla__xla__large_loop_slow_compile_time.hlo.gz",
		"hlo_text/openxla__xla__mobilenet_v2.hlo.gz",
		"hlo_scheduled/NVIDIA__JAX-Toolbox__module_0040.pjit__wrapped_step_fn.sm_8.0_gpu_after_optimizations.DERIVED.txt.gz",
	} {
		short := strings.TrimPrefix(name[strings.Index(name, "__")+2:], "xla__")
		b.Run(short[:min(len(short), 24)], func(b *testing.B) {
			text := readFile(b, datadir.Path(b, name))
			b.ReportAllocs()
			ops := 0
			best := time.Duration(1 << 62)
			start := cpuTime(b)
			last := start
			for b.Loop() {
				g, err := ReadText(name, text)
				if err != nil {
					b.Fatal(err)
				}
				ops = g[0].NumOps()
				now := cpuTime(b)
				best, last = min(best, now-last), now
			}
			s := (last - start).Seconds() / float64(b.N)
			mb := float64(len(text)) / 1e6
			b.ReportMetric(mb/s, "MB/cpu-s")
			b.ReportMetric(mb/best.Seconds(), "best-MB/cpu-s")
			b.ReportMetric(mb/(b.Elapsed().Seconds()/float64(b.N)), "MB/s")
			b.ReportMetric(float64(ops)/s, "ops/cpu-s")
		})
	}
}

// BenchmarkReadProto reads the same scheduled step as a proto.
func BenchmarkReadProto(b *testing.B) {
	name := "hlo_proto/" + module40 + "sm_8.0_gpu_after_optimizations.hlo.pb.gz"
	data := readFile(b, datadir.Path(b, name))
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		if _, err := ReadProto(name, data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(data))/1e6/((cpuTime(b)-cpu).Seconds()/float64(b.N)), "MB/cpu-s")
}

// BenchmarkAppendText writes it.
func BenchmarkAppendText(b *testing.B) {
	g := open(b, "hlo_proto/"+module40+"sm_8.0_gpu_after_optimizations.hlo.pb.gz")
	b.ReportAllocs()
	var text []byte
	cpu := cpuTime(b)
	for b.Loop() {
		text = AppendText(text[:0], g)
	}
	b.ReportMetric(float64(len(text))/1e6/((cpuTime(b)-cpu).Seconds()/float64(b.N)), "MB/cpu-s")
}
