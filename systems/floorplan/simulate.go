package floorplan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/machine/grid"
	"perfsim/io/tenstorrent/netlist"
	"perfsim/systems/place"
)

// Cost describes a chip to the simulation of an epoch, in cycles of a core
// where nothing else is said.
type Cost struct {
	ClockMHz float64
	Matmul   map[string]float64 // one 32 x 32 x 32 tile product, by fidelity
	// TileByte is the time to unpack one byte of an input.
	TileByte float64
	// Sparse is the tile products for one output tile of a sparse identity
	// matmul, whatever its inner size: the rows that it selects straddle two
	// tiles.
	Sparse float64
	// Operator is spent by each operator on each sample besides its tiles.
	Operator float64
	// Channel and Host are the rates of one DRAM channel and of the host link
	// in bytes a ns.
	Channel, Host float64
	// Epoch is the time to change epochs, ns, without loading weights.
	Epoch float64
}

// CostOf takes the figures from the description of a machine.
func CostOf(m *grid.Machine) Cost {
	c := Cost{ClockMHz: m.ClockMHz, Matmul: map[string]float64{}, TileByte: 1 / m.Memory.L1Rate, Sparse: m.Matrix.WindowTiles, Operator: m.Overheads.Operator,
		Channel: m.Memory.Channel, Host: m.Memory.HostRate, Epoch: m.Overheads.Epoch}
	const macs = 32 * 32 * 32
	for f, passes := range m.Fidelity {
		c.Matmul[f] = macs / m.Matrix.MACs * passes
	}
	return c
}

// SimOptions says how an epoch is simulated.
type SimOptions struct {
	Inputs int // samples through the epoch; 0 means the graph's input_count, at most 64
	Cost   Cost
	Jobs   int
}

const (
	defaultInputs = 64
	maxRows       = 4_000_000
)

// OpResult is one operator in a simulated epoch.
type OpResult struct {
	Name       string
	Type       string
	Device     int
	Cores      int
	Blocks     int    // macro blocks it made
	Busy       uint64 // ns
	Start, End uint64 // ns, of the first and last block
}

// SimResult is a simulated epoch. Run A has the buffers that the netlist gives,
// run B endless ones: the difference is the cost of waiting for buffer space.
type SimResult struct {
	Epoch   int
	Inputs  int
	Latency [2]uint64 // ns until the last sample has left
	// PerSample is the time between samples in the steady state, ns.
	PerSample float64
	FirstOut  uint64 // ns until the first sample has left
	Ops       []OpResult
	// Bottleneck is the operator or channel that is busy longest.
	Bottleneck string
	BusyShare  float64 // of the bottleneck
	// CoreShare is the share of cores times time spent in blocks.
	CoreShare float64
	// Relaxed counts waits for buffer space that were dropped because the
	// netlist would stand still with them: it relies on buffers that the
	// simulation does not have.
	Relaxed int
	World   *components.World
}

// simOp is an operator while rows are made.
type simOp struct {
	op        *netlist.Op
	dev       int
	lane      uint16
	cores     int
	blocks    int // macro blocks of a sample
	issue     uint32
	producers []int
	consumers []int
	queues    []*netlist.Queue // read for every sample
	outs      []*netlist.Queue
	preload   []components.InstrID
	reads     [][]components.InstrID // by sample
	rows      []components.InstrID   // by block
}

// need gives the producer's block without which block k of a consumer cannot
// start: both make their samples in equal steps.
func need(k, consumer, producer int) int {
	s, j := k/consumer, k%consumer
	return s*producer + ((j+1)*producer+consumer-1)/consumer - 1
}

// release gives the consumer's block after which block q of a producer is no
// longer used.
func release(q, producer, consumer int) int {
	s, j := q/producer, q%producer
	return s*consumer + j*consumer/producer
}

