package hlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// opcodePart says which part of an asynchronous operation a word names.
type opcodePart uint8

const (
	whole opcodePart = iota
	start
	update
	done
)

// parseOpcode looks an opcode word up. A word that is no opcode and ends in
// -start, -update or -done is sugar for the asynchronous form of the rest:
// "dot-start" is an async-start whose computation holds a dot.
func parseOpcode(word string) (opgraph.OpKind, opcodePart, bool) {
	if k, ok := opgraph.ParseOpKind(word); ok {
		return k, whole, true
	}
	for _, p := range []struct {
		suffix string
		part   opcodePart
	}{{"-start", start}, {"-update", update}, {"-done", done}} {
		if rest, ok := strings.CutSuffix(word, p.suffix); ok {
			if k, ok := opgraph.ParseOpKind(rest); ok {
				return k, p.part, true
			}
		}
	}
	return opgraph.OpUnknown, whole, false
}

// sugar is an async-start that was written as "dot-start".
type sugar struct {
	op    opgraph.OpID
	inner opgraph.OpKind
	pos   int
}

// expandSugar gives each async-start of the computation just read a
// computation of its own with the operation inside. The attributes go to the
// operation; those about order and threads stay with the start.
func (p *parser) expandSugar() bool {
	comp := p.comp
	for _, s := range p.sugars {
		if !p.expand(s) {
			return false
		}
	}
	p.sugars = p.sugars[:0]
	p.comp = comp
	return true
}

func (p *parser) expand(s sugar) bool {
	g := p.g
	word := s.inner.String()
	shape := g.Ops.Shape[s.op]
	parts := g.Shapes.Tuple(shape)
	if len(parts) < 2 {
		return p.failAt(s.pos, "%s-start of shape %s, want ((operands), results, …)", word, g.ShapeText(shape))
	}
	name := "async_" + g.OpText(s.op)
	for i := 0; p.compNamed(name) != opgraph.NoComp; i++ {
		name = "async_" + g.OpText(s.op) + "." + string(appendInt(nil, int64(i)))
	}
	params, result := p.asyncSignature(s.op, parts[1])
	c := g.BeginComputation(name)
	p.define(c, s.pos)
	args := make([]opgraph.OpID, len(params))
	for i, shape := range params {
		args[i] = g.AddParameter("param_"+string(appendInt(nil, int64(i))), shape, i)
		g.Ops.TextLine[args[i]] = g.Ops.TextLine[s.op]
	}
	in := g.AddOp(s.inner, word, result, args...)
	g.Ops.TextLine[in] = g.Ops.TextLine[s.op]
	g.MoveAttrs(in, s.op)
	for _, late := range [][]lateCall{p.late, p.inlines} {
		for i := range late {
			if late[i].op == s.op {
				late[i].op = in
			}
		}
	}
	for _, key := range []opgraph.OpAttr{opgraph.AttrThread, opgraph.AttrFrontend} {
		if v := g.AttrStr(in, key); v != "" {
			g.SetAttrStr(s.op, key, v)
		}
	}
	if v := g.AttrStr(in, opgraph.AttrThread); v != "" {
		if v != "main" {
			g.Comps.Thread[c] = g.Str(v)
		}
		g.RemoveAttr(in, opgraph.AttrThread)
	}
	g.RemoveAttr(in, opgraph.AttrFrontend)
	g.EndComputation(in)
	g.AddCall(s.op, opgraph.RoleCalls, c)
	return true
}

// asyncSignature returns the operand shapes and the result shape of an
// asynchronous operation. Recent text may have operands, and the result's
// shape, in the updates and the done that follow the start.
func (p *parser) asyncSignature(op opgraph.OpID, result opgraph.ShapeID) (params []opgraph.ShapeID, out opgraph.ShapeID) {
	g := p.g
	for _, o := range g.Operands(op) {
		params = append(params, g.OperandShape(o))
	}
	for next := op + 1; next < g.Comps.End[g.Ops.Comp[op]]; next++ {
		args := g.Operands(next)
		if len(args) == 0 || args[0].Op != op || args[0].Path != 0 {
			continue
		}
		switch g.Ops.Kind[next] {
		case opgraph.OpAsyncUpdate:
			for _, o := range args[1:] {
				params = append(params, g.OperandShape(o))
			}
			if m := g.Shapes.Tuple(g.Ops.Shape[next]); len(m) >= 2 {
				result = m[1]
			}
			op = next
		case opgraph.OpAsyncDone:
			return params, g.Ops.Shape[next]
		}
	}
	return params, result
}
