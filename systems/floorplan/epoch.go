package floorplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/io/tenstorrent/netlist"
)

// Grid is the core grid of a chip as netlists count it: row, column.
type Grid struct {
	Arch       string
	Rows, Cols int
	Source     string // where the size comes from
}

// Cores is the number of cores.
func (g Grid) Cores() int { return g.Rows * g.Cols }

// grids of each architecture, smallest first: wormhole_b0 is used with 8 x 8
// cores by its netlists (rows are harvested) and has 10 x 8.
var grids = map[string][]Grid{
	"grayskull":   {{"grayskull", 10, 12, "grayskull"}},
	"wormhole":    {{"wormhole", 8, 8, "wormhole, harvested"}, {"wormhole", 10, 8, "wormhole"}},
	"wormhole_b0": {{"wormhole_b0", 8, 8, "wormhole_b0, harvested"}, {"wormhole_b0", 10, 8, "wormhole_b0"}},
	"blackhole":   {{"blackhole", 10, 14, "blackhole"}},
}

// GridFor picks the grid of a netlist: the smallest known one of its (first)
// architecture that holds all placements, else the largest.
func GridFor(n *netlist.Netlist) (Grid, error) {
	if len(n.Arch) == 0 {
		return Grid{}, fmt.Errorf("the netlist names no architecture; give the grid")
	}
	list, ok := grids[strings.ToLower(n.Arch[0])]
	if !ok {
		return Grid{}, fmt.Errorf("architecture %q is unknown; give the grid", n.Arch[0])
	}
	for _, g := range list {
		if fits(n, g) {
			return g, nil
		}
	}
	return list[len(list)-1], nil
}

// GridOf is the grid of a SoC descriptor.
func GridOf(s *netlist.SoC, name string) Grid {
	return Grid{Arch: s.Arch, Rows: s.Rows, Cols: s.Cols, Source: name}
}

// ParseGrid reads "ROWSxCOLS".
func ParseGrid(s string) (Grid, error) {
	a, b, ok := strings.Cut(strings.ToLower(s), "x")
	r, e1 := strconv.Atoi(a)
	c, e2 := strconv.Atoi(b)
	if !ok || e1 != nil || e2 != nil || r < 1 || c < 1 || r > maxGridSide || c > maxGridSide {
		return Grid{}, fmt.Errorf("grid %q is not ROWSxCOLS with sides of 1 to %d", s, maxGridSide)
	}
	return Grid{Rows: r, Cols: c, Source: "given"}, nil
}

const maxGridSide = 1024

func fits(n *netlist.Netlist, g Grid) bool {
	for i := range n.Graphs {
		for k := range n.Graphs[i].Ops {
			o := &n.Graphs[i].Ops[k]
			r, c := o.Rect()
			if o.Loc.R+r > g.Rows || o.Loc.C+c > g.Cols {
				return false
			}
		}
	}
	return true
}

// Placement is one operator on the grid.
type Placement struct {
	Op         *netlist.Op
	Graph      *netlist.Graph
	Row, Col   int
	Rows, Cols int
	OutOfGrid  bool
	Overlaps   []string // operators on the same cores, by name
}

// Chip is one chip in one epoch.
type Chip struct {
	Device    int
	Graphs    []string
	Ops       []Placement
	Cores     int // sum of grid sizes: the cores that the chip is asked for
	Used      int // distinct cores inside the grid
	Capacity  int
	OutOfGrid int // operators that leave the grid
	Overlap   int // cores that two operators claim
}

// Share is the sum of grid sizes over the cores of the chip.
func (c *Chip) Share() float64 { return float64(c.Cores) / float64(c.Capacity) }

// Epoch is one step of execution.
type Epoch struct {
	Index int
	Chips []Chip // with at least one operator, by device
	Empty int    // chips whose graph has no operator
	Cores int
}

// Capacity is the number of cores of the chips that work in the epoch.
func (e *Epoch) Capacity() int {
	n := 0
	for i := range e.Chips {
		n += e.Chips[i].Capacity
	}
	return n
}

// Share is the part of them that is used.
func (e *Epoch) Share() float64 {
	if c := e.Capacity(); c > 0 {
		return float64(e.Cores) / float64(c)
	}
	return 0
}

// TypeCount counts operators of one type.
type TypeCount struct {
	Type  string
	Ops   int
	Cores int
}

