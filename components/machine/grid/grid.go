// Package grid holds descriptions of machines that are many like cores
// rather than one core with engines of several kinds: Tensix grids, on which
// operators lie next to one another, and GPUs, on which they run one after
// another. A description is data, a YAML file; every figure carries where it
// comes from.
package grid

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"perfsim/components/machine/internal/descfile"
)

//go:embed *.yaml
var files embed.FS

// The execution styles.
const (
	// Dataflow machines hold an epoch of operators on rectangles of cores;
	// inputs stream through them.
	Dataflow = "dataflow"
	// Kernels machines run one operator at a time on all cores.
	Kernels = "kernels"
)

// Machine is one description. Clocks are in MHz, rates in bytes per ns
// (GB/s), times in ns.
type Machine struct {
	Name    string   `yaml:"name" json:"name"`
	Title   string   `yaml:"title" json:"title"`
	Aliases []string `yaml:"aliases,omitempty" json:"aliases,omitempty"`
	// Device is the value of the reference benchmark's --device: tt or cuda.
	Device string `yaml:"device" json:"device"`
	// DeviceName is the reference benchmark's name of the device.
	DeviceName string `yaml:"device_name" json:"device_name"`
	Style      string `yaml:"style" json:"style"`

	Rows     int     `yaml:"rows" json:"rows"`
	Cols     int     `yaml:"cols" json:"cols"`
	ClockMHz float64 `yaml:"clock_mhz" json:"clock_mhz"`
	Matrix   Matrix  `yaml:"matrix" json:"matrix"`
	// VectorLanes is how many elements one core's elementwise path does per
	// cycle and operator.
	VectorLanes float64 `yaml:"vector_lanes" json:"vector_lanes"`
	// TranscendentalLanes is the same for exp, tanh, erf, divide, square root.
	TranscendentalLanes float64 `yaml:"transcendental_lanes" json:"transcendental_lanes"`
	Memory              Memory  `yaml:"memory" json:"memory"`
	Overheads           Over    `yaml:"overheads" json:"overheads"`
	// Formats are the data formats by the reference benchmark's names.
	Formats map[string]Format `yaml:"formats" json:"formats"`
	// Fidelity is how many passes of the multiplier a product takes by math
	// fidelity; empty where the machine has no such choice.
	Fidelity map[string]float64 `yaml:"fidelity,omitempty" json:"fidelity,omitempty"`
	// Accumulators are the formats in which products can be added up, by the
	// reference benchmark's names; Accumulator is the one that is used where
	// none is asked for. Empty where the machine has no such choice.
	Accumulators map[string]Accumulator `yaml:"accumulators,omitempty" json:"accumulators,omitempty"`
	Accumulator  string                 `yaml:"accumulator,omitempty" json:"accumulator,omitempty"`
	// Peaks are published peak rates, which the description has to agree with.
	Peaks []Peak `yaml:"peaks" json:"peaks"`
	Watts int    `yaml:"watts" json:"watts"`

	Sources     []string `yaml:"sources" json:"sources"`
	Assumptions []string `yaml:"assumptions" json:"assumptions"`
	Ignores     []string `yaml:"ignores" json:"ignores"`
}

// Matrix is the matrix unit of one core.
type Matrix struct {
	// MACs is the multiply-accumulates per cycle in one pass.
	MACs float64 `yaml:"macs_per_cycle" json:"macs_per_cycle"`
	// Tile is the side of the tiles that sizes are rounded up to.
	Tile int64 `yaml:"tile" json:"tile"`
	// WindowTiles is how many tile products gather a tile of the window of a
	// convolution for each tap, where windows are gathered by products with
	// sparse matrices; 0 where loads gather them.
	WindowTiles float64 `yaml:"window_tiles,omitempty" json:"window_tiles,omitempty"`
	// DenseGroups says that the weights of a convolution in groups are laid out
	// dense, with zeros between the groups, and multiplied so.
	DenseGroups bool   `yaml:"dense_groups,omitempty" json:"dense_groups,omitempty"`
	Mark        string `yaml:"mark" json:"mark"`
}

