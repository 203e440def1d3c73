package place

import (
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
)

// This file is the home of the placement rules. Placement (place.go), the
// attribution of causes and slack (package attribute), explain and what-if
// read them here. Two loops repeat a part of them for speed, and tests hold
// both equal to it: rows in place.go (lane and edges) and the assembly of
// walk_amd64.s (lane, edges, banks and couplings).
//
// A rule that makes an instruction wait for a shared resource is a row of
// Table with two functions: the slots for which an instruction waits, and the
// slots that it takes. A slot is free again when the last instruction that
// took it leaves its lane or ends.

// Rule describes one placement rule.
type Rule struct {
	Cause components.Cause // the cause of an instruction that the rule holds
	Doc   string           // the rule, in one sentence
	// Params are the parameters of the machine description that it reads,
	// under their what-if names.
	Params []string
	// Constraint is the name under which explain lists what the rule holds, and
	// which drop=… of a what-if takes; "" for the order of a lane and for flow,
	// which explain lists as the work that is waited for.
	Constraint string
	// Edges is the kind of the dependencies of the rule in drop=KIND of a
	// what-if, and Class their class; "" where the rule is none of dependencies.
	Edges string
	Class uint8
	// Name and Switch are those of a rule that a what-if turns on and off.
	Name   string
	Switch func(*Rules) *bool

	waits func(r *Rules, s *site, dst []Wait) []Wait
	takes func(r *Rules, s *site, dst []Take) []Take
}

// Table lists all rules, in the order in which equal bounds are named as the
// cause: the first wins.
func Table() []Rule { return table[:] }

var table = [...]Rule{
	{Cause: components.CauseLane, Doc: "An engine takes its instructions in program order: the next one starts when the one before it has left the lane, an issue interval after its start.",
		Params: []string{"issue.*"}, waits: waitLane, takes: takeLane},
	{Cause: components.CauseFlow, Doc: "A reader starts when the result of the writer has arrived: at its end, for a DMA trigger at its start.",
		Params: []string{"latency.*"}},
	{Cause: components.CauseOutput, Doc: "A second writer starts when the result of the first has arrived.",
		Params: []string{"latency.*"}, Constraint: "output dependencies", Edges: "output", Class: components.ClassOutput},
	{Cause: components.CauseOrdered, Doc: "An ordered instruction starts when the one before it has left its lane; after a DMA trigger when the transfer has ended; after a collective, where it is itself a collective or runs on Pool, when that collective's inputs had arrived.",
		Params: []string{"issue.*"}, Constraint: "ordering edges", Edges: "ordered", Class: components.ClassOrdered},
	{Cause: components.CauseBank, Doc: "An instruction that writes a PSUM bank starts when the last user of the bank has left its lane; where the input does not name the bank, when the last such write of the core has.",
		Constraint: "PSUM banks", Name: "banks", Switch: func(r *Rules) *bool { return &r.Banks }, waits: waitBanks, takes: takeBanks},
	{Cause: components.CauseCoupling, Doc: "DVE and Pool share a port: neither starts before the other has left its lane. Activation starts when the PSUM writes of both have ended.",
		Constraint: "engine couplings", Name: "couplings", Switch: func(r *Rules) *bool { return &r.Couplings }, waits: waitCoupled, takes: takePSUM},
	{Cause: components.CauseRing, Doc: "A DMA trigger on a full ring starts when the oldest transfer in flight has left its queue.",
		Params: []string{"queue.*"}, Constraint: "DMA ring depth", Name: "rings", Switch: func(r *Rules) *bool { return &r.Rings }},
	{Cause: components.CauseBarrier, Doc: "A barrier starts when Activation, DVE, PE, Pool and SP have left their lanes.",
		Constraint: "barriers", waits: waitBarrier},
	{Cause: components.CauseAnti, Doc: "A writer starts when the last reader of the old value has ended. Run B leaves these edges out.",
		Params: []string{"latency.*"}, Constraint: "anti-dependencies", Edges: "anti", Class: components.ClassAnti},
}

