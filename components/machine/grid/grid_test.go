package grid

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestDescriptions(t *testing.T) {
	for _, n := range Names() {
		m, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		if m.Name != n || len(m.Ignores) == 0 || len(m.Assumptions) == 0 || len(m.Peaks) == 0 {
			t.Errorf("%s: name %q, %d ignores, %d assumptions, %d peaks", n, m.Name, len(m.Ignores), len(m.Assumptions), len(m.Peaks))
		}
	}
}

// The roofline: no description is faster than what is published, and none
// stays below by more than it says, with the reason.
func TestRooflines(t *testing.T) {
	for _, n := range Names() {
		m, err := Load(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Peaks {
			got, err := m.TFLOPS(p.Format, p.Fidelity)
			if err != nil {
				t.Fatal(err)
			}
			if d := 1 - got/p.TFLOPS; d < -0.005 || d > p.Low {
				t.Errorf("%s %s %s: %.1f TFLOPS, published %.1f: %.1f %% below, allowed %.1f %%", n, p.Format, p.Fidelity, got, p.TFLOPS, 100*d, 100*p.Low)
			}
		}
		if r := m.Memory.DRAMRate() / m.Memory.DRAMPeak; r > 1.001 || r < 0.6 {
			t.Errorf("%s: the channels reach %.2f of the peak bandwidth", n, r)
		}
	}
}

// Worked out by hand: 120 cores x 1024 x 2 x 1.2 GHz, and the passes.
func TestRates(t *testing.T) {
	m, err := Load("e150")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format, fidelity string
		want             float64
	}{{"Fp16_b", "LoFi", 294.912}, {"Fp16_b", "HiFi2", 147.456}, {"Fp16_b", "HiFi3", 98.304}, {"Bfp8_b", "HiFi4", 73.728}} {
		if got, err := m.TFLOPS(c.format, c.fidelity); err != nil || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s %s: %v TFLOPS (%v), want %v", c.format, c.fidelity, got, err, c.want)
		}
	}
	if _, err := m.Passes("Fp16_b", "HiFi9"); err == nil || !strings.Contains(err.Error(), "HiFi9") {
		t.Errorf("unknown fidelity: %v", err)
	}
}

func TestErrorsNameTheField(t *testing.T) {
	text, err := Text("grayskull")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"clock_mhz: 1200", "clock_mhz: 0", "clock_mhz"},
		{"clock_mhz: 1200", "clock_mhz: .inf", "clock_mhz"},
		{"rows: 10", "rows: 0", "grid of 0"},
		{"rows: 10", "rowws: 10", "rowws"},
		{"style: dataflow", "style: magic", "style is"},
		{"dram_channel_bytes_per_ns: 12 ", "dram_channel_bytes_per_ns: 20 ", "more than the peak"},
		{"Fp16: {bytes: 2", "Fp16: {bytes: .nan", "formats.Fp16"},
		{"HiFi3: 3", "HiFi3: 0", "fidelity.HiFi3"},
	} {
		if !strings.Contains(string(text), c.old) {
			t.Fatalf("the description has no %q", c.old)
		}
		if _, err := parse("x.yaml", []byte(strings.Replace(string(text), c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not name %s", c.new, err, c.want)
		}
	}
	if _, err := Load("nothing"); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown name: %v", err)
	}
}