// Memory has sizes in bytes and rates in bytes per ns.
type Memory struct {
	L1Bytes    int64   `yaml:"l1_bytes" json:"l1_bytes"`             // of one core
	L1Reserved int64   `yaml:"l1_reserved_bytes" json:"l1_reserved"` // code, stacks and pipes
	L1Rate     float64 `yaml:"l1_bytes_per_cycle" json:"l1_rate"`    // of one core, in and out each
	Channels   int     `yaml:"dram_channels" json:"dram_channels"`
	Channel    float64 `yaml:"dram_channel_bytes_per_ns" json:"dram_channel_rate"` // what is reached
	DRAMPeak   float64 `yaml:"dram_peak_bytes_per_ns" json:"dram_peak"`            // what is published
	DRAMBytes  int64   `yaml:"dram_bytes" json:"dram_bytes"`
	HostRate   float64 `yaml:"host_bytes_per_ns" json:"host_rate"`
	Mark       string  `yaml:"mark" json:"mark"`
}

// DRAMRate is the rate of all channels that is reached.
func (m Memory) DRAMRate() float64 { return float64(m.Channels) * m.Channel }

// Over has times that no unit's rate explains.
type Over struct {
	Operator float64 `yaml:"operator_cycles" json:"operator_cycles"` // per operator and input
	Launch   float64 `yaml:"launch_ns" json:"launch_ns"`             // per kernel
	Epoch    float64 `yaml:"epoch_ns" json:"epoch_ns"`               // per change of epoch, without the weights
	// Gap is the ns from one operator's end to the next one's start while a
	// traced program is replayed, once a batch for every operator.
	Gap float64 `yaml:"gap_ns,omitempty" json:"gap_ns,omitempty"`
	// Host is the ns that the host takes for an operator of a batch: it is the
	// time between the device's own and what a user of the model sees.
	Host float64 `yaml:"host_operator_ns,omitempty" json:"host_operator_ns,omitempty"`
	Mark string  `yaml:"mark" json:"mark"`
}

// Format is a data format.
type Format struct {
	Bytes float64 `yaml:"bytes" json:"bytes"` // of one element, shared exponents included
	// Passes multiplies the passes of the multiplier.
	Passes float64 `yaml:"passes" json:"passes"`
	// Emulated names the format that is used in its place, "" where the
	// machine has it.
	Emulated string `yaml:"emulated_as,omitempty" json:"emulated_as,omitempty"`
}

// Accumulator is a format of the registers in which products are added up.
type Accumulator struct {
	// Tiles is how many tiles of results the registers hold while those before
	// are written; operands are read once for as many. 0 where operands are
	// not read tile by tile.
	Tiles int64 `yaml:"tiles,omitempty" json:"tiles,omitempty"`
	// Passes multiplies the passes of the multiplier; 0 is 1.
	Passes float64 `yaml:"passes,omitempty" json:"passes,omitempty"`
	// Of names the data format that it goes with; empty where it goes with all.
	Of string `yaml:"of,omitempty" json:"of,omitempty"`
}

// Accumulate returns the accumulator of a format, or the machine's own where
// name is empty, for products of a data format.
func (m *Machine) Accumulate(name, format string) (Accumulator, error) {
	given := name
	if name == "" {
		name = m.Accumulator
	}
	a, ok := m.Accumulators[name]
	if !ok {
		if given == "" {
			return a, nil
		}
		return a, fmt.Errorf("machine %s does not accumulate in %s; it has %s", m.Name, given, strings.Join(slices.Sorted(maps.Keys(m.Accumulators)), ", "))
	}
	if a.Of != "" && a.Of != format {
		return a, fmt.Errorf("machine %s accumulates in %s only products of %s, not of %s", m.Name, name, a.Of, format)
	}
	return a, nil
}

