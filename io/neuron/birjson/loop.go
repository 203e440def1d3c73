package birjson

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"perfsim/io/internal/jsonscan"
)

// trips returns how often the loop's body runs, 0 where the bounds are not
// known before it runs.
func (w *worker) trips(f *fields) (uint64, error) {
	lb, ub, stride := f.lb, f.ub, f.stride
	for _, axis := range []jsonscan.Value{f.dynAxis, f.axis} {
		if axis.Kind() != jsonscan.Object {
			continue
		}
		if v := axis.Get("ub"); v.Kind() != jsonscan.Absent {
			lb, ub, stride = axis.Get("lb"), v, axis.Get("stride")
		}
	}
	if ub.Kind() == jsonscan.Absent {
		w.note("unknown-trip-count", nil)
		return 0, nil
	}
	var bound [3]int64
	for i, b := range []struct {
		key string
		v   jsonscan.Value
		def int64
	}{{"lb", lb, 0}, {"ub", ub, 0}, {"stride", stride, 1}} {
		n, known, err := evaluate(b.v, b.def)
		if err != nil {
			return 0, fmt.Errorf("loop bound %s: %w", b.key, err)
		}
		if !known {
			w.note("unknown-trip-count", nil)
			return 0, nil
		}
		bound[i] = n
	}
	n, err := tripCount(bound[0], bound[1], bound[2])
	if err == nil && n == 0 {
		w.note("empty-loop", nil)
	}
	return n, err
}

// tripCount is (ub − lb + stride − 1) / stride, and its mirror image for a
// loop that counts down (docs/birjson.md); 0 for a loop that does not run.
func tripCount(lb, ub, stride int64) (uint64, error) {
	switch {
	case stride == 0:
		return 0, errors.New("a loop with stride 0 never ends")
	case stride < 0:
		if stride == math.MinInt64 || lb == math.MinInt64 || ub == math.MinInt64 {
			return 0, errors.New("a loop bound is too large")
		}
		lb, ub, stride = -lb, -ub, -stride
	}
	if ub <= lb {
		return 0, nil
	}
	span := uint64(ub) - uint64(lb)
	sum, carry := bits.Add64(span, uint64(stride)-1, 0)
	n, _ := bits.Div64(carry, sum, uint64(stride))
	if n > maxTrips {
		return 0, fmt.Errorf("a loop of %d iterations", n)
	}
	return n, nil
}

// maxTrips bounds trip counts: a loop of 2^48 iterations of 1 ns runs three days.
const maxTrips = 1 << 48

// evaluate returns the value of a bound, and whether it is a constant: a
// number, or an affine expression (docs/birjson.md) of constants.
func evaluate(v jsonscan.Value, def int64) (int64, bool, error) {
	if v.Kind() <= jsonscan.Null {
		return def, true, nil
	}
	if v.Kind() != jsonscan.Object {
		n, err := number(v, -maxCount, maxCount)
		return n, true, err
	}
	two := func(a, b string) (x, y int64, ok bool, err error) {
		x, ok, err = evaluate(v.Get(a), 0)
		if ok && err == nil {
			y, ok, err = evaluate(v.Get(b), 0)
		}
		return x, y, ok, err
	}
	switch kind := string(text(v.Get("kind"))); kind {
	case "", "AffExprKind", "SumKind":
		if v.Get("op").Kind() != jsonscan.Absent {
			return 0, false, nil
		}
		sum, ok, err := evaluate(v.Get("c"), 0)
		for _, t := range v.Get("terms").All() {
			if !ok || err != nil {
				break
			}
			var n int64
			coeff := int64(1)
			term := t
			if kind != "SumKind" {
				if term = t.Get("idx"); term.Kind() == jsonscan.Absent {
					return 0, false, nil // an axis of version 1
				}
				if coeff, ok, err = evaluate(t.Get("coeff"), 1); !ok || err != nil {
					break
				}
			}
			if n, ok, err = evaluate(term, 0); ok && err == nil {
				if n, err = times(n, coeff); err == nil {
					sum, err = plus(sum, n)
				}
			}
		}
		return sum, ok, err
	case "MultKind":
		x, y, ok, err := two("var", "scale")
		if ok && err == nil {
			x, err = times(x, y)
		}
		return x, ok, err
	case "FloorDivKind", "ModuloKind":
		x, y, ok, err := two("numer", "denom")
		if !ok || err != nil {
			return 0, ok, err
		}
		if y == 0 {
			return 0, false, errors.New("division by zero")
		}
		q, r := x/y, x%y
		if r != 0 && (r < 0) != (y < 0) {
			q, r = q-1, r+y
		}
		if kind == "ModuloKind" {
			return r, true, nil
		}
		return q, true, nil
	}
	return 0, false, nil
}

func times(a, b int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if hi != 0 || lo > maxCount {
		return 0, errors.New("a product is too large")
	}
	return a * b, nil
}

func plus(a, b int64) (int64, error) {
	if s := a + b; s <= maxCount && s >= -maxCount {
		return s, nil
	}
	return 0, errors.New("a sum is too large")
}

// axis keeps the loop's axis unless the trip count says it all.
func (w *worker) axis(in *instr, f *fields) {
	if f.axis.Kind() == jsonscan.Absent {
		return
	}
	obj, err := object(f.axis)
	if err == nil && members(obj) == 3 && in.trip > 0 {
		lb, e1 := number(obj.Get("lb"), 0, 0)
		ub, e2 := number(obj.Get("ub"), 1, math.MaxInt64)
		st, e3 := number(obj.Get("stride"), 1, 1)
		if e1 == nil && e2 == nil && e3 == nil && lb == 0 && uint64(ub) == in.trip && st == 1 {
			return
		}
	}
	w.rest("LoopAxis", f.axis)
}

// members counts the members of an object.
func members(v jsonscan.Value) (n int) {
	for m := v.Members(); m.Ok(); m = m.Next() {
		n++
	}
	return n
}
