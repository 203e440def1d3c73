package explain

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/internal/overlap"
)

// Neighbour is an instruction at the other end of a dependency, or before it
// on its lane.
type Neighbour struct {
	Name   string `json:"name"` // name of the neighbour
	Row    uint32 `json:"row"`
	Kind   string `json:"kind"` // "flow", …, or "lane"
	Lane   string `json:"lane"` // name of the lane of an instruction
	Opcode string `json:"opcode"`
	Start  uint64 `json:"start_ns"`
	End    uint64 `json:"end_ns"` // end in run A, from the start of its block
	// Gap is how long before the start of the later one the earlier one let
	// go, in ns; negative where it has not (an edge the model does not honour).
	Gap     int64 `json:"gap_ns"`
	Binding bool  `json:"binding"` // whether it sets the start of the consumer
	// Apart says that the two touch no common memory, as far as their
	// operands say.
	Apart bool `json:"apart"`
}

// Instruction is everything about one instruction.
type Instruction struct {
	Name     string      `json:"name"` // name of the instruction
	Row      uint32      `json:"row"`
	Function string      `json:"function"` // name of the function
	Block    string      `json:"block"`    // name of the block
	Lane     string      `json:"lane"`
	Opcode   string      `json:"opcode"`
	Source   string      `json:"source,omitempty"`   // file:line in the user's program
	HLO      string      `json:"hlo,omitempty"`      // HLO or framework operator
	Text     string      `json:"operands,omitempty"` // operands as text
	Start    uint64      `json:"start_ns"`           // from the start of its block
	End      uint64      `json:"end_ns"`
	Issue    uint64      `json:"issue_ns"`
	StartB   uint64      `json:"start_no_antideps_ns"`  // start in run B, ns
	Measured *[2]uint64  `json:"measured_start_end_ns"` // measured start and end, ns
	Cause    string      `json:"cause"`
	Holder   string      `json:"holder,omitempty"`
	DelayNS  uint64      `json:"delay_ns"`               // of the model behind the binding constraint
	Slack    uint64      `json:"slack_ns"`               // by how much it could end later without a longer run A, ns
	Critical bool        `json:"critical"`               // whether it is on the critical path
	Preds    []Neighbour `json:"predecessors"`           // what it depends on
	Succs    []Neighbour `json:"successors"`             // what depends on it
	Others   []string    `json:"not_honoured,omitempty"` // dependencies the placement leaves out, and why
}

// Find returns the row of the instruction with the given name or, written
// #ROW, row. A source line or HLO name that only one instruction has will do
// too.
func Find(m *components.Module, name string) (components.InstrID, error) {
	if s, ok := strings.CutPrefix(name, "#"); ok {
		row, err := strconv.ParseUint(s, 10, 32)
		if err != nil || int(row) >= m.Instr.Len() {
			return 0, fmt.Errorf("instruction %s: rows go from #0 to #%d", name, m.Instr.Len()-1)
		}
		return components.InstrID(row), nil
	}
	// Printed names may have lost their beginning; see components.Named.
	end, cut := bytes.CutPrefix([]byte(name), []byte("…"))
	cut = cut && len(end) > 0
	var buf []byte
	var found []components.InstrID
	count := 0
	take := func(i int) {
		if count++; count <= mostNamed {
			found = append(found, components.InstrID(i))
		}
	}
	for i := range m.Instr.Len() {
		buf = m.AppendInstrName(buf[:0], components.InstrID(i))
		if string(buf) == name || cut && bytes.HasSuffix(buf, end) {
			take(i)
		}
	}
	if count == 1 {
		return found[0], nil
	}
	if count > 1 {
		return 0, fmt.Errorf("%d instructions are called %q: rows %s; write --instruction '#%d'", count, name, rowList(found, count), found[0])
	}
	// A table's place of an instruction is its source line or HLO name.
	for _, c := range []struct {
		what, field string
		column      *ecs.Column[ecs.Symbol]
	}{{"the source of", "source", &m.Instr.Source}, {"the HLO name of", "hlo", &m.Instr.HLO}} {
		if c.column.Len() == 0 {
			continue
		}
		means := map[ecs.Symbol]bool{}
		for i, s := range c.column.Slice() {
			yes, ok := means[s]
			if !ok {
				yes = s != 0 && components.Named(m.Symbols.String(s), name)
				means[s] = yes
			}
			if yes {
				take(i)
			}
		}
		if count == 1 {
			return found[0], nil
		}
		if count > 1 {
			return 0, fmt.Errorf("%q is %s %d instructions: %s in row %d is the first; query '%s=\"%s\"' lists them", name, c.what, count, m.InstrName(found[0]), found[0], c.field, name)
		}
	}
	return 0, fmt.Errorf("no instruction is called %q; query 'name~PART' finds them, and #ROW names one by row", name)
}

// mostNamed is how many of several instructions an error lists.
const mostNamed = 5

func rowList(rows []components.InstrID, count int) string {
	var b strings.Builder
	for k, r := range rows {
		if k > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(int(r)))
	}
	if count > len(rows) {
		b.WriteString(", …")
	}
	return b.String()
}

