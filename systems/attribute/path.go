package attribute

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Step is one instruction on the critical path of a block: from From to
// Until the time of the block is its own. Then it lets the next step go; Via
// is the constraint, and Gap the time the model takes behind it, which
// belongs to nobody else. The last step's Via is CauseStart and its Until the
// makespan. Where a loop is placed as often as it runs, its last iteration is
// on the path as it is; the time of those before is that of the steps that
// repeat in it, each with its share.
type Step struct {
	step
	// Counted and CountedGap are the two stretches as counted time.
	Counted, CountedGap uint64
}

// step is the part of a Step that a path keeps.
type step struct {
	Instr components.InstrID
	Via   components.Cause
	From  uint64
	Until uint64
	Gap   uint64
	// Trips is how often the step runs: in all iterations but the last, in one
	// piece, or once.
	Trips uint64
	// Own is the time of the step in one iteration, in ns.
	Own uint64
}

// Path is the critical path of one block: Lead, the steps with the gaps
// between them, and Tail, in time order, tile the time from 0 to the
// makespan.
type Path struct {
	Block int // row of the block table
	Times uint64
	Steps []components.InstrID
	// Lead is the time before the first step: 0 where the model's rules
	// explain all starts.
	Lead uint64
	// Tail is the time behind the last step: 0 but for models in which the end
	// of a block is not the end of an instruction.
	Tail uint64

	b     *block
	a     *components.Attribution
	scale *scale
	steps []step
	// entries has what was before the bodies that repeat, as block.repeats.
	entries [][]components.InstrID
}

// CriticalPath follows the binding constraints of every block that o asks for
// from the instruction that ends last back to the start. Of several that end
// last the first in program order is taken.
func CriticalPath(ctx context.Context, w *components.World, rules place.Rules, a *components.Attribution, o Options) ([]*Path, error) {
	rows, times := o.blocks(w.Module)
	out := make([]*Path, len(rows))
	for n, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := newBlock(w, rules, a.Run, row)
		p := &Path{Block: row, Times: times[n], b: b, a: a, scale: newScale(b, o.Window), entries: entries(b)}
		p.follow()
		out[n] = p
	}
	return out, nil
}

func (p *Path) follow() {
	last, latest := components.NoInstr, uint64(0)
	for i := p.b.first; i < p.b.end; i++ {
		if p.b.loop(i) {
			continue
		}
		if _, end := p.b.spanOf(i); end > latest || last == components.NoInstr {
			last, latest = components.InstrID(i), end
		}
	}
	p.Tail = p.b.span - min(p.b.span, latest)
	if last == components.NoInstr {
		p.Lead, p.Tail = p.b.span, 0
		return
	}
	p.reserve(last)
	p.Lead = p.back(uint32(last), latest)
	slices.Reverse(p.steps)
	p.Steps = make([]components.InstrID, len(p.steps))
	for n := range p.steps {
		p.Steps[n] = p.steps[n].Instr
	}
}

// reserve makes room for the steps up to the last where no body repeats: they
// are then the rows that held one another, and a long list that grows as it is
// made takes several times its memory.
func (p *Path) reserve(last components.InstrID) {
	if len(p.b.repeats) > 0 {
		return
	}
	n := 0
	for pred := p.a.Pred.Slice(); last != components.NoInstr; last = pred[last] {
		n++
	}
	p.steps = make([]step, 0, n)
}

// Span returns the makespan of the block, and as counted time.
func (p *Path) Span() (ns, counted uint64) { return p.b.span, p.scale.between(0, p.b.span) }

// CountedLead returns the counted time before the first step.
func (p *Path) CountedLead() uint64 { return p.scale.between(0, p.Lead) }

// CountedTail returns the counted time behind the last step.
func (p *Path) CountedTail() uint64 { return p.scale.between(p.b.span-p.Tail, p.b.span) }

// Visit calls f with every step, in time order.
func (p *Path) Visit(f func(Step)) {
	for _, s := range p.steps {
		f(p.counted(s))
	}
}

// counted adds the stretches of a step as counted time.
func (p *Path) counted(s step) Step {
	return Step{s, p.scale.between(s.From, s.Until), p.scale.between(s.Until, s.Until+s.Gap)}
}

// GapCause names the delay behind step n of the path.
func (p *Path) GapCause(n int) components.Cause {
	if n+1 >= len(p.Steps) {
		return components.CauseModel
	}
	return p.a.GapCause(p.b.m, p.Steps[n+1])
}

// Class sorts the time of the critical path by what would have to be better.
type Class uint8

