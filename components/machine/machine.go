// Package machine holds descriptions of machines: the clocks, rates, costs
// and rules that the cost and placement systems read. A description is data,
// a YAML file; those of the package are embedded, and one's own can be given
// instead. Every number carries where it comes from.
package machine

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"perfsim/components/machine/internal/descfile"
)

//go:embed *.yaml
var files embed.FS

// Machine is one description. Clocks are in the compiler's unit of 10 MHz,
// so that cycles×100/clock is ns.
type Machine struct {
	Name    string   `yaml:"name"`
	Title   string   `yaml:"title"`
	Aliases []string `yaml:"aliases,omitempty" json:",omitzero"` // other names under which it is found: "gen3", "cayman"
	// Arch is the compiler's architecture level: 20 sunda/trn1, 30 trn2, 40 trn3.
	Arch int `yaml:"arch"`
	// Hwm names the documented latency oracle: Trainium, Gen3, CoreV4.
	Hwm string `yaml:"hwm,omitempty" json:",omitzero"`

	Clock      Clock      `yaml:"clock"`
	Memory     Memory     `yaml:"memory"`
	Reference  Reference  `yaml:"reference"`
	Calibrated Calibrated `yaml:"calibrated,omitempty" json:",omitzero"`
	// Grid and rates of Tensix-like and other machines; see their files.
	Extra map[string]any `yaml:"extra,omitempty" json:",omitzero"`

	// Sources says where the figures come from, one line each.
	Sources []string `yaml:"sources"`
	// Assumptions lists what is ours: chosen by this project where nothing is
	// published. `perfsim machine show` prints it.
	Assumptions []string `yaml:"assumptions"`
	// Ignores lists what the machine does and the description leaves out.
	Ignores []string `yaml:"ignores,omitempty" json:",omitzero"`
}

// Clock has the engine clocks in units of 10 MHz.
type Clock struct {
	PE         int `yaml:"pe"` // the clock of the documented cost formulas, half the array's for trn1 and trn2
	PEArray    int `yaml:"pe_array"`
	Activation int `yaml:"activation"`
	Pool       int `yaml:"pool"`
	DVE        int `yaml:"dve"`
	SP         int `yaml:"sp"`
}

// Memory has sizes in bytes and rates in bytes per ns.
type Memory struct {
	Partitions    int     `yaml:"partitions"`
	SBUFBytes     int     `yaml:"sbuf_bytes_per_partition"`
	PSUMBanks     int     `yaml:"psum_banks"`
	PSUMBankBytes int     `yaml:"psum_bank_bytes"`
	DMAEngines    int     `yaml:"dma_engines"`
	DMARate       float64 `yaml:"dma_bytes_per_ns"` // of one engine
	HBMRate       float64 `yaml:"hbm_bytes_per_ns"` // of one core's share
	HBMBytes      int64   `yaml:"hbm_bytes"`
}

// Reference has what the documented perf_sim model needs (docs/model.md).
type Reference struct {
	// OverlapCompute and OverlapDMA are the overlap windows in ns: an
	// operation longer than its window leaves its lane that much before its
	// end (docs/model.md, section 4).
	OverlapCompute uint32 `yaml:"overlap_compute_ns"`
	OverlapDMA     uint32 `yaml:"overlap_dma_ns"`
	// CycleAccurate, FixedCycles, HBMScale and ThirdSwitch are the documented
	// arguments of the simulator's constructor with their defaults. What they do
	// is not published and ours: without CycleAccurate an instruction of an
	// engine takes FixedCycles of the engine's clock instead of its formula;
	// HBMScale multiplies the rate of transfers from and to device memory;
	// ThirdSwitch makes it the weight of the reflow "weighted".
	CycleAccurate bool    `yaml:"cycle_accurate"`
	FixedCycles   uint32  `yaml:"fixed_cycles"`
	HBMScale      float64 `yaml:"hbm_scale"`
	ThirdSwitch   bool    `yaml:"third_switch"`
	// Couplings turns on the engine couplings of NeuronCore-v2 (docs/model.md, section 6).
	Couplings bool `yaml:"couplings"`
	// StreamShares is the share of the collective bandwidth each stream has
	// (docs/model.md, section 7); a stream with share 0 does not exist.
	StreamShares []float64 `yaml:"collective_stream_shares"`
	// Reflow stretches overlapping collectives: "share" (processor sharing),
	// "weighted" (by a weight times the time that they overlap) or "none". The
	// documented rule is not published; all three are ours.
	Reflow string  `yaml:"collective_reflow"`
	DMA    DMACost `yaml:"dma"`
	// Queues are the ring depths of DMA queues by queue class; 0 is unbounded.
	Queues []Queue `yaml:"queues"`
	// Costs by opcode name; Default is used for opcodes not listed.
	Costs   map[string]Cost `yaml:"costs"`
	Default Cost            `yaml:"default_cost"`
}