// Instruction returns everything known about instruction i.
func (x *Analysis) Instruction(ctx context.Context, i components.InstrID) (*Instruction, error) {
	w, m, a := x.World, x.World.Module, x.Why
	if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
		return nil, fmt.Errorf("%s is a loop: its body is placed, it is not", m.InstrName(i))
	}
	slack, err := attribute.Slack(ctx, w, x.Rules, a)
	if err != nil {
		return nil, err
	}
	in := &m.Instr
	t := &Instruction{Name: m.InstrName(i), Row: uint32(i), Lane: m.LaneName(in.Lane.At(int(i))), Opcode: m.OpcodeName(in.Opcode.At(int(i))),
		Source: symbolOf(m, in.Source.Get(int(i))), HLO: symbolOf(m, in.HLO.Get(int(i))), Text: symbolOf(m, in.Text.Get(int(i))),
		Issue: uint64(in.Issue.At(int(i))), Cause: a.Cause.At(int(i)).String(), Slack: slack[i]}
	t.Start, t.End = w.Events.Span(m, i, components.RunA)
	t.StartB, _ = w.Events.Span(m, i, components.RunB)
	if p := a.Pred.At(int(i)); p != components.NoInstr {
		t.Holder = m.InstrName(p)
	}
	if a.Gap.Len() > 0 {
		t.DelayNS = a.Gap.At(int(i))
	}
	if m.HasMeasurement() {
		start := in.MeasuredStart.At(int(i))
		t.Measured = &[2]uint64{start, start + uint64(in.MeasuredDur.At(int(i)))}
	}
	for b := range m.Blocks.Len() {
		if m.Blocks.First.At(b) <= uint32(i) && uint32(i) < m.Blocks.End.At(b) {
			t.Block, t.Function = m.BlockName(b), m.FunctionName(int(m.Blocks.Function.At(b)))
		}
	}
	for _, p := range x.Paths {
		t.Critical = t.Critical || slices.Contains(p.Steps, i)
	}
	x.neighbours(t, i)
	return t, nil
}

func (x *Analysis) neighbours(t *Instruction, i components.InstrID) {
	m, a := x.World.Module, x.Why
	holder := a.Pred.At(int(i))
	cause := a.Cause.At(int(i))
	held := false
	for _, w := range m.Edges.Preds.Row(int(i)) {
		p := components.InstrID(w & ecs.TargetMask)
		kind := components.CauseOfKind(components.KindOfClass(uint8(w >> ecs.ClassShift)))
		n := x.neighbour(p, i, p, kind)
		n.Binding = p == holder && kind == cause
		held = held || n.Binding
		t.Preds = append(t.Preds, n)
	}
	if !held && holder != components.NoInstr {
		n := x.neighbour(holder, i, holder, cause)
		n.Binding = true
		t.Preds = append(t.Preds, n)
	}
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	for c := int(i) + 1; c < m.Edges.Preds.Rows(); c++ {
		for _, w := range words[off[c]:off[c+1]] {
			if w&ecs.TargetMask != uint32(i) {
				continue
			}
			s := components.InstrID(c)
			kind := components.CauseOfKind(components.KindOfClass(uint8(w >> ecs.ClassShift)))
			n := x.neighbour(i, s, s, kind)
			n.Binding = a.Pred.At(c) == i && a.Cause.At(c) == kind
			t.Succs = append(t.Succs, n)
		}
	}
	// Who follows on the lane and was held by i alone.
	for c := range a.Pred.Len() {
		if a.Pred.At(c) == i && !slices.ContainsFunc(t.Succs, func(n Neighbour) bool { return n.Row == uint32(c) && n.Binding }) {
			n := x.neighbour(i, components.InstrID(c), components.InstrID(c), a.Cause.At(c))
			n.Binding = true
			t.Succs = append(t.Succs, n)
		}
	}
	o := &m.Edges.Other
	for k := range o.Len() {
		if o.From.At(k) == uint32(i) {
			why := [...]string{"loop-carried", "the producer is in another block", "the producer is a loop", "the producer is later in program order"}[o.Scope.At(k)]
			t.Others = append(t.Others, strings.ToLower(o.Kind.At(k).String())+" on "+m.InstrName(components.InstrID(o.To.At(k)))+": "+why)
		}
	}
}

// neighbour describes the dependency of i on p as seen from the other end.
func (x *Analysis) neighbour(p, i, other components.InstrID, kind components.Cause) Neighbour {
	w, m := x.World, x.World.Module
	n := Neighbour{Name: m.InstrName(other), Row: uint32(other), Kind: kind.String(), Lane: m.LaneName(m.Instr.Lane.At(int(other))),
		Opcode: m.OpcodeName(m.Instr.Opcode.At(int(other)))}
	n.Start, n.End = w.Events.Span(m, other, components.RunA)
	start, _ := w.Events.Span(m, i, components.RunA)
	n.Gap = int64(start) - int64(x.release(p, kind))
	n.Apart = touch(m, p, i) == overlap.No && (kind == components.CauseFlow || kind == components.CauseAnti || kind == components.CauseOutput)
	return n
}

// release is when instruction p releases what waits for it by kind.
func (x *Analysis) release(p components.InstrID, kind components.Cause) uint64 {
	w, m := x.World, x.World.Module
	start, end := w.Events.Span(m, p, components.RunA)
	switch {
	case kind == components.CauseFlow || kind == components.CauseAnti || kind == components.CauseOutput || kind == components.CauseSemaphore:
		if x.Why.Visible.Len() > 0 {
			return x.Why.Visible.At(int(p))
		}
		return w.Events.Arrive.At(int(p))[components.RunA]
	case m.Instr.Flags.At(int(p))&components.FlagTrigger != 0:
		return end
	}
	return start + min(uint64(m.Instr.Issue.At(int(p))), end-start)
}
