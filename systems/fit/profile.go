package fit

import (
	"math"
	"slices"
	"sort"

	"perfsim/components"
	"perfsim/systems/calibrated"
)

// profile is a measured module with what the fits ask for looked up once.
type profile struct {
	m     *components.Module
	order [][]uint32 // by sequencer: rows in program order
	seq   []seqKey
	of    []int // sequencer by row
	at    []int // place in order[of[row]] by row

	start, end []float64 // measured, by row
	updates    map[semKey][]update
	packets    map[uint16][]packet // by queue row (plus one)
	transfers  []transfer
	windows    []calibrated.Window // of core 0
}

type seqKey struct {
	core   uint16
	engine components.Engine
}

type semKey struct {
	core uint16
	id   uint32
}

type update struct {
	t     float64
	value int64
}

type packet struct {
	start, end float64
	engine     uint16
	bytes      uint32
}

// newProfile looks up a module. Only modules with measured times qualify.
func newProfile(m *components.Module) *profile {
	p := &profile{m: m, updates: map[semKey][]update{}, packets: map[uint16][]packet{}}
	n := m.Instr.Len()
	p.of, p.at = make([]int, n), make([]int, n)
	p.start, p.end = make([]float64, n), make([]float64, n)
	index := map[seqKey]int{}
	for i := range n {
		k := seqKey{m.Lanes.Core.At(int(m.Instr.Lane.At(i))), m.Instr.Engine.At(i)}
		s, ok := index[k]
		if !ok {
			s = len(p.seq)
			index[k] = s
			p.seq = append(p.seq, k)
			p.order = append(p.order, nil)
		}
		p.of[i], p.at[i] = s, len(p.order[s])
		p.order[s] = append(p.order[s], uint32(i))
		p.start[i] = float64(m.Instr.MeasuredStart.At(i))
		p.end[i] = p.start[i] + float64(m.Instr.MeasuredDur.At(i))
	}
	t := &m.SemUpdates
	for i := range t.Time.Len() {
		k := semKey{t.Core.At(i), t.ID.At(i)}
		p.updates[k] = append(p.updates[k], update{float64(t.Time.At(i)), t.Value.At(i)})
	}
	for _, u := range p.updates {
		slices.SortStableFunc(u, func(a, b update) int {
			switch {
			case a.t < b.t:
				return -1
			case a.t > b.t:
				return 1
			}
			return int(a.value - b.value)
		})
	}
	q := &m.Packets
	for i := range q.Start.Len() {
		k := q.Queue.At(i)
		s := float64(q.Start.At(i))
		p.packets[k] = append(p.packets[k], packet{s, s + float64(q.Dur.At(i)), q.Engine.At(i), q.Bytes.At(i)})
	}
	for i := range m.Windows.Start.Len() {
		if m.Windows.Core.At(i) == 0 && m.Windows.K.At(i) == m.Windows.N.At(i) {
			s := float64(m.Windows.Start.At(i))
			p.windows = append(p.windows, calibrated.Window{Start: s, End: s + float64(m.Windows.Dur.At(i))})
		}
	}
	slices.SortFunc(p.windows, func(a, b calibrated.Window) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	p.findTransfers()
	return p
}

// before returns the row before row i on its sequencer.
func (p *profile) before(i uint32) (uint32, bool) {
	if p.at[i] == 0 {
		return 0, false
	}
	return p.order[p.of[i]][p.at[i]-1], true
}

// waits calls f for every semaphore wait of row i.
func (p *profile) syncs(i uint32, f func(op components.SyncOp, space uint8, id uint32, value int64)) {
	t := &p.m.Syncs
	off := t.Offsets.Slice()
	if len(off) == 0 {
		return
	}
	for s := off[i]; s < off[i+1]; s++ {
		f(t.Op.At(int(s)), t.Space.At(int(s)), t.ID.At(int(s)), t.Value.At(int(s)))
	}
}

// satisfied returns when the last of row i's waits in the given space ('S' or
// '$') got its value before the row went on, NaN where that is not measured,
// and the number of waits.
func (p *profile) satisfied(i uint32, space uint8) (at float64, waits int) {
	at = math.Inf(-1)
	core := p.seq[p.of[i]].core
	p.syncs(i, func(op components.SyncOp, sp uint8, id uint32, value int64) {
		if !op.IsWait() || sp != space {
			return
		}
		waits++
		limit := p.start[i] + 5
		if space == '$' {
			limit = p.end[i]
		}
		t := math.NaN()
		for _, u := range p.updates[semKey{core, id}] {
			if u.t > limit {
				break
			}
			ok := u.value >= value
			if op == components.WaitEQ {
				ok = u.value == value
			}
			switch {
			case !ok:
				t = math.NaN()
			case math.IsNaN(t):
				t = u.t
			}
		}
		if math.IsNaN(t) || math.IsNaN(at) {
			at = math.NaN()
			return
		}
		at = max(at, t)
	})
	return at, waits
}

// raised returns when row i's raise of a semaphore in the given space showed,
// NaN where it is not measured: the first update within limit behind the
// row's end.
func (p *profile) raised(i uint32, in uint8, limit float64) float64 {
	core := p.seq[p.of[i]].core
	at := math.NaN()
	p.syncs(i, func(op components.SyncOp, space uint8, id uint32, _ int64) {
		if op != components.SetInc || space != in {
			return
		}
		u := p.updates[semKey{core, id}]
		k := sort.Search(len(u), func(k int) bool { return u[k].t >= p.end[i] })
		if k < len(u) && u[k].t <= p.end[i]+limit {
			at = u[k].t
		}
	})
	return at
}

// compiled reports whether row i is the compiler's rather than the runtime's.
func (p *profile) compiled(i uint32) bool {
	pc := p.m.Instr.CompilerPC
	return pc.Len() == 0 || pc.At(int(i)) > 0
}

// full reports whether the PE's clock is full from a to b, slow whether it is
// slow all the time.
func (p *profile) full(a, b float64) bool {
	for _, w := range p.windows {
		if w.Start <= a && b <= w.End {
			return true
		}
	}
	return false
}

func (p *profile) slow(a, b float64) bool {
	for _, w := range p.windows {
		if a < w.End && w.Start < b {
			return false
		}
	}
	return p.m.Windows.Start.Len() > 0
}

// transfer is a DMA with its packets.
type transfer struct {
	row      uint32
	soft     bool
	shape    calibrated.Transfer
	trigger  float64
	first    float64 // start of the first packet
	spread   float64 // to the start of the first packet on the last engine
	last     float64 // end of the last packet on the slowest engine
	previous float64 // end of what the engines did before, on the slowest; -Inf for nothing
	complete float64 // semaphore's last change; NaN where not measured
	data     map[uint16][]packet
	queue    uint16
}

// endPacket is the size of the write that ends a transfer on an engine.
const endPacket = 4

// findTransfers gives every DMA instruction its packets: on each DMA engine
// the packets of a queue come in the order of the triggers, and a transfer
// ends with a write of four bytes.
func (p *profile) findTransfers() {
	m := p.m
	rows := map[uint16][]uint32{}
	for i := range m.Instr.Len() {
		if _, ok := calibrated.TransferOf(m, uint32(i)); ok {
			rows[m.Instr.Queue.Get(i)] = append(rows[m.Instr.Queue.Get(i)], uint32(i))
		}
	}
	queues := make([]uint16, 0, len(rows))
	for q := range rows {
		queues = append(queues, q)
	}
	slices.Sort(queues)
	byEngine := map[uint16][]packet{} // all queues
	for _, list := range p.packets {
		for _, x := range list {
			byEngine[x.engine] = append(byEngine[x.engine], x)
		}
	}
	for _, list := range byEngine {
		sortPackets(list)
	}
	used := map[semKey]int{}
	for _, q := range queues {
		list := rows[q]
		slices.SortFunc(list, func(a, b uint32) int { return p.at[a] - p.at[b] })
		streams := map[uint16][]packet{}
		for _, x := range p.packets[q] {
			streams[x.engine] = append(streams[x.engine], x)
		}
		groups := map[uint16][][]packet{}
		for e, xs := range streams {
			sortPackets(xs)
			var cur []packet
			for _, x := range xs {
				cur = append(cur, x)
				if x.bytes == endPacket {
					groups[e] = append(groups[e], cur)
					cur = nil
				}
			}
		}
		for k, i := range list {
			t := transfer{row: i, trigger: p.start[i], first: math.Inf(1), last: math.Inf(-1), previous: math.Inf(-1), complete: math.NaN(),
				data: map[uint16][]packet{}, queue: q}
			t.shape, _ = calibrated.TransferOf(m, i)
			t.soft = m.Instr.Flags.At(int(i))&components.FlagSWDGE != 0
			lastStart := math.Inf(-1)
			for e, g := range groups {
				if k >= len(g) {
					continue
				}
				xs := g[k]
				t.data[e] = xs
				t.first = min(t.first, xs[0].start)
				lastStart = max(lastStart, xs[0].start)
				t.last = max(t.last, xs[len(xs)-1].end)
				all := byEngine[e]
				at := sort.Search(len(all), func(n int) bool { return all[n].start >= xs[0].start })
				if at > 0 {
					t.previous = max(t.previous, all[at-1].end)
				}
			}
			t.spread = lastStart - t.first
			p.completion(&t, used)
			p.transfers = append(p.transfers, t)
		}
	}
	slices.SortStableFunc(p.transfers, func(a, b transfer) int {
		switch {
		case a.trigger < b.trigger:
			return -1
		case a.trigger > b.trigger:
			return 1
		}
		return 0
	})
}

func sortPackets(x []packet) {
	slices.SortStableFunc(x, func(a, b packet) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return int(b.bytes) - int(a.bytes)
	})
}

// completion finds when the semaphore of a transfer had its final value: the
// semaphore counts up through all transfers that use it.
func (p *profile) completion(t *transfer, used map[semKey]int) {
	core := p.seq[p.of[t.row]].core
	p.syncs(t.row, func(op components.SyncOp, space uint8, id uint32, value int64) {
		if op != components.SetInc || space != 'S' || value <= 1 {
			return
		}
		k := semKey{core, id}
		nth := used[k]
		used[k]++
		// Changes that raise the value, in order; the runtime's clearing at
		// the end lowers it.
		var ups []float64
		var was int64
		for _, u := range p.updates[k] {
			if u.value > was {
				for range u.value - was {
					ups = append(ups, u.t)
				}
			}
			was = u.value
		}
		if at := (nth+1)*int(value) - 1; at < len(ups) {
			t.complete = ups[at]
		}
	})
}
