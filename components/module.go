package components

import (
	"fmt"
	"slices"
	"strconv"

	"perfsim/ecs"
)

// Module is one program: every table that a reader fills.
type Module struct {
	Name   string
	Format string // format it was read from: "birjson", "neuronprofile", …
	Arch   string // architecture the input names: "gen3", "trn2", …; "" where it names none
	// Attributes are the input's own remarks about the module, in its order.
	Attributes []Attribute

	Symbols    *ecs.Symbols
	Opcodes    []string // names of the opcodes from NumOpcodes on
	Instr      Instructions
	Edges      Edges
	Operands   Operands
	Syncs      Syncs
	Locations  Locations
	Blocks     Blocks
	Functions  Functions
	Lanes      Lanes
	Queues     Queues
	Packets    Packets
	Windows    Windows
	SemUpdates SemUpdates

	// Base is not 0 in a window: a module that holds some rows of another one at
	// a time. It is the row that row 0 is there.
	Base uint32

	// Notes are remarks of the reader: things kept but not understood,
	// assumptions made. Not errors.
	Notes []Note

	opcodeOf map[string]Opcode
}

// Attribute is one named remark.
type Attribute struct{ Key, Value string }

// Note is one remark of a reader or system, with the number of its occurrences.
type Note struct {
	Code  string `json:"code"` // stable, for machines: "unknown-opcode"
	Text  string `json:"text"`
	Count int    `json:"count"` // how often
}

// NewModule returns an empty module with the given lanes: one Neuron core.
func NewModule(name, format string) *Module {
	return &Module{
		Name: name, Format: format, Symbols: ecs.NewSymbols(),
		Instr: newInstructions(), Edges: newEdges(), Operands: newOperands(), Syncs: newSyncs(), Locations: newLocations(),
		Blocks: newBlocks(), Functions: newFunctions(), Lanes: newLanes(), Queues: newQueues(), Packets: newPackets(),
		Windows: newWindows(), SemUpdates: newSemUpdates(),
	}
}

// coreLaneNames are the lanes of a Neuron core in SimEngineId order.
var coreLaneNames = [LanesPerCore]string{"Unassigned", "Pool", "Activation", "PE", "DMA", "DVE", "SP", "ALL",
	"CCStream0", "CCStream1", "CCStream2", "CCStream3"}

// AddCoreLanes adds the twelve lanes of a Neuron core and returns the first.
// Lane first+e is the lane of engine e; first+LaneCC0+s that of stream s.
// Lanes of core 0 carry bare names, those of others a prefix "nc<core>.".
func (m *Module) AddCoreLanes(core uint16) uint16 {
	first := uint16(m.Lanes.Len())
	for i, n := range coreLaneNames {
		engine, kind := Engine(i), LaneEngine
		if i >= int(LaneCC0) {
			engine, kind = Pool, LaneStream
		}
		if core > 0 {
			n = fmt.Sprintf("nc%d.%s", core, n)
		}
		m.Lanes.Add(m.Symbols.InternString(n), engine, kind, core)
	}
	return first
}

// Opcode returns the number of the opcode with the given name, giving a new
// one to a name that is neither the compiler's nor known to the module.
func (m *Module) Opcode(name string) Opcode {
	if m.opcodeOf == nil {
		m.opcodeOf = make(map[string]Opcode, int(NumOpcodes)+len(m.Opcodes))
		for i, n := range opcodeNames {
			m.opcodeOf[n] = Opcode(i)
		}
		for i, n := range m.Opcodes {
			m.opcodeOf[n] = NumOpcodes + Opcode(i)
		}
	}
	if op, ok := m.opcodeOf[name]; ok {
		return op
	}
	op := NumOpcodes + Opcode(len(m.Opcodes))
	if int(op) != int(NumOpcodes)+len(m.Opcodes) {
		op = OpcodeGeneric // more than 65,000 distinct names: no longer opcodes
		return op
	}
	m.Opcodes = append(m.Opcodes, name)
	m.opcodeOf[name] = op
	return op
}

// NumInstructions returns how many instructions the input had: the rows but
// those of transfers.
func (m *Module) NumInstructions() int {
	n := m.Instr.Len()
	for _, f := range m.Instr.Flags.Slice() {
		n -= int(f & FlagTransfer / FlagTransfer)
	}
	return n
}

// NumOpcodes returns how many opcode numbers are in use.
func (m *Module) NumOpcodes() int { return int(NumOpcodes) + len(m.Opcodes) }

