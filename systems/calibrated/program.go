package calibrated

import (
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
)

// kind is the model's treatment of an instruction.
type kind uint8

const (
	kindData    kind = iota // on the engine's data path
	kindControl             // by the sequencer
	kindDrain               // by the sequencer, waits for the data path
	kindLoad                // PE: weights
	kindStream              // PE: moving tensor
	kindMatmul              // PE: both, the compiler's matmul
	kindHW                  // triggers a transfer with hardware descriptors
	kindSW                  // triggers a transfer with software descriptors
	kindStatic              // triggers a transfer whose descriptors were made before the run
	kindOther               // a lane that is no engine's: collectives
	kindBarrier             // waits for all engines of its core
	kindNone                // takes no time
	kindLoop                // not placed
)

// transfers reports whether instructions of the kind trigger a transfer.
func (k kind) transfers() bool { return k == kindHW || k == kindSW || k == kindStatic }

// program is the module as the model sees it: static columns by row.
type program struct {
	m       *components.Module
	c       *Constants
	nominal *cost.Nominal
	cycle   float64 // ns of the PE array's clock

	kind  []kind
	group []uint16 // the sequencer that takes the instruction
	// shape is the row of costs of a data-path instruction, of products of one
	// of the PE, of transfers of one that triggers a transfer: few differ, and
	// every run asks for them.
	shape     []uint32
	costs     []rowCost
	products  []product
	transfers []transfer
	// lists has the rows of every sequencer, loops left out.
	lists [][]uint32
	loops bool // there are some

	groups []group
	cores  []uint16 // that execute something, in the order of their first rows
	// control is the duration of control instructions by engine and opcode,
	// negative where the description has none.
	control [components.NumEngines][]float64
	gap     [components.NumEngines][]float64 // by class of this and the next instruction
	class   []uint8                          // by opcode
	wide    []bool                           // by opcode: a register load
	// wideClass is the gap class of loads of several registers.
	wideClass uint8
	classes   int

	syncs bool // synchronised by semaphores
	sems  int
	sem   []uint32 // by row of the Syncs table
	// wait is the value to wait for by run and row of the Syncs table, noWait
	// for none: what other cores or the runtime raise is taken as there, and
	// run B leaves out what only anti-dependencies need.
	wait [2][]int64
}

// group is one sequencer: an engine of a core, or a lane without an engine.
type group struct {
	engine components.Engine
	core   uint16
	unit   uint16 // place of the core in program.cores
	lane   uint16 // plus one: a lane that is no engine's
}

// classData is the gap class of data-path instructions; control opcodes have
// one each from 1 on.
const classData = 0

// newProgram classifies every instruction.
func newProgram(m *components.Module, mach *machine.Machine, c *Constants) *program {
	return programOf(m, mach, c, true)
}

// programOf is newProgram, with the semaphores of the module or without.
func programOf(m *components.Module, mach *machine.Machine, c *Constants, semaphores bool) *program {
	p := &program{m: m, c: c, nominal: cost.NewNominal(m, mach), cycle: 100 / float64(mach.Clock.PEArray)}
	n := m.Instr.Len()
	p.kind = make([]kind, n)
	p.group = make([]uint16, n)
	p.tables(mach)

	in := &m.Instr
	lane, flags, opcode := in.Lane.Slice(), in.Flags.Slice(), in.Opcode.Slice()
	ops := make([]opKind, m.NumOpcodes())
	for op := range ops {
		ops[op] = kindOf(m.OpcodeName(components.Opcode(op)))
	}
	// The group of (lane, engine), plus one, so that the rows need no map.
	seen := make([]uint16, m.Lanes.Len()*int(components.NumEngines))
	for i := range n {
		k, e, other := p.classify(i, ops[opcode[i]], flags[i])
		slot := &seen[int(lane[i])*int(components.NumEngines)+int(e)]
		if other || *slot == 0 {
			core := m.Lanes.Core.At(int(lane[i]))
			g := group{engine: e, core: core, unit: p.unit(core)}
			if other {
				g.lane = lane[i] + 1
			}
			at := uint16(slices.Index(p.groups, g) + 1)
			if at == 0 {
				p.groups = append(p.groups, g)
				at = uint16(len(p.groups))
			}
			*slot = at
		}
		p.kind[i], p.group[i] = k, *slot-1
		if other {
			*slot = 0
		}
	}
	p.listRows()
	p.shapes()
	if semaphores {
		p.readSyncs()
	}
	return p
}

