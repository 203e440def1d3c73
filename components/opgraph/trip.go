package opgraph

// DeriveTripCounts computes the trip count of each while that does not state
// one and sets AttrTripDerived. It succeeds when the condition compares one
// element of the loop state, possibly plus a constant, with a constant (or
// with an element that the body does not change), the body adds a constant to
// that element, and its first value is a constant: init, bound, step and
// direction. Copies, conversions between integers, tuples, fusions and calls
// are seen through. A step that does not divide the distance counts the last,
// partial step. Everything else stays unknown. The graph must have passed
// Check.
func (g *Graph) DeriveTripCounts() {
	for op := range OpID(g.NumOps()) {
		if g.Ops.Kind[op] != OpWhile {
			continue
		}
		if _, from := g.TripCount(op); from != TripUnknown {
			continue
		}
		if n, ok := g.ConditionTrips(op); ok {
			g.SetInt(op, AttrTripDerived, n)
		}
	}
}

// linear is elem + off, where elem is an element of the loop state (0 where
// the state is one scalar), or the constant off when elem is negative.
type linear struct {
	elem int64
	off  int64
}

// tripEval evaluates integer expressions of a loop.
type tripEval struct {
	g      *Graph
	budget int
}

// tripFrame is the computation an expression is in; a fusion or call inside
// pushes another. The outermost frame of a body has no caller.
type tripFrame struct {
	caller OpID // NoOp: the computation is the loop's body or condition
	up     *tripFrame
	free   bool // parameters mean nothing (the computation that holds the while)
}

// tripBudget bounds the work of one evaluation, so that a crafted graph
// cannot make it exponential.
const tripBudget = 4096

// ConditionTrips returns the trip count that the condition, the body and the
// initial value of a while give, whatever is stated; see DeriveTripCounts.
func (g *Graph) ConditionTrips(op OpID) (int64, bool) {
	e := &tripEval{g: g, budget: tripBudget}
	cond := g.Called(op, RoleCondition)
	root, frame := e.through(g.Comps.Root[cond], &tripFrame{caller: NoOp})
	if g.Ops.Kind[root] != OpCompare {
		return 0, false
	}
	args := g.Operands(root)
	dir := Direction(g.IntOr(root, AttrDirection, 0))
	a, ok1 := e.eval(args[0], nil, frame)
	b, ok2 := e.eval(args[1], nil, frame)
	if !ok1 || !ok2 {
		return 0, false
	}
	elem := g.Shapes.Elem(g.OperandShape(args[0]))
	if !elem.IsInteger() {
		return 0, false
	}
	// Bring the moving element to the left.
	stepA, okA := e.step(op, a)
	stepB, okB := e.step(op, b)
	if !okA || !okB {
		return 0, false
	}
	if stepA == 0 && stepB != 0 {
		a, b, stepA, stepB = b, a, stepB, stepA
		dir = mirrored(dir)
	}
	if stepB != 0 {
		return 0, false
	}
	start, okA := e.initial(op, a)
	bound, okB := e.initial(op, b)
	if !okA || !okB {
		return 0, false
	}
	if elem >= ElemU1 && elem <= ElemU64 && (start < 0 || bound < 0) {
		return 0, false // above 2^63, or wrapped around
	}
	return tripCount(start, bound, stepA, dir)
}

// tripCount returns how often start, start+step, … satisfies "value dir
// bound" before it first does not.
func tripCount(start, bound, step int64, dir Direction) (int64, bool) {
	const limit = 1 << 61
	if start > limit || start < -limit || bound > limit || bound < -limit || step > limit || step < -limit {
		return 0, false
	}
	holds := false
	switch dir {
	case DirLT:
		holds = start < bound
	case DirLE:
		holds = start <= bound
		bound++
	case DirGT:
		holds = start > bound
		start, bound, step = -start, -bound, -step
	case DirGE:
		holds = start >= bound
		start, bound, step = -start, -bound+1, -step
	case DirNE:
		if start == bound {
			return 0, true
		}
		if step == 0 || (bound-start)%step != 0 || (bound-start)/step < 0 {
			return 0, false // it steps over the bound: no end in sight
		}
		return (bound - start) / step, true
	case DirEQ:
		if start != bound {
			return 0, true
		}
		if step == 0 {
			return 0, false
		}
		return 1, true
	default:
		return 0, false
	}
	if !holds {
		return 0, true
	}
	if step <= 0 {
		return 0, false // away from the bound, or not at all
	}
	return ceilDiv(bound-start, step), true
}

func mirrored(d Direction) Direction {
	switch d {
	case DirLT:
		return DirGT
	case DirLE:
		return DirGE
	case DirGT:
		return DirLT
	case DirGE:
		return DirLE
	}
	return d
}

// step returns what one turn of the body adds to a.
func (e *tripEval) step(while OpID, a linear) (int64, bool) {
	if a.elem < 0 {
		return 0, true
	}
	body := e.g.Called(while, RoleBody)
	next, ok := e.eval(Operand{Op: e.g.Comps.Root[body]}, e.statePath(while, a), &tripFrame{caller: NoOp})
	if !ok || next.elem != a.elem {
		return 0, false
	}
	return next.off, true
}

