package hlo

import (
	"strings"

	"perfsim/components"
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
func parseOpcode(word string) (components.OpKind, opcodePart, bool) {
	if k, ok := components.ParseOpKind(word); ok {
		return k, whole, true
	}
	for _, p := range []struct {
		suffix string
		part   opcodePart
	}{{"-start", start}, {"-update", update}, {"-done", done}} {
		if rest, ok := strings.CutSuffix(word, p.suffix); ok {
			if k, ok := components.ParseOpKind(rest); ok {
				return k, p.part, true
			}
		}
	}
	return components.OpUnknown, whole, false
}

// sugar is an async-start that was written as "dot-start".
type sugar struct {
	op    components.OpID
	inner components.OpKind
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
	for i := 0; p.compNamed(name) != components.NoComp; i++ {
		name = "async_" + g.OpText(s.op) + "." + string(appendInt(nil, int64(i)))
	}
	params, result := p.asyncSignature(s.op, parts[1])
	c := g.BeginComputation(name)
	p.define(c, s.pos)
	args := make([]components.OpID, len(params))
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
	for _, key := range []components.OpAttr{components.AttrThread, components.AttrFrontend} {
		if v := g.AttrStr(in, key); v != "" {
			g.SetAttrStr(s.op, key, v)
		}
	}
	if v := g.AttrStr(in, components.AttrThread); v != "" {
		if v != "main" {
			g.Comps.Thread[c] = g.Str(v)
		}
		g.RemoveAttr(in, components.AttrThread)
	}
	g.RemoveAttr(in, components.AttrFrontend)
	g.EndComputation(in)
	g.AddCall(s.op, components.RoleCalls, c)
	return true
}

// asyncSignature returns the operand shapes and the result shape of an
// asynchronous operation. Recent text may hand over operands, and tell the
// result, in the updates and the done that follow the start.
func (p *parser) asyncSignature(op components.OpID, result components.ShapeID) (params []components.ShapeID, out components.ShapeID) {
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
		case components.OpAsyncUpdate:
			for _, o := range args[1:] {
				params = append(params, g.OperandShape(o))
			}
			if m := g.Shapes.Tuple(g.Ops.Shape[next]); len(m) >= 2 {
				result = m[1]
			}
			op = next
		case components.OpAsyncDone:
			return params, g.Ops.Shape[next]
		}
	}
	return params, result
}
