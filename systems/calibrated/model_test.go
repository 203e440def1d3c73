package calibrated

import (
	"math"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

// TestGovernor follows the clock through windows whose use is worked out by
// hand: 3000 ns windows and a threshold of 0.4.
func TestGovernor(t *testing.T) {
	c := &GovernorConstants{Window: 3000, Threshold: 0.4, Slow: 0.5}
	g := governor{c: c}
	step := func(at float64, full bool, until float64) {
		t.Helper()
		f, u := g.at(at)
		if f != full || math.Abs(u-until) > 1e-6 {
			t.Errorf("at %v: full %v until %v, want %v until %v", at, f, u, full, until)
		}
	}
	step(100, false, 3000) // starts slow
	g.streamed(1199, 1)    // 0.3997 of the window: not enough
	step(3000, false, 6000)
	g.streamed(1200, 1) // exactly the threshold
	step(6000, true, 9000)
	g.streamed(2999, 1)
	step(9100, true, 12000)
	g.streamed(1000, 1) // too little: slow again
	step(12000, false, 15000)
	g.streamed(3000, 1)
	step(15000, true, 18000)
	g.streamed(3000, 1)
	step(24000, false, 27000) // a window without use lies between
	g = governor{c: c, phase: 500}
	step(600, false, 3500)
	step(3499, false, 3500)
	g = governor{c: c, fixed: []Window{{10, 20}, {30, 40}}}
	step(5, false, 10)
	step(10, true, 20)
	step(25, false, 30)
	step(45, false, math.Inf(1))
	g = governor{c: c, off: true}
	step(0, true, math.Inf(1))
}

// TestStream streams columns over changes of the clock. A cycle takes 1 ns.
func TestStream(t *testing.T) {
	c := &Constants{Gov: GovernorConstants{Window: 1000, Threshold: 0.5, Slow: 0.5}, PE: PEConstants{Burst: 100}}
	s := &sim{p: &program{c: c, cycle: 1}}
	slow := func() *tensor { return &tensor{gov: governor{c: &c.Gov, fixed: []Window{}}, burst: 50, burstT: 0} }
	// 100 columns at full rate, then 300 at half.
	pe := slow()
	near(t, "burst, then half rate", s.stream(pe, 0, 400, 1), 100+600)
	// The burst is used up, and fills while the array idles: 20 ns fill 10, of
	// which every column uses a half.
	near(t, "no burst left", s.stream(pe, 700, 10, 1), 720)
	near(t, "burst filled while idle", s.stream(pe, 740, 40, 1), 760+40)
	// From half rate into a full window at 1000.
	pe = &tensor{gov: governor{c: &c.Gov, fixed: []Window{{1000, 2000}}}, burstT: 900}
	near(t, "into a full window", s.stream(pe, 900, 150, 1), 1000+100)
	// Use is counted in columns, and the window that follows a busy one is full:
	// 1000 ns at half rate are 500 columns, half of the window.
	pe = &tensor{gov: governor{c: &c.Gov}, burstT: 0}
	near(t, "the governor rises", s.stream(pe, 0, 600, 1), 1000+100)
	// Of half the array's rows, the same columns are a quarter of the window.
	pe = &tensor{gov: governor{c: &c.Gov}, burstT: 0}
	near(t, "the governor stays down with half the rows", s.stream(pe, 0, 600, 0.5), 1000+200)
}

// TestDataPath places two instructions of one engine: the second starts when
// the issue interval of the first is over, and both retire a latency later.
func TestDataPath(t *testing.T) {
	mach, _ := trn2(t)
	mach.Calibrated.Ops["DVE.TENSOR_REDUCE"] = machine.CalibratedOp{PerElem: 1, Base: 96, LatencyNs: 50, Mark: machine.MarkOurs}
	m := module(t, []instr{{op: "TENSOR_REDUCE", engine: components.DVE, n: 96, dtype: components.Float32},
		{op: "TENSOR_REDUCE", engine: components.DVE, n: 192, dtype: components.Float32}})
	p, err := Predict(ctx, m, mach, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 192 cycles at 0.96 GHz are 200 ns, 288 are 300.
	near(t, "first start", p.Start[0], 0)
	near(t, "first duration", float64(p.Dur[0]), 250)
	near(t, "second start", p.Start[1], 200)
	near(t, "second duration", float64(p.Dur[1]), 350)
}

// TestControl puts a data-path instruction behind two that the sequencer
// executes itself: they follow one another at the gaps of their classes.
func TestControl(t *testing.T) {
	mach, _ := trn2(t)
	set := func(name string, v float64) {
		mach.Calibrated.Constants[name] = machine.Constant{Value: v, Mark: machine.MarkOurs}
	}
	set("seq.DVE.NOTIFY_ns", 40)
	set("seq.DVE.NOP_ns", 10)
	set("seq.DVE.gap.NOTIFY.NOP_ns", 7)
	set("seq.DVE.gap.NOP.data_ns", 3)
	m := module(t, []instr{{op: "NOTIFY", engine: components.DVE}, {op: "NOP", engine: components.DVE},
		{op: "COPY", engine: components.DVE, n: 64, dtype: components.Float32}})
	p, err := Predict(ctx, m, mach, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 40 + 7, 47 + 10 + 3} {
		near(t, m.OpcodeName(m.Instr.Opcode.At(i))+" starts", p.Start[i], want)
	}
}

// TestSemaphore lets DVE wait for the PE: start = retirement + retire delay +
// wake delay.
func TestSemaphore(t *testing.T) {
	_, c := trn2(t)
	m := module(t, []instr{
		{op: "LDWEIGHTS", engine: components.PE, n: 128, dtype: components.BFloat16, syncs: nil},
		{op: "MATMUL", engine: components.PE, n: 512, dtype: components.BFloat16, syncs: []sync{{components.SetInc, 5, 1}}},
		{op: "COPY", engine: components.DVE, n: 512, dtype: components.Float32, flags: components.FlagSrcPSUM, syncs: []sync{{components.WaitGE, 5, 1}}},
	})
	p := predict(t, m, Options{NoGovernor: true})
	fill := c.PE.FillNs + c.PE.FillCycles/2.4
	start := c.PE.FirstLoad[0][0] // nothing hides the load
	near(t, "matmul starts", p.Start[1], start)
	near(t, "matmul takes", float64(p.Dur[1]), (512+c.PE.Fixed)/2.4+fill)
	retired := p.Start[1] + (512+c.PE.Fixed)/2.4 + fill
	near(t, "copy starts", p.Start[2], retired+c.Engine[components.PE].Retire+c.Engine[components.DVE].Wake)
	// Without synchronisation it does not wait.
	near(t, "copy without waiting", predict(t, m, Options{NoGovernor: true, NoSync: true}).Start[2], 0)
}

// TestEdges synchronises the same program by its dependency.
func TestEdges(t *testing.T) {
	_, c := trn2(t)
	m := module(t, []instr{
		{op: "LDWEIGHTS", engine: components.PE, n: 128, dtype: components.BFloat16},
		{op: "MATMUL", engine: components.PE, n: 512, dtype: components.BFloat16},
		{op: "COPY", engine: components.DVE, n: 512, dtype: components.Float32, flags: components.FlagSrcPSUM, preds: []pred{{1, components.Flow}}},
		{op: "COPY", engine: components.DVE, n: 512, dtype: components.Float32, flags: components.FlagSrcPSUM, preds: []pred{{2, components.Flow}}},
		{op: "COPY", engine: components.DVE, n: 512, dtype: components.Float32, flags: components.FlagSrcPSUM, preds: []pred{{3, components.Anti}}},
	})
	p := predict(t, m, Options{NoGovernor: true})
	dve := c.Engine[components.DVE]
	end := func(i int) float64 { return p.Start[i] + float64(p.Dur[i]) }
	near(t, "copy starts", math.Round(p.Start[2]*1e3)/1e3, math.Round((end(1)+c.Engine[components.PE].Retire+dve.Wake)*1e3)/1e3)
	if got, want := p.Start[3], end(2)+dve.Retire+dve.Wake; math.Abs(got-want) > 0.01 {
		t.Errorf("a result of the same engine is there at %v, want %v", got, want)
	}
	// What only may not be overwritten early is safe in order.
	if p.Start[4] > end(3) {
		t.Errorf("an anti-dependency on one engine waits: %v behind %v", p.Start[4], end(3))
	}
}

// TestAntiLeftOut has a wait that only an anti-dependency needs: run B does
// not have it.
func TestAntiLeftOut(t *testing.T) {
	mach, _ := trn2(t)
	list := []instr{
		{op: "COPY", engine: components.Activation, n: 4096, dtype: components.Float32, syncs: []sync{{components.SetInc, 4, 1}}},
		{op: "COPY", engine: components.DVE, n: 64, dtype: components.Float32, syncs: []sync{{components.WaitGE, 4, 1}}, preds: []pred{{0, components.Anti}}},
	}
	m := module(t, list)
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: 1}, Events: components.NewEvents()}
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	a, _ := w.Events.Span(m, 1, components.RunA)
	b, _ := w.Events.Span(m, 1, components.RunB)
	if a < 3000 || b != 0 {
		t.Errorf("run A starts at %d, run B at %d", a, b)
	}
	list[1].preds[0].kind = components.Flow
	w.Module = module(t, list)
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	if b, _ := w.Events.Span(w.Module, 1, components.RunB); b != a {
		t.Errorf("run B with a flow dependency starts at %d, run A at %d", b, a)
	}
}