// Simulate runs one epoch: operators are lanes, their macro blocks are
// instructions in order, a block waits for the blocks it reads (flow) and
// for room in its output buffer (anti-dependency: buf_size_mb macro blocks).
// Queues in DRAM are read and written by lanes of the channels.
func Simulate(ctx context.Context, n *netlist.Netlist, r *Report, index int, o SimOptions) (*SimResult, error) {
	var ep *Epoch
	for i := range r.Epochs {
		if r.Epochs[i].Index == index {
			ep = &r.Epochs[i]
		}
	}
	if ep == nil || len(ep.Chips) == 0 {
		return nil, fmt.Errorf("epoch %d has no operator", index)
	}
	if !(o.Cost.ClockMHz > 0 && o.Cost.Channel > 0 && o.Cost.Host > 0) {
		return nil, errors.New("the machine has no clock, memory channel or host link")
	}
	m := components.NewModule(fmt.Sprintf("epoch_%d", index), "netlist")
	b := &simBuilder{n: n, m: m, cost: o.Cost, opcode: map[string]components.Opcode{}, channel: map[[2]int]uint16{}}
	samples := o.Inputs
	byName := map[string]int{}
	for c := range ep.Chips {
		chip := &ep.Chips[c]
		for k := range chip.Ops {
			p := &chip.Ops[k]
			if samples <= 0 || o.Inputs <= 0 && p.Graph.InputCount > 0 {
				samples = max(samples, min(max(p.Graph.InputCount, 1), defaultInputs))
			}
			if _, dup := byName[p.Op.Name]; !dup {
				byName[p.Op.Name] = len(b.ops)
			}
			b.ops = append(b.ops, simOp{op: p.Op, dev: chip.Device, cores: p.Rows * p.Cols, blocks: p.Op.Shape.T, issue: b.blockTime(p.Op)})
		}
	}
	if len(b.ops) > 1<<15 {
		return nil, fmt.Errorf("epoch %d has %d operators, more than a simulation has lanes", index, len(b.ops))
	}
	total := 0
	for i := range b.ops {
		total += b.ops[i].blocks
	}
	samples = max(1, min(samples, maxRows/max(total, 1)))
	b.samples = samples
	for i := range b.ops {
		s := &b.ops[i]
		s.lane = m.Lanes.Add(m.Symbols.InternString(s.op.Name), components.Unassigned, components.LaneOperator, uint16(min(s.dev, math.MaxUint16)))
		for _, in := range s.op.Inputs {
			if p, ok := byName[in]; ok && p != i {
				s.producers = append(s.producers, p)
				b.ops[p].consumers = append(b.ops[p].consumers, i)
			} else if q, ok := n.QueueByName(in); ok {
				s.queues = append(s.queues, q)
			}
		}
		s.rows = make([]components.InstrID, 0, s.blocks*samples)
		s.reads = make([][]components.InstrID, samples)
	}
	for i := range n.Queues {
		if p, ok := byName[n.Queues[i].Input]; ok {
			b.ops[p].outs = append(b.ops[p].outs, &n.Queues[i])
		}
	}
	b.run()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := b.finish(o.Jobs)
	if err != nil {
		return nil, err
	}
	if err := place.RunRules(ctx, w, place.Rules{}); err != nil {
		return nil, err
	}
	return b.result(w, ep), nil
}

// simBuilder makes the module of an epoch.
type simBuilder struct {
	n       *netlist.Netlist
	m       *components.Module
	cost    Cost
	ops     []simOp
	samples int
	opcode  map[string]components.Opcode
	channel map[[2]int]uint16 // device and channel (-1 for the host) -> lane
	lanes   []uint16          // of each row
	codes   []components.Opcode
	time    []uint32
	edges   components.EdgeSet
	relaxed int
	sample  [][]components.InstrID // rows that end a sample
}

