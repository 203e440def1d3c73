package explain

import (
	"fmt"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/internal/overlap"
)

// Lint is something a person who knows the machine would look at.
type Lint struct {
	Code  string  `json:"code"`
	Text  string  `json:"text"`
	Value float64 `json:"value"` // what was found
	Limit float64 `json:"limit"` // from where on it is worth a look
	Count uint64  `json:"count"` // instructions that the advice is about, weighted
	Place Place   `json:"place"` // where it costs most
	// Worth is by how much the prediction falls without what was found, nil where
	// the model cannot leave it out. Try is the setting of whatif that does.
	Worth      *uint64  `json:"worth_ns"`
	WorthShare *float64 `json:"worth_share"` // worth_ns over latency_ns
	Try        string   `json:"try,omitempty"`

	less   *trial // the prediction without what was found, nil where it is another one
	change func(c *components.World)
	refill bool // change sets what costs follow from
}

// The limits. Those of transposes, spill reloads and rows are the ones the
// vendor's guides give; the others are ours.
const (
	limitTranspose = 0.10 // of the PE's issue time
	limitReload    = 0.25 // of the bytes read from device memory
	limitShortRows = 0.10 // of the DMA transfers
	shortRow       = 512  // bytes
	limitSlowClock = 0.25 // of the PE's time with work, lost to a slow clock
	limitHalfClock = 0.50 // of the measured time
)

// lints looks for them all.
func (x *Analysis) lints(r *Report, path *attribute.PathReport) []Lint {
	var out []Lint
	for _, l := range []*Lint{x.transposes(), x.reloads(), x.shortRows(), x.slowClock(r), x.halfClock(), x.falseDependencies(path)} {
		if l != nil {
			out = append(out, *l)
		}
	}
	return out
}

// heaviest remembers the place with the largest sum.
type heaviest struct {
	sums map[ecs.Symbol]uint64
	at   map[ecs.Symbol]components.InstrID
}

func newHeaviest() *heaviest {
	return &heaviest{map[ecs.Symbol]uint64{}, map[ecs.Symbol]components.InstrID{}}
}

func (h *heaviest) add(m *components.Module, i components.InstrID, v uint64) {
	s := attribute.Where(m, i)
	if _, ok := h.at[s]; !ok {
		h.at[s] = i
	}
	h.sums[s] += v
}

func (h *heaviest) place(m *components.Module, count uint64) Place {
	best, found := ecs.Symbol(0), false
	for s, v := range h.sums {
		if !found || v > h.sums[best] || v == h.sums[best] && h.at[s] < h.at[best] {
			best, found = s, true
		}
	}
	if !found {
		return Place{Count: count}
	}
	return Place{Source: symbolOf(m, best), Instruction: m.InstrName(h.at[best]), Count: count}
}

// transposes is the share of the PE's issue time that goes to transposing.
func (x *Analysis) transposes() *Lint {
	m := x.World.Module
	var all, some, count uint64
	h := newHeaviest()
	engine, flags, issue := m.Instr.Engine.Slice(), m.Instr.Flags.Slice(), m.Instr.Issue.Slice()
	for i, e := range engine {
		if e != components.PE {
			continue
		}
		all += uint64(issue[i])
		if flags[i]&components.FlagTranspose != 0 {
			some += uint64(issue[i])
			count++
			h.add(m, components.InstrID(i), uint64(issue[i]))
		}
	}
	if share(some, all) <= limitTranspose {
		return nil
	}
	pick := func(i int) bool { return engine[i] == components.PE && flags[i]&components.FlagTranspose != 0 }
	return x.without(&Lint{Code: "transposes", Value: share(some, all), Limit: limitTranspose, Count: count, Place: h.place(m, count),
		Text: fmt.Sprintf("transposes take %.0f %% of the PE's time; load transposed by DMA, or change the layout", 100*share(some, all))}, pick)
}

// reloads is the share of reads from device memory that bring spilled data
// back.
func (x *Analysis) reloads() *Lint {
	m := x.World.Module
	var all, some, count uint64
	h := newHeaviest()
	for i, f := range m.Instr.Flags.Slice() {
		if f&components.FlagSrcDRAM == 0 {
			continue
		}
		b := m.Instr.DMABytes.Get(i)
		all += b
		if f&components.FlagSpill != 0 {
			some += b
			count++
			h.add(m, components.InstrID(i), b)
		}
	}
	if share(some, all) <= limitReload {
		return nil
	}
	pick := func(i int) bool { return m.Instr.Flags.At(i)&components.FlagSpill != 0 }
	return x.without(&Lint{Code: "spill-reloads", Value: share(some, all), Limit: limitReload, Count: count, Place: h.place(m, count),
		Text: fmt.Sprintf("%.0f %% of what is read from device memory was spilled there; use smaller tiles or fewer live ones", 100*share(some, all))}, pick)
}

