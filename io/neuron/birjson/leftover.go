package birjson

import (
	"errors"
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// leftovers makes the Text column: everything an instruction has beyond its
// columns, as one JSON object with sorted keys, so that equal remarks of many
// instructions are stored once. Leftovers of operands are lists under the
// operands' own keys: element i belongs to operand i.
func (w *worker) leftovers(in *instr) error {
	for role := range w.opLeft {
		if err := w.operandsLeft(role); err != nil {
			return err
		}
	}
	if len(w.left) == 0 {
		return nil
	}
	var err error
	if w.buf, err = appendMembers(w.buf[:0], w.left); err != nil {
		return err
	}
	in.text = w.b.out.keep(w.buf)
	return nil
}

func (w *worker) operandsLeft(role int) error {
	list := w.opLeft[role]
	if len(list) == 0 {
		return nil
	}
	lo := len(w.raw)
	w.raw = append(w.raw, '[')
	next := 0
	var err error
	for i := 0; i <= list[len(list)-1].index; i++ {
		if i > 0 {
			w.raw = append(w.raw, ',')
		}
		if i != list[next].index {
			w.raw = append(w.raw, "{}"...)
			continue
		}
		if w.raw, err = appendMembers(w.raw, list[next].members); err != nil {
			return fmt.Errorf("%s[%d]: %w", operandKeys[role], i, err)
		}
		next++
	}
	w.raw = append(w.raw, ']')
	// raw may move when it grows; the earlier slices keep the old bytes.
	w.left = append(w.left, member{key: operandKeys[role], raw: w.raw[lo:len(w.raw):len(w.raw)]})
	return nil
}

// debugLeft keeps the fields of debug other than file, line and name.
func (w *worker) debugLeft(left []member) error {
	if len(left) == 0 {
		return nil
	}
	lo := len(w.raw)
	var err error
	if w.raw, err = appendMembers(w.raw, left); err != nil {
		return fmt.Errorf("debug: %w", err)
	}
	w.left = append(w.left, member{key: "debug", raw: w.raw[lo:len(w.raw):len(w.raw)]})
	return nil
}

// flagNames are the names of flags in our own member "perfsim", in bit order.
var flagNames = [...]string{"trigger", "collective", "barrier", "loop", "local", "swdge", "hwdge", "transpose", "acc_start", "acc_stop",
	"src_psum", "src_dram", "two_inputs", "src2_psum", "three_inputs", "dst_psum", "dst_dram", "mixed_types", "strided", "unknown_op",
	"spill", "sequencer", "scan", "scalar_tt", "measured", "estimated", "zero_const", "cross_part",
	"static_dma", "continued", "transfer", "helper"}

func flagOf(name []byte) (components.Flags, bool) {
	for i, n := range flagNames {
		if n == string(name) {
			return 1 << i, true
		}
	}
	return 0, false
}

// givenSet says what of a row's geometry its member "perfsim" gives.
type givenSet uint8

const (
	givenBanks givenSet = 1 << iota
	givenDMABytes
	givenDMARow
	givenDType
	givenElems
	givenFlags
	givenOutElems
	givenParts
)

// ours reads the member "perfsim": values that do not follow from the
// documented members. What it has wins.
func (w *worker) ours(in *instr, v jsonscan.Value, flags *components.Flags) error {
	obj, err := object(v)
	if err != nil {
		return errors.New("is no object")
	}
	o := &w.b.out
	uint := func(v jsonscan.Value, most int64) uint64 {
		n, e := number(v, 0, most)
		if e != nil && err == nil {
			err = e
		}
		return uint64(n)
	}
	for x := obj.Members(); x.Ok() && err == nil; x = x.Next() {
		key, v := x.Key(), x.Value()
		switch string(key) {
		case "banks":
			in.given |= givenBanks
			in.banks = uint16(uint(v, math.MaxUint16))
		case "compiler_pc":
			in.compilerPC = uint32(uint(v, math.MaxUint32))
		case "dma_bytes":
			in.given |= givenDMABytes
			in.dmaBytes = uint(v, math.MaxInt64)
			in.overrides = true
		case "dma_row":
			in.given |= givenDMARow
			in.dmaRow = uint32(uint(v, math.MaxUint32))
		case "dtype":
			in.given |= givenDType
			in.dtype, _ = components.ParseDType(string(text(v)))
		case "duration":
			in.timed = true
			in.mdur = uint32(uint(v, math.MaxUint32))
		case "elems":
			in.given |= givenElems
			in.elems = uint32(uint(v, math.MaxUint32))
		case "flags":
			in.given |= givenFlags
			in.geometry.flags, *flags = 0, 0
			for _, n := range v.All() {
				f, ok := flagOf(text(n))
				if !ok {
					err = fmt.Errorf("unknown flag %q", clip(string(text(n))))
				}
				*flags |= f
			}
			if in.holds {
				*flags |= components.FlagLoop
			}
		case "func":
			in.fn = o.keep(text(v))
		case "lane":
			in.lane = uint16(uint(v, math.MaxUint16))
		case "macs":
			in.macs = uint32(uint(v, math.MaxUint32))
		case "measured":
			if v.Len() == 2 {
				in.measured = true
				in.mstart = uint(v.At(0), math.MaxInt64)
				in.mdur = uint32(uint(v.At(1), math.MaxUint32))
			} else {
				err = errors.New("measured is not [start, duration]")
			}
		case "out_elems":
			in.given |= givenOutElems
			in.outElems = uint32(uint(v, math.MaxUint32))
		case "parts":
			in.given |= givenParts
			in.parts = uint16(uint(v, math.MaxUint16))
		case "pc":
			in.pc = uint32(uint(v, math.MaxUint32))
		case "ref":
			in.ref, err = v.Uint64()
			in.hasRef = true
		case "scope":
			in.scope = o.keep(text(v))
		case "text":
			in.text = o.keep(text(v))
		case "wait":
			in.wait = uint32(uint(v, math.MaxUint32))
		case "work":
			in.work = uint(v, math.MaxInt64)
		default:
			w.note("unknown-key", key)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
	}
	return err
}
