package chakra

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/timeline"
)

// nodeType is the type of a node: ChakraNodeType of et_def.proto.
type nodeType uint64

const (
	typeInvalid nodeType = iota
	typeMetadata
	typeMemLoad
	typeMemStore
	typeComp
	typeSend
	typeRecv
	typeColl
)

// collectiveNames are the collectives by number: CollectiveCommType.
var collectiveNames = []string{"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER",
	"REDUCE_SCATTER_BLOCK", "BARRIER"}

// node is one node of a graph.
type node struct {
	id         uint64
	offset     int64 // of its first byte in the input
	name       ecs.Symbol
	kind       nodeType
	lane       string
	opcode     string
	op         string // what goes to the column HLO
	dur        uint64 // ns, 0 for none given
	bytes      uint64 // communicated, or moved by an operator that is sized
	work       uint64 // arithmetic operations of an operator that is sized
	dtype      components.DType
	sized      bool       // work and bytes give its duration where it has none
	scope      ecs.Symbol // the operators it was called by, and itself
	noWork     bool       // takes no time of its own
	data, ctrl span
	anti, out  span
}

// span is a range of the graph's ids.
type span struct{ lo, hi int }

// graph collects nodes.
type graph struct {
	b     *timeline.Builder
	nodes []node
	rule  string   // what gives the work of sized nodes, for the note
	ids   []uint64 // of dependencies; nodes have ranges of it
	row   map[uint64]int
}

// list appends ids of dependencies.
func (g *graph) list(ids []uint64) span {
	lo := len(g.ids)
	g.ids = append(g.ids, ids...)
	return span{lo, len(g.ids)}
}

// The durations that ASTRA-sim and we give where the input has none: 1 ns.
const noDuration = 1

// guessBase and guessRate order communications whose duration only the
// machine tells: 8 µs and 100 bytes per ns, as the embedded machines have.
// They do not enter the result otherwise.
const (
	guessBase = 8000
	guessRate = 100
	// The same for work: operations and bytes of memory per ns.
	guessWork   = 75_000
	guessMemory = 350
	// What one row may stand for: seconds of any machine, below 2^32 ns.
	mostWork  = 90_000_000_000_000
	mostBytes = 400_000_000_000
)

