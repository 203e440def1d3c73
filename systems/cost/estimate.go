package cost

import (
	"fmt"
	"math"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/ecs"
)

// inline is the latencies that the compiler wrote down for inline machine code.
type inline struct {
	known map[ecs.Symbol]estimate
	used  int // rows
	bad   int // texts with a latency that is none
}

type estimate struct {
	ns uint32
	ok bool
}

// fill gives inline machine code the latency that the compiler wrote down for it:
// the key latency_estimate of InlineASMBytes (docs/model.md, section 3; that it is
// the cost, and in ns, is ours). The documented table has no cost for the
// opcode, since only the instruction knows what its bytes do. It looks at as many
// rows as issue has.
func (x *inline) fill(r *reference, issue, latency []uint32) {
	m := r.m
	in := &m.Instr
	if in.Text.Len() == 0 {
		return
	}
	if x.known == nil {
		x.known = map[ecs.Symbol]estimate{}
	}
	for i, op := range in.Opcode.View(0, len(issue)) {
		if op != components.OpcodeInlineASMBytes {
			continue
		}
		s := in.Text.At(i)
		e, seen := x.known[s]
		if !seen {
			v, err := fastjson.ParseBytes(m.Symbols.Bytes(s))
			if err != nil || v.Get("latency_estimate") == nil {
				x.known[s] = e
				continue
			}
			if ns, err := v.Get("latency_estimate").Float64(); err == nil && ns >= 0 && ns <= math.MaxUint32 {
				e = estimate{uint32(math.Round(ns)), true}
			} else {
				x.bad++
			}
			x.known[s] = e
		}
		if !e.ok {
			continue
		}
		x.used++
		latency[i] = e.ns
		issue[i] = e.ns - uint32(r.window(uint64(e.ns), in.Lane.At(i), in.Flags.At(i)))
	}
}

// note counts the uses of such latencies.
func (x *inline) note(m *components.Module) {
	if x.used > 0 {
		m.Note(components.NoteInlineAsm, "InlineASMBytes: latency_estimate is taken as the latency in ns (ours)", x.used)
	}
	if x.bad > 0 {
		m.Note(components.NoteInlineAsm, fmt.Sprintf("InlineASMBytes: a latency_estimate that is no number from 0 to %d is not used", uint32(math.MaxUint32)), x.bad)
	}
}
