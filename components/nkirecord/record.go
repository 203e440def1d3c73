// Package nkirecord holds what an NKI kernel did when it was run on shape
// descriptions: tensors, instructions with their access patterns, loops.
// Nothing in it is a guess about the compiler; docs/nki.md describes the
// format, systems/nki turns a record into a module.
package nkirecord

import "perfsim/components"

// Record is one run of a kernel.
type Record struct {
	Kernel        string
	File          string
	Generation    string // "old" (neuronxcc.nki) or "new" (nki)
	Machine       string // machine that the kernel was recorded for
	ArgumentsFrom string // where the arguments came from
	Grid          []int
	Args          []Arg
	Files         []string
	Tensors       []Tensor
	Forms         []Form
	Loops         int // loop numbers in use
	Programs      []Program
	Notes         []Note
}

// Arg is one argument of the call.
type Arg struct {
	Name  string
	DType string // "" for a value
	Shape []int
	Value string
}

// Note is a remark of the recorder with its count.
type Note struct {
	Text  string
	Count int
}

// Tensor is one tensor; one that is allocated in a loop is a new tensor in
// every iteration of Loop.
type Tensor struct {
	Name   string
	DType  components.DType
	Memory components.Memory
	Shape  []int
	PDim   int // axis over partitions; the axes before it are blocks
	Kind   string
	Loop   int32 // number of the innermost loop it is allocated in, -1 for none
	Fill   int8  // initial value: -1 none, 0 zeros, 1 other
	File   int32
	Line   int32
	Addr   [][2]int64 // direct allocation by block: partition and byte in it; nil where the allocator decides
}

// Parts is the number of partitions of one block.
func (t *Tensor) Parts() int {
	if t.Memory.InDRAM() || t.PDim >= len(t.Shape) {
		return 1
	}
	return t.Shape[t.PDim]
}

// Blocks is the number of tiles of a tensor with block dimensions.
func (t *Tensor) Blocks() int {
	n := 1
	if !t.Memory.InDRAM() {
		for _, d := range t.Shape[:min(t.PDim, len(t.Shape))] {
			n *= d
		}
	}
	return n
}

// Elems is the number of elements in one partition of a block; of the whole
// tensor in device memory.
func (t *Tensor) Elems() int64 {
	n := int64(1)
	dims := t.Shape
	if !t.Memory.InDRAM() {
		dims = dims[min(t.PDim+1, len(dims)):]
	}
	for _, d := range dims {
		n *= int64(d)
	}
	return n
}

// Bytes is the bytes of one partition of a block, or of the whole tensor.
func (t *Tensor) Bytes() int64 { return t.Elems() * int64(max(t.DType.Size(), 1)) }

// Pattern is the part of an access that does not change from one execution of
// an instruction to the next: steps in elements, slow to fast. In device
// memory Dims covers all axes and Parts is the count of the first.
type Pattern struct {
	DType   components.DType
	Parts   int
	Step    int // between partitions
	Dims    [][2]int64
	Dynamic bool // the address comes from memory
}

// Elems is the product of the counts in Dims.
func (p *Pattern) Elems() int64 {
	n := int64(1)
	for _, d := range p.Dims {
		n *= d[1]
	}
	return n
}

// Form is an instruction without its addresses.
type Form struct {
	Op     string
	Engine string // "" where the kernel names none
	File   int32
	Line   int32
	Outs   []Pattern
	Ins    []Pattern
	Attrs  Attrs
}

// Attrs are the named properties of a form.
type Attrs struct {
	Func, Op0, Op1, ReduceOp, ReduceCmd string
	DGE, RMW, PerfMode                  string
	Transpose, Zero, OneZero, Negate    bool
	High                                bool // made by nl.matmul
	Accumulate                          int8 // -1 not said, 0 overwrite, 1 add
	Implied                             bool // Accumulate follows from +=
	Axes                                int
	To, From, Pipe                      int
	TileRows, TileCols                  int
}

// Program is the record of one program of the grid.
type Program struct {
	Core  int
	IDs   []int
	Steps []Step
	// Values holds the addresses of all instructions: for each operand the
	// tensor, on chip block and first partition, and the first element.
	Values []Value
	Terms  []Term
}

// The kinds of steps that are no instructions.
const (
	LoopBegin int32 = -1 - iota
	LoopEnd
)

// Step is an instruction (Form at least 0, its values start at First) or the
// begin (loop number in First, trips in Trips) or end of a loop.
type Step struct {
	Form  int32
	First uint32
	Trips uint32
}

// Value is C plus terms that follow loop variables.
type Value struct {
	C     int64
	First uint32 // in Terms
	N     uint32
}

// Term adds K times the iteration number of a loop.
type Term struct {
	Loop int32
	K    int64
}

// Recorded counts the instructions as written, loops once.
func (r *Record) Recorded() int {
	n := 0
	for i := range r.Programs {
		for _, s := range r.Programs[i].Steps {
			if s.Form >= 0 {
				n++
			}
		}
	}
	return n
}