// TestTransfers serves transfers on the DMA engines; constants and times are
// chosen so that everything is worked out by hand.
func TestTransfers(t *testing.T) {
	d := &DMAConstants{StartWrite: 100, StartRead: 150, StartMany: 7, SWStartWrite: 60, SWStartRead: 70, Skew: 10, Row: 2, Chunk: 4, Cast: 1, Rate: 10, End: 1,
		Complete: 30, ReadRestart: 50, ReadBatched: 5, ReadSmall: 3, SmallRow: 100, Batch: 20, Backlog: 500, Turnaround: 80, WriteIdle: 0.1, WriteQueued: 0.2,
		SWReadRow: 4000, ManyRows: 20, Engines: 16, Transpose: 0.8, TransposeOnChip: 0.5}
	write := d.of(Transfer{Bytes: 16000, Row: 1000, From: 1, To: 1})            // 16 rows: one of 102 ns an engine
	read := d.of(Transfer{Bytes: 16000, Row: 1000, Read: true, From: 1, To: 1}) // the same
	small := d.of(Transfer{Bytes: 1600, Row: 50, Read: true, From: 1, To: 1})   // 32 rows of 7 ns: 14 an engine
	near(t, "write streams", write.stream, 102)
	near(t, "short rows stream", small.stream, 14)
	near(t, "software read gathers", d.of(Transfer{Bytes: 64000, Row: 1000, Read: true, Soft: true, From: 1, To: 1}).stream, 402)
	near(t, "software write pays per piece", d.of(Transfer{Bytes: 16000, Row: 100, Soft: true, From: 1, To: 1}).stream, 160*14/16.0)
	near(t, "conversion reads more", d.of(Transfer{Bytes: 1600, Row: 100, Soft: true, From: 4, To: 2}).stream, 16*25/16.0)
	near(t, "transposes are slower copies", d.of(Transfer{Bytes: 1600, Row: 1600, Transposed: true, Read: true, From: 1, To: 1}).stream, 12.5)
	near(t, "on chip slower still", d.of(Transfer{Bytes: 1600, Row: 1600, Transposed: true, OnChip: true, From: 1, To: 1}).stream, 20)
	if !small.small || small.many != true || read.small || write.many {
		t.Errorf("small %v %v, many %v %v", small.small, read.small, small.many, write.many)
	}
	e := &dmaEngines{free: math.Inf(-1)}
	serve := func(at float64, x transfer, queue int, begin, complete float64) {
		t.Helper()
		b, c := e.serve(d, at, &x, queue)
		near(t, "begin", b, begin)
		near(t, "complete", c, complete)
	}
	serve(0, write, 0, 110, 110+102+10.2+1+30)      // idle
	serve(10, write, 0, 223.2, 223.2+102+20.4+1+30) // behind a write
	serve(100, read, 1, 346.6, 346.6+102+80+1+30)   // behind a write: turned around
	serve(115, read, 1, 529.6, 529.6+102+5+1+30)    // within the batch of the one before
	serve(300, read, 1, 637.6, 637.6+102+50+1+30)   // a batch of its own
	serve(5000, read, 1, 5160, 5160+102+50+1+30)    // on idle engines
	serve(5000, small, 0, 5313, 5313+14+3+1+30)     // short rows
	serve(5000, small, 0, 5331, 5331+14+3+1+30)     // behind those of its own queue
	serve(5000, small, 2, 5345, 5345+14+3+1+30)     // in the gap that another queue's leave
	serve(6000, read, 1, 6160, 6160+102+50+1+30)    // the short ones left the engines early
	near(t, "many rows start later", d.Start(small.Transfer), 157)
	near(t, "software starts earlier", d.Start(Transfer{Soft: true, Read: true}), 70)
}

