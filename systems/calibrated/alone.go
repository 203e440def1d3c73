package calibrated

import "perfsim/components"

// Trigger is a transfer with the time at which its trigger shows.
type Trigger struct {
	Row uint32
	At  float64 // ns
}

// Transfers returns when the semaphore of each transfer has its final value,
// given when they are triggered, in order of time: the DMA part of the model
// alone.
func Transfers(m *components.Module, c *Constants, list []Trigger) []float64 {
	dmas := map[uint16]*dmaEngines{}
	out := make([]float64, len(list))
	for k, x := range list {
		core := m.Lanes.Core.At(int(m.Instr.Lane.At(int(x.Row))))
		e := dmas[core]
		if e == nil {
			e = &dmaEngines{free: -1e18}
			dmas[core] = e
		}
		t, ok := TransferOf(m, x.Row)
		if !ok {
			continue
		}
		moved := c.DMA.of(t)
		_, out[k] = e.serve(&c.DMA, x.At, &moved, int(m.Instr.Queue.Get(int(x.Row))))
	}
	return out
}