// OpcodeName returns the name of an opcode of this module.
func (m *Module) OpcodeName(op Opcode) string {
	if op < NumOpcodes {
		return opcodeNames[op]
	}
	if i := int(op - NumOpcodes); i < len(m.Opcodes) {
		return m.Opcodes[i]
	}
	return "Unknown"
}

// InstrName returns the name of an instruction; an instruction without one
// is called "I-" and its row.
func (m *Module) InstrName(i InstrID) string { return string(m.AppendInstrName(nil, i)) }

// AppendInstrName appends the instruction's name to dst.
func (m *Module) AppendInstrName(dst []byte, i InstrID) []byte {
	if s := m.Instr.Name.Get(int(i)); s != 0 {
		return append(dst, m.Symbols.Bytes(s)...)
	}
	dst = append(dst, "I-"...)
	return strconv.AppendUint(dst, uint64(uint32(i)+m.Base), 10)
}

// LaneName returns the name of a lane.
func (m *Module) LaneName(l uint16) string { return m.Symbols.String(m.Lanes.Name.Get(int(l))) }

// BlockName returns the name of a block, FunctionName that of a function.
func (m *Module) BlockName(b int) string { return m.Symbols.String(m.Blocks.Name.Get(b)) }

// FunctionName returns the name of a function.
func (m *Module) FunctionName(f int) string { return m.Symbols.String(m.Functions.Name.Get(f)) }

// Attribute returns the value of an attribute, "" where the module has none
// of that name.
func (m *Module) Attribute(key string) string {
	for _, a := range m.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// SetAttribute sets the attribute of this name, which is then the only one.
func (m *Module) SetAttribute(key, value string) {
	m.Attributes = slices.DeleteFunc(slices.Clone(m.Attributes), func(a Attribute) bool { return a.Key == key })
	m.Attributes = append(m.Attributes, Attribute{key, value})
}

// Note counts a remark: equal code and text become one.
func (m *Module) Note(code, text string, count int) {
	for i := range m.Notes {
		if m.Notes[i].Code == code && m.Notes[i].Text == text {
			m.Notes[i].Count += count
			return
		}
	}
	m.Notes = append(m.Notes, Note{code, text, count})
}

// HasNote reports whether the module has a note of a code.
func (m *Module) HasNote(code string) bool {
	return slices.ContainsFunc(m.Notes, func(n Note) bool { return n.Code == code })
}

// TopBlocks returns the rows of the blocks that are simulated on their own:
// those that belong to no loop.
func (m *Module) TopBlocks() []int {
	var out []int
	for b, p := range m.Blocks.Parent.Slice() {
		if p == 0 {
			out = append(out, b)
		}
	}
	return out
}

// HasMeasurement reports whether the input brought measured times.
func (m *Module) HasMeasurement() bool { return m.Instr.MeasuredStart.Len() > 0 }

// HasDurations reports whether the input brought durations, with measured
// starts or, like execution graphs, without.
func (m *Module) HasDurations() bool { return m.Instr.MeasuredDur.Len() > 0 }

// MeasuredSpan returns the measured time from the start of the first
// instruction to the end of the last, in ns, and whether there is one.
func (m *Module) MeasuredSpan() (uint64, bool) {
	if !m.HasMeasurement() || m.Instr.Len() == 0 {
		return 0, false
	}
	lo, hi := ^uint64(0), uint64(0)
	dur := m.Instr.MeasuredDur.Slice()
	for i, s := range m.Instr.MeasuredStart.Slice() {
		lo = min(lo, s)
		hi = max(hi, s+uint64(dur[i]))
	}
	return hi - lo, true
}

// Columns lists every column of the module: what the snapshot saves.
func (m *Module) Columns() []ecs.AnyColumn {
	return slices.Concat(m.Symbols.Columns(), m.Instr.Columns(), m.Edges.Columns(), m.Operands.Columns(), m.Syncs.Columns(),
		m.Locations.Columns(), m.Blocks.Columns(), m.Functions.Columns(), m.Lanes.Columns(), m.Queues.Columns(),
		m.Packets.Columns(), m.Windows.Columns(), m.SemUpdates.Columns())
}

// Bytes returns the memory the columns take.
func (m *Module) Bytes() int64 {
	var n int64
	for _, c := range m.Columns() {
		n += c.Bytes()
	}
	return n
}