// shortRows is the share of DMA transfers that move short rows.
func (x *Analysis) shortRows() *Lint {
	m := x.World.Module
	var all, count uint64
	h := newHeaviest()
	for i, row := range m.Instr.DMARow.Slice() {
		if row == 0 {
			continue
		}
		all++
		if row < shortRow {
			count++
			h.add(m, components.InstrID(i), m.Instr.DMABytes.Get(i)/uint64(row))
		}
	}
	if share(count, all) <= limitShortRows {
		return nil
	}
	return &Lint{Code: "short-dma-rows", change: x.longRows(), refill: true, Value: share(count, all), Limit: limitShortRows, Count: count, Place: h.place(m, count),
		Text: fmt.Sprintf("%.0f %% of the DMA transfers move rows under %d bytes, each at the cost of a longer one; make the innermost dimension longer",
			100*share(count, all), shortRow)}
}

// slowClock is the share of the PE's time with work that a slow clock takes.
func (x *Analysis) slowClock(r *Report) *Lint {
	m := x.World.Module
	var busy, lost uint64
	for _, e := range r.Engines {
		if m.Lanes.Engine.At(int(e.Lane)) == components.PE {
			busy += e.IssueNS + e.StretchNS
			lost += e.StretchNS
		}
	}
	if share(lost, busy) <= limitSlowClock {
		return nil
	}
	return &Lint{Code: "pe-clock", Try: "governor.slow_rate=1", Value: share(lost, busy), Limit: limitSlowClock,
		Text: fmt.Sprintf("a clock below full rate costs the PE %.0f %% of its working time (predicted); keep it fed without pauses", 100*share(lost, busy))}
}

// halfClock is the share of the measured time in which the PE ran at half
// its clock or less.
func (x *Analysis) halfClock() *Lint {
	t := &x.World.Module.Windows
	var all, slow uint64
	for k := range t.Dur.Len() {
		all += t.Dur.At(k)
		if 2*uint64(t.K.At(k)) <= uint64(t.N.At(k)) {
			slow += t.Dur.At(k)
		}
	}
	if share(slow, all) <= limitHalfClock {
		return nil
	}
	return &Lint{Code: "pe-half-clock", Value: share(slow, all), Limit: limitHalfClock, Count: uint64(t.Dur.Len()),
		Text: fmt.Sprintf("the PE ran at half clock or less for %.0f %% of the measured time", 100*share(slow, all))}
}

// falseDependencies counts the dependencies on the critical path whose
// instructions touch no common memory.
func (x *Analysis) falseDependencies(path *attribute.PathReport) *Lint {
	m := x.World.Module
	if m.Operands.Len() == 0 {
		return nil
	}
	var count, ns uint64
	h := newHeaviest()
	for _, p := range x.Paths {
		var before attribute.Step
		first := true
		p.Visit(func(s attribute.Step) {
			if !first && isFalse(m, before.Instr, s.Instr, before.Via) {
				count += s.Trips * p.Times
				ns += before.Counted * p.Times
				h.add(m, s.Instr, before.Counted)
			}
			before, first = s, false
		})
	}
	if count == 0 {
		return nil
	}
	return &Lint{Code: "false-dependencies", change: x.withoutFalse(), Value: share(ns, path.Span), Count: count, Place: h.place(m, count),
		Text: fmt.Sprintf("%d dependencies on the critical path join instructions that touch no common memory", count)}
}

// isFalse reports whether the dependency of i on p that cause stands for is
// known not to follow from their operands.
func isFalse(m *components.Module, p, i components.InstrID, cause components.Cause) bool {
	switch cause {
	case components.CauseFlow, components.CauseAnti, components.CauseOutput:
	default:
		return false
	}
	direct := false
	for _, w := range m.Edges.Preds.Row(int(i)) {
		direct = direct || components.InstrID(w&ecs.TargetMask) == p && uint8(w>>ecs.ClassShift) != components.ClassOrdered
	}
	return direct && touch(m, p, i) == overlap.No
}

// touch reports whether instructions p and i touch common memory that one of
// them writes.
func touch(m *components.Module, p, i components.InstrID) overlap.Answer {
	if name := m.OpcodeName(m.Instr.Opcode.At(int(i))); name == "MATMUL" || name == "LDWEIGHTS" {
		// The two halves of a matmul carry each other's dependencies.
		return overlap.Unknown
	}
	plo, phi := m.Operands.Range(p)
	ilo, ihi := m.Operands.Range(i)
	answer := overlap.Unknown
	for a := plo; a < phi; a++ {
		for b := ilo; b < ihi; b++ {
			if m.Operands.Role.At(a) != components.RoleOut && m.Operands.Role.At(b) != components.RoleOut {
				continue
			}
			switch overlap.Of(m, m.Operands.At(a), m.Operands.At(b)) {
			case overlap.Yes:
				return overlap.Yes
			case overlap.Unknown:
				if !aside(m, a) && !aside(m, b) {
					return overlap.Unknown
				}
			default:
				answer = overlap.No
			}
		}
	}
	return answer
}

// aside reports whether operand r touches no memory.
func aside(m *components.Module, r int) bool {
	switch m.Operands.Kind.At(r) {
	case components.OperandImmediate, components.OperandImmediateArray, components.OperandSymbolicImmediate, components.OperandRegister:
		return true
	}
	return false
}
