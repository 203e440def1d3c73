package calibrated

import (
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

// writeBy is a transfer of half a MiB to device memory in rows of 4 KiB,
// readBy one from it, triggered by engine e with hardware descriptors.
func writeBy(e components.Engine) instr {
	return instr{op: "DMA_DIRECT2D", engine: e, flags: components.FlagHWDGE | components.FlagDstDRAM, n: 4096, dtype: components.Uint8, bytes: 512 << 10, row: 4096}
}

func readBy(e components.Engine) instr {
	x := writeBy(e)
	x.flags = components.FlagHWDGE | components.FlagSrcDRAM
	return x
}

// TestWriteTriggers follows four writes of one queue: the first trigger takes
// longer, the next follow at the interval of triggers, and from the third on
// they wait until the transfer before the last has started.
func TestWriteTriggers(t *testing.T) {
	_, c := trn2(t)
	d := &c.DMA
	act := components.Activation
	p := predict(t, module(t, []instr{writeBy(act), writeBy(act), writeBy(act), writeBy(act)}), Options{})
	gap := 54.0 // seq.Activation.gap.DMA.DMA_ns
	take := c.Engine[act].TriggerHW
	stream := 128 * (d.Row + 4096/d.Rate) / 16
	begin := []float64{d.StartWrite + d.Skew, 0, 0}
	begin[1] = begin[0] + stream*(1+d.WriteIdle) + d.End
	begin[2] = begin[1] + stream*(1+d.WriteQueued) + d.End

	start, end := 0.0, take+d.TriggerFirst
	near(t, "first trigger starts", p.Start[0], start)
	near(t, "first transfer completes", p.Complete[0], begin[1]+d.Complete)
	start = end + gap
	near(t, "second trigger starts", p.Start[1], start)
	near(t, "second transfer completes", p.Complete[1], begin[2]+d.Complete)
	end = max(start+take, end+d.Interval)
	start = end + gap
	near(t, "third trigger starts", p.Start[2], start)
	end = max(start+take, end+d.Interval, begin[0]+d.QueueLag)
	if end != begin[0]+d.QueueLag {
		t.Fatalf("the third trigger does not wait for room: it would end at %v anyway", end)
	}
	start = end + gap
	near(t, "fourth trigger starts", p.Start[3], start)
	// Triggers are not where a transfer without semaphores ends.
	for i := range 4 {
		near(t, "duration", float64(p.Dur[i]), float64(float32(p.Complete[i]-p.Start[i])))
	}
}

// TestReadTriggers has reads behind writes of another queue: the third read's
// trigger waits until the writes that came before the first are nearly done.
func TestReadTriggers(t *testing.T) {
	_, c := trn2(t)
	d := &c.DMA
	act, sp := components.Activation, components.SP
	// Reads that nothing is in front of never wait.
	alone := predict(t, module(t, []instr{readBy(sp), readBy(sp), readBy(sp), readBy(sp)}), Options{})
	usual := alone.Start[3] - alone.Start[2]
	if got, want := usual, d.Interval; got < want || got > want+100 {
		t.Errorf("reads alone are triggered %v ns after one another, the interval is %v", got, want)
	}
	mach, _ := trn2(t)
	const lead = 500
	mach.Calibrated.Constants["dma.read_lead_ns"] = machine.Constant{Value: lead, Mark: machine.MarkOurs}
	list := []instr{writeBy(act), writeBy(act), writeBy(act), {op: "COPY", engine: components.DVE, n: 1200, dtype: components.Float32},
		readBy(sp), readBy(sp), readBy(sp), readBy(sp)}
	list[4].preds = []pred{{3, components.Flow}} // when the writes have been triggered
	m := module(t, list)
	p, err := Predict(ctx, m, mach, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// served is the end of the last write that was triggered before a row.
	served := func(row int) float64 {
		end := 0.0
		for w := range 3 {
			if p.Start[w] < p.Start[row] || p.Start[w] == p.Start[row] && w < row {
				end = max(end, p.Complete[w]-d.Complete)
			}
		}
		return end
	}
	take := c.Engine[sp].TriggerHW
	gap := p.Start[5] - p.Start[4] - (take + d.TriggerFirst)
	room := served(4) - lead
	natural := max(p.Start[6]+take, p.Start[6]-gap+d.Interval)
	if room <= natural {
		t.Fatalf("the third read's trigger does not wait: room at %v, it ends at %v anyway", room, natural)
	}
	near(t, "the fourth read's trigger starts", p.Start[7], room+gap)
}

// TestSoftwareTriggers shows a software trigger when its descriptors are made
// and lets the sequencer go on before.
func TestSoftwareTriggers(t *testing.T) {
	_, c := trn2(t)
	d := &c.DMA
	pool := components.Pool
	x := instr{op: "DMA_DIRECT2D", engine: pool, flags: components.FlagSWDGE | components.FlagDstDRAM, n: 1024, dtype: components.Uint8, bytes: 128 << 10, row: 1024}
	copy := instr{op: "COPY", engine: pool, n: 64, dtype: components.Float32}
	p := predict(t, module(t, []instr{x, x, copy}), Options{})
	near(t, "first trigger shows", p.Start[0], d.SWGenerate)
	near(t, "second trigger shows", p.Start[1], max(d.SWDispatch+d.SWGenerate, d.SWGenerate+d.SWInterval))
	near(t, "the copy starts", p.Start[2], 2*d.SWDispatch)
	stream := 128 * (d.Chunk + 1024/d.Rate) / 16
	near(t, "first transfer completes", p.Complete[0], d.SWGenerate+d.SWStartWrite+d.Skew+stream*(1+d.WriteIdle)+d.End+d.Complete)
}