// TestWaitWithoutEnd has a wait that nothing ends: the program goes on, and
// the reader is told.
func TestWaitWithoutEnd(t *testing.T) {
	mach, _ := trn2(t)
	// Two engines wait for one another.
	m := module(t, []instr{
		{op: "COPY", engine: components.Activation, n: 64, dtype: components.Float32, syncs: []sync{{components.WaitGE, 6, 1}, {components.SetInc, 4, 1}}},
		{op: "COPY", engine: components.DVE, n: 64, dtype: components.Float32, syncs: []sync{{components.WaitGE, 4, 1}, {components.SetInc, 6, 1}}},
		{op: "COPY", engine: components.DVE, n: 64, dtype: components.Float32, syncs: []sync{{components.WaitGE, 99, 1}}}, // raised by nobody here
	})
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: 1}, Events: components.NewEvents()}
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, n := range m.Notes {
		found = found || n.Code == "waits-without-end"
	}
	if !found || w.Blocks[0].Latency[0] == 0 {
		t.Errorf("latency %d, notes %v", w.Blocks[0].Latency[0], m.Notes)
	}
}

func TestLoadNamesWhatIsMissing(t *testing.T) {
	mach, _ := trn2(t)
	delete(mach.Calibrated.Constants, "dma.bytes_per_ns")
	if _, err := Load(mach); err == nil || !strings.Contains(err.Error(), "lacks dma.bytes_per_ns") {
		t.Errorf("%v", err)
	}
	mach, _ = trn2(t)
	k := mach.Calibrated.Constants["governor.window_ns"]
	k.Value = 0
	mach.Calibrated.Constants["governor.window_ns"] = k
	if _, err := Load(mach); err == nil || !strings.Contains(err.Error(), "governor.window_ns must be more than 0") {
		t.Errorf("%v", err)
	}
	if _, err := Load(&machine.Machine{Name: "x"}); err == nil || !strings.Contains(err.Error(), "has no calibrated model") {
		t.Errorf("%v", err)
	}
}

