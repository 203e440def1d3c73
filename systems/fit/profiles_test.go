package fit

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/machine"
	"perfsim/io/format"
	neuronprofile "perfsim/io/neuron/profile"
	"perfsim/systems/calibrated"
)

var ctx = context.Background()

// real reads the five real profiles that the constants are fitted to: a second
// run of one of them, which the folder has too, is left to be predicted.
func real(t testing.TB) []*components.Module {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(datadir.Path(t, "neuron-profiles"), "*.json.gz"))
	files = slices.DeleteFunc(files, func(f string) bool { return strings.Contains(f, "_repeat") })
	if err != nil || len(files) != 5 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	var out []*components.Module
	for _, f := range files {
		src, err := format.Open(ctx, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := neuronprofile.Importer.Module(ctx, src, format.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.Name = strings.TrimSuffix(filepath.Base(f), ".profile.json.gz")
		out = append(out, m)
	}
	return out
}

// TestLeaveOneOut holds the model to what it reaches on profiles that its
// constants do not come from. The limits are the goals of docs/calibration.md
// where it meets them.
func TestLeaveOneOut(t *testing.T) {
	scores, err := Leave(ctx, real(t), load(t, "trn2"), calibrated.Options{Phase: MedianPhase})
	if err != nil {
		t.Fatal(err)
	}
	s := Summarize(scores)
	for _, x := range []struct {
		what       string
		got, limit float64
	}{{"median error of the kernel time", s.KernelMedian, 3}, {"worst error of the kernel time", s.KernelWorst, 6}, {"median error of busy times", s.BusyMedian, 3},
		{"median 90th percentile of start errors", s.StartP90, 2}, {"worst 90th percentile of start errors", s.StartP90Max, 3.5}} {
		if !(x.got <= x.limit) {
			t.Errorf("%s is %.2f %%, more than %v %%", x.what, x.got, x.limit)
		}
	}
	// A score that is nothing but zeros compares nothing.
	if s.KernelWorst == 0 || s.StartP90 == 0 {
		t.Errorf("no errors at all: %+v", s)
	}
	for _, x := range scores {
		if x.KernelNS < 15_000 || math.Abs(x.Whole) > 6 || len(x.Busy) < 5 {
			t.Errorf("%+v", x)
		}
	}
}

// TestDocument holds docs/calibration.md to what the model does now.
func TestDocument(t *testing.T) {
	modules := real(t)
	scores, err := Leave(ctx, modules, load(t, "trn2"), calibrated.Options{Phase: MedianPhase})
	if err != nil {
		t.Fatal(err)
	}
	a := Accuracy{Cases: []Case{{Name: "calibrated", Scores: scores, Summary: Summarize(scores)}}}
	for _, m := range modules {
		a.Profiles = append(a.Profiles, m.Name)
	}
	var b strings.Builder
	a.cases(&b)
	doc, err := os.ReadFile("../../docs/calibration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "| calibrated |") || strings.HasPrefix(line, "| trn2_") {
			if rows++; !strings.Contains(string(doc), line) {
				t.Errorf("docs/calibration.md lacks %q: make it again (perfsim calibrate PROFILE… --report docs/calibration.md)", line)
			}
		}
	}
	if rows != 6 {
		t.Errorf("%d rows of the report looked up", rows)
	}
}

// TestLeaveOneOutSeesNothing starts from fitted constants that are all wrong by
// a tenth: fitting to the other profiles has to give the same machine as from
// the right ones, or the profile that is left out would shine through.
func TestLeaveOneOutSeesNothing(t *testing.T) {
	modules := real(t)
	base := load(t, "trn2")
	wrong := clone(base)
	for n, k := range base.Calibrated.Constants {
		if k.Mark == machine.MarkFitted {
			k.Value *= 1.1
			wrong.Calibrated.Constants[n] = k
		}
	}
	for n, o := range base.Calibrated.Ops {
		if o.Mark == machine.MarkFitted {
			for _, f := range []*float64{&o.PerElem, &o.Base, &o.Min, &o.LatencyNs, &o.SpacingBase} {
				*f *= 1.1
			}
			wrong.Calibrated.Ops[n] = o
		}
	}
	for k := range modules {
		a, err := without(ctx, modules, k, base)
		if err != nil {
			t.Fatal(err)
		}
		b, err := without(ctx, modules, k, wrong)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(section(a), section(b)) {
			t.Errorf("%s is predicted by constants that depend on a fit to it", modules[k].Name)
		}
	}
}

