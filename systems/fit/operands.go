package fit

import (
	"math"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"perfsim/components"
)

// traceShape has the properties of an instruction's operands that a cost
// formula needs.
type traceShape struct {
	elems, outElems uint64 // per partition: the most of any operand, that of the first output
	dtype           components.DType
}

// shapeOf returns the shape of row i: what its columns say, else what the
// argument text of a trace does, see io/catapult: access patterns
// dtype@place[steps][counts] with the partitions first.
func shapeOf(m *components.Module, i int, parser *fastjson.Parser) (traceShape, bool) {
	in := &m.Instr
	s := traceShape{uint64(in.Elems.At(i)), uint64(in.OutElems.Get(i)), in.DType.At(i)}
	if s.elems > 0 {
		return s, true
	}
	text := m.Symbols.String(in.Text.Get(i))
	if !strings.HasPrefix(text, ",") || len(text) > maxArguments {
		return s, false
	}
	v, err := parser.Parse("{" + text[1:] + "}")
	if err != nil {
		return s, false
	}
	s = traceShape{dtype: components.NoDType}
	for _, side := range []string{"input", "output"} {
		for n, p := range strings.Fields(string(v.GetStringBytes(side + "_access_patterns"))) {
			dtype, counts, ok := pattern(p)
			if !ok {
				return s, false
			}
			s.elems = max(s.elems, counts)
			if n == 0 && (side == "input" || s.dtype == components.NoDType) {
				s.dtype = dtype
			}
			if n == 0 && side == "output" {
				s.outElems = counts
			}
		}
	}
	return s, s.elems > 0
}

// maxArguments bounds the argument text that is looked at.
const maxArguments = 1 << 16

// pattern reads dtype@place[steps][counts]: the type and the elements per
// partition.
func pattern(p string) (dtype components.DType, elems uint64, ok bool) {
	name, rest, ok := strings.Cut(p, "@")
	if !ok || !strings.HasSuffix(rest, "]") {
		return 0, 0, false
	}
	if dtype, ok = components.ParseDType(name); !ok {
		return 0, 0, false
	}
	open := strings.LastIndexByte(rest, '[')
	if open < 0 {
		return 0, 0, false
	}
	elems = 1
	for n, c := range strings.Split(rest[open+1:len(rest)-1], ",") {
		v, err := strconv.ParseUint(c, 10, 32)
		if err != nil {
			return 0, 0, false
		}
		if n > 0 && v > 0 {
			if elems > math.MaxUint32/v {
				return 0, 0, false
			}
			elems *= v
		}
	}
	return dtype, elems, true
}
