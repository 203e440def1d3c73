package modelrun

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"perfsim/bench/models"
	"perfsim/bench/record"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/xla/hlo"
	"perfsim/systems/lower"
)

func options(model, config, machine string) Options {
	return Options{Model: model, Config: config, Machine: machine, Format: "Fp16_b", Fidelity: "HiFi3", LoopCount: 1, Jobs: 2, Lower: lower.DefaultOptions(), Cost: components.Reference}
}

func run(t *testing.T, o Options) *Outcome {
	t.Helper()
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var day = time.Date(2024, 3, 14, 15, 35, 23, 0, time.UTC)

// The seed's command: 8 loops over the 15 batches of 64 of a data set of 1000.
func TestSeedsRun(t *testing.T) {
	o := options("mobilenetv2", "224", "grayskull")
	o.Task, o.Microbatch, o.LoopCount = "image_classification", 64, 8
	out := run(t, o)
	if out.Samples != 7680 || out.Batches != 15 {
		t.Errorf("%d samples in %d batches, the seed has 7680 in 15", out.Samples, out.Batches)
	}
	r, err := out.Record(Args{Model: "mobilenetv2", Config: "224", Task: o.Task, Device: "tt", DataFormat: o.Format, MathFidelity: o.Fidelity,
		LoopCount: 8, Microbatch: 64, NumTokens: 1, Chips: 1, Trace: "none", DumpCount: 1, Date: day})
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Items struct{ Required []string } }
	if err := json.Unmarshal(record.Schema(), &schema); err != nil || len(schema.Items.Required) == 0 {
		t.Fatal(err, schema)
	}
	for _, name := range schema.Items.Required {
		if _, ok := r.Raw(name); !ok {
			t.Errorf("%s is missing", name)
		}
	}
	for name, want := range map[string]string{"input_size": `"3x224x224"`, "device_name": `"Grayskull"`, "evaluation_score": "null", "machine_name": "null",
		"host_device": "null", "benchmark_date": `"Thu Mar 14 15:35:23 2024"`, "simulated": "true", "total_samples": "7680", "tokens_per_sec": "0.0", "task": `"image_classification"`} {
		if got, _ := r.Raw(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	// Every null of a statistic has its reason.
	text, _ := r.Raw("null_reasons")
	reasons := map[string]string{}
	if err := json.Unmarshal([]byte(text), &reasons); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Props {
		if p.Name == "model" {
			break
		}
		if (p.JSON == "null") != (reasons[p.Name] != "") {
			t.Errorf("%s is %s, its reason %q", p.Name, p.JSON, reasons[p.Name])
		}
	}
	var v []map[string]any
	if err := json.Unmarshal(record.Append(nil, []*record.Record{r}), &v); err != nil || len(v) != 1 {
		t.Errorf("the file is no JSON array of one object: %v", err)
	}
}

// Every model and configuration runs on every kind of machine, loses no work
// on the way (Run checks what lowering conserves) and is not faster than the
// published peak.
func TestEveryModelOnTrn2(t *testing.T) {
	const peak = 83.6e12 / 2 // a NeuronCore-v3 at 16 bits: 667 TFLOPS of eight cores, in multiply-accumulates
	for _, f := range models.Families() {
		for _, c := range f.Configs {
			out := run(t, options(f.Name, c, "trn2"))
			if rate := out.SamplesPerSecond() * float64(out.MACs); rate > peak {
				t.Errorf("%s %s: %.3g multiply-accumulates a second, the peak is %.3g", f.Name, c, rate, peak)
			}
			if out.Instructions() == 0 || out.BatchNS <= 0 {
				t.Errorf("%s %s: %d instructions in %v ns", f.Name, c, out.Instructions(), out.BatchNS)
			}
		}
	}
}

// A graph that went through HLO text takes as long as one that did not.
func TestThroughHLOText(t *testing.T) {
	for _, c := range [][2]string{{"mobilenetv2", "96"}, {"bert", "tiny"}, {"yolo_v5", "s"}} {
		o := options(c[0], c[1], "trn2")
		o.Microbatch = 2
		out := run(t, o)
		back, err := hlo.ReadText("text", hlo.AppendText(nil, out.Model.Phases[0].Graph))
		if err != nil {
			t.Fatal(err)
		}
		m, err := machine.Load("trn2")
		if err != nil {
			t.Fatal(err)
		}
		p, ph := models.Phase{Name: "forward", Graph: back[0], Runs: 1}, Phase{}
		simulate, err := (&Outcome{}).onEngines(context.Background(), func() Options { o.Progress = func(string, int64, int64) {}; return o }(), &target{core: m}, &p, &ph)
		if err != nil {
			t.Fatal(err)
		}
		w, err := simulate()
		if err != nil {
			t.Fatal(err)
		}
		if ns, n := w.Latency(components.RunA), w.Module.Instr.Len(); ns != out.Phases[0].NS || n != out.Phases[0].Instructions {
			t.Errorf("%s %s: %d ns and %d instructions without the text %d and %d", c[0], c[1], ns, n, out.Phases[0].NS, out.Phases[0].Instructions)
		}
	}
}

func TestSameTwice(t *testing.T) {
	for _, m := range []string{"grayskull", "rtx3090", "trn2"} {
		o := options("mobilenetv3", "sm", m)
		o.Format, o.Microbatch = "Fp16", 8
		a := run(t, o)
		o.Jobs, o.Repeats = 1, 3
		b := run(t, o)
		if fmt.Sprintf("%+v", strip(a)) != fmt.Sprintf("%+v", strip(b)) {
			t.Errorf("%s: two runs differ:\n%+v\n%+v", m, strip(a), strip(b))
		}
		if len(b.Compile) != 3 || len(b.Simulate) != 3 {
			t.Errorf("%s: %d repeats were timed, want 3", m, len(b.Compile))
		}
	}
}

func strip(o *Outcome) []any {
	out := []any{o.BatchNS, o.Params, o.MACs, o.RunSeconds, o.Samples}
	for _, p := range o.Phases {
		out = append(out, p.Name, p.NS, p.Instructions, p.Executed, p.Epochs)
	}
	return out
}

// A text model generates its task's tokens for every sample, in every loop:
// the reference benchmark divides those of one loop by the time of all.
func TestTokens(t *testing.T) {
	o := options("t5_past_cache_enc_dec", "small", "grayskull")
	o.Tokens = 4
	one := run(t, o)
	o.LoopCount = 3
	three := run(t, o)
	rec := func(x *Outcome, loops int) float64 {
		r, err := x.Record(Args{Model: "t5", Device: "tt", LoopCount: loops, Date: day})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := r.Number("tokens_per_sec")
		return v
	}
	if a, b := rec(one, 1), rec(three, 3); a != b || a == 0 {
		t.Errorf("tokens a second: %v in one loop, %v in three", a, b)
	}
	if p := three.Phases; len(p) != 3 || p[0].Runs != 1 || p[1].Runs != 1 || p[2].Runs != 3 {
		t.Errorf("phases of four tokens: %+v", p)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.Machine = "nochip" }, `machine "nochip" is neither known nor a file; there are grayskull, rtx3090, wormhole_b0, trn1, trn2, trn3`},
		{func(o *Options) { o.Format = "Bfp8_b"; o.Machine = "trn2" }, "no data format"},
		{func(o *Options) { o.Fidelity = "HiFi7"; o.Machine = "grayskull" }, "no math fidelity"},
		{func(o *Options) { o.LoopCount = 0 }, "loop count"},
		{func(o *Options) { o.Task = "image_classification"; o.Microbatch = 2000 }, "fewer than the microbatch"},
	} {
		o := options("mobilenetv3", "sm", "rtx3090")
		o.Format = "Fp16"
		c.change(&o)
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v does not say %q", err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, options("vit", "base", "trn2")); err == nil {
		t.Error("cancellation was not heeded")
	}
}

