package modelrun

import (
	"context"
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"testing"

	"perfsim/bench/models"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/opgraph"
	"perfsim/systems"
	"perfsim/systems/lower"
)

// Batch times of whole models on one core of trn1 and inf2 (the same core)
// that AWS publishes, beside those predicted from graphs of the published
// architectures. Nothing is fitted to them; the bounds are those seen here.
func TestBesideMeasuredNeuron(t *testing.T) {
	file, err := os.Open("../../../shared/data/measured/aws_models.csv")
	if err != nil {
		t.Skipf("the table of measurements is not here: %v", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	mach, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	var ratios []float64
	for _, r := range rows[1:] {
		ms, err := strconv.ParseFloat(r[4], 64)
		if err != nil {
			continue // training over many chips
		}
		batch, _ := strconv.Atoi(r[1])
		name, config := r[0], ""
		switch r[0] {
		case "bert-base-uncased":
			name, config = "bert", "base"
		case "distilbert-base":
			name = "distilbert"
		case "resnet50":
			name, config = "resnet", "resnet50"
		}
		m, err := models.Build(name, config, models.Options{Batch: batch, Elem: opgraph.ElemBF16})
		if err != nil {
			t.Fatal(err)
		}
		g := m.Phases[0].Graph
		res, err := lower.Lower(context.Background(), g, mach, lower.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Report.Conserved(); err != nil {
			t.Error(err)
		}
		s, err := systems.Simulate(context.Background(), systems.Request{Reading: systems.Reading{Module: res.Module, Jobs: 2}, On: mach,
			Settings: systems.Settings{Model: components.Calibrated, Loops: components.Trips}})
		if err != nil {
			t.Fatal(err)
		}
		got := float64(s.World.Latency(components.RunA)) / 1e6
		ratio := got / ms
		t.Logf("| %s | %s | %.3f | %.3f | %.2f |", r[0], r[1], ms, got, ratio)
		if ratio < 0.6 || ratio > 1.5 {
			t.Errorf("%s, batch %s: %.3f ms, measured %.3f", r[0], r[1], got, ms)
		}
		ratios = append(ratios, ratio)
	}
	slices.Sort(ratios)
	t.Logf("median %.2f, from %.2f to %.2f", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
}