// initial returns the first value of a.
func (e *tripEval) initial(while OpID, a linear) (int64, bool) {
	if a.elem < 0 {
		return a.off, true
	}
	v, ok := e.eval(e.g.Operands(while)[0], e.statePath(while, a), &tripFrame{caller: NoOp, free: true})
	if !ok || v.elem >= 0 {
		return 0, false
	}
	return addBounded(v.off, a.off)
}

// statePath is the tuple index of an element of the loop state; none where the
// state is one scalar.
func (e *tripEval) statePath(while OpID, a linear) []int64 {
	if !e.g.Shapes.IsTuple(e.g.Ops.Shape[while]) {
		return nil
	}
	return []int64{a.elem}
}

func addBounded(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// through follows fusions, calls and copies to the operator that computes a
// whole value.
func (e *tripEval) through(op OpID, f *tripFrame) (OpID, *tripFrame) {
	for range 64 {
		switch e.g.Ops.Kind[op] {
		case OpFusion, OpCall:
			f = &tripFrame{caller: op, up: f}
			op = e.g.Comps.Root[e.g.Calls(op)[0].Comp]
			continue
		case OpCopy, OpBitcast, OpReshape:
			if o := e.g.Operands(op)[0]; o.Path == 0 {
				op = o.Op
				continue
			}
		}
		break
	}
	return op, f
}

// eval evaluates element path of o in frame f.
func (e *tripEval) eval(o Operand, path []int64, f *tripFrame) (linear, bool) {
	g := e.g
	if p := g.Path(o.Path); len(p) > 0 {
		path = append(append([]int64(nil), p...), path...)
	}
	for depth := 0; depth < 256; depth++ {
		if e.budget--; e.budget < 0 {
			return linear{}, false
		}
		op := o.Op
		switch g.Ops.Kind[op] {
		case OpConstant:
			v, ok := g.Int(op, AttrConstInt)
			return linear{-1, v}, ok && len(path) == 0
		case OpParameter:
			if f.caller == NoOp {
				return e.state(op, path, f)
			}
			args := g.Operands(f.caller)
			i := int(g.Ops.Index[op])
			if i >= len(args) {
				return linear{}, false
			}
			o, f = args[i], f.up
		case OpGetTupleElement:
			path = append([]int64{int64(g.Ops.Index[op])}, path...)
			o = g.Operands(op)[0]
		case OpTuple:
			args := g.Operands(op)
			if len(path) == 0 || path[0] < 0 || path[0] >= int64(len(args)) {
				return linear{}, false
			}
			o, path = args[path[0]], path[1:]
		case OpCopy, OpBitcast, OpReshape, OpOptBarrier, OpCopyDone, OpCopyStart, OpAddDependency:
			var ok bool
			if path, ok = e.copied(op, path); !ok {
				return linear{}, false
			}
			o = g.Operands(op)[0]
		case OpConvert:
			if !g.Shapes.Elem(g.Ops.Shape[op]).IsInteger() || !g.Shapes.Elem(g.arg(op, 0)).IsInteger() {
				return linear{}, false
			}
			o = g.Operands(op)[0]
		case OpFusion, OpCall:
			f = &tripFrame{caller: op, up: f}
			o = Operand{Op: g.Comps.Root[g.Calls(op)[0].Comp]}
		case OpAdd, OpSubtract:
			if len(path) != 0 {
				return linear{}, false
			}
			return e.sum(op, f)
		default:
			return linear{}, false
		}
		if p := g.Path(o.Path); len(p) > 0 {
			path = append(append([]int64(nil), p...), path...)
		}
	}
	return linear{}, false
}

// state is the value of a parameter that the loop gives: an element of its
// state.
func (e *tripEval) state(op OpID, path []int64, f *tripFrame) (linear, bool) {
	switch scalar := !e.g.Shapes.IsTuple(e.g.Ops.Shape[op]); {
	case f.free:
	case scalar && len(path) == 0:
		return linear{0, 0}, true
	case !scalar && len(path) == 1 && path[0] >= 0:
		return linear{path[0], 0}, true
	}
	return linear{}, false
}

// copied returns the path in the operand of an operator that hands it on; ok is
// false where it does not hand the number on.
func (e *tripEval) copied(op OpID, path []int64) (in []int64, ok bool) {
	g := e.g
	switch g.Ops.Kind[op] {
	case OpBitcast, OpReshape:
		s := g.Ops.Shape[op]
		return path, g.Shapes.IsTuple(s) || g.Shapes.Elem(s) == g.Shapes.Elem(g.arg(op, 0))
	case OpCopyStart: // (destination, source, context)
		if len(path) == 0 {
			return nil, false
		}
		return path[1:], true
	case OpCopyDone:
		return append([]int64{0}, path...), true
	}
	return path, true
}

// sum evaluates an addition or a subtraction; at most one side may have an
// element of the state.
func (e *tripEval) sum(op OpID, f *tripFrame) (linear, bool) {
	args := e.g.Operands(op)
	a, ok1 := e.eval(args[0], nil, f)
	b, ok2 := e.eval(args[1], nil, f)
	if !ok1 || !ok2 || a.elem >= 0 && b.elem >= 0 {
		return linear{}, false
	}
	if e.g.Ops.Kind[op] == OpSubtract {
		if b.elem >= 0 {
			return linear{}, false
		}
		b.off = -b.off
	}
	off, ok := addBounded(a.off, b.off)
	return linear{max(a.elem, b.elem), off}, ok
}