// The classes.
const (
	ClassCompute Class = iota // an engine works at its issue rate
	ClassMemory               // a DMA transfer, or a wait for its ring
	ClassComm                 // a collective
	ClassLatency              // a result is waited for that the engine no longer works on
	ClassAnti                 // a buffer is still being read
	ClassSync                 // barriers, ordering, sequencer instructions, the model's delays
	ClassRuntime              // instructions that the runtime puts around the program
	ClassHost                 // a thread of the host works; the device waits for it
	NumClasses
)

var classNames = [NumClasses]string{"compute", "memory", "communication", "latency", "anti-dependency", "sync", "runtime", "host"}

// String returns the name of the class.
func (c Class) String() string {
	if c < NumClasses {
		return classNames[c]
	}
	return "sync"
}

// Pattern identifies steps of the critical path that repeat the same work.
type Pattern struct {
	Lane   uint16
	Opcode components.Opcode
	Where  ecs.Symbol
	Via    components.Cause
	// Runtime says that the runtime put the instruction around the program.
	Runtime bool
}

func patternOf(m *components.Module, s Step) Pattern {
	return Pattern{m.Instr.Lane.At(int(s.Instr)), m.Instr.Opcode.At(int(s.Instr)), Where(m, s.Instr), s.Via, ofRuntime(m, s.Instr)}
}

// PatternSum is the sum over the steps of a pattern.
type PatternSum struct {
	Pattern
	Time    uint64             // counted ns, gaps excluded
	Count   uint64             // of steps
	Works   uint64             // of steps that do not continue another
	Example components.InstrID // the longest, the first of equals
	longest uint64
}

// PathReport has the parts of the critical path, in counted ns.
type PathReport struct {
	Span  uint64 // all of it: the counted makespan
	Steps uint64 // how many, as counted
	// Lead is before the first steps, Tail behind the last; Gaps are the
	// delays behind binding constraints, by cause. With what the steps take,
	// by lane or opcode or Via, they add up to Span; Classes include them.
	Lead     uint64
	Tail     uint64
	Gaps     [components.NumCauses]uint64
	Classes  [NumClasses]uint64
	Lanes    []uint64 // by lane
	Opcodes  []uint64 // by opcode
	Via      [components.NumCauses]uint64
	Hops     [components.NumCauses]uint64 // how often
	Where    []WhereSum                   // by place in the program, longest first
	Patterns []PatternSum                 // longest first
}

// WhereSum is the time of the steps from one place.
type WhereSum struct {
	Where   ecs.Symbol
	Time    uint64
	Count   uint64 // of steps that do not continue another
	Example components.InstrID
}

// Bound returns the class that most of the path belongs to, and its time. What
// the runtime puts around a program is nobody's to change and never the
// answer.
func (r *PathReport) Bound() (Class, uint64) {
	best := Class(0)
	for c := range NumClasses {
		if c != ClassRuntime && r.Classes[c] > r.Classes[best] {
			best = c
		}
	}
	return best, r.Classes[best]
}

// Report adds up the critical paths of blocks.
func Report(m *components.Module, paths []*Path) *PathReport {
	r := &PathReport{Lanes: make([]uint64, m.Lanes.Len()), Opcodes: make([]uint64, m.NumOpcodes())}
	patterns := map[Pattern]*PatternSum{}
	places := map[ecs.Symbol]*WhereSum{}
	for _, p := range paths {
		r.ends(m, p)
		n := 0
		p.Visit(func(s Step) {
			r.step(m, p, s, p.GapCause(n))
			n++
			key := patternOf(m, s)
			works := s.Trips * p.Times
			if m.Instr.Flags.At(int(s.Instr)).Has(components.FlagContinued) {
				works = 0 // part of what is counted already
			}
			t := patterns[key]
			if t == nil {
				t = &PatternSum{Pattern: key, Example: s.Instr}
				patterns[key] = t
			}
			t.Time += s.Counted * p.Times
			t.Count += s.Trips * p.Times
			t.Works += works
			if d := s.Own; d > t.longest {
				t.longest, t.Example = d, s.Instr
			}
			u := places[key.Where]
			if u == nil {
				u = &WhereSum{Where: key.Where, Example: s.Instr}
				places[key.Where] = u
			}
			u.Time += s.Counted * p.Times
			u.Count += works
		})
	}
	for _, t := range patterns {
		r.Patterns = append(r.Patterns, *t)
	}
	slices.SortFunc(r.Patterns, func(a, b PatternSum) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Example, b.Example), cmp.Compare(a.Via, b.Via))
	})
	for _, u := range places {
		r.Where = append(r.Where, *u)
	}
	slices.SortFunc(r.Where, func(a, b WhereSum) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Example, b.Example))
	})
	return r
}

