package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// OpCase is the key of a calibrated operation taken apart: the operation, and
// for which of its instructions the entry holds. A key is "ENGINE.OPCODE",
// followed by any of these, separated by spaces:
//
//	sbuf, psum      all tensors are in SBUF; at least one is in PSUM
//	16>32, 16>*     bits of an element of the input and of the output
//	vector, vector2 one or two operands with one value per partition: a
//	                scale, a bias, a pointer instead of an immediate
//	strided         the innermost step of a tensor is not one element
//	stride16        it is 16 elements or more
//	fn=NAME         the activation function or ALU operation, in lower case
//
// The entry that says most about an instruction is its cost. Costs of one
// engine that every other operation takes have the opcode "default".
type OpCase struct {
	Engine, Opcode string
	In, Out        int // bits of an element, 0 for any
	SBUF, PSUM     bool
	Strided        bool
	Stride16       bool
	Vectors        int
	Fn             string
}

// Plain reports whether the case holds for every instruction of its operation.
func (c *OpCase) Plain() bool {
	return *c == OpCase{Engine: c.Engine, Opcode: c.Opcode}
}

// ParseOpCase reads a key of Calibrated.Ops.
func ParseOpCase(key string) (OpCase, error) {
	var c OpCase
	name, rest, _ := strings.Cut(key, " ")
	var ok bool
	if c.Engine, c.Opcode, ok = strings.Cut(name, "."); !ok || c.Engine == "" || c.Opcode == "" {
		return c, fmt.Errorf("key %q is not ENGINE.OPCODE", key)
	}
	for _, q := range strings.Fields(rest) {
		from, to, types := strings.Cut(q, ">")
		fn, isFn := strings.CutPrefix(q, "fn=")
		switch {
		case q == "sbuf":
			c.SBUF = true
		case q == "psum":
			c.PSUM = true
		case q == "strided":
			c.Strided = true
		case q == "stride16":
			c.Stride16 = true
		case q == "vector":
			c.Vectors = 1
		case q == "vector2":
			c.Vectors = 2
		case isFn && fn != "" && fn == strings.ToLower(fn):
			c.Fn = fn
		case types:
			var okA, okB bool
			c.In, okA = elementBits(from)
			c.Out, okB = elementBits(to)
			if !okA || !okB {
				return c, fmt.Errorf("key %q: %q is not a pair of 8, 16, 32 or *", key, q)
			}
		default:
			return c, fmt.Errorf("key %q: %q is not sbuf, psum, strided, stride16, vector, vector2, fn=name or a pair of types like 16>32", key, q)
		}
	}
	if c.SBUF && c.PSUM {
		return c, fmt.Errorf("key %q: sbuf and psum exclude one another", key)
	}
	return c, nil
}

func elementBits(s string) (int, bool) {
	if s == "*" {
		return 0, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && (n == 8 || n == 16 || n == 32)
}

// OpUse is the part of an instruction that a case depends on.
type OpUse struct {
	In, Out  int // bits of an element, 0 where unknown
	PSUM     bool
	Strided  bool
	Stride16 bool
	Vectors  int
	Fn       string
}

// Match reports whether the case holds for an instruction, and how much it says
// about it: the number of its conditions, of which a function counts twice.
func (c *OpCase) Match(u *OpUse) (conditions int, ok bool) {
	if c.SBUF && u.PSUM || c.PSUM && !u.PSUM || c.In != 0 && c.In != u.In || c.Out != 0 && c.Out != u.Out ||
		c.Strided && !u.Strided || c.Stride16 && !u.Stride16 || u.Vectors < c.Vectors || c.Fn != "" && c.Fn != u.Fn {
		return 0, false
	}
	for _, asked := range [...]bool{c.SBUF, c.PSUM, c.In != 0, c.Out != 0, c.Strided, c.Stride16} {
		if asked {
			conditions++
		}
	}
	if conditions += min(c.Vectors, 2); c.Fn != "" {
		conditions += 2
	}
	return conditions, true
}
