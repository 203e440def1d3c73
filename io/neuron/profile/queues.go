package profile

import (
	"bytes"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// maxQueues bounds the queue table, whose rows are 16-bit.
const maxQueues = 1<<16 - 2

// queueNames resolves the DMA queue of an instruction. The text of a DMA
// names the semaphore its queue raises; the instructions that wait for that
// semaphore name the queue. Where nothing waits, the queue is that of the
// issuing engine, by the runtime's naming: qSyncDynamicHW, qGpSimdDynamic.
type queueNames struct {
	owners map[ownerKey]ecs.Symbol
	rows   map[queueKey]uint16 // plus one
}

type ownerKey struct {
	core uint32
	sem  uint32
}

type queueKey struct {
	core uint16
	name ecs.Symbol
}

// queueTable fills the queue table from the file's own list and returns the
// resolver.
func (a *assembler) queueTable() *queueNames {
	q := &queueNames{owners: map[ownerKey]ecs.Symbol{}, rows: map[queueKey]uint16{}}
	for _, x := range a.queues {
		if x.name != 0 {
			q.add(a, x.core, ecs.Symbol(x.name))
		}
	}
	lo := uint32(0)
	for i := range a.rows {
		r := &a.rows[i]
		for _, s := range a.syncs[lo:r.syncEnd] {
			if owner := ecs.Symbol(s.owner); owner != 0 && s.op.IsWait() && s.space == 'S' && a.m.Symbols.Bytes(owner)[0] == 'q' {
				key := ownerKey{r.core, s.id}
				if q.owners[key] == 0 {
					q.owners[key] = owner
				}
			}
		}
		lo = r.syncEnd
	}
	return q
}

// add returns the row (plus one) of a queue, adding it where it is new; 0
// where the table is full.
func (q *queueNames) add(a *assembler, core uint32, name ecs.Symbol) uint16 {
	key := queueKey{a.coreNum[core], name}
	if at, ok := q.rows[key]; ok {
		return at
	}
	t := &a.m.Queues
	if t.Len() >= maxQueues {
		return 0
	}
	text := a.m.Symbols.String(name)
	engine := components.Unassigned
	for _, e := range []components.Engine{components.SP, components.Activation, components.Pool, components.DVE, components.PE} {
		if strings.HasPrefix(text, "q"+profilerName(e)) {
			engine = e
		}
	}
	if strings.HasPrefix(text, "qDve") {
		engine = components.DVE
	}
	t.Name.Append(name)
	t.Engine.Append(engine)
	t.Depth.Append(0)
	q.rows[key] = uint16(t.Len())
	return q.rows[key]
}

// of returns the queue (row plus one) of a DMA instruction and its name.
func (q *queueNames) of(a *assembler, r *row) (uint16, ecs.Symbol) {
	var name ecs.Symbol
	if r.queueSem > 0 {
		name = q.owners[ownerKey{r.core, r.queueSem - 1}]
	}
	if name == 0 {
		text := "q" + profilerName(r.engine) + "Dynamic"
		if r.flags&components.FlagHWDGE != 0 {
			text += "HW"
		}
		name = a.m.Symbols.InternString(text)
	}
	return q.add(a, r.core, name), name
}

// dgeFlags corrects, by the queue's name, what the issuing engine suggests
// about how descriptors are made: names of queues that the hardware
// descriptor generator feeds end in DynamicHW.
func dgeFlags(f components.Flags, queue []byte) components.Flags {
	const both = components.FlagHWDGE | components.FlagSWDGE
	switch {
	case bytes.HasSuffix(queue, []byte("DynamicHW")):
		return f&^both | components.FlagHWDGE
	case bytes.HasSuffix(queue, []byte("Dynamic")):
		return f&^both | components.FlagSWDGE
	}
	return f
}

// packetQueue is a queue as packets number it: by core, DMA engine and queue
// of the engine.
type packetQueue struct{ core, engine, queue uint32 }

// anyEngine stands for all DMA engines: dynamic queues are listed on one of
// those they spread over.
const anyEngine = ^uint32(0)

// packetQueues maps the queues of the packets to rows (plus one) of the queue
// table, by the file's list. A queue number that stands for several queues on
// different engines is known on the listed engines only.
func (a *assembler) packetQueues(rows map[queueKey]uint16) map[packetQueue]uint16 {
	out := map[packetQueue]uint16{}
	for _, x := range a.queues {
		row := rows[queueKey{a.coreNum[x.core], ecs.Symbol(x.name)}]
		out[packetQueue{x.core, x.engine, x.index}] = row
		all := packetQueue{x.core, anyEngine, x.index}
		if old, ok := out[all]; ok && old != row {
			row = 0
		}
		out[all] = row
	}
	return out
}

// queueOf returns the row (plus one) of a packet's queue, 0 for an unknown one.
func queueOf(queues map[packetQueue]uint16, p *packet) uint16 {
	if row, ok := queues[packetQueue{p.core, p.engine, p.queue}]; ok {
		return row
	}
	return queues[packetQueue{p.core, anyEngine, p.queue}]
}
