package lower

import (
	"errors"
	"fmt"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// Options say how a graph is lowered. The zero value is not usable; start
// from DefaultOptions.
type Options struct {
	// Buffers is how many tiles of a streamed value are on chip at once: 2 is
	// double buffering.
	Buffers int
	// DefaultTrip is the trip count of a while that states none and whose
	// condition gives none.
	DefaultTrip int64
	// Trips are trip counts by the name of the while or of its body.
	Trips map[string]int64
	// Dims are the sizes of the graph's dynamic dimensions, by NAME.I
	// (dimension I of parameter NAME), by NAME where one is open, or AnyDim.
	Dims map[string]int64
	// Cores is the number of cores that share the module: the graph becomes one
	// core's program. 0 leaves that to the module. Cuts are the dimensions of
	// parameters, NAME.I, along which a module is cut that does not say; none is
	// along its batch.
	Cores int64
	Cuts  []string
	// MaxInstructions bounds the module; the compiler's own ceiling is 25
	// million.
	MaxInstructions int
	// Unroll is up to how many iterations a tile loop is written out; longer
	// ones are kept as loops, except where Compress is false.
	Unroll   int
	Compress bool
	// Inline is up to how many operators a called computation is laid out at
	// the call instead of becoming a function.
	Inline int
	// Infinite lowers for a machine whose buffers never end: no buffer is used
	// again and nothing is spilled. The compiler has such a module before
	// allocation.
	Infinite bool
	// Operands writes access patterns and memory locations, about 200 bytes an
	// instruction: what the checker and BIR JSON users look at.
	Operands bool
	// Group joins neighbouring elementwise operators that are in no fusion
	// into one pass over their tiles, as every compiler does.
	Group bool
	// Reuse is an earlier module that nobody needs any more: its memory serves
	// the new one, which has about as many rows.
	Reuse *components.Module
	// Progress, where not nil, is called with the operators done and operators in all.
	Progress func(done, total int64)
}

// DefaultOptions returns the options that the command line starts from.
func DefaultOptions() Options {
	return Options{Buffers: 2, DefaultTrip: 1, MaxInstructions: 25_000_000, Unroll: 16, Compress: true, Inline: 256, Group: true}
}

// MostCores is the largest Options.Cores.
const MostCores = 1 << 16

// MostBuffers is the largest Options.Buffers.
const MostBuffers = 16

func (o *Options) check() error {
	switch {
	case o.Buffers < 1 || o.Buffers > MostBuffers:
		return fmt.Errorf("buffers is %d, not between 1 and %d", o.Buffers, MostBuffers)
	case o.Cores < 0 || o.Cores > MostCores:
		return fmt.Errorf("cores is %d, not between 1 and %d", o.Cores, MostCores)
	case len(o.Cuts) > 0 && o.Cores < 2:
		return errors.New("dimensions to cut are of several cores")
	case o.DefaultTrip < 0:
		return fmt.Errorf("the default trip count %d is negative", o.DefaultTrip)
	case o.MaxInstructions < 1:
		return fmt.Errorf("the largest number of instructions is %d, not at least 1", o.MaxInstructions)
	case o.Inline < 0:
		return fmt.Errorf("inline is %d, not at least 0", o.Inline)
	case o.Unroll < 1:
		return fmt.Errorf("unroll is %d, not at least 1", o.Unroll)
	}
	for name, n := range o.Dims {
		if n < 0 {
			return fmt.Errorf("the size %d of dimension %s is negative", n, name)
		}
	}
	for name, n := range o.Trips {
		if n < 0 {
			return fmt.Errorf("the trip count %d of %s is negative", n, name)
		}
	}
	return nil
}

// TooManyError says that a module would have more instructions than allowed.
type TooManyError struct{ Max int }

func (e TooManyError) Error() string {
	return fmt.Sprintf("lowering gives more than %d instructions (the compiler's own ceiling is 25,000,000); "+
		"--max-instructions raises the limit, without --no-compress long tile loops stay loops", e.Max)
}

// Treatment is the way in which an operator was lowered.
type Treatment uint8

// The treatments.
const (
	Lowered   Treatment = iota // its work is in engine instructions
	Free                       // it names, groups or orders values, or is an access pattern of its users
	Estimated                  // unsupported: stands in the module as something else
	Scalar                     // part of a scalar function (the adder of a reduce): in its user's instructions
)

// String returns "lowered", "free", "estimated" or "scalar".
func (t Treatment) String() string {
	return [...]string{"lowered", "free", "estimated", "scalar"}[t]
}

// Account counts the operators of one opcode that were lowered in one way.
type Account struct {
	Opcode    string `json:"opcode"`
	Treatment string `json:"treatment"`     // what becomes of the operator: its instructions, nothing, or an estimate
	How       string `json:"how,omitempty"` // of estimated ones: as what
	Count     int64  `json:"count"`         // operators of the file
}

// Trip is the trip count that was used for a while.
type Trip struct {
	Name  string `json:"name"`  // while operator
	Count int64  `json:"count"` // trips of its loop
	From  string `json:"from"`  // "known", "derived", "given" or "default"
}

// Report describes the lowering. Counts are dynamic: what one run of the module
// executes, loops and functions multiplied.
type Report struct {
	Graph opgraph.Totals `json:"graph"` // what the graph asks for

	FLOPs           int64 `json:"flops"`        // of the matmuls and multiply-adds that stand for dots and convolutions
	VectorFLOPs     int64 `json:"vector_flops"` // part of them: products of vectors, element by element on DVE
	HelperFLOPs     int64 `json:"helper_flops"` // of transposes and sums over partitions on the PE
	ParameterBytes  int64 `json:"parameter_bytes"`
	OutputBytes     int64 `json:"output_bytes"`
	CollectiveBytes int64 `json:"collective_bytes"`
	Collectives     int64 `json:"collectives"`
	LoadBytes       int64 `json:"load_bytes"`            // device memory to chip
	StoreBytes      int64 `json:"store_bytes"`           // chip to device memory
	CopyBytes       int64 `json:"copy_bytes"`            // within device memory
	SpillBytes      int64 `json:"spill_bytes"`           // part of stores: values that had to make room
	Executed        int64 `json:"executed_instructions"` // instructions, weighted

	// Coarse is how often an instruction waits for accesses that were joined,
	// because too many of one engine or queue gathered in one place: for more
	// than it must, perhaps.
	Coarse int64 `json:"coarse_waits,omitempty"`

	// Far are the products and convolutions that lose most against the roofline
	// of their operators, FarCount all of them.
	Far      []Far `json:"far,omitempty"`
	FarCount int   `json:"far_count,omitempty"`

	Ops       int64     `json:"operators"`                     // of the reachable computations
	Accounts  []Account `json:"accounts"`                      // operators by opcode and treatment
	Trips     []Trip    `json:"trips,omitempty"`               // loops, and where their trip counts are from
	TileLoops int       `json:"tile_loops"`                    // kept as loops
	SBUFPeak  int64     `json:"sbuf_peak_bytes_per_partition"` // most bytes of a partition that values take at once
	DRAMBytes int64     `json:"dram_bytes"`                    // device memory of parameters, outputs and intermediate values
}

// Conserved reports whether the module does what the graph asks for, to the
// FLOP and the byte; the error names the first quantity that differs.
func (r *Report) Conserved() error {
	for _, q := range []struct {
		name      string
		got, want int64
	}{{"FLOPs", r.FLOPs, r.Graph.FLOPs}, {"bytes of parameters", r.ParameterBytes, r.Graph.ParameterBytes},
		{"bytes of outputs", r.OutputBytes, r.Graph.OutputBytes}, {"bytes of collectives", r.CollectiveBytes, r.Graph.CollectiveBytes},
		{"collectives", r.Collectives, r.Graph.Collectives}} {
		if q.got != q.want {
			return fmt.Errorf("the lowered module has %d %s, the graph %d", q.got, q.name, q.want)
		}
	}
	var n int64
	for _, a := range r.Accounts {
		n += a.Count
	}
	if n != r.Ops {
		return fmt.Errorf("%d of %d operators are accounted for", n, r.Ops)
	}
	return nil
}
