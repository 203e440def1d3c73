package birjson

import (
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

var operandKinds = [...]string{
	components.OperandPhysical: "physical_ap", components.OperandSymbolic: "symbolic_ap", components.OperandRegisterAP: "register_ap",
	components.OperandRegister: "register_access", components.OperandImmediate: "imm_value",
	components.OperandImmediateArray: "imm_array", components.OperandSymbolicImmediate: "symbolic_imm_value",
}

var operandKeys = [3]string{components.RoleIn: "ins", components.RoleOut: "outs", components.RoleIndirect: "indirection_ins"}

// operands reads the inputs, outputs and indices of an instruction and works
// out what follows from them.
func (w *worker) operands(in *instr, f *fields) error {
	o := &w.b.out
	in.ops.lo = uint32(len(o.ops))
	in.late.lo = uint32(len(o.late))
	for role, v := range [3]jsonscan.Value{f.ins, f.outs, f.indirect} {
		w.opLeft[role] = w.opLeft[role][:0]
		if v.Kind() <= jsonscan.Null {
			continue
		}
		list, err := array(v)
		if err != nil {
			return fmt.Errorf("%s: is %s, not a list", operandKeys[role], v.Kind())
		}
		if (in.holds || in.opcode.IsLoop()) && list.Elements().Ok() {
			w.rest(operandKeys[role], v) // a loop has no row in the operand table
			continue
		}
		for i, e := range list.All() {
			if err := w.operand(components.OperandRole(role), i, e); err != nil {
				return fmt.Errorf("%s[%d]: %w", operandKeys[role], i, err)
			}
		}
	}
	in.ops.hi = uint32(len(o.ops))
	in.late.hi = uint32(len(o.late))
	in.geometry = derive(in.opcode, o.ops[in.ops.lo:in.ops.hi])
	return nil
}

// operand parses one operand.
func (w *worker) operand(role components.OperandRole, index int, v jsonscan.Value) error {
	obj, err := object(v)
	if err != nil {
		return fmt.Errorf("is %s, not an object", v.Kind())
	}
	o := &w.b.out
	op := &w.op
	*op = components.AccessPattern{Role: role, Kind: components.OperandOther, DType: components.NoDType}
	var left []member
	var ap, actual, memref, set, offset, reg, owner, kind, ours jsonscan.Value
	for x := obj.Members(); x.Ok(); x = x.Next() {
		key, v := x.Key(), x.Value()
		switch string(key) {
		case "kind":
			kind = v
		case "ap":
			ap = v
		case "memref":
			memref = v
		case "memsetref":
			set = v
		case "offset":
			offset = v
		case "perfsim":
			ours = v
		case "regref":
			reg = v
		case "dtype":
			name := text(v)
			d, ok := components.ParseDType(string(name))
			if !ok {
				w.note("unknown-dtype", name)
			}
			if op.DType = d; !ok || d.String() != string(name) {
				left = append(left, member{key: "dtype", value: v})
			}
		case "memref_owner_func":
			owner = v
			left = append(left, member{key: keyString(key), value: v})
		case "dynamic_ap_info":
			// The static pattern of a dynamic one is its geometry (docs/birjson.md).
			actual = v.Get("actual_ap")
			left = append(left, member{key: keyString(key), value: v})
		default:
			left = append(left, member{key: keyString(key), value: v})
		}
	}
	kindName := text(kind)
	for k, n := range operandKinds {
		if string(kindName) == n {
			op.Kind = components.OperandKind(k)
		}
	}
	if op.Kind == components.OperandOther {
		w.note("unknown-operand-kind", kindName)
		if kind.Kind() != jsonscan.Absent {
			left = append(left, member{key: "kind", value: kind})
		}
	}
	if actual.Kind() == jsonscan.Array && ap.Kind() == jsonscan.Absent {
		ap = actual
	}
	if ap.Kind() != jsonscan.Absent {
		whole, err := w.pattern(op, ap)
		if err != nil {
			return fmt.Errorf("ap: %w", err)
		}
		if !whole {
			left = append(left, member{key: "ap", value: ap})
		}
	}
	var off int64
	if offset.Kind() > jsonscan.Null {
		if offset.Kind() == jsonscan.Object { // an expression
			left = append(left, member{key: "offset", value: offset})
		} else if off, err = number(offset, -maxBytes, maxBytes); err != nil {
			return fmt.Errorf("offset: %w", err)
		}
	}
	name := text(memref)
	if reg.Kind() != jsonscan.Absent {
		// A register access names its register; in a register access pattern
		// the register is the index, and the access is to the tensor.
		if name == nil && set.Kind() == jsonscan.Absent {
			name = text(reg)
		} else {
			left = append(left, member{key: "regref", value: reg})
		}
	}
	if len(name) > 0 || len(text(set)) > 0 {
		if err := w.whereabouts(op, name, text(set), text(owner), off); err != nil {
			return err
		}
	} else if off != 0 {
		left = append(left, member{key: "offset", value: offset})
	}
	if ours.Kind() == jsonscan.Object {
		if err := w.address(op, ours); err != nil {
			return fmt.Errorf("perfsim: %w", err)
		}
	}
	if len(left) > 0 {
		w.opLeft[role] = append(w.opLeft[role], operandLeft{index, left})
	}
	o.ops = append(o.ops, *op)
	return nil
}

// address reads our own member of an operand: where it is, where that does
// not follow from a location.
func (w *worker) address(op *components.AccessPattern, v jsonscan.Value) error {
	for _, x := range []struct {
		key  string
		most int64
		set  func(n int64)
	}{
		{"addr", math.MaxInt64, func(n int64) { op.Address = uint64(n) }},
		{"base", maxParts, func(n int64) { op.Base = uint16(n) }},
		{"memory", math.MaxUint8, func(n int64) { op.Memory = components.Memory(n) }},
	} {
		if f := v.Get(x.key); f.Kind() != jsonscan.Absent {
			n, err := number(f, 0, x.most)
			if err != nil {
				return fmt.Errorf("%s: %w", x.key, err)
			}
			x.set(n)
		}
	}
	return nil
}

// whereabouts finds the location of an operand, or has it looked for later.
func (w *worker) whereabouts(op *components.AccessPattern, name, set, owner []byte, off int64) error {
	o := &w.b.out
	v := w.b.view
	i, ok := -1, false
	if len(owner) == 0 {
		i, ok = v.find(name, set)
	}
	if !ok {
		o.late = append(o.late, lateOperand{uint32(len(o.ops)), o.keep(name), o.keep(set), o.keep(owner), off})
		return nil
	}
	op.Where = v.first + uint32(i) + 1
	return locate(op, v.mem[i], v.start(i), v.bytes[i], v.base[i], off)
}

// pattern reads the (step, count) pairs of an access pattern. It returns
// false where some are expressions, which have no number yet.
func (w *worker) pattern(op *components.AccessPattern, v jsonscan.Value) (bool, error) {
	list, err := array(v)
	if err != nil {
		return false, err
	}
	if n := list.Len(); n > 255 {
		return false, fmt.Errorf("%d dimensions", n)
	}
	o := &w.b.out
	lo := len(o.steps)
	total := uint64(1)
	for _, e := range list.All() {
		first := e.Elements()
		second := first
		if first.Ok() {
			second = first.Next()
		}
		if !second.Ok() || second.Next().Ok() {
			return false, fmt.Errorf("expected [step, count], found %s", clip(string(e.AppendTo(nil))))
		}
		if first.Value().Kind() == jsonscan.Object || second.Value().Kind() == jsonscan.Object {
			o.steps, o.counts = o.steps[:lo], o.counts[:lo]
			return false, nil
		}
		step, err := number(first.Value(), -maxBytes, maxBytes)
		if err != nil {
			return false, fmt.Errorf("step %w", err)
		}
		count, err := number(second.Value(), 0, maxCount)
		if err != nil {
			return false, fmt.Errorf("count %w", err)
		}
		if c := uint64(max(count, 1)); total > maxBytes/c {
			return false, fmt.Errorf("more than %d elements", int64(maxBytes))
		} else {
			total *= c
		}
		if reach := uint64(max(step, -step)); count > 0 && reach > 0 && uint64(count) > maxBytes/reach {
			return false, fmt.Errorf("reaches further than %d elements", int64(maxBytes))
		}
		o.steps = append(o.steps, step)
		o.counts = append(o.counts, uint64(count))
	}
	op.Steps = o.steps[lo:len(o.steps):len(o.steps)]
	op.Counts = o.counts[lo:len(o.counts):len(o.counts)]
	return true, nil
}
