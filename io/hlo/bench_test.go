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

// BenchmarkReadText reads real modules; MB/s is of the text, one core.
func BenchmarkReadText(b *testing.B) {
	for _, name := range []string{
		"hlo_text/ROCm__xla__gemma3_4b__module_0096.jit_train_step.before_optimizations.txt.gz",
		"hlo_text/openxla__xla__hlo_mixtral_8x7b_bf16_2x8.hlo.gz",
		"hlo_text/openxla__xla__large_loop_slow_compile_time.hlo.gz",
		"hlo_text/openxla__xla__mobilenet_v2.hlo.gz",
		"hlo_scheduled/NVIDIA__JAX-Toolbox__module_0040.pjit__wrapped_step_fn.sm_8.0_gpu_after_optimizations.DERIVED.txt.gz",
	} {
		short := name[strings.LastIndex(name, "__")+2:]
		b.Run(short[:min(len(short), 20)], func(b *testing.B) {
			text := readFile(b, datadir.Path(b, name))
			b.ReportAllocs()
			ops := 0
			cpu := cpuTime(b)
			for b.Loop() {
				g, err := ReadText(name, text)
				if err != nil {
					b.Fatal(err)
				}
				ops = g[0].NumOps()
			}
			// Processor time, the collector's included: what a neighbour on
			// the machine does not change much.
			s := (cpuTime(b) - cpu).Seconds() / float64(b.N)
			b.ReportMetric(float64(len(text))/1e6/s, "MB/cpu-s")
			b.ReportMetric(float64(len(text))/1e6/(b.Elapsed().Seconds()/float64(b.N)), "MB/s")
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