// module lists the nodes in the order of their ids and links them.
func (g *graph) module() (*components.Module, error) {
	if len(g.nodes) == 0 {
		return nil, errors.New("the trace has no nodes")
	}
	b := g.b
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(g.nodes[x].id, g.nodes[y].id) })
	lanes := map[string]uint16{}
	var none, sized, huge, estimated, timed int
	place := make([]int, len(g.nodes)) // rows of nodes
	for r, i := range order {
		n := &g.nodes[i]
		if r > 0 {
			if before := &g.nodes[order[r-1]]; before.id == n.id {
				return nil, fmt.Errorf("byte %d: node id %d was at byte %d already", n.offset, n.id, before.offset)
			}
		}
		g.row[n.id], place[i] = r, r
		lane, ok := lanes[n.lane]
		if !ok {
			var err error
			if lane, err = b.Lane(n.lane); err != nil {
				return nil, err
			}
			lanes[n.lane] = lane
		}
		x := timeline.Row{End: n.dur, Name: n.name, Ref: n.id, Lane: lane, Opcode: b.M.Opcode(n.opcode), Engine: engineOf(n)}
		x.DType = components.NoDType
		if n.kind >= typeSend {
			x.Bytes = n.bytes
		}
		if n.op != "" {
			x.Op = b.M.Symbols.InternString(n.op)
		}
		x.Scope = n.scope
		if n.kind >= typeSend {
			x.Flags |= components.FlagCollective
		}
		switch {
		case n.dur > 0 || n.noWork:
		case n.sized && n.kind < typeSend:
			x.Flags |= components.FlagEstimated
			x.Work, x.Bytes, x.DType = min(n.work, mostWork), min(n.bytes, mostBytes), n.dtype
			if x.Work < n.work || x.Bytes < n.bytes {
				huge++
			}
			x.End, x.Guess = noDuration, max(n.work/guessWork, n.bytes/guessMemory, noDuration)
			sized++
		case n.bytes > 0 && n.kind >= typeSend && n.kind != typeRecv:
			x.Flags |= components.FlagEstimated
			x.End, x.Guess = noDuration, guessBase+n.bytes/guessRate
			estimated++
		default:
			x.End = noDuration
			none++
		}
		if n.dur > 0 {
			timed++
		}
		b.Add(x)
	}
	if err := g.link(place); err != nil {
		return nil, err
	}
	if huge > 0 {
		b.M.Note("huge-work", "nodes with more work than one instruction can last: counted as 9e13 operations or 4e11 bytes", huge)
	}
	g.noteDurations(none, sized, none > 0 && sized+estimated+timed == 0)
	if estimated > 0 {
		b.M.Note(components.NoteEstimatedTransfers, "communications without a duration: the machine's latency and rate for collectives and their bytes are used", estimated)
	}
	m, err := b.Listed()
	var cycle *timeline.CycleError
	if errors.As(err, &cycle) {
		text := g.cycleText(order, cycle)
		// Feeders ignore control dependencies; of each cycle one is left out, the
		// one that points forward furthest.
		n := 0
		for ; n < mostCycles && errors.As(err, &cycle) && b.DropOne(cycle, components.Ordered); n++ {
			m, err = b.Listed()
		}
		if errors.As(err, &cycle) { // too many to take one by one
			n += b.DropCycles(components.Ordered)
			m, err = b.Listed()
		}
		if n > 0 {
			if err == nil {
				m.Note("control-cycle", "control dependencies that close a cycle: left out; one: "+text, n)
			}
		}
		if errors.As(err, &cycle) {
			return nil, fmt.Errorf("%s", g.cycleText(order, cycle))
		}
	}
	return m, err
}

// mostCycles bounds the cycles from which one dependency each is taken.
const mostCycles = 64

// noteDurations says which nodes have no duration, and what gives one instead;
// nothing says that no node has either.
func (g *graph) noteDurations(none, sized int, nothing bool) {
	m := g.b.M
	switch {
	case nothing:
		m.Note(components.NoteNoLatency, "no node has a duration or a size to derive one from: only the order is shown", none)
	case none > 0:
		m.Note(components.NoteNoDurations, fmt.Sprintf("%d of %d nodes have no duration and no size, and count 1 ns each: the latency says nothing about them", none, len(g.nodes)), none)
	}
	if sized > 0 {
		m.Note(components.NoteRoofline, fmt.Sprintf("%d of %d nodes have no duration: they take at least what %s need by the machine's roofline", sized, len(g.nodes), g.rule), sized)
	}
}

// link adds the dependencies; those on ids that no node has are counted.
func (g *graph) link(place []int) error {
	for _, c := range []struct {
		of   func(n *node) span
		kind components.EdgeKind
		what string
	}{
		{func(n *node) span { return n.data }, components.Flow, "data"},
		{func(n *node) span { return n.ctrl }, components.Ordered, "control"},
		{func(n *node) span { return n.anti }, components.Anti, "anti"},
		{func(n *node) span { return n.out }, components.Output, "output"},
	} {
		missing, own, first := 0, 0, ""
		for i := range g.nodes {
			n := &g.nodes[i]
			s := c.of(n)
			for _, id := range g.ids[s.lo:s.hi] {
				to, ok := g.row[id]
				if !ok {
					if missing++; first == "" {
						first = fmt.Sprintf("node %d at byte %d depends on node %d", n.id, n.offset, id)
					}
					continue
				}
				if to == place[i] {
					if c.kind == components.Ordered {
						own++ // a root that is its own parent
						continue
					}
					return fmt.Errorf("byte %d: node %d depends on itself", n.offset, n.id)
				}
				g.b.Depend(place[i], to, c.kind)
			}
		}
		if own > 0 {
			g.b.M.Note("own-parent", "nodes that name themselves as what they depend on for control: roots", own)
		}
		if missing > 0 {
			g.b.M.Note("unresolved-"+c.what+"-dependency", c.what+" dependencies on nodes that the input does not have: taken as fulfilled; the first: "+first, missing)
		}
	}
	return nil
}

