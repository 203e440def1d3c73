package stablehlo

import (
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// elementwise maps operations of MLIR's arith and math dialects on tensors to
// opcodes of HLO. Passes leave them among StableHLO; each does per element what
// its HLO twin does.
var elementwise = map[string]opgraph.OpKind{
	"arith.addf": opgraph.OpAdd, "arith.addi": opgraph.OpAdd, "arith.subf": opgraph.OpSubtract, "arith.subi": opgraph.OpSubtract,
	"arith.mulf": opgraph.OpMultiply, "arith.muli": opgraph.OpMultiply,
	"arith.divf": opgraph.OpDivide, "arith.divsi": opgraph.OpDivide, "arith.divui": opgraph.OpDivide,
	"arith.remf": opgraph.OpRemainder, "arith.remsi": opgraph.OpRemainder, "arith.remui": opgraph.OpRemainder,
	"arith.negf": opgraph.OpNegate, "arith.maximumf": opgraph.OpMaximum, "arith.maxnumf": opgraph.OpMaximum,
	"arith.maxsi": opgraph.OpMaximum, "arith.maxui": opgraph.OpMaximum, "arith.minimumf": opgraph.OpMinimum,
	"arith.minnumf": opgraph.OpMinimum, "arith.minsi": opgraph.OpMinimum, "arith.minui": opgraph.OpMinimum,
	"arith.andi": opgraph.OpAnd, "arith.ori": opgraph.OpOr, "arith.xori": opgraph.OpXor, "arith.shli": opgraph.OpShiftLeft,
	"arith.shrsi": opgraph.OpShiftRightArithmetic, "arith.shrui": opgraph.OpShiftRightLogical,
	"arith.extf": opgraph.OpConvert, "arith.truncf": opgraph.OpConvert, "arith.extsi": opgraph.OpConvert, "arith.extui": opgraph.OpConvert,
	"arith.trunci": opgraph.OpConvert, "arith.sitofp": opgraph.OpConvert, "arith.uitofp": opgraph.OpConvert, "arith.fptosi": opgraph.OpConvert,
	"arith.fptoui": opgraph.OpConvert, "arith.index_cast": opgraph.OpConvert, "arith.bitcast": opgraph.OpBitcastConvert,
	"arith.select": opgraph.OpSelect, "arith.cmpf": opgraph.OpCompare, "arith.cmpi": opgraph.OpCompare,
	"math.exp": opgraph.OpExp, "math.expm1": opgraph.OpExpm1, "math.log": opgraph.OpLog, "math.log1p": opgraph.OpLog1p,
	"math.sqrt": opgraph.OpSqrt, "math.rsqrt": opgraph.OpRsqrt, "math.cbrt": opgraph.OpCbrt, "math.tanh": opgraph.OpTanh,
	"math.sin": opgraph.OpSin, "math.cos": opgraph.OpCos, "math.tan": opgraph.OpTan, "math.sinh": opgraph.OpSinh, "math.cosh": opgraph.OpCosh,
	"math.atan": opgraph.OpAtan, "math.atan2": opgraph.OpAtan2, "math.erf": opgraph.OpErf, "math.absf": opgraph.OpAbs, "math.absi": opgraph.OpAbs,
	"math.floor": opgraph.OpFloor, "math.ceil": opgraph.OpCeil, "math.powf": opgraph.OpPower, "math.round": opgraph.OpRoundNearestAfz,
	"math.roundeven": opgraph.OpRoundNearestEven, "math.ctlz": opgraph.OpClz, "math.ctpop": opgraph.OpPopcnt,
}

// predicates are the comparisons of arith in the order of their numbers: the
// ones of integers, then those of floats.
var predicates = [2][]string{
	{"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"},
	{"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"},
}

// predicate returns the direction of an arith comparison, the last two letters
// of its name; false where the operation has none that arith knows. Those
// without order (ord, uno, false, true) cost what an equality does.
func (e *emitter) predicate(n *node) (opgraph.Direction, bool) {
	list := predicates[0]
	if n.op == "cmpf" {
		list = predicates[1]
	}
	word := ""
	if len(n.words) > 0 {
		word = n.words[0]
	} else if v, _, _, ok := e.ints(n, "predicate"); ok && len(v) == 1 && v[0] >= 0 && v[0] < int64(len(list)) {
		word = list[v[0]]
	}
	if !slices.Contains(list, word) {
		return 0, false
	}
	if d, ok := opgraph.ParseDirection(strings.ToUpper(word[max(0, len(word)-2):])); ok {
		return d, true
	}
	return opgraph.DirEQ, true
}

// broadcasting adds an operation of CHLO that broadcasts its operands: they are
// stretched to the shape of the result first.
func (e *emitter) broadcasting(n *node, kind opgraph.OpKind, args []opgraph.OpID, shape opgraph.ShapeID) bool {
	g := e.g
	dims, _, stated, ok := e.ints(n, "broadcast_dimensions")
	if !ok {
		return false
	}
	out := g.Shapes.Dims(shape)
	for i, a := range args {
		src := g.Ops.Shape[a]
		from := g.Shapes.Dims(src)
		if g.Shapes.IsTuple(src) || len(from) > len(out) {
			return e.failAt(n.pos, "%s: operand %d of %s does not fit the result %s", n.name, i, g.ShapeText(src), g.ShapeText(shape))
		}
		if g.Shapes.SameDims(src, shape) {
			continue
		}
		to := make([]int64, len(from)) // aligned at the last dimension, unless stated
		for k := range to {
			to[k] = int64(len(out) - len(from) + k)
		}
		if stated && len(dims) == len(from) {
			to = dims
		}
		wide := g.Array(g.Shapes.Elem(src), out...)
		if args[i], ok = e.stretch(n, "", a, to, wide); !ok {
			return false
		}
	}
	op := g.AddOp(kind, e.name(n.result), shape, args...)
	e.place(op, n)
	if kind == opgraph.OpCompare && !e.compare(n, op) {
		return false
	}
	return e.bind(n, op)
}
