package cost

import (
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// collectives has, by the function of a collective ("all-reduce 8": what it
// does and the devices of a group), what its algorithm makes of the bytes
// that one device puts in.
type collectives map[ecs.Symbol]func(bytes float64) (wire float64, steps int64)

// The sizes at which the algorithm changes, in bytes put in by one device:
// mesh below the first, recursive doubling up to the second, ring above, as
// the vendor documents for collectives inside a node.
const (
	meshBelow = 1 << 20
	ringFrom  = 56 << 20
)

// algorithm returns what a collective of n devices moves and in how many
// steps, nil for a name that is not known. A device sends, for b bytes put
// in: an all-reduce 2(n−1)/n·b, a reduce-scatter and an all-to-all (n−1)/n·b,
// an all-gather (n−1)·b, a permute or broadcast b. A ring takes n−1 steps
// (all-reduce twice that), recursive doubling ⌈log2 n⌉ (twice), a mesh one
// (two).
func algorithm(kind string, n int64) func(bytes float64) (wire float64, steps int64) {
	if n <= 1 {
		return func(float64) (float64, int64) { return 0, 0 }
	}
	share := float64(n-1) / float64(n)
	factor, phases := 0.0, int64(1)
	switch kind {
	case "all-reduce", "collective-reduce":
		factor, phases = 2*share, 2
	case "reduce-scatter", "all-to-all", "ragged-all-to-all":
		factor = share
	case "all-gather":
		factor = float64(n - 1)
	case "collective-permute", "collective-broadcast", "send", "recv":
		return func(b float64) (float64, int64) { return b, 1 }
	default:
		return nil
	}
	return func(b float64) (float64, int64) {
		steps := n - 1
		switch {
		case b < meshBelow || kind == "all-to-all" || kind == "ragged-all-to-all":
			steps = 1
		case b < ringFrom:
			steps = 0
			for k := int64(1); k < n; k *= 2 {
				steps++
			}
		}
		return factor * b, steps * phases
	}
}

// findCollectives reads the functions of the module's collectives.
func findCollectives(m *components.Module) collectives {
	if m.Instr.Func.Len() == 0 {
		return nil
	}
	out := collectives{}
	for i, f := range m.Instr.Flags.Slice() {
		if f&components.FlagCollective == 0 {
			continue
		}
		s := m.Instr.Func.At(i)
		if _, ok := out[s]; ok || s == 0 {
			continue
		}
		kind, count, _ := strings.Cut(m.Symbols.String(s), " ")
		if n, err := strconv.ParseInt(count, 10, 64); err == nil && n >= 1 && n < 1<<31 {
			out[s] = algorithm(kind, n)
		} else {
			out[s] = nil
		}
	}
	return out
}

// collective is the latency of a collective in ns: a fixed part, its steps,
// and the bytes on the wire over the bandwidth. Without an algorithm that is
// known the bytes put in count as they are.
func (r *reference) collective(i int, c *machine.Cost, bytes uint64) uint64 {
	wire, steps := float64(bytes), int64(0)
	if a := r.collectives[r.m.Instr.Func.Get(i)]; a != nil && c.Hop > 0 {
		wire, steps = a(wire)
	}
	t := uint64(c.Base) + uint64(steps)*uint64(c.Hop)
	if c.Mult > 0 {
		t += uint64(wire / c.Mult)
	}
	return t
}
