package accuracy

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/io/neuron/nki"
)

var ctx = context.Background()

// TestLaws predicts every measured instruction law: the model's costs are what
// the laws say, within their ranges.
func TestLaws(t *testing.T) {
	t.Parallel()
	r, err := Run(ctx, []string{datadir.Path(t, "measured", "trn2_instruction_laws.csv")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Classes) != 1 || r.Classes[0].Predicted < 100 || r.Classes[0].Skipped > 0 {
		t.Fatalf("%+v", r.Classes)
	}
	for i := range r.Items {
		if e := r.Items[i].Error(); math.Abs(e) > 0.1 {
			t.Errorf("%s: %+.1f %%", r.Items[i].Name, 100*e)
		}
	}
	if c := r.Classes[0]; c.Median > 3 || c.Worst > 10 {
		t.Errorf("%+v", c)
	}
}

// law is a table of one line.
func law(t *testing.T, line string) *Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "laws.csv")
	text := "instruction,engine,in_dtype,out_dtype,src,dst,startup_ns,ns_per_element,min_n,max_n,note\n" + line + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(ctx, []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLawByHand follows one law: a copy of 512 16-bit elements within SBUF
// takes a quarter of a cycle each at 0.96 GHz, 133 ns, and 157 ns to start.
func TestLawByHand(t *testing.T) {
	t.Parallel()
	r := law(t, "tensor_copy,VectorE,bfloat16,bfloat16,SBUF,SBUF,150,0.26,512,512,")
	if len(r.Items) != 1 || r.Items[0].Predicted == nil {
		t.Fatalf("%+v", r.Items)
	}
	if v := *r.Items[0].Predicted; math.Abs(v-(133.3+156.7)) > 0.5 {
		t.Errorf("predicted %v", v)
	}
	if m := r.Items[0].Measured; math.Abs(m-(150+0.26*512)) > 1e-9 {
		t.Errorf("measured %v", m)
	}
}

func TestUnknownLaw(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"warp_shuffle,VectorE,float32,float32,SBUF,SBUF,1,1,1,2,", "tensor_copy,WarpE,float32,float32,SBUF,SBUF,1,1,1,2,",
		"tensor_copy,VectorE,float37,float32,SBUF,SBUF,1,1,1,2,", "matmul fp32,TensorE,float32,float32,SBUF,PSUM,1,0,,,issue 3"} {
		r := law(t, line)
		if len(r.Items) != 1 || r.Items[0].Predicted != nil || r.Items[0].Reason == "" || r.Classes[0].Skipped != 1 {
			t.Errorf("%s: %+v", line, r.Items)
		}
	}
}

// measuredColumns carry measured figures.
var measuredColumns = []string{"startup_ns", "ns_per_element", "latency_us", "trn1_ms", "trn2_ms", "trn2_p50_published_ms", "p50_us", "p99_us",
	"est_tflops_p50", "seq_per_s_p50", "tok_per_s_p50", "inferences_per_s_p50", "per_core_ms", "samples_per_s_device", "samples_per_s_end_to_end", "flops", "tflops"}

// isFigure tells a measured number; a rate with its unit is a text that says
// why there is no latency.
func isFigure(s string) bool {
	x, err := strconv.ParseFloat(s, 64)
	return err == nil && x != 0
}