// ChannelUse is the memory of one DRAM channel of one chip.
type ChannelUse struct {
	Device, Channel int
	Buffers         int
	Bytes           int64
	Overlaps        int // buffers that reach into the next one
}

// Report is the analysis of a netlist.
type Report struct {
	Name     string
	Arch     []string
	Grid     Grid
	Named    bool // epochs come from the graph names
	Devices  int
	Graphs   int
	Ops      int
	Epochs   []Epoch
	Cores    int // over all epochs and chips that work
	Capacity int
	// Mean is Cores over Capacity: the mean utilization of chips that work.
	Mean float64
	// MeanAll counts chips without an operator too.
	MeanAll  float64
	Types    []TypeCount
	Channels []ChannelUse
	Host     int64 // bytes of queues on the host
	Queues   int
	Unsized  int // queues of an unknown format
	Problems []netlist.Problem
}

// Analyze analyses a netlist on a grid.
func Analyze(n *netlist.Netlist, g Grid) *Report {
	r := &Report{Name: n.Name, Arch: n.Arch, Grid: g, Graphs: len(n.Graphs), Problems: slices.Clone(n.Problems), Queues: len(n.Queues)}
	index, named := indices(n)
	r.Named = named
	type key struct{ epoch, device int }
	chips := map[key]*Chip{}
	var order []key
	devices := map[int]bool{}
	types := map[string]*TypeCount{}
	for i := range n.Graphs {
		gr := &n.Graphs[i]
		devices[gr.Device] = true
		k := key{index[i], gr.Device}
		c := chips[k]
		if c == nil {
			c = &Chip{Device: gr.Device, Capacity: g.Cores()}
			chips[k] = c
			order = append(order, k)
		}
		c.Graphs = append(c.Graphs, gr.Name)
		for j := range gr.Ops {
			o := &gr.Ops[j]
			rows, cols := o.Rect()
			c.Ops = append(c.Ops, Placement{Op: o, Graph: gr, Row: o.Loc.R, Col: o.Loc.C, Rows: rows, Cols: cols})
			c.Cores += rows * cols
			r.Ops++
			t := types[o.Type]
			if t == nil {
				t = &TypeCount{Type: o.Type}
				types[o.Type] = t
			}
			t.Ops++
			t.Cores += rows * cols
		}
	}
	r.Devices = len(devices)
	slices.SortFunc(order, func(a, b key) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.device, b.device)) })
	all := 0
	for _, k := range order {
		if len(r.Epochs) == 0 || r.Epochs[len(r.Epochs)-1].Index != k.epoch {
			r.Epochs = append(r.Epochs, Epoch{Index: k.epoch})
		}
		e := &r.Epochs[len(r.Epochs)-1]
		c := chips[k]
		all += c.Capacity
		if len(c.Ops) == 0 {
			e.Empty++
			continue
		}
		r.occupy(c, g)
		e.Chips = append(e.Chips, *c)
		e.Cores += c.Cores
		r.Cores += c.Cores
		r.Capacity += c.Capacity
	}
	if r.Capacity > 0 {
		r.Mean = float64(r.Cores) / float64(r.Capacity)
	}
	if all > 0 {
		r.MeanAll = float64(r.Cores) / float64(all)
	}
	for _, t := range types {
		r.Types = append(r.Types, *t)
	}
	slices.SortFunc(r.Types, func(a, b TypeCount) int {
		return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(b.Ops, a.Ops), cmp.Compare(a.Type, b.Type))
	})
	r.memory(n)
	slices.SortStableFunc(r.Problems, func(a, b netlist.Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col)) })
	return r
}

// indices numbers the epochs of graphs.
func indices(n *netlist.Netlist) ([]int, bool) {
	out := make([]int, len(n.Graphs))
	named := len(n.Graphs) > 0
	for i := range n.Graphs {
		t, ok := temporal(n.Graphs[i].Name)
		if !ok {
			named = false
			break
		}
		out[i] = t
	}
	if named {
		return out, true
	}
	// Execution order; a graph that no program executes follows.
	pos := map[int]int{}
	for k, g := range n.Executed() {
		pos[g] = k
	}
	next := len(pos)
	for i := range out {
		if p, ok := pos[i]; ok {
			out[i] = p
		} else {
			out[i] = next
			next++
		}
	}
	return out, false
}

