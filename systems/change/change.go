// Package change gives single instructions of a module other work or other
// costs, for a caller that predicts many variants of one module.
package change

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// Change is the difference of one instruction; a nil field leaves it as it is.
type Change struct {
	// Instruction is the name of the instruction, or #ROW.
	Instruction string `json:"instruction"`

	Opcode     *string `json:"opcode,omitempty"`          // new opcode
	Engine     *string `json:"engine,omitempty"`          // of the same core
	DType      *string `json:"dtype,omitempty"`           // of the first input
	Elements   *uint32 `json:"elements,omitempty"`        // new elements per partition
	OutElems   *uint32 `json:"output_elements,omitempty"` // of a partition
	Partitions *uint16 `json:"partitions,omitempty"`      // new number of partitions
	DMABytes   *uint64 `json:"dma_bytes,omitempty"`       // new bytes of a transfer

	// IssueNS and LatencyNS replace what the model says.
	IssueNS   *uint32 `json:"issue_ns,omitempty"`
	LatencyNS *uint32 `json:"latency_ns,omitempty"`
}

// Apply changes instructions of m, whose columns may be shared: those that
// change become the module's own. It returns the costs that the changes give.
func Apply(m *components.Module, list []Change, model components.Model) ([]components.RowCost, error) {
	rows, err := find(m, list)
	if err != nil {
		return nil, err
	}
	e := editor{m: m, model: model}
	for n := range list {
		if err := e.edit(rows[n], &list[n]); err != nil {
			return nil, misfit(n, list, err)
		}
	}
	return e.costs, nil
}

// misfit is the error of change n, which does not fit the module.
func misfit(n int, list []Change, err error) error {
	return fmt.Errorf("change %d (%q): %w", n+1, list[n].Instruction, err)
}

// find returns the row of every change in one pass over the names.
func find(m *components.Module, list []Change) ([]components.InstrID, error) {
	rows := make([]components.InstrID, len(list))
	byName := map[string][]int{}
	for n := range list {
		name := list[n].Instruction
		s, ok := strings.CutPrefix(name, "#")
		if !ok {
			byName[name] = append(byName[name], n)
			continue
		}
		row, err := strconv.ParseUint(s, 10, 32)
		if err != nil || row >= uint64(m.Instr.Len()) {
			return nil, misfit(n, list, fmt.Errorf("rows go from #0 to #%d", m.Instr.Len()-1))
		}
		rows[n] = components.InstrID(row)
	}
	if len(byName) == 0 {
		return rows, nil
	}
	const unseen = components.NoInstr
	for _, at := range byName {
		for _, n := range at {
			rows[n] = unseen
		}
	}
	var buf []byte
	for i := range m.Instr.Len() {
		buf = m.AppendInstrName(buf[:0], components.InstrID(i))
		for _, n := range byName[string(buf)] {
			if rows[n] != unseen {
				return nil, misfit(n, list, fmt.Errorf("rows #%d and #%d have this name: give the row", rows[n], i))
			}
			rows[n] = components.InstrID(i)
		}
	}
	if n := slices.Index(rows, unseen); n >= 0 {
		return nil, misfit(n, list, fmt.Errorf("no instruction has this name"))
	}
	return rows, nil
}

// editor changes rows of a module with copies of its columns.
type editor struct {
	m     *components.Module
	model components.Model
	own   map[string]bool // columns that are copies
	costs []components.RowCost
}

// structural are the flags of instructions whose opcode and engine the
// placement goes by.
const structural = components.FlagLoop | components.FlagTrigger | components.FlagTransfer | components.FlagBarrier | components.FlagCollective

func (e *editor) edit(i components.InstrID, c *Change) error {
	m, in := e.m, &e.m.Instr
	if c.Opcode != nil || c.Engine != nil {
		if in.Flags.At(int(i))&structural != 0 || in.Opcode.At(int(i)).IsControl() {
			return fmt.Errorf("a loop, transfer, trigger, barrier, collective or control instruction keeps its opcode and engine")
		}
	}
	sized := c.Elements != nil || c.OutElems != nil || c.Partitions != nil || c.DMABytes != nil || c.DType != nil
	if lo, hi := m.Operands.Range(i); sized && e.model == components.Calibrated && lo < hi {
		return fmt.Errorf("the calibrated model goes by the access patterns of the instruction, which no change reaches: send the changed module, or take the reference model")
	}
	if e.model == components.Replay && (sized || c.Opcode != nil) {
		return fmt.Errorf("the replay model goes by the durations of the input: change issue_ns or latency_ns")
	}
	if c.Opcode != nil {
		op, err := opcode(m, *c.Opcode)
		if err != nil {
			return err
		}
		set(e, &in.Opcode, i, op)
	}
	if c.Engine != nil {
		engine, ok := components.ParseEngine(*c.Engine)
		lane := in.Lane.At(int(i))/components.LanesPerCore*components.LanesPerCore + uint16(engine)
		if !ok || int(lane) >= m.Lanes.Len() || m.Lanes.Engine.At(int(lane)) != engine || m.Lanes.Kind.At(int(lane)) != components.LaneEngine {
			return fmt.Errorf("%q is no engine of the instruction's core", *c.Engine)
		}
		set(e, &in.Engine, i, engine)
		set(e, &in.Lane, i, lane)
	}
	if c.DType != nil {
		d, ok := components.ParseDType(*c.DType)
		if !ok {
			return fmt.Errorf("element type %q is not known", *c.DType)
		}
		set(e, &in.DType, i, d)
	}
	if c.Elements != nil {
		set(e, &in.Elems, i, *c.Elements)
	}
	if c.Partitions != nil {
		set(e, &in.Parts, i, *c.Partitions)
	}
	if c.OutElems != nil {
		if in.OutElems.Len() == 0 {
			return fmt.Errorf("the module has no output sizes: change elements")
		}
		set(e, &in.OutElems, i, *c.OutElems)
	}
	if c.DMABytes != nil {
		if in.DMABytes.Len() == 0 {
			return fmt.Errorf("the module has no transfer sizes in bytes: change elements and partitions")
		}
		set(e, &in.DMABytes, i, *c.DMABytes)
	}
	if c.IssueNS != nil || c.LatencyNS != nil {
		if e.model == components.Calibrated {
			return fmt.Errorf("the calibrated model times work by the state of the machine: issue_ns and latency_ns are for the reference and the replay model")
		}
		if in.Flags.At(int(i))&components.FlagLoop != 0 {
			return fmt.Errorf("a loop has no cost of its own")
		}
		e.costs = append(e.costs, components.RowCost{Row: i, Issue: c.IssueNS, Latency: c.LatencyNS})
	}
	return nil
}

// opcode returns the opcode called name that is work of an engine.
func opcode(m *components.Module, name string) (components.Opcode, error) {
	for op := range components.Opcode(m.NumOpcodes()) {
		if m.OpcodeName(op) != name {
			continue
		}
		if op.IsControl() || op.IsLoop() || op.IsDMA() || op.IsCollective() {
			return 0, fmt.Errorf("opcode %s moves data or control: dependencies would have to follow, send the changed module", name)
		}
		return op, nil
	}
	return 0, fmt.Errorf("opcode %q is not known", name)
}

// set writes row i of a column that is copied first where it may be shared.
func set[T ecs.Fixed](e *editor, c *ecs.Column[T], i components.InstrID, v T) {
	if !e.own[c.Name()] {
		if e.own == nil {
			e.own = map[string]bool{}
		}
		e.own[c.Name()] = true
		c.Adopt(slices.Clone(c.Slice()))
	}
	c.Set(int(i), v)
}