// TestDiagnoses replaces parts of the prediction by measurements. What is
// left must shrink: the model is limited by the clock's phase and the memory,
// not by its sequencers and engines.
func TestDiagnoses(t *testing.T) {
	modules := real(t)
	mach := load(t, "trn2")
	for _, m := range modules {
		p := newProfile(m)
		shift, err := p.shift(ctx, mach)
		if err != nil {
			t.Fatal(err)
		}
		windows := [][]calibrated.Window{p.windows}
		s, err := Judge(ctx, m, mach, calibrated.Options{Windows: windows, Shift: shift})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.KernelErr) > 2.5 {
			t.Errorf("%s: with the measured clock the kernel time is off by %.2f %%", m.Name, s.KernelErr)
		}
		s, err = Judge(ctx, m, mach, calibrated.Options{Windows: windows, Complete: p.completions(), Shift: shift})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.LastErr) > 1 || s.StartP90 > 1 {
			t.Errorf("%s: with measured DMA and clock the last compute start is off by %.2f %%, starts by %.2f %%", m.Name, s.LastErr, s.StartP90)
		}
	}
}

// TestFit fits the embedded machine's constants again: they must come out as
// they stand, from the profiles they were fitted to, and the same every time.
func TestFit(t *testing.T) {
	modules := real(t)
	base := load(t, "trn2")
	f, err := Run(ctx, modules, base)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Run(ctx, modules, f.Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range base.Calibrated.Names() {
		if a, b := base.Calibrated.Constants[n], f.Machine.Calibrated.Constants[n]; a != b {
			t.Errorf("%s is %+v in the description and %+v fitted", n, a, b)
		}
	}
	if !reflect.DeepEqual(base.Calibrated.Ops, f.Machine.Calibrated.Ops) {
		t.Error("operations differ from the description")
	}
	if !bytes.Equal(section(f.Machine), section(g.Machine)) || !slices.Equal(f.Kept, g.Kept) || len(f.Items) != len(g.Items) {
		t.Error("a second fit differs")
	}
	if len(f.Profiles) != 5 || len(f.Items) < 200 {
		t.Errorf("%d profiles, %d constants", len(f.Profiles), len(f.Items))
	}
	for _, it := range f.Items {
		if it.N < 1 || it.Min > it.Max || it.Spread < 0 || math.IsNaN(it.Value) {
			t.Errorf("%+v", it)
		}
		// The threshold is between its bounds, a clamped location may not be.
		if it.How != "huber" && (it.Value < it.Min-1e-3 || it.Value > it.Max+1e-3) {
			t.Errorf("%s is %v, outside of its measurements %v to %v", it.Name, it.Value, it.Min, it.Max)
		}
	}
	// From nothing fitted to the same constants: the fit does not depend on
	// where it starts.
	h, err := Run(ctx, modules, Forget(base))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range f.Items {
		if !strings.HasPrefix(it.Name, "op.") {
			if a, b := it.Value, h.Machine.Calibrated.Constants[it.Name].Value; math.Abs(a-b) > 0.02*math.Abs(a)+1e-9 {
				t.Errorf("%s is %v, from nothing %v", it.Name, a, b)
			}
		}
	}
}

func TestInputsThatCannotBeFitted(t *testing.T) {
	base := load(t, "trn2")
	m := components.NewModule("plain", "test")
	if _, err := Run(ctx, []*components.Module{m}, base); !errors.Is(err, errNoMeasurement) || !strings.Contains(err.Error(), "plain") {
		t.Errorf("%v", err)
	}
	if _, _, err := FromTraces(ctx, []*components.Module{m}, base); !errors.Is(err, errNoMeasurement) {
		t.Errorf("%v", err)
	}
	if _, err := Leave(ctx, []*components.Module{m}, base, calibrated.Options{}); err == nil || !strings.Contains(err.Error(), "at least two") {
		t.Errorf("%v", err)
	}
	if _, err := Evaluate(ctx, []*components.Module{m}, base, nil); err == nil {
		t.Error("one profile was cross-validated")
	}
	if _, err := Run(ctx, nil, &machine.Machine{Name: "bare"}); err == nil || !strings.Contains(err.Error(), "bare") {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Run(gone, []*components.Module{m}, base); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestReport writes the accuracy report, with every profile, case and constant
// in it.
func TestReport(t *testing.T) {
	if testing.Short() {
		t.Skip("evaluates all cases")
	}
	a, err := Evaluate(ctx, real(t)[3:], load(t, "trn2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := a.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"trn2_attn_fused_bf16_s512", "| no governor |", "| documented costs alone |", "| hardware read |", "| dma.bytes_per_ns |", "## Sensitivity"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(text.String(), "NaN") {
		t.Error("the report has a number that is none")
	}
}