// blockTime is the time of one macro block of an operator, in ns: a matmul by
// its products, everything else by the bytes that it unpacks.
func (b *simBuilder) blockTime(o *netlist.Op) uint32 {
	tiles := float64(o.Shape.MBlock.Cells()) * float64(o.Shape.UBlock.Cells())
	var cycles float64
	switch o.Type {
	case "matmul", "depthwise":
		per, ok := b.cost.Matmul[o.Fidelity]
		if !ok {
			for _, v := range b.cost.Matmul { // unknown: the slowest
				per = max(per, v)
			}
		}
		inner := float64(max(o.MK, 1)) * float64(max(o.UKT, 1))
		if o.Identity && b.cost.Sparse > 0 {
			inner = min(inner, b.cost.Sparse)
		}
		cycles = tiles * inner * per
	default:
		bytes := 0.0
		for i := range max(1, len(o.Inputs)) {
			size := int64(2080)
			if i < len(o.InFormats) {
				if n, ok := netlist.TileBytes(o.InFormats[i]); ok {
					size = n
				}
			}
			bytes += float64(size)
		}
		if o.Type == "fused_op" { // each step of the recipe unpacks again
			for i := range b.n.FusedOps {
				if b.n.FusedOps[i].Name == o.Kind {
					bytes *= float64(max(1, len(b.n.FusedOps[i].Ops))) / float64(max(1, len(o.Inputs)))
				}
			}
		}
		cycles = tiles * bytes * b.cost.TileByte
	}
	cycles += b.cost.Operator / float64(max(o.Shape.T, 1))
	return clampNS(cycles * 1000 / b.cost.ClockMHz)
}

func clampNS(ns float64) uint32 { return uint32(min(max(math.Round(ns), 1), math.MaxUint32)) }

func (b *simBuilder) row(lane uint16, kind string, ns uint32) components.InstrID {
	op, ok := b.opcode[kind]
	if !ok {
		op = b.m.Opcode(kind)
		b.opcode[kind] = op
	}
	b.lanes, b.codes, b.time = append(b.lanes, lane), append(b.codes, op), append(b.time, ns)
	return components.InstrID(len(b.lanes) - 1)
}

// transfer moves a queue's entry of one sample (or all entries, for a RAM):
// a row on each channel that has buffers of it.
func (b *simBuilder) transfer(q *netlist.Queue, kind string, whole bool) []components.InstrID {
	tile, ok := netlist.TileBytes(q.Format)
	if !ok {
		return nil
	}
	bytes := float64(q.Shape.Tiles()) * float64(tile)
	if whole {
		bytes *= float64(max(q.Entries, 1))
	}
	perChannel := map[int]int{}
	var order []int
	for _, a := range q.Buffers {
		ch := a.Channel
		if q.Loc == "host" {
			ch = -1
		}
		if perChannel[ch] == 0 {
			order = append(order, ch)
		}
		perChannel[ch]++
	}
	var rows []components.InstrID
	for _, ch := range order {
		rate, name := b.cost.Channel, fmt.Sprintf("dram%d", ch)
		if ch < 0 {
			rate, name = b.cost.Host, "host"
		}
		key := [2]int{q.Device, ch}
		lane, ok := b.channel[key]
		if !ok {
			lane = b.m.Lanes.Add(b.m.Symbols.InternString(fmt.Sprintf("chip%d.%s", q.Device, name)), components.DMA, components.LaneDMAQueue, uint16(min(q.Device, math.MaxUint16)))
			b.channel[key] = lane
		}
		rows = append(rows, b.row(lane, kind, clampNS(bytes*float64(perChannel[ch])/rate)))
	}
	return rows
}