// listRows lists the rows of every sequencer, in program order.
func (p *program) listRows() {
	count := make([]int, len(p.groups))
	for i, g := range p.group {
		if p.kind[i] == kindLoop {
			p.loops = true
			continue
		}
		count[g]++
	}
	p.lists = make([][]uint32, len(p.groups))
	all := make([]uint32, len(p.group))
	for g, n := range count {
		p.lists[g], all = all[:0:n], all[n:]
	}
	for i, g := range p.group {
		if p.kind[i] != kindLoop {
			p.lists[g] = append(p.lists[g], uint32(i))
		}
	}
}

// rowsOf returns the rows of sequencer g among rows lo to hi.
func (p *program) rowsOf(g int, lo, hi uint32) []uint32 {
	list := p.lists[g]
	first, _ := slices.BinarySearch(list, lo)
	last, _ := slices.BinarySearch(list, hi)
	return list[first:last]
}

// unit returns the place of a core in p.cores. What is kept by core is kept by
// this place, because the numbers of cores are the input's own.
func (p *program) unit(core uint16) uint16 {
	at := slices.Index(p.cores, core)
	if at < 0 {
		at = len(p.cores)
		p.cores = append(p.cores, core)
	}
	return uint16(at)
}

type opKind uint8

const (
	opData opKind = iota
	opControl
	opDrain
	opDMA
	opNone
)

// kindOf returns the kind of an opcode by its name: those of the hardware as
// profiles name them and those of the compiler.
func kindOf(name string) opKind {
	switch name {
	case "DRAIN", "Drain":
		return opDrain
	case "EVENT_SEMAPHORE", "EVENT_SEMAPHORE_RANGE_CLEAR", "NOP", "NOTIFY", "WRITE", "SET_ORDERING_MODE", "COMPARE_BRANCH", "BRANCH_HINT",
		"BRANCH_PREFETCH_HINT", "TENSOR_LOAD", "TENSOR_SAVE", "MOVE", "ALU_OP", "HALT", "ACT_TABLE_LOAD",
		"EventSemaphore", "GroupResetSemaphores", "NoOp", "Halt", "RegisterAlu", "RegisterMove", "TensorLoad", "TensorSave", "LoadActFuncSet",
		"CompareAndBranch", "UnconditionalBranch", "BranchHint", "Return", "Exit", "Break", "Call":
		return opControl
	case "Load", "Save", "DMACopy", "DMA", "DMATrigger", "GenericIndirectLoad", "IndirectLoad", "GenericIndirectSave", "IndirectSave",
		"IndirectSaveAccumulate", "DMADescriptorCopy", "DMADescriptorCCE", "DMADescriptorTranspose", "DMADescriptorReplicate":
		return opDMA
	case "ReadVarAddr", "DMADescriptor", "DMABlock", "Terminator", "SwitchQueueInstance", "ResetQueueInstance", "GetGlobalRankId",
		"GetCurProcessingRankID", "TensorCompletion", "DevicePrint":
		return opNone
	}
	if strings.HasPrefix(name, "DMA_") {
		return opDMA
	}
	return opData
}

// controlName is the hardware name of a control opcode of the compiler.
var controlName = map[string]string{"Drain": "DRAIN", "EventSemaphore": "EVENT_SEMAPHORE", "GroupResetSemaphores": "EVENT_SEMAPHORE_RANGE_CLEAR",
	"NoOp": "NOP", "RegisterAlu": "ALU_OP", "RegisterMove": "MOVE", "TensorLoad": "TENSOR_LOAD", "TensorSave": "TENSOR_SAVE",
	"LoadActFuncSet": "ACT_TABLE_LOAD", "CompareAndBranch": "COMPARE_BRANCH", "UnconditionalBranch": "COMPARE_BRANCH", "BranchHint": "BRANCH_HINT"}

