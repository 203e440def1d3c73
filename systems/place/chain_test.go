package place

import (
	"testing"

	"perfsim/components"
)

// TestWriterChainByHand: PSUM writes of a core whose banks are not known follow
// one another, each when the one before has left its lane; writes of known
// banks, other instructions and other cores do not wait for them. In ns:
//
//	0  PE          issue 100, latency 150, bank unknown:   0, free at 100
//	1  DVE         issue  40, latency  60, bank unknown: 100, free at 140
//	2  Activation  issue  10, latency  10, bank 3:         0
//	3  Activation  issue  30, latency  30, bank unknown: 140, free at 170
//	4  Pool        issue  20, latency  20, no PSUM:        0
//	5  PE          issue   5, latency   5, bank unknown: 170 (its lane: 100)
//	6  PE, core 1  issue   5, latency   5, bank unknown:   0
//	7  DVE         issue   5, latency   5, bank 3:       140 (its lane; bank 3: 10)
func TestWriterChainByHand(t *testing.T) {
	const other = components.LanesPerCore
	m := byHand([]row{
		{lane: components.LanePE, issue: 100, latency: 150}, {lane: components.LaneDVE, issue: 40, latency: 60},
		{lane: components.LaneActivation, issue: 10, latency: 10}, {lane: components.LaneActivation, issue: 30, latency: 30},
		{lane: components.LanePool, issue: 20, latency: 20}, {lane: components.LanePE, issue: 5, latency: 5},
		{lane: components.LanePE, issue: 5, latency: 5}, {lane: components.LaneDVE, issue: 5, latency: 5},
	})
	m.AddCoreLanes(1)
	m.Instr.Lane.Set(6, other+components.LanePE)
	for i := range m.Instr.Len() {
		if i != 4 {
			m.Instr.Flags.Set(i, components.FlagDstPSUM)
		}
	}
	m.Instr.Banks.Set(2, 1<<(8+3))
	m.Instr.Banks.Set(7, 1<<(8+3))
	for _, fast := range []bool{true, false} {
		for _, c := range []struct {
			rules Rules
			want  [8]uint64
		}{
			{Rules{Banks: true}, [8]uint64{0, 100, 0, 140, 0, 170, 0, 140}},
			{Rules{}, [8]uint64{0, 0, 0, 10, 0, 100, 0, 40}},
		} {
			w := placed(t, m, c.rules, fast)
			for i, want := range c.want {
				if start, _ := w.Events.Span(m, components.InstrID(i), components.RunA); start != want {
					t.Errorf("assembly %v, %+v: instruction %d starts at %d, by hand %d", fast, c.rules, i, start, want)
				}
			}
		}
	}
}