// TestMachinesHaveAllConstants loads the embedded machines that offer the
// model, and finds scaled ones marked.
func TestMachinesHaveAllConstants(t *testing.T) {
	for _, name := range []string{"trn1", "trn2", "trn3"} {
		m, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Load(m); err != nil {
			t.Error(err)
		}
		if (m.Calibrated.Scaled != "") != (name != "trn2") {
			t.Errorf("%s is marked %q", name, m.Calibrated.Scaled)
		}
		for n, c := range m.Calibrated.Constants {
			if name != "trn2" && c.Mark == machine.MarkFitted {
				t.Errorf("%s: %s is marked as fitted", name, n)
			}
		}
	}
}

// TestCentral chooses by squares: of starts 0, 1, 2 and 10 the sums of squared
// distances are 105, 83, 69 and 245, where sums of distances (13, 11, 11, 27)
// would leave 1. Of ten instructions the one at the 90th percentile counts.
func TestCentral(t *testing.T) {
	if k := central([][]float64{{0}, {1}, {2}, {10}}); k != 2 {
		t.Errorf("phase %d", k)
	}
	flat := []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	one := []float64{90, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	two := []float64{3, 3, 0, 0, 0, 0, 0, 0, 0, 0}
	if k := central([][]float64{two, one, flat}); k != 0 {
		t.Errorf("phase %d", k) // sorted distances: two-one 3 and 87, two-flat 3 and 3, one-flat 0 and 90: the largest counts
	}
}

// TestUsual costs opcodes that have no entry: those nobody knows take what the
// DVE usually takes, 66 + N cycles of 1/0.96 ns and 83 ns to the result;
// documented ones their own cycles per element or fixed number of cycles.
func TestUsual(t *testing.T) {
	m := module(t, []instr{
		{op: "FROBNICATE", engine: components.DVE, n: 512, dtype: components.Float32},
		{op: "Gather", engine: components.Pool, n: 240, dtype: components.Float32},
		{op: "Select2", engine: components.Activation, n: 378, dtype: components.Float32},
		{op: "DveReadAccumulator", engine: components.DVE, n: 512, dtype: components.Float32},
		{op: "COPY", engine: components.DVE, n: 512, dtype: components.Float32},
	})
	mach, _ := trn2(t)
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: 1, Loops: components.Once}, Events: components.NewEvents()}
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	p := predict(t, m, Options{})
	near(t, "unknown, 578 cycles of 0.96 GHz", float64(p.Dur[0]), 578/0.96+83)
	near(t, "documented, 390 cycles of 1.2 GHz", float64(p.Dur[1]), 390/1.2+83)
	near(t, "unknown, 600 cycles of 1.2 GHz", float64(p.Dur[2]), 600/1.2+107)
	near(t, "a fixed number, 64 cycles", p.Start[4]-p.Start[3], 64/0.96)
	want := []string{
		"opcode FROBNICATE has no cost of its own on the DVE of trn2; what operations usually take there is used",
		"opcode DveReadAccumulator has no cost of its own on the DVE of trn2; what operations usually take there is used",
		"opcode Gather has no cost of its own on the Pool of trn2; what operations usually take there is used",
		"opcode Select2 has no cost of its own on the Activation of trn2; what operations usually take there is used",
	}
	slices.Sort(want)
	var got []string
	for _, n := range m.Notes {
		if n.Code == "default-cost" && n.Count == 1 {
			got = append(got, n.Text)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("notes %q", got)
	}
}

