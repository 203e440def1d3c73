package cost

import (
	"fmt"
	"math"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/ecs"
)

// estimates gives inline machine code the latency that the compiler wrote down
// for it: the key latency_estimate of InlineASMBytes (docs/model.md, section 3; that it is
// the cost, and in ns, is ours). The documented table has no cost for the
// opcode, since only the instruction knows what its bytes do.
func (r *reference) estimates(issue, latency []uint32) {
	m := r.m
	in := &m.Instr
	if in.Text.Len() == 0 {
		return
	}
	type estimate struct {
		ns uint32
		ok bool
	}
	known := map[ecs.Symbol]estimate{}
	used, bad := 0, 0
	for i, op := range in.Opcode.Slice() {
		if op != components.OpcodeInlineASMBytes {
			continue
		}
		s := in.Text.At(i)
		e, seen := known[s]
		if !seen {
			v, err := fastjson.ParseBytes(m.Symbols.Bytes(s))
			if err != nil || v.Get("latency_estimate") == nil {
				known[s] = e
				continue
			}
			if ns, err := v.Get("latency_estimate").Float64(); err == nil && ns >= 0 && ns <= math.MaxUint32 {
				e = estimate{uint32(math.Round(ns)), true}
			} else {
				bad++
			}
			known[s] = e
		}
		if !e.ok {
			continue
		}
		used++
		latency[i] = e.ns
		issue[i] = e.ns - uint32(r.window(uint64(e.ns), in.Lane.At(i), in.Flags.At(i)))
	}
	if used > 0 {
		m.Note(components.NoteInlineAsm, "InlineASMBytes: latency_estimate is taken as the latency in ns (ours)", used)
	}
	if bad > 0 {
		m.Note(components.NoteInlineAsm, fmt.Sprintf("InlineASMBytes: a latency_estimate that is no number from 0 to %d is not used", uint32(math.MaxUint32)), bad)
	}
}