// Rules are the rules of one model on one machine.
type Rules struct {
	// Banks serialises the writers of a PSUM bank.
	Banks bool
	// Couplings are those of NeuronCore-v2.
	Couplings bool
	// Rings bounds DMA queues by their depth.
	Rings bool
	// Shares is the bandwidth share of each collective stream.
	Shares []float64
	// Reflow stretches a collective that overlaps others (see collective.go).
	Reflow bool
	// ReflowWeight, where not 0, stretches it by that times the time for which
	// it overlaps others.
	ReflowWeight float64
	// Inputs lets an ordered edge from a collective to another collective or
	// to Pool count from when the first one's inputs had arrived.
	Inputs bool
	// DMA has the constants of triggered transfers.
	DMA machine.DMACost
	// OverlapDMA is the overlap window of a transfer in ns.
	OverlapDMA uint32
	// Queues are the queue classes of the documented simulator.
	Queues []machine.Queue
}

// RulesOf returns the rules of a model on a machine, for a module that is no
// trace of the documented simulator.
func RulesOf(model components.Model, mach *machine.Machine) Rules {
	if model != components.Reference {
		return Rules{}
	}
	r := &mach.Reference
	return Rules{Banks: true, Couplings: r.Couplings, Inputs: true, Rings: true, Shares: r.StreamShares, Reflow: r.Reflow != "none", ReflowWeight: r.ReflowWeight(),
		DMA: r.DMA, OverlapDMA: r.OverlapDMA, Queues: r.Queues}
}

// RulesFor returns the rules by which Run places the world. A replayed trace
// of the documented simulator keeps the rules that its durations do not show:
// the shares of collectives are in the durations, queues are not in a trace.
func RulesFor(w *components.World) Rules {
	if w.Config.Model == components.Replay && w.Module.Attribute(cost.DocumentedTrace) != "" {
		return Rules{Banks: true, Couplings: w.Machine.Reference.Couplings, Inputs: true}
	}
	return RulesOf(w.Config.Model, w.Machine)
}

// Slot is a resource that one instruction holds at a time: a lane, the PSUM
// write port of a lane, or a PSUM bank of a core.
type Slot uint32

// Slots numbers the slots of a module with that many lanes.
type Slots int

// Lane returns the slot of lane l.
func (n Slots) Lane(l uint16) Slot { return Slot(l) }

// PSUM returns the slot of the PSUM writes of lane l.
func (n Slots) PSUM(l uint16) Slot { return Slot(int(n) + int(l)) }

// Bank returns the slot of PSUM bank k of the core of lane l.
func (n Slots) Bank(l uint16, k int) Slot {
	return n.BankAt(int(l/components.LanesPerCore)*numBanks + k)
}

// BankAt returns the slot of bank k, counted over all cores.
func (n Slots) BankAt(k int) Slot { return Slot(2*int(n) + k) }

// Chain returns the slot of the PSUM writes of the core of lane l whose banks
// are not known.
func (n Slots) Chain(l uint16) Slot { return n.BankAt(n.ChainAt(int(l) / components.LanesPerCore)) }

// ChainAt returns the number of that slot of a core among those of banks.
func (n Slots) ChainAt(core int) int { return n.cores()*numBanks + core }

// Len returns the number of slots.
func (n Slots) Len() int { return 2*int(n) + n.Banks() }

// Banks returns the number of slots of PSUM banks of all cores, one a core for
// banks that are not known among them.
func (n Slots) Banks() int { return n.cores() * (numBanks + 1) }

func (n Slots) cores() int { return int(n)/components.LanesPerCore + 1 }

// numBanks is the number of PSUM banks of a core.
const numBanks = 8

// Wait is a slot that an instruction must find free before it starts.
type Wait struct {
	Slot  Slot
	Cause components.Cause
}

// Take is a slot that an instruction takes.
type Take struct {
	Slot Slot
	// AtEnd: the slot is free when the instruction ends, else when it leaves
	// its lane.
	AtEnd bool
}

// site is everything that the rules of slots may look at in an instruction.
type site struct {
	slots   Slots
	lane    uint16
	first   uint16 // first lane of the core
	barrier bool
	banks   uint16 // read in the low byte, written in the high one
	works   bool   // it has a latency, so it does use its banks
	chained bool   // writes PSUM in banks that are not known
}