// temporal reads the number behind "temporal_epoch_".
func temporal(name string) (int, bool) {
	const mark = "temporal_epoch_"
	i := strings.LastIndex(name, mark)
	if i < 0 {
		return 0, false
	}
	rest := name[i+len(mark):]
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	v, err := strconv.Atoi(rest[:end])
	return v, err == nil && v < 1<<30
}

// occupy marks the cores of a chip and finds what overlaps or leaves the
// grid. Only cores inside the grid are walked, so a size of a million costs
// nothing.
func (r *Report) occupy(c *Chip, g Grid) {
	owner := make([]int, g.Cores())
	for i := range owner {
		owner[i] = -1
	}
	for i := range c.Ops {
		p := &c.Ops[i]
		if p.Row+p.Rows > g.Rows || p.Col+p.Cols > g.Cols {
			p.OutOfGrid = true
			c.OutOfGrid++
			r.problem(p.Op, "op %s covers rows %d to %d and columns %d to %d; the grid has %d rows and %d columns",
				p.Op.Name, p.Row, p.Row+p.Rows-1, p.Col, p.Col+p.Cols-1, g.Rows, g.Cols)
		}
		seen := map[int]bool{}
		for y := p.Row; y < min(p.Row+p.Rows, g.Rows); y++ {
			for x := p.Col; x < min(p.Col+p.Cols, g.Cols); x++ {
				o := &owner[y*g.Cols+x]
				if *o < 0 {
					*o = i
					c.Used++
					continue
				}
				c.Overlap++
				if !seen[*o] {
					seen[*o] = true
					other := &c.Ops[*o]
					p.Overlaps = append(p.Overlaps, other.Op.Name)
					r.problem(p.Op, "op %s lies on cores of op %s (row %d, column %d)", p.Op.Name, other.Op.Name, y, x)
				}
			}
		}
	}
}

func (r *Report) problem(o *netlist.Op, format string, args ...any) {
	const limit = 2000
	if len(r.Problems) < limit {
		r.Problems = append(r.Problems, netlist.Problem{Pos: o.Pos, Text: fmt.Sprintf(format, args...)})
	}
}

// memory sums queues by DRAM channel and finds buffers that overlap.
func (r *Report) memory(n *netlist.Netlist) {
	type buf struct {
		dev, ch  int
		from, to uint64
		q        *netlist.Queue
		static   bool
	}
	var bufs []buf
	// Queues that a program allocates and frees share memory by intent.
	dynamic := map[string]bool{}
	for p := range n.Programs {
		for i := range n.Programs[p].Instrs {
			if in := &n.Programs[p].Instrs[i]; in.Name == "allocate_queue" {
				for _, q := range in.Args {
					dynamic[q] = true
				}
			}
		}
	}
	for i := range n.Queues {
		q := &n.Queues[i]
		b, ok := q.BufferBytes()
		if !ok {
			r.Unsized++
			continue
		}
		if q.Alias != "" {
			continue // shares the memory of another queue
		}
		if q.Loc == "host" {
			r.Host += b * int64(len(q.Buffers))
			continue
		}
		for _, a := range q.Buffers {
			bufs = append(bufs, buf{q.Device, a.Channel, a.Addr, a.Addr + uint64(b), q, !dynamic[q.Name]})
		}
	}
	slices.SortStableFunc(bufs, func(a, b buf) int {
		return cmp.Or(cmp.Compare(a.dev, b.dev), cmp.Compare(a.ch, b.ch), cmp.Compare(a.from, b.from))
	})
	var last *buf // static buffer that reaches furthest
	for i := range bufs {
		b := &bufs[i]
		k := len(r.Channels) - 1
		if k < 0 || r.Channels[k].Device != b.dev || r.Channels[k].Channel != b.ch {
			r.Channels = append(r.Channels, ChannelUse{Device: b.dev, Channel: b.ch})
			k++
			last = nil
		}
		c := &r.Channels[k]
		c.Buffers++
		c.Bytes += int64(b.to - b.from)
		if !b.static {
			continue
		}
		if last != nil && b.from < last.to {
			c.Overlaps++
			if len(r.Problems) < 2000 {
				r.Problems = append(r.Problems, netlist.Problem{Pos: b.q.Pos, Text: fmt.Sprintf("queue %s at 0x%x of channel %d lies in queue %s, which ends at 0x%x", b.q.Name, b.from, b.ch, last.q.Name, last.to)})
			}
		}
		if last == nil || b.to > last.to {
			last = b
		}
	}
}
