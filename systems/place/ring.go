package place

import (
	"perfsim/components"
	"perfsim/systems/cost"
)

// ring is one DMA queue of bounded depth: a trigger that finds it full waits
// until the oldest transfer in flight has reached its next dispatch. Depth 0 is unbounded.
type ring struct {
	depth  int
	flying [2][]uint64 // next dispatch of the transfers in flight, by run
	pushed int         // so far
}

// push enters a transfer whose trigger is ready at start, and returns when the
// trigger can start. next returns the next dispatch of the transfer from that.
func (r *ring) push(start pair, next func(pair) pair) pair {
	if r.depth == 0 {
		return start
	}
	r.pushed++
	for x := range start {
		if len(r.flying[x]) >= r.depth {
			start[x] = max(start[x], r.flying[x][0])
			r.flying[x] = r.flying[x][1:]
		}
	}
	at := next(start)
	for x := range start {
		r.flying[x] = append(r.flying[x], at[x])
	}
	return start
}

// HasTransfer reports whether the transfer of trigger i is in the row behind
// it.
func HasTransfer(m *components.Module, i uint32) bool {
	f := m.Instr.Flags.Slice()
	return int(i)+1 < len(f) && f[i+1]&components.FlagTransfer != 0
}

// dispatched is the next dispatch of the transfer of trigger i, which starts
// at start: that of its own row, which nothing but its trigger and its lane
// hold up, or of a transfer that has none.
func (k *kernel) dispatched(i uint32, start pair) pair {
	if !HasTransfer(k.m, i) {
		d := TransferIssue(k.m, &k.rules, i)
		return pair{start[0] + d, start[1] + d}
	}
	start = maxPair(start, k.free[k.m.Instr.Lane.At(int(i)+1)])
	d := uint64(k.m.Instr.Issue.At(int(i) + 1))
	return pair{start[0] + d, start[1] + d}
}

// ringOf returns the queue of trigger i as a key of its own and the depth of
// its ring: the instruction's own queue where it names one with a depth, else
// the queue class of the documented simulator. Depth 0 is unbounded.
func ringOf(m *components.Module, r *Rules, i uint32) (key uint16, depth int) {
	in := &m.Instr
	core := in.Lane.At(int(i)) / components.LanesPerCore
	if q := in.Queue.Get(int(i)); q > 0 && m.Queues.Depth.At(int(q-1)) > 0 {
		return 1<<14 + q, int(m.Queues.Depth.At(int(q - 1)))
	}
	class := queueClass(in.Flags.At(int(i)), in.Engine.At(int(i)))
	if class < len(r.Queues) {
		depth = int(r.Queues[class].Depth)
	}
	return core*uint16(numQueueClasses) + uint16(class), depth
}

// ring returns the queue of trigger i.
func (k *kernel) ring(i uint32) *ring {
	key, depth := ringOf(k.m, &k.rules, i)
	if k.rings == nil {
		k.rings = map[uint16]*ring{}
	}
	r := k.rings[key]
	if r == nil {
		r = &ring{depth: depth}
		k.rings[key] = r
	}
	return r
}

// numQueueClasses is the number of queue lanes of the documented simulator.
const numQueueClasses = 13

// queueClass chooses the queue lane of a transfer. The mapping of the
// documented simulator is not published; ours: transposing transfers are
// exclusive (lane 12), software-generated ones of Pool dynamic (lane 10),
// hardware-generated ones go by engine (0 to 3), the rest by direction.
func queueClass(flags components.Flags, engine components.Engine) int {
	switch {
	case flags&components.FlagTranspose != 0:
		return 12
	case flags&components.FlagSWDGE != 0 && engine == components.Pool:
		return 10
	case flags&components.FlagSWDGE != 0:
		return 4
	case flags&components.FlagHWDGE != 0:
		switch engine {
		case components.Activation:
			return 0
		case components.SP:
			return 1
		case components.Pool:
			return 3
		}
		return 2
	}
	class := 5
	if flags&components.FlagDstDRAM != 0 {
		class = 8
	}
	switch engine {
	case components.Activation:
		return class
	case components.SP:
		return class + 1
	}
	if class == 8 {
		return 11
	}
	return 7
}

// TransferIssue is how long the transfer that trigger i starts keeps its
// queue busy: the documented DMA cost less the overlap window.
func TransferIssue(m *components.Module, r *Rules, i uint32) uint64 {
	in := &m.Instr
	d := &r.DMA
	dur := uint64(d.ReadInit) + cost.DMAExec(d, uint64(in.Parts.At(int(i))), uint64(in.Elems.At(int(i))),
		uint64(in.DType.At(int(i)).Size()), in.DMABytes.Get(int(i)))
	if dur < uint64(r.OverlapDMA) {
		return dur
	}
	return dur - uint64(r.OverlapDMA)
}