// run makes the rows in an order that every wait respects: round after round,
// each operator takes one block further where it can.
func (b *simBuilder) run() {
	loaded := map[*netlist.Queue][]components.InstrID{}
	for i := range b.ops {
		s := &b.ops[i]
		stream := s.queues[:0]
		for _, q := range s.queues {
			if q.Type != "ram" {
				stream = append(stream, q)
				continue
			}
			rows, ok := loaded[q]
			if !ok {
				rows = b.transfer(q, "load", true)
				loaded[q] = rows
			}
			s.preload = append(s.preload, rows...)
		}
		s.queues = stream
	}
	b.sample = make([][]components.InstrID, b.samples)
	left := 0
	for i := range b.ops {
		left += b.ops[i].blocks * b.samples
	}
	drop := map[[2]int]bool{} // producer, consumer: no wait for room
	for left > 0 {
		moved := 0
		for i := range b.ops {
			s := &b.ops[i]
			k := len(s.rows)
			if k == s.blocks*b.samples || !b.ready(i, k, drop) {
				continue
			}
			b.step(i, k, drop)
			moved++
		}
		left -= moved
		if moved == 0 && !b.relax(drop) {
			return // a ring of operators; none of it can start
		}
	}
}

// ready reports whether block k of operator i has its inputs and room.
func (b *simBuilder) ready(i, k int, drop map[[2]int]bool) bool {
	s := &b.ops[i]
	for _, p := range s.producers {
		if len(b.ops[p].rows) <= need(k, s.blocks, b.ops[p].blocks) {
			return false
		}
	}
	for _, c := range s.consumers {
		if drop[[2]int{i, c}] {
			continue
		}
		if q := k - b.room(i, c); q >= 0 && len(b.ops[c].rows) <= release(q, s.blocks, b.ops[c].blocks) {
			return false
		}
	}
	return true
}

// room is the number of macro blocks that the buffer between two operators
// holds: at least what the consumer needs at once.
func (b *simBuilder) room(producer, consumer int) int {
	p, c := &b.ops[producer], &b.ops[consumer]
	return max(p.op.BufMB, 1, (p.blocks+c.blocks-1)/c.blocks)
}

func (b *simBuilder) step(i, k int, drop map[[2]int]bool) {
	s := &b.ops[i]
	sample := k / s.blocks
	if k%s.blocks == 0 {
		for _, q := range s.queues {
			for _, row := range b.transfer(q, "read", false) {
				s.reads[sample] = append(s.reads[sample], row)
				// Two samples fit the input buffer.
				if sample >= 2 {
					b.edges.Add(row, s.rows[(sample-1)*s.blocks-1], components.Anti)
				}
			}
		}
	}
	row := b.row(s.lane, s.op.Type, s.issue)
	for _, p := range s.producers {
		b.edges.Add(row, b.ops[p].rows[need(k, s.blocks, b.ops[p].blocks)], components.Flow)
	}
	for _, r := range s.reads[sample] {
		b.edges.Add(row, r, components.Flow)
	}
	if k == 0 {
		for _, r := range s.preload {
			b.edges.Add(row, r, components.Flow)
		}
	}
	for _, c := range s.consumers {
		if q := k - b.room(i, c); q >= 0 && !drop[[2]int{i, c}] {
			b.edges.Add(row, b.ops[c].rows[release(q, s.blocks, b.ops[c].blocks)], components.Anti)
		}
	}
	s.rows = append(s.rows, row)
	if k%s.blocks == s.blocks-1 {
		last := row
		for _, q := range s.outs {
			for _, w := range b.transfer(q, "write", false) {
				b.edges.Add(w, row, components.Flow)
				last = w
				b.sample[sample] = append(b.sample[sample], w)
			}
		}
		if len(s.consumers) == 0 {
			b.sample[sample] = append(b.sample[sample], last)
		}
	}
}

