package fit

import (
	"math"

	"perfsim/components"
	"perfsim/systems/calibrated"
)

// control collects what the sequencers show: durations of control
// instructions, gaps between them, wake delays and the steps of the runtime's
// barriers.
func (p *profile) control(s *samples) {
	for q, list := range p.order {
		e := p.seq[q].engine
		name := e.String()
		if !hasSequencer(e) {
			continue
		}
		if p.seq[q].core == 0 && len(list) > 0 && !p.compiled(list[0]) {
			s.add("start."+name+"_ns", byMedian, p.start[list[0]])
		}
		lastData := math.Inf(-1) // largest end of a data-path row so far
		for k, i := range list {
			class := p.class(i)
			at, waits := p.satisfied(i, 'S')
			chainAt, chains := p.satisfied(i, '$')
			switch {
			case class == "data":
				if v := p.raised(i, 'S', 100); !math.IsNaN(v) {
					s.add("sync."+name+".retire_ns", byMedian, v-p.end[i])
				}
			case class == "DMA":
			case chains > 0:
				// Engines whose data path raises nothing show it here.
				if v := p.raised(i, '$', 40); !math.IsNaN(v) && (e == components.Pool || e == components.SP) {
					s.add("sync."+name+".retire_ns", byMedian, v-p.end[i])
				}
				if chainAt > p.start[i] {
					s.add("sync."+name+".hop_ns", byMedian, p.end[i]-chainAt)
				} else if chainAt < p.start[i]-100 {
					s.add("seq."+name+".chain_ns", byMedian, p.end[i]-p.start[i])
				}
			case class == "DRAIN" && p.start[i] < lastData:
				if p.end[i] > lastData {
					s.add("sync."+name+".drain_ns", byMedian, p.end[i]-lastData)
				}
			case class == "TENSOR_LOAD" && p.m.Instr.Elems.At(int(i)) > 1:
				s.add("seq."+name+".TENSOR_LOAD.wide_ns", byMedian, p.end[i]-p.start[i])
			default:
				s.add("seq."+name+"."+class+"_ns", byMedian, p.end[i]-p.start[i])
			}
			if k > 0 {
				p.gap(s, name, list[k-1], i, class, at, waits, lastData)
			}
			if class == "data" {
				lastData = max(lastData, p.end[i])
			}
		}
	}
}

func hasSequencer(e components.Engine) bool {
	switch e {
	case components.Pool, components.Activation, components.PE, components.DVE, components.SP:
		return true
	}
	return false
}

func (p *profile) class(i uint32) string {
	return calibrated.Class(p.m.OpcodeName(p.m.Instr.Opcode.At(int(i))))
}

// maxGap bounds what counts as a gap of a sequencer, in ns: longer ones are
// waits of some kind.
const maxGap = 500

// gap collects what row i shows about its start behind row h on the engine
// called name: the wake delay where a semaphore let it go, else the gap.
func (p *profile) gap(s *samples, name string, h, i uint32, class string, at float64, waits int, lastData float64) {
	before := p.class(h)
	if before == "TENSOR_LOAD" && p.m.Instr.Elems.At(int(h)) > 1 {
		before = calibrated.WideLoad
	}
	data := class == "data"
	soft := p.m.Instr.Flags.At(int(i))&components.FlagSWDGE != 0
	reached := p.end[h] // when the sequencer could take row i
	if before == "data" {
		reached = p.start[h]
	}
	if waits > 0 {
		switch {
		case math.IsNaN(at):
		case at > reached+150 && at > lastData-1 && p.start[i]-at < 100 && !soft:
			// The sequencer was waiting and the data path was free.
			constant := "sync." + name + ".wake_ns"
			switch {
			case p.m.OpcodeName(p.m.Instr.Opcode.At(int(i))) == "MATMUL":
				constant = "pe.wake_stream_ns"
			case !data:
				constant = "sync." + name + ".wake_control_ns"
			}
			s.add(constant, byMedian, p.start[i]-at)
		}
		if !(at < reached-20) {
			return
		}
	}
	if soft || p.m.Instr.Flags.At(int(h))&components.FlagSWDGE != 0 {
		return
	}
	switch {
	case before == "data" && !data:
		if d := p.start[i] - p.start[h]; d > 0 && d < 60 && name != "PE" {
			s.add("seq."+name+".dispatch_ns", byMedian, d)
		}
	case before == "data":
	default:
		if data && p.end[h] < lastData { // may wait for the data path
			return
		}
		if g := p.start[i] - p.end[h]; g > 0 && g < maxGap {
			s.add("seq."+name+".gap_ns", byMedian, g)
			s.add("seq."+name+".gap."+before+"."+class+"_ns", byMedian, g)
		}
	}
}

// dropCommonGaps leaves out gaps that hardly differ from their engine's
// general one.
func (s *samples) dropCommonGaps() {
	for name := range s.values {
		engine, pair, ok := gapName(name)
		if !ok || pair == "" {
			continue
		}
		common := median(append([]float64(nil), s.values["seq."+engine+".gap_ns"]...))
		if math.Abs(median(append([]float64(nil), s.values[name]...))-common) < 4 {
			delete(s.values, name)
		}
	}
}
