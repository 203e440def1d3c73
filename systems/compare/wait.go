package compare

import (
	"cmp"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Wait is the time in which an engine stands still before its next
// instruction, by what that waited for: the producer that ended last, of
// those that the instruction and the semaphore waits before it depend on.
type Wait struct {
	Engine string `json:"engine"`         // engine that stands still
	For    string `json:"for"`            // engine of the producer, DMA for a transfer; "" where the input has none
	Kind   string `json:"kind,omitempty"` // kind of the dependency that it waits for
	Two           // weighted by the executions of the waiting instruction
}

// waits compares the waiting time by engine and cause.
func (r *Report) waits(a, b *Side) {
	type cause struct{ engine, for_, kind string }
	sums := map[cause]*Two{}
	for n, s := range []*Side{a, b} {
		s.eachWait(func(i, q int, kind components.EdgeKind, ns float64) {
			c := cause{engine: engine(s.Module, i)}
			if q >= 0 {
				c.kind = kind.Key()
				if c.for_ = engine(s.Module, q); s.isDMA(q) {
					c.for_ = components.DMA.String()
				}
			}
			t := sums[c]
			if t == nil {
				t = &Two{}
				sums[c] = t
			}
			if n == 0 {
				t.A += ns * s.weight(i)
			} else {
				t.B += ns * s.weight(i)
			}
		})
	}
	for c, t := range sums {
		r.Waits = append(r.Waits, Wait{Engine: c.engine, For: c.for_, Kind: c.kind, Two: two(t.A, t.B)})
	}
	slices.SortFunc(r.Waits, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(math.Abs(y.B-y.A), math.Abs(x.B-x.A)), cmp.Compare(y.A, x.A), cmp.Compare(x.Engine, y.Engine), cmp.Compare(x.For, y.For), cmp.Compare(x.Kind, y.Kind))
	})
}

// eachWait calls f with every instruction that starts later than its engine
// was free, what it waited for (q is -1 where that is not known) and the time.
// The events of a loop's body are those of one iteration: from another block
// into a body, or out of it, no time is counted.
func (s *Side) eachWait(f func(i, q int, kind components.EdgeKind, ns float64)) {
	m := s.Module
	waits := m.WaitOpcodes()
	block := innermost(m)
	rows := byEngine(s)
	for _, e := range sortedKeys(rows, nil) {
		list := rows[e]
		slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(s.Start[x], s.Start[y]) })
		free := math.Inf(-1)
		last := -1
		var pending []int // semaphore waits before the instruction
		for _, i := range list {
			pending = append(pending, i)
			if waits[m.Instr.Opcode.At(i)] {
				continue
			}
			if gap := s.Start[i] - free; gap > 0 && last >= 0 && (block == nil || block[i] == block[last]) {
				q, kind := s.producer(pending)
				f(i, q, kind, gap)
			}
			free = max(free, s.End[i])
			last = i
			pending = pending[:0]
		}
	}
}

// innermost returns the block of every row, the innermost one where loops nest;
// nil for a module without loops.
func innermost(m *components.Module) []int32 {
	t := &m.Blocks
	if !slices.ContainsFunc(t.Parent.Slice(), func(p uint32) bool { return p != 0 }) {
		return nil
	}
	out := make([]int32, m.Instr.Len())
	for b := range t.Len() { // inner blocks follow their loops
		for i := t.First.At(b); i < t.End.At(b); i++ {
			out[i] = int32(b)
		}
	}
	return out
}

// signalling bounds the time in ns from the end of an instruction to the start
// of what waits for it alone.
const signalling = 100

// producer returns which of the rows that these depend on ends last, -1 where
// there is none. When a transfer ends is not known where an input has its
// trigger only: it is then the last one if nothing else ended just before.
func (s *Side) producer(rows []int) (q int, kind components.EdgeKind) {
	m := s.Module
	q, transfer := -1, -1
	var transferKind components.EdgeKind
	start := math.Inf(-1)
	for _, i := range rows {
		start = max(start, s.Start[i])
		for _, x := range m.Edges.Preds.Row(i) {
			p := int(x & ecs.TargetMask)
			k := components.KindOfClass(uint8(x >> ecs.ClassShift))
			switch {
			case !s.has(p) || slices.Contains(rows, p):
			case s.openTransfer(p):
				if transfer < 0 || s.Start[p] > s.Start[transfer] {
					transfer, transferKind = p, k
				}
			case q < 0 || s.End[p] > s.End[q]:
				q, kind = p, k
			}
		}
	}
	if transfer >= 0 && (q < 0 || start-s.End[q] > signalling) {
		return transfer, transferKind
	}
	return q, kind
}

// openTransfer reports whether row i is the trigger of a transfer whose end is
// not among the events.
func (s *Side) openTransfer(i int) bool {
	return s.isDMA(i) && s.Module.Lanes.Engine.At(int(s.Module.Instr.Lane.At(i))) != components.DMA
}

// isDMA reports whether row i moves data by DMA.
func (s *Side) isDMA(i int) bool {
	in := &s.Module.Instr
	return in.Flags.At(i)&(components.FlagHWDGE|components.FlagSWDGE) != 0 || in.Opcode.At(i).IsDMA()
}
