package netlist

import (
	"math"
	"math/bits"
)

// Pos is a place in the file, from 1.
type Pos struct{ Line, Col int }

// Problem is something wrong with one entry.
type Problem struct {
	Pos
	Text string
}

// Netlist is one file.
type Netlist struct {
	Name     string
	Arch     []string // devices.arch; several where the netlist fits several
	Queues   []Queue
	Graphs   []Graph
	Programs []Program
	FusedOps []FusedOp
	Sections []string // all top-level sections, in order
	Problems []Problem

	queue map[string]int
	graph map[string]int
}

// Size is a pair as the netlist writes it: rows, columns.
type Size struct{ R, C int }

// Cells is the product.
func (s Size) Cells() int { return s.R * s.C }

// Shape is the tiles of a buffer: t, macro blocks and micro blocks.
type Shape struct {
	T              int
	MBlock, UBlock Size
}

// Tiles is the number of tiles of one core's part, math.MaxInt64 where it is
// more.
func (s Shape) Tiles() int64 {
	return product(int64(s.T), int64(s.MBlock.R), int64(s.MBlock.C), int64(s.UBlock.R), int64(s.UBlock.C))
}

// product multiplies numbers from 0 on; it stops at math.MaxInt64.
func product(list ...int64) int64 {
	n := uint64(1)
	for _, x := range list {
		if x == 0 {
			return 0
		}
		high, low := bits.Mul64(n, uint64(x))
		if n = low; high > 0 || low > math.MaxInt64 {
			n = math.MaxInt64
		}
	}
	return int64(n)
}

// Addr is one buffer of a queue.
type Addr struct {
	Channel int // DRAM channel; 0 on the host
	Addr    uint64
}

// Queue is a queue or a RAM.
type Queue struct {
	Pos
	Name    string
	Type    string // queue, ram
	Input   string // HOST or an operator
	Entries int
	Grid    Size
	Shape   Shape
	Format  string
	Device  int
	Loc     string // dram, host
	Buffers []Addr
	Alias   string
}

// BufferBytes is the size of one of the queue's buffers: a header and, for
// each entry, its tiles. ok is false for an unknown format and for more than
// maxBuffer.
func (q *Queue) BufferBytes() (int64, bool) {
	t, ok := TileBytes(q.Format)
	if !ok {
		return 0, false
	}
	n := product(int64(q.Entries), q.Shape.Tiles(), t)
	if n > maxBuffer {
		return 0, false
	}
	return queueHeader + n, true
}

// queueHeader holds the read and write pointers of a queue. Neighbouring
// addresses in public netlists are apart by exactly header and tiles.
const queueHeader = 32

// tileBytes are the bytes of a 32 x 32 tile in memory: 32 bytes of header,
// the elements, and for block formats 64 shared exponents.
var tileBytes = map[string]int64{
	"Float32": 4128, "RawUInt32": 4128, "Int32": 4128, "Tf32": 4128,
	"Float16": 2080, "Float16_b": 2080, "RawUInt16": 2080, "UInt16": 2080,
	"Bfp8": 1120, "Bfp8_b": 1120, "Lf8": 1056, "RawUInt8": 1056, "Int8": 1056,
	"Bfp4": 608, "Bfp4_b": 608, "Bfp2": 352, "Bfp2_b": 352,
}

// TileBytes gives the size of a tile in a data format.
func TileBytes(format string) (int64, bool) {
	n, ok := tileBytes[format]
	return n, ok
}

// Op is one operator of a graph.
type Op struct {
	Pos
	Name      string
	Type      string
	Loc       Size // row, column of the first core
	Grid      Size // rows, columns
	Inputs    []string
	Shape     Shape
	BufMB     int // buf_size_mb: output buffers of a core, in macro blocks
	InFormats []string
	OutFormat string
	Fidelity  string
	Transpose bool
	Gradient  bool
	MK, UKT   int    // inner blocks of a matmul, 0 where absent
	Identity  bool   // a sparse matmul that selects rows
	Kind      string // type of a fused operator's identity, else empty
}

// Rect is the rectangle of cores: rows and columns exchanged where the
// operator is transposed.
func (o *Op) Rect() (rows, cols int) {
	if o.Transpose {
		return o.Grid.C, o.Grid.R
	}
	return o.Grid.R, o.Grid.C
}

// Graph is one graph: what lies on one chip at one time.
type Graph struct {
	Pos
	Name       string
	Device     int
	InputCount int
	Ops        []Op
}

// Program is a list of instructions.
type Program struct {
	Pos
	Name   string
	Instrs []Instr
}

// Instr is one instruction: its name and its words. An execute holds the
// graph and the queues it sets.
type Instr struct {
	Pos
	Name   string // var, staticvar, param, varinst, loop, endloop, execute, allocate_queue, deallocate_queue, ...
	Args   []string
	Graph  string
	Queues []string
}

// FusedOp is the recipe of a fused operator.
type FusedOp struct {
	Name   string
	Inputs int
	Ops    []string // types, in order
}

// QueueByName finds a queue.
func (n *Netlist) QueueByName(name string) (*Queue, bool) {
	i, ok := n.queue[name]
	if !ok {
		return nil, false
	}
	return &n.Queues[i], true
}

// Executed lists the graphs in the order in which programs first execute
// them.
func (n *Netlist) Executed() []int {
	var out []int
	seen := map[int]bool{}
	for p := range n.Programs {
		for i := range n.Programs[p].Instrs {
			if in := &n.Programs[p].Instrs[i]; in.Name == "execute" {
				if g, ok := n.graph[in.Graph]; ok && !seen[g] {
					seen[g] = true
					out = append(out, g)
				}
			}
		}
	}
	return out
}