// Peak is a published peak rate.
type Peak struct {
	TFLOPS   float64 `yaml:"tflops" json:"tflops"`
	Format   string  `yaml:"format" json:"format"`
	Fidelity string  `yaml:"fidelity,omitempty" json:"fidelity,omitempty"`
	// Low is how far the description may stay below it, with the reason.
	Low    float64 `yaml:"low" json:"low"`
	Source string  `yaml:"source" json:"source"`
}

// Cores is the number of cores.
func (m *Machine) Cores() int { return m.Rows * m.Cols }

// Passes returns how many passes of the multiplier a product in a format and
// at a fidelity takes.
func (m *Machine) Passes(format, fidelity string) (float64, error) {
	f, ok := m.Formats[format]
	if !ok {
		return 0, fmt.Errorf("machine %s has no data format %q", m.Name, format)
	}
	p := f.Passes
	if len(m.Fidelity) > 0 {
		k, ok := m.Fidelity[fidelity]
		if !ok {
			return 0, fmt.Errorf("machine %s has no math fidelity %q", m.Name, fidelity)
		}
		p *= k
	}
	return p, nil
}

// TFLOPS returns the peak rate of the description.
func (m *Machine) TFLOPS(format, fidelity string) (float64, error) {
	p, err := m.Passes(format, fidelity)
	return 2 * float64(m.Cores()) * m.Matrix.MACs / p * m.ClockMHz / 1e6, err
}

// Names returns the names of the embedded descriptions, sorted.
func Names() []string { return descfile.Names(files) }

// Load returns the machine called name: an embedded one by name or alias, or
// the description in the file of that name.
func Load(name string) (*Machine, error) {
	m, _, err := load(name)
	return m, err
}

// Text returns the description that Load reads, as it is written.
func Text(name string) ([]byte, error) {
	_, text, err := load(name)
	return text, err
}

// ErrUnknown is in the error of Load for a name that is neither a machine of
// this package nor a file.
var ErrUnknown = errors.New("unknown grid machine")

// maxFile bounds a description.
const maxFile = 1 << 20