// cycleText names at most eight nodes of a cycle.
func (g *graph) cycleText(order []int, c *timeline.CycleError) string {
	const most = 8
	var b strings.Builder
	b.WriteString("dependency cycle: ")
	for i, r := range c.Rows {
		n := &g.nodes[order[r]]
		if i == most {
			fmt.Fprintf(&b, "… (%d nodes) -> ", len(c.Rows))
			break
		}
		fmt.Fprintf(&b, "node %d (byte %d) -> ", n.id, n.offset)
	}
	fmt.Fprintf(&b, "node %d", g.nodes[order[c.Rows[0]]].id)
	return b.String()
}

// engineOf is the kind of unit a node keeps busy.
func engineOf(n *node) components.Engine {
	switch {
	case n.kind >= typeSend:
		return components.Pool
	case n.kind == typeMemLoad || n.kind == typeMemStore:
		return components.DMA
	case n.lane == laneCompute:
		return components.DVE
	}
	return components.Unassigned
}

// The lanes of a rank: what ASTRA-sim lets run at the same time, one CPU
// operation, one compute and one communication of the device; receiving is
// exempt from the limit there and has a lane here.
const (
	laneCPU     = "cpu"
	laneCompute = "compute"
	laneComm    = "comm"
	laneRecv    = "receive"
	laneMemory  = "memory"
)

func laneOf(kind nodeType, cpu bool) string {
	switch {
	case cpu || kind == typeMetadata || kind == typeInvalid:
		return laneCPU
	case kind == typeRecv:
		return laneRecv
	case kind >= typeSend:
		return laneComm
	case kind == typeMemLoad || kind == typeMemStore:
		return laneMemory
	}
	return laneCompute
}

// opcodeOf is what reports group nodes by: the operator's name without the
// number and the arguments that follow it.
func opcodeOf(kind nodeType, name, opType string) string {
	switch kind {
	case typeMetadata:
		return "METADATA"
	case typeMemLoad:
		return "MEM_LOAD"
	case typeMemStore:
		return "MEM_STORE"
	case typeSend:
		return "CollectiveSend"
	case typeRecv:
		return "CollectiveRecv"
	case typeColl:
		return "CollectiveCompute"
	}
	if opType != "" {
		return "COMP " + opType
	}
	if !strings.Contains(name, "::") {
		return "COMP"
	}
	name = strings.TrimPrefix(name, "void ")
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	return name
}

// set fills the members of a node that follow from its attributes.
func (g *graph) set(n *node, cpu bool, name, opType string, commType, commSize uint64) {
	n.name = g.b.M.Symbols.InternString(name)
	n.lane = laneOf(n.kind, cpu)
	n.opcode = opcodeOf(n.kind, name, opType)
	n.noWork = n.kind == typeMetadata
	if n.kind >= typeSend {
		n.bytes = commSize
		if n.kind == typeColl {
			n.bytes = sentBytes(commType, commSize)
		}
	}
	if n.kind == typeColl && commType < uint64(len(collectiveNames)) {
		n.op = collectiveNames[commType]
	}
}

// sentBytes returns what a device sends for a collective of size bytes, in the
// limit of many devices: an all-reduce is a reduce-scatter and an all-gather,
// so it sends twice; a barrier sends nothing.
func sentBytes(commType, size uint64) uint64 {
	if commType >= uint64(len(collectiveNames)) {
		return size
	}
	switch collectiveNames[commType] {
	case "ALL_REDUCE":
		return 2 * min(size, maxSize/2)
	case "BARRIER":
		return 0
	}
	return size
}
