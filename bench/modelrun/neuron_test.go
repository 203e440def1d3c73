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
		size, _ := strconv.ParseInt(r[2], 10, 64)
		opt := models.Options{Batch: batch, Elem: components.ElemBF16}
		var g *components.Graph
		switch r[0] {
		case "bert-base-uncased":
			g, err = models.Measured("bert", size, opt)
		case "distilbert-base":
			g, err = models.Measured("distilbert", size, opt)
		case "vgg16":
			g, err = models.Measured("vgg16", size, opt)
		case "resnet50":
			var m *models.Model
			if m, err = models.Build("resnet", "resnet50", opt); err == nil {
				g = m.Phases[0].Graph
			}
		default:
			t.Errorf("no graph for %s", r[0])
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
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