// Chained reports whether an instruction writes PSUM and its banks are not
// known: the documented simulator then goes by the list psum_writer_chain. Its
// contents are not published; here it is the last of these writes of the core.
func Chained(flags components.Flags, banks uint16) bool {
	return flags&components.FlagDstPSUM != 0 && banks>>numBanks == 0
}

// Resources finds the slots of the instructions of one module under one set of
// rules. Most instructions use no bank and are no barrier; what they wait for
// and take depends on their lane alone and is worked out once.
type Resources struct {
	rules *Rules
	m     *components.Module
	slots Slots
	plain []struct {
		waits []Wait
		takes []Take
	} // by lane
	site site // of the last instruction asked for
	// others has the slots of those that are not plain, each where the hash of
	// its site has it: few sites make most rows. It is made when it is needed.
	others *[numOthers]other
}

// other is what an instruction that is not plain waits for and takes.
type other struct {
	site  site // slots is 0 where there is none
	waits []Wait
	takes []Take
}

const numOthers = 128

// at returns the place of the site.
func (x *Resources) at() *other {
	if x.others == nil {
		x.others = new([numOthers]other)
	}
	s := &x.site
	h := uint32(s.banks)*0x9e3779b1 ^ uint32(s.lane)*0x85ebca77
	if s.works {
		h ^= 0xc2b2ae3d
	}
	o := &x.others[h>>25]
	if o.site != *s {
		o.site, o.waits, o.takes = *s, s.waits(x.rules, o.waits[:0]), s.takes(x.rules, o.takes[:0])
	}
	return o
}

// Resources returns the slots of the instructions of m under r.
func (r *Rules) Resources(m *components.Module) *Resources {
	x := &Resources{rules: r, m: m, slots: Slots(m.Lanes.Len())}
	x.site.slots = x.slots
	x.plain = make([]struct {
		waits []Wait
		takes []Take
	}, x.slots)
	for l := range x.plain {
		s := site{slots: x.slots, lane: uint16(l), first: coreOf(uint16(l))}
		x.plain[l].waits, x.plain[l].takes = s.waits(r, nil), s.takes(r, nil)
	}
	return x
}

// Waits returns the slots for which instruction i waits, in the order of
// Table, until the next call.
func (x *Resources) Waits(i uint32) []Wait {
	if x.look(i) {
		return x.plain[x.site.lane].waits
	}
	return x.at().waits
}

// Takes returns the slots that instruction i takes, until the next call.
func (x *Resources) Takes(i uint32) []Take {
	if x.look(i) {
		return x.plain[x.site.lane].takes
	}
	return x.at().takes
}

// MayTake is Takes whatever instruction i costs: one without a latency takes
// its lane only.
func (x *Resources) MayTake(i uint32) []Take {
	if x.look(i) {
		return x.plain[x.site.lane].takes
	}
	x.site.works = true
	return x.at().takes
}

// look makes i the site and reports whether it is plain.
func (x *Resources) look(i uint32) (plain bool) {
	in := &x.m.Instr
	x.site.lane, x.site.banks = in.Lane.At(int(i)), in.Banks.At(int(i))
	flags := in.Flags.At(int(i))
	x.site.barrier, x.site.chained = flags&components.FlagBarrier != 0, x.rules.Banks && Chained(flags, x.site.banks)
	if x.site.banks == 0 && !x.site.barrier && !x.site.chained {
		return true
	}
	x.site.first, x.site.works = coreOf(x.site.lane), in.Latency.At(int(i)) > 0
	return false
}

func (s *site) waits(r *Rules, dst []Wait) []Wait {
	for n := range table {
		if f := table[n].waits; f != nil {
			dst = f(r, s, dst)
		}
	}
	return dst
}

func (s *site) takes(r *Rules, dst []Take) []Take {
	for n := range table {
		if f := table[n].takes; f != nil {
			dst = f(r, s, dst)
		}
	}
	return dst
}

func waitLane(_ *Rules, s *site, dst []Wait) []Wait {
	if s.barrier {
		return dst // see waitBarrier
	}
	return append(dst, Wait{s.slots.Lane(s.lane), components.CauseLane})
}

func takeLane(_ *Rules, s *site, dst []Take) []Take {
	return append(dst, Take{Slot: s.slots.Lane(s.lane)})
}

