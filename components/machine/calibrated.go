package machine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Calibrated has the constants of the fitted model; systems/calibrated says
// what each means.
type Calibrated struct {
	// Scaled says that the constants are another machine's, scaled by
	// documented clocks and rates; empty where they were measured here.
	Scaled string `yaml:"scaled,omitempty" json:",omitzero"`
	// Ops has the data-path costs by "Engine.OPCODE".
	Ops map[string]CalibratedOp `yaml:"ops,omitempty" json:",omitzero"`
	// Constants by name, in the unit the name ends with.
	Constants map[string]Constant `yaml:"constants,omitempty" json:",omitzero"`
}

// The marks of calibrated constants. Each names its source, which the
// description's sources give in full.
const (
	MarkFitted     = "FITTED"     // from measured profiles
	MarkLaw        = "LAW"        // from measured instruction laws: start-up and ns an element of single instructions
	MarkDocumented = "DOCUMENTED" // published by the vendor, not identified by the profiles
	MarkScaled     = "SCALED"     // another machine's, by documented clocks and rates
	MarkOurs       = "OURS"       // chosen by this project
)

// Constant is one constant of the calibrated model with how well it is known.
type Constant struct {
	Value   float64 `yaml:"value"`
	Samples int     `yaml:"n,omitempty" json:",omitzero"`      // measurements it was fitted to
	Spread  float64 `yaml:"spread,omitempty" json:",omitzero"` // median absolute deviation of the measurements
	Mark    string  `yaml:"mark"`
}

// CalibratedOp is the cost of one case of a data-path operation on one engine,
// for N elements per partition: the issue interval is max(Min, PerElem×N +
// Base) cycles of the engine's clock, and the result is visible LatencyNs after
// it. Its key in Calibrated.Ops is read by ParseOpCase.
type CalibratedOp struct {
	PerElem   float64 `yaml:"per_elem"`
	Base      float64 `yaml:"base"`
	Min       float64 `yaml:"min,omitempty" json:",omitzero"`
	LatencyNs float64 `yaml:"latency_ns"`
	// SpacingBase is the least distance of two results of the engine, less
	// PerElem×N, in cycles; 0 for none.
	SpacingBase float64 `yaml:"spacing_base,omitempty" json:",omitzero"`
	// Block is cycles for each square of 32 partitions by 32 elements where an
	// instruction covers several; 0 where only N counts.
	Block   float64 `yaml:"block,omitempty" json:",omitzero"`
	Samples int     `yaml:"n,omitempty" json:",omitzero"`
	Spread  float64 `yaml:"spread_ns,omitempty" json:",omitzero"`
	Mark    string  `yaml:"mark"`
}

// Constant returns the value of a constant and whether there is one.
func (c *Calibrated) Constant(name string) (float64, bool) {
	v, ok := c.Constants[name]
	return v.Value, ok
}

// Names returns the names of the constants, sorted.
func (c *Calibrated) Names() []string { return slices.Sorted(maps.Keys(c.Constants)) }

// OpNames returns the names of the operations, sorted.
func (c *Calibrated) OpNames() []string { return slices.Sorted(maps.Keys(c.Ops)) }

// most bounds a constant: nothing in the model takes longer than a second or
// more than a billion cycles.
const most = 1e9

func (c *Calibrated) check() error {
	bad := func(v float64) bool { return !(v >= 0 && v <= most) }
	for _, name := range c.Names() {
		k := c.Constants[name]
		if bad(k.Value) || math.IsNaN(k.Spread) {
			return fmt.Errorf("constants.%s is %v, not between 0 and %g", name, k.Value, most)
		}
		if err := checkMark(k.Mark); err != nil {
			return fmt.Errorf("constants.%s: %w", name, err)
		}
	}
	for _, name := range c.OpNames() {
		o := c.Ops[name]
		if _, err := ParseOpCase(name); err != nil {
			return fmt.Errorf("ops: %w", err)
		}
		for _, v := range []float64{o.PerElem, o.Base, o.Min, o.LatencyNs, o.SpacingBase, o.Block} {
			if bad(v) {
				return fmt.Errorf("ops.%s has %v, not between 0 and %g", name, v, most)
			}
		}
		if err := checkMark(o.Mark); err != nil {
			return fmt.Errorf("ops.%s: %w", name, err)
		}
	}
	return nil
}

func checkMark(mark string) error {
	switch mark {
	case MarkFitted, MarkLaw, MarkDocumented, MarkScaled, MarkOurs:
		return nil
	case "":
		return errNoMark
	}
	return fmt.Errorf("mark %q is not FITTED, LAW, DOCUMENTED, SCALED or OURS", mark)
}

var errNoMark = errors.New("mark is missing: FITTED, LAW, DOCUMENTED, SCALED or OURS")

// Marshal returns the description as YAML that Parse reads back. Comments of
// a file it was read from are lost.
func (m *Machine) Marshal() ([]byte, error) { return yaml.Marshal(m) }