// ends adds the span of a path and what is before its first step and behind
// its last.
func (r *PathReport) ends(m *components.Module, p *Path) {
	_, span := p.Span()
	r.Span += span * p.Times
	lead := p.CountedLead() * p.Times
	r.Lead += lead
	tail := p.CountedTail() * p.Times
	r.Tail += tail
	if len(p.Steps) > 0 && ofRuntime(m, p.Steps[0]) {
		r.Classes[ClassRuntime] += lead
	} else {
		r.Classes[ClassSync] += lead
	}
	r.Classes[tailClass(m, p)] += tail
}

// step adds a step of a path; behind names the delay behind it.
func (r *PathReport) step(m *components.Module, p *Path, s Step, behind components.Cause) {
	i := int(s.Instr)
	time, gap := s.Counted*p.Times, s.CountedGap*p.Times
	r.Steps += s.Trips * p.Times
	r.Lanes[m.Instr.Lane.At(i)] += time
	r.Opcodes[m.Instr.Opcode.At(i)] += time
	r.Via[s.Via] += time
	r.Hops[s.Via] += s.Trips * p.Times
	if gap > 0 {
		r.Gaps[behind] += gap
	}
	classify(&r.Classes, m, p, s, behind)
}

// classify adds the time of a step and of the delay behind it to its classes.
func classify(sum *[NumClasses]uint64, m *components.Module, p *Path, s Step, behind components.Cause) {
	time, gap := s.Counted*p.Times, s.CountedGap*p.Times
	switch {
	case gap == 0:
	case ofRuntime(m, s.Instr):
		sum[ClassRuntime] += gap
	case behind == components.CauseTransfer:
		sum[ClassMemory] += gap
	default:
		sum[ClassSync] += gap
	}
	class := stepClass(m, s)
	if class == ClassCompute && s.Via != components.CauseLane {
		// Beyond its issue interval an engine only waits for its own pipeline.
		work := p.scale.between(s.From, min(s.From+p.b.occupancy(uint32(s.Instr)), s.Until)) * p.Times
		if s.Trips > 1 {
			work = ecs.MulDiv(time, min(p.b.occupancy(uint32(s.Instr)), s.Own), max(s.Own, 1))
		}
		sum[ClassCompute] += work
		sum[ClassLatency] += time - work
		return
	}
	sum[class] += time
}

// ofRuntime reports whether the runtime put instruction i before or behind the
// program, as far as the input says.
func ofRuntime(m *components.Module, i components.InstrID) bool {
	return m.Instr.CompilerPC.Len() > 0 && m.Instr.CompilerPC.At(int(i)) == 0
}

// tailClass is the class of what is behind the last step: a transfer where
// that only triggers one.
func tailClass(m *components.Module, p *Path) Class {
	if n := len(p.Steps); n > 0 && m.Instr.Flags.At(int(p.Steps[n-1]))&components.FlagTrigger != 0 {
		return ClassMemory
	}
	return ClassSync
}

// OfHost reports whether a lane is a thread of the host, as the reader of
// traces names them.
func OfHost(m *components.Module, lane uint16) bool {
	return strings.Contains(m.LaneName(lane), " host")
}

// stepClass is the class of a step's time, ClassCompute standing for both
// compute and latency.
func stepClass(m *components.Module, s Step) Class {
	i := int(s.Instr)
	flags := m.Instr.Flags.At(i)
	lane := int(m.Instr.Lane.At(i))
	kind := m.Lanes.Kind.At(lane)
	switch {
	case ofRuntime(m, s.Instr):
		return ClassRuntime
	case s.Via == components.CauseAnti:
		return ClassAnti
	case flags&components.FlagCollective != 0 || kind == components.LaneStream:
		return ClassComm
	case s.Via == components.CauseRing || flags&components.FlagTrigger != 0 || kind == components.LaneDMAQueue:
		return ClassMemory
	case kind == components.LaneEngine && m.Lanes.Engine.At(lane) == components.DMA:
		return ClassMemory
	case s.Via == components.CauseBarrier || flags&(components.FlagBarrier|components.FlagSequencer) != 0 || s.Via == components.CauseOrdered:
		return ClassSync
	case kind == components.LaneThread && OfHost(m, uint16(lane)):
		return ClassHost
	}
	return ClassCompute
}
