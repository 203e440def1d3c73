package fit

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"perfsim/components/machine"
)

func load(t testing.TB, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSplice replaces the section of every machine that has one by another and
// reads it back; everything else stays byte for byte.
func TestSplice(t *testing.T) {
	for _, name := range []string{"trn1", "trn2", "trn3"} {
		text, err := machine.Text(name)
		if err != nil {
			t.Fatal(err)
		}
		m := load(t, name)
		same, err := Splice(text, m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := machine.Parse(name, same)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(back.Calibrated.Constants, m.Calibrated.Constants) || !maps.Equal(back.Calibrated.Ops, m.Calibrated.Ops) || back.Calibrated.Scaled != m.Calibrated.Scaled {
			t.Errorf("%s reads back differently", name)
		}
		c := clone(m)
		c.Calibrated.Constants["dma.bytes_per_ns"] = machine.Constant{Value: 12.3456, Samples: 7, Spread: 0.5, Mark: machine.MarkFitted}
		changed, err := Splice(text, c)
		if err != nil {
			t.Fatal(err)
		}
		before, after := slices.Collect(bytes.Lines(same)), slices.Collect(bytes.Lines(changed))
		var differ []string
		for k := range min(len(before), len(after)) {
			if !bytes.Equal(before[k], after[k]) {
				differ = append(differ, string(after[k]))
			}
		}
		scaled := 0
		if m.Calibrated.Scaled != "" { // a fitted machine is not a scaled one any more
			scaled = 1
		}
		if want := []string{"    dma.bytes_per_ns: {value: 12.3456, n: 7, spread: 0.5, mark: FITTED}\n"}; scaled == 0 && !slices.Equal(differ, want) {
			t.Errorf("%s: changed lines are %q", name, differ)
		}
		if len(after) != len(before)-scaled {
			t.Errorf("%s has %d lines, had %d", name, len(after), len(before))
		}
		// The section in the middle, and none at all.
		at := bytes.Index(text, []byte("\ncalibrated:")) + 1
		rest := text[at:]
		end := len(rest)
		for pos, line := 0, []byte(nil); pos < len(rest); pos += len(line) {
			line = rest[pos : pos+bytes.IndexByte(rest[pos:], '\n')+1]
			if pos > 0 && line[0] != ' ' && line[0] != '#' && line[0] != '\n' {
				end = pos
				break
			}
		}
		bare := append(bytes.Clone(text[:at]), rest[end:]...)
		again, err := Splice(bare, m)
		if err != nil {
			t.Fatal(err)
		}
		if m2, err := machine.Parse(name, again); err != nil || !maps.Equal(m2.Calibrated.Constants, m.Calibrated.Constants) {
			t.Errorf("%s: adding the section: %v", name, err)
		}
	}
}

func TestSpliceRefusesWhatDoesNotReadBack(t *testing.T) {
	text, err := machine.Text("trn2")
	if err != nil {
		t.Fatal(err)
	}
	m := clone(load(t, "trn2"))
	m.Calibrated.Constants["dma.row_ns"] = machine.Constant{Value: 1, Mark: "GUESSED"}
	if _, err := Splice(text, m); err == nil || !strings.Contains(err.Error(), "does not read back") {
		t.Errorf("%v", err)
	}
}

// TestScale scales trn2 to a machine whose clocks and rates are chosen, so that
// every ratio is known: Activation and SP 2, PE 1/2, DVE 1, Pool 4, DMA 3.
func TestScale(t *testing.T) {
	from, to := load(t, "trn2"), clone(load(t, "trn2"))
	to.Name = "other"
	to.Clock.Activation, to.Clock.SP = from.Clock.Activation/2, from.Clock.SP/2
	to.Clock.PEArray, to.Clock.DVE, to.Clock.Pool = from.Clock.PEArray*2, from.Clock.DVE, from.Clock.Pool/4
	to.Memory.DMARate = 3 * from.Memory.DMARate
	s := Scale(from, to)
	if s.Name != "other" || !strings.Contains(s.Calibrated.Scaled, "trn2") {
		t.Errorf("%s is scaled %q", s.Name, s.Calibrated.Scaled)
	}
	for name, ratio := range map[string]float64{
		"seq.Activation.gap_ns": 2, "seq.SP.DRAIN_ns": 2, "seq.PE.NOP_ns": 0.5, "seq.DVE.gap_ns": 1, "seq.Pool.DRAIN_ns": 4,
		"sync.PE.wake_ns": 0.5, "sync.Pool.retire_ns": 4, "pe.fill_ns": 0.5, "pe.fill_cycles": 1, "pe.matmul_fixed_cycles": 1, "governor.window_ns": 2,
		"governor.threshold": 1, "governor.slow_rate": 1, "dma.hw_start_read_ns": 1, "dma.row_ns": 1, "dma.trigger_SP_ns": 2, "dma.complete_ns": 1,
	} {
		a, b := from.Calibrated.Constants[name], s.Calibrated.Constants[name]
		if a.Value == 0 {
			t.Errorf("trn2 has no %s", name)
		}
		if d := b.Value - ratio*a.Value; d > 1e-3 || d < -1e-3 {
			t.Errorf("%s is %v, want %v times %v", name, b.Value, ratio, a.Value)
		}
		if a.Mark == machine.MarkFitted && (b.Mark != machine.MarkScaled || b.Samples != 0) {
			t.Errorf("%s is marked %s with %d samples", name, b.Mark, b.Samples)
		}
	}
	for name, ratio := range map[string]float64{"Activation.ACTIVATE": 2, "DVE.TENSOR_REDUCE": 1} {
		a, b := from.Calibrated.Ops[name], s.Calibrated.Ops[name]
		if a.Mark != machine.MarkFitted && a.Mark != machine.MarkLaw || b.Mark != machine.MarkScaled || b.PerElem != a.PerElem || b.Base != a.Base {
			t.Errorf("%s: %+v became %+v", name, a, b)
		}
		near(t, name+" latency", b.LatencyNs, ratio*a.LatencyNs)
	}
	// What one machine has, the other has, and the model loads it.
	if got, want := s.Calibrated.Names(), from.Calibrated.Names(); !slices.Equal(got, want) {
		t.Errorf("constants %v, want %v", got, want)
	}
	if got := s.Calibrated.Constants["dma.bytes_per_ns"]; got.Value != to.Memory.DMARate || got.Mark != machine.MarkDocumented {
		t.Errorf("the rate of a DMA engine is %+v, documented %v", got, to.Memory.DMARate)
	}
	to.Arch = 20
	old := Scale(from, to).Calibrated.Ops
	for key, per := range map[string]float64{"DVE.TENSOR_TENSOR": 2, "DVE.TENSOR_TENSOR sbuf 16>16": 1, "DVE.TENSOR_TENSOR psum": 1, "DVE.COPY sbuf 32>32": 1,
		"DVE.TENSOR_REDUCE": 1, "DVE.TENSOR_TENSOR_SCAN": 2, "Activation.COPY": 1} {
		if old[key].PerElem != per {
			t.Errorf("%s takes %v cycles an element before trn2, want %v", key, old[key].PerElem, per)
		}
	}
	if s := Scale(from, to); s.Calibrated.Constants["governor.slow_rate"].Value != 1 {
		t.Error("a machine without a documented governor has one")
	}
	if from.Calibrated.Scaled != "" || from.Calibrated.Constants["seq.Activation.gap_ns"].Mark != machine.MarkFitted {
		t.Error("scaling changed the machine it scales from")
	}
}

// TestScaledMachines compares the embedded machines with what scaling gives
// now: they have to be made again when trn2 is fitted again.
func TestScaledMachines(t *testing.T) {
	for _, name := range []string{"trn1", "trn3"} {
		m := load(t, name)
		s := Scale(load(t, "trn2"), m)
		if !maps.Equal(s.Calibrated.Constants, m.Calibrated.Constants) || !maps.Equal(s.Calibrated.Ops, m.Calibrated.Ops) {
			t.Errorf("%s is not what trn2 scales to (perfsim calibrate --scale-from trn2 --machine %s)", name, name)
		}
	}
}

func TestForget(t *testing.T) {
	m := load(t, "trn2")
	f := Forget(m)
	fitted, special := 0, 0
	for name, k := range m.Calibrated.Constants {
		now, ok := f.Calibrated.Constants[name]
		if k.Mark != machine.MarkFitted {
			if now != k {
				t.Errorf("%s was not fitted, and %v became %v", name, k, now)
			}
			continue
		}
		fitted++
		if _, pair, gap := gapName(name); gap && pair != "" {
			special++
			if ok {
				t.Errorf("the special gap %s is still there", name)
			}
			continue
		}
		if now.Value != published[name] || now.Mark != machine.MarkDocumented || now.Samples != 0 {
			t.Errorf("%s is still %+v", name, now)
		}
	}
	if fitted < 100 || special < 50 {
		t.Errorf("only %d fitted constants and %d special gaps", fitted, special)
	}
	for name, o := range f.Calibrated.Ops {
		if o.Mark == machine.MarkFitted {
			t.Errorf("%s is still %+v", name, o)
		}
	}
}

func TestGapName(t *testing.T) {
	for _, x := range []struct {
		name, engine, pair string
		ok                 bool
	}{{"seq.SP.gap_ns", "SP", "", true}, {"seq.SP.gap.DMA.DRAIN_ns", "SP", "DMA.DRAIN", true}, {"seq.PE.gap.TENSOR_LOAD.wide.DRAIN_ns", "PE", "TENSOR_LOAD.wide.DRAIN", true},
		{"seq.SP.DRAIN_ns", "", "", false}, {"sync.SP.gap_ns", "", "", false}, {"seq.SP", "", "", false}, {"seq.SP.gap", "", "", false}} {
		if e, p, ok := gapName(x.name); ok != x.ok || ok && (e != x.engine || p != x.pair) {
			t.Errorf("%s: %q %q %v", x.name, e, p, ok)
		}
	}
}