// TestScramble permutes the measured figures of every table: the predictions
// stay the same to the bit. The constant of the launch is the machine's.
func TestScramble(t *testing.T) {
	t.Parallel()
	dir := datadir.Path(t, "measured")
	tables := []string{"trn2_instruction_laws.csv", "tkf_mlp_latency_trn2.csv", "tkf_attention_latency_trn2.csv"}
	// Of tables of kernels every n-th row: recording and spilling all takes long.
	every := map[string]int{"nki_kernels.csv": 8, "nkibench_latency.csv": 4}
	opt := Options{}
	plain, scrambled := []string{}, []string{}
	if os.Getenv("PERFSIM_LONG") != "" {
		tables = append(tables, "aws_models.csv", "tenstorrent_models.csv")
		if _, err := nki.Python(); err == nil {
			tables = append(tables, "nki_kernels.csv", "nkibench_latency.csv")
			opt.Execute = true
			plain = append(plain, datadir.Path(t, "nki"))
			scrambled = append(scrambled, plain...)
		}
	}
	out, kept := t.TempDir(), t.TempDir()
	write := func(dir, name string, lines [][]string) string {
		var b strings.Builder
		if err := csv.NewWriter(&b).WriteAll(lines); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return to
	}
	for _, name := range tables {
		path := filepath.Join(dir, name)
		in, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(in).ReadAll()
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		if n := every[name]; n > 0 {
			some := lines[:1]
			for k := 1; k < len(lines); k += n {
				some = append(some, lines[k])
			}
			lines = some
		}
		plain = append(plain, write(kept, name, lines))
		moved := 0
		for k, column := range lines[0] {
			if !slices.Contains(measuredColumns, column) {
				continue
			}
			var v []string
			for _, l := range lines[1:] {
				if isFigure(l[k]) {
					v = append(v, l[k])
				}
			}
			slices.Reverse(v)
			for _, l := range lines[1:] {
				if isFigure(l[k]) {
					if l[k] != v[0] {
						moved++
					}
					l[k], v = v[0], v[1:]
				}
			}
		}
		if moved == 0 {
			t.Errorf("%s: nothing measured to move", name)
		}
		scrambled = append(scrambled, write(out, name, lines))
	}
	a, err := Run(ctx, plain, opt)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(ctx, scrambled, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Items) != len(b.Items) || len(a.Items) < 100 {
		t.Fatalf("%d and %d items", len(a.Items), len(b.Items))
	}
	differ := 0
	for n := range a.Items {
		x, y := &a.Items[n], &b.Items[n]
		if (x.Predicted == nil) != (y.Predicted == nil) || x.Predicted != nil && *x.Predicted != *y.Predicted || x.Low != y.Low || x.High != y.High {
			t.Errorf("%s: predicted %v, with other measurements %v", x.Name, Text(x.Predicted), Text(y.Predicted))
		}
		if x.Measured != y.Measured {
			differ++
		}
	}
	if differ < len(a.Items)/2 {
		t.Errorf("only %d measurements differ", differ)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ text, want string }{
		{"lhs_T[2048,2048] bf16, rhs[2048,4] fp32 -> [2048,2048] bf16", "bf16[2048,2048] f32[2048,4]"},
		{"a_t[256,256], b[256,256] fp32; tile 128", "f32[256,256] f32[256,256]"},
		{"q,k,v [128,4096] bf16 for timing", "bf16[128,4096] bf16[128,4096] bf16[128,4096]"},
		{"a[2,2], q/k_norm[128], cos/sin[1,8] bf16, ids[1,1] int32=320 (layout: see b.py)", "bf16[2,2] bf16[128] bf16[128] bf16[1,8] bf16[1,8] int32[1,1]"},
		{"img[8,512] fp32, filter[512,3], padding (0,0),(1,1)", "f32[8,512] f32[512,3] padding=((0,0),(1,1))"},
		{"a[2] bf16, K=8", "bf16[2] K=8"}, {"q,k [4,6] fp32, mixed=True (bf16 inputs)", "f32[4,6] f32[4,6] mixed=True"},
		{"from N=4", ""}, {"a[2,2]", ""}, {"", ""}, {"a[2] bf16, cos/sin; 8 heads", ""}, {"a[2 bf16", ""}, {"a[2] bf16 wide", ""},
	} {
		args, err := arguments(x.text)
		got := append(args.tensors, args.settings...)
		if strings.Join(got, " ") != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%q: %q, %v", x.text, got, err)
		}
	}
}

func TestSettingsThatAKernelTakes(t *testing.T) {
	t.Parallel()
	const source = "def other(K): pass\n@nki.jit\ndef f(a, b: int = max(1, 2), *,\n      pad=(0, 0)):\n  K = 1\ndef g(x, **kw): pass\n"
	for function, want := range map[string]string{"f": "pad=1", "g": "K=8 pad=1", "other": "K=8", "none": ""} {
		if got := strings.Join(accepts(source, function, []string{"K=8", "pad=1"}), " "); got != want {
			t.Errorf("%s: %q, want %q", function, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := law(t, "tensor_copy,VectorE,float32,float32,SBUF,SBUF,153,0.53,64,64,")
	r.Items = append(r.Items, Item{Class: "x", Name: "a|b", Reason: "no source", Measured: 2e6})
	r.Classes = nil
	r.summarize()
	var b strings.Builder
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| instruction laws | 1 | 0 |", "| x | 0 | 1 |", `a\|b`, "no source", "2.000 ms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
}
