package birjson

import (
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// operands writes the list of one role; always means that an empty one is
// written.
func (e *encoder) operands(w *objectWriter, role components.OperandRole, always bool) {
	n := 0
	list := e.opTexts[role]
	left := list.Elements()
	for i := range e.ops {
		if e.ops[i].Role != role {
			continue
		}
		if n == 0 {
			w.key(operandKeys[role])
			e.str("[")
		} else {
			e.str(",")
		}
		var v jsonscan.Value
		if left.Ok() {
			v, left = left.Value(), left.Next()
		}
		e.operand(&e.ops[i], v)
		n++
	}
	switch {
	case n > 0:
		e.str("]")
	case left.Ok(): // kept whole: those of a loop
		w.key(operandKeys[role])
		e.str("[")
		for i, v := range list.All() {
			if i > 0 {
				e.str(",")
			}
			e.value(v)
		}
		e.str("]")
	case always:
		w.key(operandKeys[role])
		e.str("[]")
	}
}

func (e *encoder) operand(o *components.AccessPattern, left jsonscan.Value) {
	m := e.m
	w := objectWriter{e: e}
	w.left = appendMembersOf(w.left, left)
	w.open()
	if len(o.Counts) > 0 && w.free("ap") {
		w.key("ap")
		e.str("[")
		for i := range o.Counts {
			if i > 0 {
				e.str(",")
			}
			e.str("[")
			e.int(o.Steps[i])
			e.str(",")
			e.uint(o.Counts[i])
			e.str("]")
		}
		e.str("]")
	}
	if d := o.DType.String(); d != "" && w.free("dtype") {
		w.key("dtype")
		e.str(`"` + d + `"`)
	}
	if int(o.Kind) < len(operandKinds) {
		w.key("kind")
		e.str(`"` + operandKinds[o.Kind] + `"`)
	}
	t := &m.Locations
	var offset int64
	exact := o.Memory == 0 && o.Address == 0 && o.Base == 0
	register := false
	if o.Where > 0 {
		r := int(o.Where) - 1
		mem := t.Memory.At(r)
		offset, exact = offsetOf(o, mem, startOf(mem, t.Addr.At(r), t.Bank.At(r)), t.Bytes.At(r), t.Base.At(r))
		register = mem == components.MemRegister && w.free("regref")
		if !register {
			w.key("memref")
			e.sym(t.Name.At(r))
			if s := t.Tensor.At(r); s != 0 {
				w.key("memsetref")
				e.sym(s)
			}
		}
		if exact && w.free("offset") && (!register || offset != 0) {
			w.key("offset")
			e.int(offset)
		}
	}
	if !exact {
		w.key("perfsim")
		e.str(`{"addr":`)
		e.uint(o.Address)
		e.str(`,"base":`)
		e.uint(uint64(o.Base))
		e.str(`,"memory":`)
		e.uint(uint64(o.Memory))
		e.str("}")
	}
	if register {
		w.key("regref")
		e.sym(t.Name.At(int(o.Where) - 1))
	}
	w.close()
}

// allocations writes rows lo to hi of the location table, placements of one
// tensor together.
func (e *encoder) allocations(lo, hi int) {
	t := &e.m.Locations
	for r := lo; r < hi; {
		if r > lo {
			e.str(",\n")
		}
		set := t.Tensor.At(r)
		switch {
		case set == 0 && t.Memory.At(r) == components.MemRegister:
			e.str(`{"Skind":"register","name":`)
			e.sym(t.Name.At(r))
			e.str("}")
			r++
			continue
		case set == 0:
			e.location(r, true)
			r++
			continue
		}
		end := r + 1
		for end < hi && t.Tensor.At(end) == set && t.Kind.At(end) == t.Kind.At(r) {
			end++
		}
		e.str(`{"Skind":"memory_location_set","kind":"`)
		e.str(kindName(t.Kind.At(r)))
		e.str(`","memorylocations":[`)
		for first := r; r < end; r++ {
			if r > first {
				e.str(",")
			}
			e.location(r, false)
		}
		e.str(`],"name":`)
		e.sym(set)
		e.str("}")
		e.flush(flushAt)
	}
}

func kindName(k uint8) string {
	if int(k) < len(tensorKinds) {
		return tensorKinds[k]
	}
	return tensorKinds[kindInternal]
}

func (e *encoder) location(r int, alone bool) {
	t := &e.m.Locations
	e.str(`{"Skind":"memory_location","addr":`)
	e.uint(t.Addr.At(r))
	if set := t.Alias.At(r); set != 0 {
		// The first of the set stands for all: aliases are symmetric.
		if first := slices.Index(t.Alias.Slice(), set); first != r {
			e.str(`,"alias":[[`)
			e.sym(t.Tensor.At(first))
			e.str(",")
			e.sym(t.Name.At(first))
			e.str(",3]]")
		}
	}
	e.str(`,"bank":`)
	e.int(int64(t.Bank.At(r)))
	e.str(`,"base":`)
	e.uint(uint64(t.Base.At(r)))
	mem := t.Memory.At(r)
	if parts, bytes := t.Parts.At(r), t.Bytes.At(r); parts != 0 || bytes != 0 {
		e.str(`,"dims":[`)
		e.uint(uint64(parts))
		e.str(",")
		e.uint(bytes)
		e.str("]")
	}
	if alone {
		e.str(`,"kind":"`)
		e.str(kindName(t.Kind.At(r)))
		e.str(`"`)
	}
	e.str(`,"name":`)
	if name := t.Name.At(r); name != 0 {
		e.sym(name)
	} else {
		e.buf = appendString(e.buf, "location_"+strconv.Itoa(r))
	}
	e.str(`,"type":"`)
	e.str(mem.String())
	e.str(`"}`)
}
