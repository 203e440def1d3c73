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

	kindless  int    // collectives whose kind nothing says
	firstKind string // one of them
	twice     int    // nodes whose id another one has
	firstID   string
	broken    int // nodes that could not be read
	firstBad  string
}

// list appends ids of dependencies.
func (g *graph) list(ids []uint64) span {
	lo := len(g.ids)
	g.ids = append(g.ids, ids...)
	return span{lo, len(g.ids)}
}

// The durations that ASTRA-sim and we give where the input has none: 1 ns.
const noDuration = 1

// guessBase and guessRate order communications whose duration only the machine
// has: 8 µs and 100 bytes per ns, as the embedded machines have. They do not
// enter the result otherwise.
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
	order := g.byID()
	lanes := map[string]uint16{}
	var none, sized, huge, estimated, timed int
	place := make([]int, len(g.nodes)) // rows of nodes, -1 for those left out
	for i := range place {
		place[i] = -1
	}
	for r, i := range order {
		n := &g.nodes[i]
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
	g.link(place)
	g.noteLeftOut()
	if huge > 0 {
		b.M.Note("huge-work", "nodes with more work than one instruction can last: counted as 9e13 operations or 4e11 bytes", huge)
	}
	g.noteDurations(none, sized, none > 0 && sized+estimated+timed == 0)
	if estimated > 0 {
		b.M.Note(components.NoteEstimatedTransfers, "communications without a duration: the machine's latency and rate for collectives and their bytes are used", estimated)
	}
	return g.listed(order)
}

// byID returns the nodes in the order of their ids. Of nodes with one id the
// first is kept: dependencies mean that.
func (g *graph) byID() []int {
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(g.nodes[x].id, g.nodes[y].id) })
	kept := order[:0]
	for _, i := range order {
		if len(kept) > 0 {
			n, before := &g.nodes[i], &g.nodes[kept[len(kept)-1]]
			if before.id == n.id {
				if g.twice++; g.twice == 1 {
					g.firstID = fmt.Sprintf("node id %d at byte %d was at byte %d already", n.id, n.offset, before.offset)
				}
				continue
			}
		}
		kept = append(kept, i)
	}
	return kept
}

// listed makes the module. Of each cycle one dependency is left out: a control
// dependency if there is one, which feeders ignore, else one of data; of these
// the one that points forward furthest.
func (g *graph) listed(order []int) (*components.Module, error) {
	b := g.b
	kinds := [...]components.EdgeKind{components.Ordered, components.Flow, components.Anti, components.Output}
	names := [...]string{"control", "data", "anti", "output"}
	var left [len(kinds)]int
	var first [len(kinds)]string
	m, err := b.Listed()
	var cycle *timeline.CycleError
	for round := 0; errors.As(err, &cycle); round++ {
		for k, kind := range kinds {
			n, text := 0, ""
			if round >= mostCycles { // too many to take one by one
				n = b.DropCycles(kind)
			} else if from, to, ok := b.DropOne(cycle, kind); ok {
				at := func(row int) string {
					x := &g.nodes[order[row]]
					return fmt.Sprintf("node %d (byte %d)", x.id, x.offset)
				}
				n, text = 1, at(from)+" on "+at(to)+" of the "+g.cycleText(order, cycle)
			}
			if left[k] += n; first[k] == "" {
				first[k] = text
			}
			if n > 0 {
				break
			}
		}
		m, err = b.Listed()
	}
	for k, n := range left {
		if n > 0 && err == nil {
			m.Note(names[k]+"-cycle", names[k]+" dependencies that close a cycle: left out; the first: "+first[k], n)
		}
	}
	return m, err
}

// mostCycles bounds the cycles from which one dependency each is taken.
const mostCycles = 64

// noteLeftOut says which nodes were left out and which collectives are of no
// known kind.
func (g *graph) noteLeftOut() {
	for _, c := range []struct {
		n          int
		code, text string
	}{
		{g.broken, "broken-node", "nodes that could not be read: left out; the first: " + g.firstBad},
		{g.twice, "node-id-twice", "nodes with an id that an earlier one has: left out; the first: " + g.firstID},
		{g.kindless, "unknown-collective", "collectives of a kind that is not known: they count as sending their bytes once; the first: " + g.firstKind},
	} {
		if c.n > 0 {
			g.b.M.Note(c.code, c.text, c.n)
		}
	}
}

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
func (g *graph) link(place []int) {
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
		missing, own, self, first, firstSelf := 0, 0, 0, "", ""
		for i := range g.nodes {
			n := &g.nodes[i]
			if place[i] < 0 {
				continue
			}
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
					if self++; self == 1 {
						firstSelf = fmt.Sprintf("node %d at byte %d", n.id, n.offset)
					}
					continue
				}
				g.b.Depend(place[i], to, c.kind)
			}
		}
		if own > 0 {
			g.b.M.Note("own-parent", "nodes that name themselves as what they depend on for control: roots", own)
		}
		if self > 0 {
			g.b.M.Note("depends-on-itself", c.what+" dependencies of nodes on themselves: left out; the first: "+firstSelf, self)
		}
		if missing > 0 {
			g.b.M.Note("unresolved-"+c.what+"-dependency", c.what+" dependencies on nodes that the input does not have: taken as fulfilled; the first: "+first, missing)
		}
	}
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

// opcodeOf returns the word by which reports group nodes: the operator's name
// without the number and the arguments that follow it.
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
func (g *graph) set(n *node, cpu bool, name, opType string, comm collective, commSize uint64) {
	n.name = g.b.M.Symbols.InternString(name)
	n.lane = laneOf(n.kind, cpu)
	n.opcode = opcodeOf(n.kind, name, opType)
	n.noWork = n.kind == typeMetadata
	if n.kind >= typeSend {
		n.bytes = commSize
	}
	if n.kind == typeColl {
		if comm.unset() {
			comm = collectiveOf(name)
		}
		if n.op = comm.String(); n.op == "" {
			if g.kindless++; g.firstKind == "" {
				g.firstKind = fmt.Sprintf("node %d at byte %d", n.id, n.offset)
			}
		}
		n.bytes = comm.sent(commSize)
	}
}