// Rows 1 MiB apart lose the same time whether 64 or 128 partitions meet, rows of
// one element take the time of an element, or of a packet where both sides are on chip, longer scattered ones of all their
// elements or of a row, whichever is less.
func TestStreamByPattern(t *testing.T) {
	d := &DMAConstants{Engines: 16, Rate: 25, Row: 5, Scatter: 70, Element: 12, Conflict: 275, Chunk: 8}
	for _, c := range []struct {
		name string
		t    Transfer
		want float64
	}{
		{"contiguous", Transfer{Bytes: 64 * 2000, Row: 2000, Element: 4}, 64 * 85 / 16.},
		{"conflict of 64", Transfer{Bytes: 64 * 2000, Row: 2000, Element: 4, Scattered: true, Conflict: true}, 64*85/16. + 275},
		{"conflict of 128", Transfer{Bytes: 128 * 2000, Row: 2000, Element: 4, Scattered: true, Conflict: true}, 128*85/16. + 275},
		{"elements", Transfer{Bytes: 1000 * 2, Row: 2, Element: 2}, 1000 * 12 / 16.},
		{"elements that stay on chip: packets", Transfer{Bytes: 1000 * 2, Row: 2, Element: 2, OnChip: true}, 1000 * (8 + 2/25.) / 16.},
		{"pairs", Transfer{Bytes: 1000 * 8, Row: 8, Element: 4, Scattered: true}, 1000 * 24 / 16.},
		{"rows of 500 bytes", Transfer{Bytes: 1000 * 500, Row: 500, Element: 4, Scattered: true}, 1000 * 70 / 16.},
	} {
		c.t.From, c.t.To = 1, 1
		if got := d.Stream(c.t); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v ns, want %v", c.name, got, c.want)
		}
	}
}