// relax drops the wait for room of the first operator that has its inputs.
func (b *simBuilder) relax(drop map[[2]int]bool) bool {
	for i := range b.ops {
		s := &b.ops[i]
		k := len(s.rows)
		if k == s.blocks*b.samples {
			continue
		}
		fed := true
		for _, p := range s.producers {
			fed = fed && len(b.ops[p].rows) > need(k, s.blocks, b.ops[p].blocks)
		}
		if !fed {
			continue
		}
		for _, c := range s.consumers {
			key := [2]int{i, c}
			if q := k - b.room(i, c); q >= 0 && !drop[key] && len(b.ops[c].rows) <= release(q, s.blocks, b.ops[c].blocks) {
				drop[key] = true
				b.relaxed++
				return true
			}
		}
	}
	return false
}

// finish makes the module's tables.
func (b *simBuilder) finish(jobs int) (*components.World, error) {
	m := b.m
	n := len(b.lanes)
	m.Instr.Grow(n)
	copy(m.Instr.Lane.Slice(), b.lanes)
	copy(m.Instr.Opcode.Slice(), b.codes)
	for i, l := range b.lanes {
		m.Instr.Engine.Set(i, m.Lanes.Engine.At(int(l)))
	}
	copy(m.Instr.Issue.Resize(n), b.time)
	copy(m.Instr.Latency.Resize(n), b.time)
	f := m.Functions.Add(m.Symbols.InternString(m.Name), 0)
	blk := m.Blocks.Add(m.Symbols.InternString("samples"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(blk, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&b.edges); err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	w := &components.World{Module: m, Machine: &machine.Machine{Name: "netlist"}, Events: components.NewEvents()}
	w.Config = components.Config{Model: components.Replay, Jobs: max(jobs, 1), Loops: components.Once}
	return w, nil
}

func (b *simBuilder) result(w *components.World, ep *Epoch) *SimResult {
	r := &SimResult{Epoch: ep.Index, Inputs: b.samples, Relaxed: b.relaxed, World: w}
	r.Latency = w.Blocks[0].Latency
	span := func(i components.InstrID) (uint64, uint64) { return w.Events.Span(b.m, i, components.RunA) }
	var coreTime float64
	longest := uint64(0)
	for i := range b.ops {
		s := &b.ops[i]
		o := OpResult{Name: s.op.Name, Type: s.op.Type, Device: s.dev, Cores: s.cores, Blocks: len(s.rows)}
		o.Busy = uint64(s.issue) * uint64(len(s.rows))
		if len(s.rows) > 0 {
			o.Start, _ = span(s.rows[0])
			_, o.End = span(s.rows[len(s.rows)-1])
		}
		coreTime += float64(o.Busy) * float64(s.cores)
		if o.Busy > longest {
			longest, r.Bottleneck = o.Busy, o.Name
		}
		r.Ops = append(r.Ops, o)
	}
	busy := map[uint16]uint64{}
	for i, l := range b.lanes {
		busy[l] += uint64(b.time[i])
	}
	channels := make([]uint16, 0, len(b.channel))
	for _, lane := range b.channel {
		channels = append(channels, lane)
	}
	slices.Sort(channels)
	for _, lane := range channels {
		if busy[lane] > longest {
			longest, r.Bottleneck = busy[lane], b.m.LaneName(lane)
		}
	}
	if l := r.Latency[components.RunA]; l > 0 {
		r.BusyShare = float64(longest) / float64(l)
		r.CoreShare = coreTime / (float64(l) * float64(ep.Capacity()))
	}
	ends := make([]uint64, 0, b.samples)
	for _, rows := range b.sample {
		end := uint64(0)
		for _, row := range rows {
			_, e := span(row)
			end = max(end, e)
		}
		if len(rows) > 0 {
			ends = append(ends, end)
		}
	}
	if n := len(ends); n > 0 {
		r.FirstOut = ends[0]
		if n > 1 {
			// The second half, when the pipeline is full.
			h := n / 2
			r.PerSample = float64(ends[n-1]-ends[h-1]) / float64(n-h)
		}
	}
	slices.SortStableFunc(r.Ops, func(x, y OpResult) int { return cmp.Compare(y.Busy, x.Busy) })
	return r
}