func load(name string) (*Machine, []byte, error) {
	for _, n := range Names() {
		text, err := files.ReadFile(n + ".yaml")
		if err != nil {
			return nil, nil, err
		}
		m, err := parse(n+".yaml", text)
		if err != nil {
			return nil, nil, err
		}
		if m.Name == name || slices.Contains(m.Aliases, name) {
			return m, text, nil
		}
	}
	if !strings.ContainsAny(name, "/.") {
		return nil, nil, fmt.Errorf("%w: %q is none of %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, fmt.Errorf("machine: %w", err)
	}
	if info.Size() > maxFile {
		return nil, nil, fmt.Errorf("machine %s: larger than %d bytes", name, maxFile)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("machine: %w", err)
	}
	m, err := parse(name, text)
	return m, text, err
}

// parse reads a description. from names it in errors.
func parse(from string, b []byte) (*Machine, error) {
	m := &Machine{}
	if err := descfile.Decode(b, m); err != nil {
		return nil, fmt.Errorf("machine %s: %w", from, err)
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("machine %s: %w", from, err)
	}
	return m, nil
}

// Check reports whether the description is usable, naming the field that is
// not.
func (m *Machine) Check() error {
	if m.Name == "" {
		return errors.New("name is missing")
	}
	if m.Style != Dataflow && m.Style != Kernels {
		return fmt.Errorf("style is %q, not %s or %s", m.Style, Dataflow, Kernels)
	}
	if m.Device != "tt" && m.Device != "cuda" {
		return fmt.Errorf("device is %q, not tt or cuda", m.Device)
	}
	if m.Rows < 1 || m.Cols < 1 || m.Rows > 64 || m.Cols > 1024 {
		return fmt.Errorf("a grid of %d by %d cores is not between 1x1 and 64x1024", m.Rows, m.Cols)
	}
	if m.Matrix.Tile < 1 || m.Matrix.Tile > 1024 {
		return fmt.Errorf("matrix.tile is %d, not between 1 and 1024", m.Matrix.Tile)
	}
	for _, f := range []struct {
		field string
		v     float64
		zero  bool
	}{
		{"clock_mhz", m.ClockMHz, false}, {"matrix.macs_per_cycle", m.Matrix.MACs, false}, {"vector_lanes", m.VectorLanes, false},
		{"transcendental_lanes", m.TranscendentalLanes, false}, {"memory.l1_bytes", float64(m.Memory.L1Bytes), false},
		{"memory.l1_reserved_bytes", float64(m.Memory.L1Reserved), true}, {"matrix.window_tiles", m.Matrix.WindowTiles, true}, {"memory.l1_bytes_per_cycle", m.Memory.L1Rate, false},
		{"memory.dram_channels", float64(m.Memory.Channels), false}, {"memory.dram_channel_bytes_per_ns", m.Memory.Channel, false},
		{"memory.dram_peak_bytes_per_ns", m.Memory.DRAMPeak, false}, {"memory.dram_bytes", float64(m.Memory.DRAMBytes), false},
		{"memory.host_bytes_per_ns", m.Memory.HostRate, false}, {"overheads.operator_cycles", m.Overheads.Operator, true},
		{"overheads.launch_ns", m.Overheads.Launch, true}, {"overheads.gap_ns", m.Overheads.Gap, true}, {"overheads.host_operator_ns", m.Overheads.Host, true}, {"overheads.epoch_ns", m.Overheads.Epoch, true},
	} {
		if !(f.v > 0 || f.zero && f.v == 0) || math.IsInf(f.v, 0) || f.v > 1e15 {
			return fmt.Errorf("%s is %v, not a positive number", f.field, f.v)
		}
	}
	if m.Memory.L1Reserved >= m.Memory.L1Bytes {
		return errors.New("memory.l1_reserved_bytes leaves nothing of memory.l1_bytes")
	}
	if m.Memory.DRAMRate() > m.Memory.DRAMPeak*1.001 {
		return fmt.Errorf("the memory channels reach %g bytes/ns, more than the peak %g", m.Memory.DRAMRate(), m.Memory.DRAMPeak)
	}
	for name, f := range m.Formats {
		if !(f.Bytes > 0 && f.Bytes <= 16) || !(f.Passes > 0 && f.Passes <= 64) {
			return fmt.Errorf("formats.%s: bytes %v and passes %v are not positive and small", name, f.Bytes, f.Passes)
		}
	}
	for name, a := range m.Accumulators {
		if a.Tiles < 0 || a.Tiles > 1024 || !(a.Passes >= 0 && a.Passes <= 64) {
			return fmt.Errorf("accumulators.%s: tiles %d and passes %v are not positive and small", name, a.Tiles, a.Passes)
		}
		if _, ok := m.Formats[a.Of]; a.Of != "" && !ok {
			return fmt.Errorf("accumulators.%s: no data format %q", name, a.Of)
		}
	}
	if _, ok := m.Accumulators[m.Accumulator]; !ok && (m.Accumulator != "" || len(m.Accumulators) > 0) {
		return fmt.Errorf("accumulator is %q, which is not in accumulators", m.Accumulator)
	}
	for name, k := range m.Fidelity {
		if !(k > 0 && k <= 64) {
			return fmt.Errorf("fidelity.%s is %v, not between 0 and 64", name, k)
		}
	}
	for i, p := range m.Peaks {
		if _, err := m.Passes(p.Format, p.Fidelity); err != nil {
			return fmt.Errorf("peaks[%d]: %w", i, err)
		}
	}
	if len(m.Sources) == 0 {
		return errors.New("sources are missing")
	}
	return nil
}