// Level 0 of the runtime brings the programs of an epoch over the host's link
// (31.5 bytes a ns for the 96 of memory), level 4 has the host's time for
// operators once for all batches. A result that is dumped crosses the memory.
func TestRuntimeOptions(t *testing.T) {
	o := options("mobilenetv2", "224", "grayskull")
	o.Microbatch, o.LoopCount = 64, 3
	plain := run(t, o)
	o.Uncached = true
	if d := run(t, o).BatchNS - plain.BatchNS; math.Abs(d-50_000*(96/31.5-1)) > 1 {
		t.Errorf("programs from the host take %.0f ns more, want %.0f", d, 50_000*(96/31.5-1))
	}
	o.Uncached, o.DeviceLoops = false, true
	loops := run(t, o)
	if want := plain.RunSeconds - 2*loops.HostOpNS/1e9; math.Abs(loops.RunSeconds-want) > 1e-12 || loops.HostOpNS <= 0 {
		t.Errorf("looping on the device takes %v s, want %v", loops.RunSeconds, want)
	}
	o.DeviceLoops = false
	o.Intermediates = []string{plain.Phases[0].Plan.Ops[2].Name}
	dumped := run(t, o)
	before, after := plain.Phases[0].Plan.Epochs[0], dumped.Phases[0].Plan.Epochs[0]
	if got, want := after.Write-before.Write, float64(plain.Phases[0].Plan.Ops[2].Out)*2; got != want {
		t.Errorf("%v bytes more are written of an input, want %v", got, want)
	}
	o.Intermediates = []string{"no such"}
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no operator") {
		t.Errorf("an operator that does not exist: %v", err)
	}
}
