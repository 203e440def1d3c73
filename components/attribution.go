package components

import (
	"cmp"
	"slices"

	"perfsim/ecs"
)

// Cause is the reason why an instruction did not start earlier, or why a lane
// was idle.
type Cause uint8

// The causes. Where several bind at once the one listed first is named, so
// that an anti-dependency is named only where nothing else would have held
// the instruction as long.
const (
	CauseStart     Cause = iota // nothing: it starts with its block
	CauseLane                   // the instruction before it on its lane
	CauseFlow                   // a read-after-write dependency
	CauseOutput                 // a write-after-write dependency
	CauseOrdered                // an ordering edge
	CauseBank                   // a PSUM bank still in use
	CauseCoupling               // another engine that shares a port
	CauseRing                   // a full DMA ring
	CauseBarrier                // a barrier's lanes
	CauseSemaphore              // a semaphore for which no dependency stands
	CauseAnti                   // a write-after-read dependency
	CauseTransfer               // a DMA transfer in flight, where the model times it apart from its instruction
	CauseModel                  // the model's own delay: synchronisation, queues, clocks
	NumEventCauses

	// Of lanes only.
	CauseNotStarted = NumEventCauses     // before the lane's first instruction
	CauseDrained    = NumEventCauses + 1 // behind its last
	NumCauses       = NumEventCauses + 2
)

var causeNames = [NumCauses]string{"start", "lane", "flow", "output", "ordered", "bank", "coupling", "ring", "barrier", "semaphore", "anti",
	"transfer", "model", "not started", "drained"}

var causeTexts = [NumCauses]string{"starts with its block", "the lane was busy", "Flow dependency", "Output dependency",
	"Ordered dependency", "PSUM bank in use", "engine coupling", "DMA ring full", "barrier", "semaphore", "Anti dependency", "DMA transfer in flight",
	"synchronisation and other delays of the model", "before the first instruction", "after the last instruction"}

// String returns the short name, as queries and tables use it.
func (c Cause) String() string {
	if c < NumCauses {
		return causeNames[c]
	}
	return "model"
}

// Text returns the cause in words.
func (c Cause) Text() string {
	if c < NumCauses {
		return causeTexts[c]
	}
	return causeTexts[CauseModel]
}

// ParseCause returns the cause with the given short name or text.
func ParseCause(name string) (Cause, bool) {
	for c, n := range causeNames {
		if n == name || causeTexts[c] == name {
			return Cause(c), true
		}
	}
	return 0, false
}

// CauseOfKind returns the cause that an edge of kind k is.
func CauseOfKind(k EdgeKind) Cause {
	switch k {
	case Flow:
		return CauseFlow
	case Output:
		return CauseOutput
	case Anti:
		return CauseAnti
	}
	return CauseOrdered
}

// Attribution says for every instruction of one run why it started when it
// did.
type Attribution struct {
	Run Run
	// Cause is the binding constraint: the one that was released last.
	Cause ecs.Column[Cause]
	// Pred is the instruction that held it, NoInstr where there is none.
	Pred ecs.Column[InstrID]
	// Gap is how long after the binding constraint released the instruction
	// started, in ns. It is absent where that is never: a model whose starts
	// are not all explained by lanes, dependencies and resources fills it.
	Gap ecs.Column[uint64]
	// Visible is when what waits for the instruction may go on, in ns. It is
	// absent where that follows from the events: see Events.Arrive.
	Visible ecs.Column[uint64]
	// Others lists, in program order, the instructions held by an
	// anti-dependency, and what would have held them without any.
	Others []Other
}

// Other is the latest constraint of an instruction apart from
// anti-dependencies.
type Other struct {
	Instr InstrID
	Pred  InstrID // NoInstr where nothing does
	At    uint64  // when it releases, in ns
}

// NewAttribution returns an empty table.
func NewAttribution() Attribution {
	return Attribution{Cause: ecs.NewColumn[Cause]("attribution.cause"), Pred: ecs.NewColumn[InstrID]("attribution.pred"),
		Gap: ecs.NewColumn[uint64]("attribution.gap"), Visible: ecs.NewColumn[uint64]("attribution.visible")}
}

// Other returns what would have held instruction i without
// anti-dependencies, and whether i is held by one.
func (a *Attribution) Other(i InstrID) (Other, bool) {
	k, ok := slices.BinarySearchFunc(a.Others, i, func(o Other, i InstrID) int { return cmp.Compare(o.Instr, i) })
	if !ok {
		return Other{}, false
	}
	return a.Others[k], true
}

// GapCause names the delay after the binding constraint of i released: a
// transfer where the instruction that held i only triggers one.
func (a *Attribution) GapCause(m *Module, i InstrID) Cause {
	if p := a.Pred.At(int(i)); p != NoInstr && m.Instr.Flags.At(int(p))&FlagTrigger != 0 && a.Cause.At(int(i)) != CauseLane {
		return CauseTransfer
	}
	return CauseModel
}