// ReflowWeight is the weight of the reflow "weighted", as documented for its
// second one: the bandwidth scale with the third switch, else 0.25. It is 0
// for the other ways.
func (r *Reference) ReflowWeight() float64 {
	switch {
	case r.Reflow != "weighted":
		return 0
	case r.ThirdSwitch:
		return r.HBMScale
	}
	return 0.25
}

// DMACost has the constants of the documented DMA formula (docs/model.md, section 3).
type DMACost struct {
	ReadInit uint32 `yaml:"read_init_ns"`
	DGENone  int    `yaml:"dge_none_cycles"`
	DGESW    int    `yaml:"dge_sw_cycles"`
	DGEHW    int    `yaml:"dge_hw_cycles"`
	// DGEClock is the clock of these cycles in units of 10 MHz; Parse puts
	// clock.pe where a description has none (the documented formula divides by
	// that frequency). It is a field of its own so that a change of the PE's
	// clock leaves transfers alone.
	DGEClock int `yaml:"dge_clock,omitempty" json:",omitzero"`
	// DGEPlain takes the overheads as ns instead of cycles of DGEClock.
	DGEPlain bool `yaml:"dge_plain_ns"`
	// Div is bytes per ns of one engine, Div8 of all sixteen, which the one-byte
	// path uses.
	Div  int `yaml:"div"`
	Div8 int `yaml:"div8"`
	// Engines is over how many engines a transfer is spread; 0 stands for the
	// sixteen of the documented formula.
	Engines int `yaml:"engines,omitempty" json:",omitzero"`
}

// Queue is one DMA queue class of the documented simulator.
type Queue struct {
	Name  string `yaml:"name"`
	Depth uint32 `yaml:"depth"`
}

// Cost is how one opcode is costed.
type Cost struct {
	// Form is the formula: "affine" (max(min, mult×N + base) cycles),
	// "matmul" (N/2 + base cycles of the PE clock), "dma", "fixed" (base ns),
	// "collective", "none".
	Form string  `yaml:"form"`
	Mult float64 `yaml:"mult,omitempty" json:",omitzero"`
	// MultPSUM replaces Mult where one of two inputs is in PSUM and the other
	// is not.
	MultPSUM float64 `yaml:"mult_psum,omitempty" json:",omitzero"`
	// Mult16 replaces Mult where all operands are 16-bit types.
	Mult16 float64 `yaml:"mult_16bit,omitempty" json:",omitzero"`
	// Mult32 replaces Mult for 32-bit element types.
	Mult32 float64 `yaml:"mult_32bit,omitempty" json:",omitzero"`
	Base   int     `yaml:"base,omitempty" json:",omitzero"`
	Base16 int     `yaml:"base_16bit,omitempty" json:",omitzero"` // replaces Base for 16-bit types where not 0
	Base32 int     `yaml:"base_32bit,omitempty" json:",omitzero"`
	Min    int     `yaml:"min,omitempty" json:",omitzero"`
	// Hop is the time that each step of a collective's algorithm adds, in ns;
	// 0 counts the bytes put in as they are, without an algorithm.
	Hop int `yaml:"hop_ns,omitempty" json:",omitzero"`
	// Clock overrides the clock of the instruction's engine: pe, activation,
	// pool, dve or sp.
	Clock string `yaml:"clock,omitempty" json:",omitzero"`
	// Mark is the confidence: CONFIRMED, OFFICIAL, INFERRED, or OURS.
	Mark string `yaml:"mark"`
}

// Names returns the names of the embedded descriptions, sorted.
func Names() []string { return descfile.Names(files) }