func waitBanks(r *Rules, s *site, dst []Wait) []Wait {
	if s.chained {
		return append(dst, Wait{s.slots.Chain(s.lane), components.CauseBank})
	}
	if written := s.banks >> numBanks; r.Banks && written != 0 {
		for k := range numBanks {
			if written>>k&1 != 0 {
				dst = append(dst, Wait{s.slots.Bank(s.lane, k), components.CauseBank})
			}
		}
	}
	return dst
}

func takeBanks(_ *Rules, s *site, dst []Take) []Take {
	if s.chained && s.works {
		dst = append(dst, Take{Slot: s.slots.Chain(s.lane)})
	}
	if used := s.banks | s.banks>>numBanks; used != 0 && s.works {
		for k := range numBanks {
			if used>>k&1 != 0 {
				dst = append(dst, Take{Slot: s.slots.Bank(s.lane, k)})
			}
		}
	}
	return dst
}

func waitCoupled(r *Rules, s *site, dst []Wait) []Wait {
	if !r.Couplings || int(s.first)+components.LanesPerCore > int(s.slots) {
		return dst
	}
	pool, dve := s.first+components.LanePool, s.first+components.LaneDVE
	switch s.lane - s.first {
	case components.LaneDVE:
		return append(dst, Wait{s.slots.Lane(pool), components.CauseCoupling})
	case components.LanePool:
		return append(dst, Wait{s.slots.Lane(dve), components.CauseCoupling})
	case components.LaneActivation:
		return append(dst, Wait{s.slots.PSUM(dve), components.CauseCoupling}, Wait{s.slots.PSUM(pool), components.CauseCoupling})
	}
	return dst
}

func takePSUM(_ *Rules, s *site, dst []Take) []Take {
	if s.banks>>numBanks == 0 && !s.chained || !s.works {
		return dst
	}
	return append(dst, Take{Slot: s.slots.PSUM(s.lane), AtEnd: true})
}

func waitBarrier(_ *Rules, s *site, dst []Wait) []Wait {
	if !s.barrier {
		return dst
	}
	for _, e := range [...]uint16{components.LaneActivation, components.LaneDVE, components.LanePE, components.LanePool, components.LaneSP} {
		if int(s.first+e) < int(s.slots) {
			dst = append(dst, Wait{s.slots.Lane(s.first + e), components.CauseBarrier})
		}
	}
	return dst
}

// Release says when the producer of an ordered edge lets its consumer start.
type Release uint8

// The releases of ordered edges.
const (
	AtLeave  Release = iota // when it leaves its lane
	AtEnd                   // when it ends
	AtInputs                // when its own inputs had arrived
)

// Ordered returns when producer p of an ordered edge lets i start.
func (r *Rules) Ordered(m *components.Module, i, p uint32) Release {
	in := &m.Instr
	from, to := in.Flags.At(int(p)), in.Flags.At(int(i))
	switch {
	case from&components.FlagTrigger != 0:
		return AtEnd
	case r.Inputs && from&components.FlagCollective != 0 &&
		// The documented rule names an engine; that of the timeline is taken.
		(to&components.FlagCollective != 0 || in.Lane.At(int(i))%components.LanesPerCore == components.LanePool):
		return AtInputs
	case r.Shared(m, p):
		return AtEnd
	}
	return AtLeave
}

// Shared reports whether instruction i is a collective whose duration follows
// from its share of a bandwidth. It keeps its lane until its end.
func (r *Rules) Shared(m *components.Module, i uint32) bool {
	return r.Shares != nil && m.Instr.Flags.At(int(i))&(components.FlagCollective|components.FlagLocal) == components.FlagCollective
}

// Ring returns the DMA ring in which instruction i takes an entry and its
// depth; depth is 0 where i is no trigger or its ring is unbounded.
func (r *Rules) Ring(m *components.Module, i uint32) (key uint16, depth int) {
	if !r.Rings || m.Instr.Flags.At(int(i))&components.FlagTrigger == 0 || r.Shared(m, i) {
		return 0, 0
	}
	return ringOf(m, r, i)
}

// coreOf returns the first lane of the core that lane l belongs to.
func coreOf(l uint16) uint16 { return l / components.LanesPerCore * components.LanesPerCore }