// classify returns the kind of instruction i and the engine whose sequencer
// takes it; other says that it belongs to a lane of its own.
func (p *program) classify(i int, op opKind, flags components.Flags) (k kind, e components.Engine, other bool) {
	in := &p.m.Instr
	e = in.Engine.At(i)
	if k, e, ok := transferKind(p.m, i, op); ok {
		return k, e, false
	}
	switch {
	case flags&components.FlagLoop != 0:
		return kindLoop, sequencer(e), false
	case flags&components.FlagBarrier != 0:
		return kindBarrier, sequencer(e), false
	case flags&components.FlagCollective != 0 && flags&components.FlagLocal == 0:
		return kindOther, components.Pool, true
	case op == opNone:
		return kindNone, sequencer(e), false
	case op == opDrain:
		return kindDrain, sequencer(e), false
	case op == opControl || flags&components.FlagSequencer != 0:
		return kindControl, sequencer(e), false
	}
	if e == components.PE {
		switch p.nominal.PE(i) {
		case cost.PELoad:
			return kindLoad, e, false
		case cost.PEStream:
			return kindStream, e, false
		case cost.PEBoth:
			return kindMatmul, e, false
		}
	}
	return kindData, sequencer(e), false
}

// sequencer is the engine that takes an instruction of engine e: what has
// none of its own goes to SP.
func sequencer(e components.Engine) components.Engine {
	switch e {
	case components.Pool, components.Activation, components.PE, components.DVE:
		return e
	}
	return components.SP
}

// tables looks the control durations and gaps up once per opcode.
func (p *program) tables(mach *machine.Machine) {
	m := p.m
	n := m.NumOpcodes()
	p.class = make([]uint8, n)
	p.wide = make([]bool, n)
	names := []string{"data"}
	byName := map[string]uint8{"data": classData}
	for op := range n {
		name := m.OpcodeName(components.Opcode(op))
		name = Class(name)
		if _, ok := byName[name]; !ok && len(names) < 250 {
			byName[name] = uint8(len(names))
			names = append(names, name)
		}
		p.class[op] = byName[name]
		p.wide[op] = name == "TENSOR_LOAD"
	}
	names = append(names, WideLoad)
	p.classes, p.wideClass = len(names), uint8(len(names)-1)
	byName[WideLoad] = p.wideClass
	for _, e := range engines {
		k := &p.c.Engine[e]
		control := slices.Repeat([]float64{k.Chain}, len(names))
		gap := slices.Repeat([]float64{k.Gap}, len(names)*len(names))
		prefix := "seq." + e.String() + "."
		for name, v := range mach.Calibrated.Constants {
			what, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			if what, ok = strings.CutSuffix(what, "_ns"); !ok {
				continue
			}
			if pair, ok := strings.CutPrefix(what, "gap."); ok {
				if a, b, ok := gapClasses(byName, pair); ok {
					gap[int(a)*len(names)+int(b)] = v.Value
				}
			} else if c, ok := byName[what]; ok {
				control[c] = v.Value
			}
		}
		p.gap[e] = gap
		p.control[e] = make([]float64, n)
		for op := range n {
			p.control[e][op] = control[p.class[op]]
		}
	}
}

// gapClasses takes the name of a pair of classes apart, which are joined by a
// dot and may have dots in them.
func gapClasses(byName map[string]uint8, pair string) (before, after uint8, ok bool) {
	for i := range len(pair) {
		if pair[i] != '.' {
			continue
		}
		a, okA := byName[pair[:i]]
		b, okB := byName[pair[i+1:]]
		if okA && okB {
			return a, b, true
		}
	}
	return 0, 0, false
}

// gapAfter is the time from the end of instruction i on its sequencer to the
// start of the next one, j.
func (p *program) gapAfter(e components.Engine, i, j uint32) float64 {
	op := p.m.Instr.Opcode.Slice()
	before := p.class[op[i]]
	if p.isWide(i) {
		before = p.wideClass
	}
	return p.gap[e][int(before)*p.classes+int(p.class[op[j]])]
}

// isWide reports whether instruction i loads more than one register.
func (p *program) isWide(i uint32) bool {
	return p.wide[p.m.Instr.Opcode.At(int(i))] && p.m.Instr.Elems.At(int(i)) > 1
}

// WideLoad is the class of register loads of more than one register.
const WideLoad = "TENSOR_LOAD.wide"

// Class is the name under which control durations and gaps of an opcode are
// kept: "data" for the data path, "DMA" for triggers, the hardware's name of
// a control operation.
func Class(opcode string) string {
	switch kindOf(opcode) {
	case opDMA:
		return "DMA"
	case opData, opNone:
		return "data"
	}
	if h, ok := controlName[opcode]; ok {
		return h
	}
	return opcode
}