// Load returns the machine called name: an embedded one by name or alias, or
// the description in the file of that name.
func Load(name string) (*Machine, error) {
	if m := builtin(name); m != nil {
		return m, nil
	}
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Embedded returns the embedded machine called name, by name or alias. It
// reads no file: names that come from an input go here.
func Embedded(name string) (*Machine, error) {
	if m := builtin(name); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("machine %q is not one of %s", name, strings.Join(Names(), ", "))
}

// Text returns the description that Load reads, as it is written.
func Text(name string) ([]byte, error) {
	if m := builtin(name); m != nil {
		name = m.Name
	}
	if text, err := files.ReadFile(name + ".yaml"); err == nil {
		return text, nil
	}
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	_, err = Parse(name, text)
	return text, err
}

// readFile reads the description in the file called name.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
		return nil, fmt.Errorf("machine %q is neither known (%s) nor a file", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("machine: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	return text, nil
}

// maxFile bounds a description; real ones have tens of kilobytes.
const maxFile = 4 << 20

// Parse reads a description. from names it in errors.
func Parse(from string, b []byte) (*Machine, error) {
	if len(b) > maxFile {
		return nil, fmt.Errorf("machine %s: larger than %d bytes", from, maxFile)
	}
	// What a description leaves out has the documented default.
	m := &Machine{Reference: Reference{CycleAccurate: true, FixedCycles: 500, HBMScale: 1}}
	if err := descfile.Decode(b, m); err != nil {
		return nil, fmt.Errorf("machine %s: %w", from, err)
	}
	if m.Reference.DMA.DGEClock == 0 {
		m.Reference.DMA.DGEClock = m.Clock.PE
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("machine %s: %w", from, err)
	}
	return m, nil
}

// costForms are the formulas that a Cost may name.
var costForms = []string{"affine", "matmul", "dma", "fixed", "collective", "none"}

// Check reports whether the description is usable, naming the field that is
// not.
func (m *Machine) Check() error {
	if m.Name == "" {
		return errors.New("name is missing")
	}
	for _, c := range []struct {
		field string
		v     int
	}{{"clock.pe", m.Clock.PE}, {"clock.pe_array", m.Clock.PEArray}, {"clock.activation", m.Clock.Activation},
		{"clock.pool", m.Clock.Pool}, {"clock.dve", m.Clock.DVE}, {"clock.sp", m.Clock.SP}, {"reference.dma.dge_clock", m.Reference.DMA.DGEClock}} {
		if c.v < 1 || c.v > 100_000 {
			return fmt.Errorf("%s is %d, not between 1 and 100000 (unit: 10 MHz)", c.field, c.v)
		}
	}
	if b := m.Memory.PSUMBanks; b < 0 || b > 8 {
		return fmt.Errorf("memory.psum_banks is %d, not between 0 and 8", b)
	}
	if n := len(m.Reference.StreamShares); n > 4 {
		return fmt.Errorf("reference.collective_stream_shares has %d entries, more than 4", n)
	}
	for i, s := range m.Reference.StreamShares {
		if !(s >= 0 && s <= 1) {
			return fmt.Errorf("reference.collective_stream_shares[%d] is %v, not between 0 and 1", i, s)
		}
	}
	if r := m.Reference.Reflow; r != "share" && r != "weighted" && r != "none" {
		return fmt.Errorf("reference.collective_reflow is %q, not share, weighted or none", r)
	}
	if s := m.Reference.HBMScale; !(s >= 1e-6 && s <= 1e6) {
		return fmt.Errorf("reference.hbm_scale is %v, not between 1e-6 and 1e6", s)
	}
	if m.Reference.DMA.Div < 1 || m.Reference.DMA.Div8 < 1 {
		return errors.New("reference.dma.div and div8 must be at least 1")
	}
	if e := m.Reference.DMA.Engines; e < 0 || e > 1<<16 {
		return fmt.Errorf("reference.dma.engines is %d, not between 0 and 65536", e)
	}
	for name, c := range m.Reference.Costs {
		if err := c.check(); err != nil {
			return fmt.Errorf("reference.costs.%s: %w", name, err)
		}
	}
	if err := m.Reference.Default.check(); err != nil {
		return fmt.Errorf("reference.default_cost: %w", err)
	}
	if err := m.Calibrated.check(); err != nil {
		return fmt.Errorf("calibrated: %w", err)
	}
	return nil
}

func (c Cost) check() error {
	if !slices.Contains(costForms, c.Form) {
		return fmt.Errorf("form is %q, not one of %s", c.Form, strings.Join(costForms, ", "))
	}
	for _, v := range []float64{c.Mult, c.MultPSUM, c.Mult16, c.Mult32} {
		if !(v >= 0 && v <= 1e6) {
			return fmt.Errorf("a mult is %v, not between 0 and 1e6", v)
		}
	}
	if c.Base < 0 || c.Min < 0 || c.Hop < 0 || c.Base16 < 0 || c.Base32 < 0 {
		return errors.New("base and min must not be negative")
	}
	if c.Mark == "" {
		return errors.New("mark is missing: CONFIRMED, OFFICIAL, INFERRED or OURS")
	}
	return nil
}
