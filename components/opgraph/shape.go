package opgraph

import (
	"math"
	"math/bits"
	"strconv"
)

// ShapeID is an interned shape of a graph. 0 means "no shape": not yet known.
type ShapeID uint32

// ElemType is the element type of an array shape, or the kind of a shape
// that is not an array (tuple, token, opaque, buffer).
type ElemType uint8

// The element types, with the names of HLO text.
const (
	ElemInvalid ElemType = iota
	ElemPred
	ElemS1
	ElemS2
	ElemS4
	ElemS8
	ElemS16
	ElemS32
	ElemS64
	ElemU1
	ElemU2
	ElemU4
	ElemU8
	ElemU16
	ElemU32
	ElemU64
	ElemF4E2M1FN
	ElemF6E2M3FN
	ElemF6E3M2FN
	ElemF8E3M4
	ElemF8E4M3
	ElemF8E4M3B11FNUZ
	ElemF8E4M3FN
	ElemF8E4M3FNUZ
	ElemF8E5M2
	ElemF8E5M2FNUZ
	ElemF8E8M0FNU
	ElemBF16
	ElemF16
	ElemF32
	ElemF64
	ElemC64
	ElemC128
	ElemToken
	ElemOpaque
	ElemTuple
	ElemBuffer // b(shape): a buffer that holds the shape
	NumElemTypes
)

// elemInfo is the table of element types: HLO name and bits per element in
// memory. A predicate takes a byte; sub-byte integers and floats are packed, as
// XLA does with their layouts (element_size_in_bits, E(n)).
func elemInfo(e ElemType) (name string, bits int64) {
	switch e {
	case ElemPred:
		return "pred", 8
	case ElemS1:
		return "s1", 1
	case ElemS2:
		return "s2", 2
	case ElemS4:
		return "s4", 4
	case ElemS8:
		return "s8", 8
	case ElemS16:
		return "s16", 16
	case ElemS32:
		return "s32", 32
	case ElemS64:
		return "s64", 64
	case ElemU1:
		return "u1", 1
	case ElemU2:
		return "u2", 2
	case ElemU4:
		return "u4", 4
	case ElemU8:
		return "u8", 8
	case ElemU16:
		return "u16", 16
	case ElemU32:
		return "u32", 32
	case ElemU64:
		return "u64", 64
	case ElemF4E2M1FN:
		return "f4e2m1fn", 4
	case ElemF6E2M3FN:
		return "f6e2m3fn", 6
	case ElemF6E3M2FN:
		return "f6e3m2fn", 6
	case ElemF8E3M4:
		return "f8e3m4", 8
	case ElemF8E4M3:
		return "f8e4m3", 8
	case ElemF8E4M3B11FNUZ:
		return "f8e4m3b11fnuz", 8
	case ElemF8E4M3FN:
		return "f8e4m3fn", 8
	case ElemF8E4M3FNUZ:
		return "f8e4m3fnuz", 8
	case ElemF8E5M2:
		return "f8e5m2", 8
	case ElemF8E5M2FNUZ:
		return "f8e5m2fnuz", 8
	case ElemF8E8M0FNU:
		return "f8e8m0fnu", 8
	case ElemBF16:
		return "bf16", 16
	case ElemF16:
		return "f16", 16
	case ElemF32:
		return "f32", 32
	case ElemF64:
		return "f64", 64
	case ElemC64:
		return "c64", 64
	case ElemC128:
		return "c128", 128
	case ElemToken:
		return "token", 0
	case ElemOpaque:
		return "opaque", 0
	case ElemTuple:
		return "tuple", 0
	case ElemBuffer:
		return "b", 0
	}
	return "invalid", 0
}

// String returns the HLO name of the type.
func (e ElemType) String() string { name, _ := elemInfo(e); return name }

// Bits returns the bits of one element in memory, 0 for what has no size.
func (e ElemType) Bits() int64 { _, b := elemInfo(e); return b }

// IsFloat reports whether e is a real floating-point type.
func (e ElemType) IsFloat() bool { return e >= ElemF4E2M1FN && e <= ElemF64 }

// IsInteger reports whether e is a signed or unsigned integer type.
func (e ElemType) IsInteger() bool { return e >= ElemS1 && e <= ElemU64 }

// IsArray reports whether e is the element type of an array.
func (e ElemType) IsArray() bool { return e >= ElemPred && e <= ElemC128 }

// ParseElemType returns the type with an HLO name.
func ParseElemType(name string) (ElemType, bool) {
	switch name { // the frequent ones first
	case "f32":
		return ElemF32, true
	case "bf16":
		return ElemBF16, true
	case "s32":
		return ElemS32, true
	case "pred":
		return ElemPred, true
	}
	for e := ElemPred; e <= ElemOpaque; e++ {
		if e.String() == name {
			return e, true
		}
	}
	return ElemInvalid, false
}

// DimUnknown is the size of a dimension written '?': unbounded dynamic.
const DimUnknown int64 = math.MinInt64

// MaxSize is the value that element counts and byte sizes saturate at: a
// product that does not fit in 63 bits is MaxSize, never a wrapped number.
const MaxSize int64 = math.MaxInt64

// ShapeTable interns shapes: equal shapes (element type, dimensions, dynamic
// marks, layout, memory space, members) have equal ids.
type ShapeTable struct {
	elem   []ElemType
	dims   []graphSpan   // into pool
	dyn    []ShapeLayout // dynamic marks and layout
	elems  []int64       // element count of an array, 0 otherwise
	bytes  []int64       // bytes in memory, tuples summed over their members
	tuple  []graphSpan   // members, into member
	space  []uint32
	pool   []int64
	member []ShapeID
	key    map[string]ShapeID
	buf    []byte
}

// ShapeLayout has the properties of a shape besides its dimensions.
type ShapeLayout struct {
	Dynamic uint64 // bit i: dimension i is a bound ('<='), not a size
	Layout  string // text between the braces of the layout, e.g. "1,0:T(8,128)S(1)"; "" when none is stated
	HasText bool   // a layout is stated, even an empty one: "{}"
}

func (t *ShapeTable) init() {
	t.key = map[string]ShapeID{}
	t.elem = append(t.elem, ElemInvalid)
	t.dims = append(t.dims, graphSpan{})
	t.dyn = append(t.dyn, ShapeLayout{})
	t.elems = append(t.elems, 0)
	t.bytes = append(t.bytes, 0)
	t.tuple = append(t.tuple, graphSpan{})
	t.space = append(t.space, 0)
}

// Len returns the number of shapes, the invalid one included.
func (t *ShapeTable) Len() int { return len(t.elem) }

// AddArray interns an array shape without layout. Negative dimensions other
// than DimUnknown are refused by Graph.Check.
func (t *ShapeTable) AddArray(elem ElemType, dims []int64) ShapeID {
	return t.AddArrayLayout(elem, dims, ShapeLayout{})
}

// AddArrayLayout interns an array shape with dynamic marks and layout text.
func (t *ShapeTable) AddArrayLayout(elem ElemType, dims []int64, l ShapeLayout) ShapeID {
	k := append(t.buf[:0], byte(elem), byte(len(dims)), byte(len(dims)>>8))
	for _, d := range dims {
		k = appendKey(k, d)
	}
	k = appendKey(k, int64(l.Dynamic))
	if l.HasText {
		k = append(k, 1)
		k = append(k, l.Layout...)
	}
	t.buf = k
	if id, ok := t.key[string(k)]; ok {
		return id
	}
	id := ShapeID(len(t.elem))
	t.key[string(k)] = id
	t.elem = append(t.elem, elem)
	t.dims = append(t.dims, graphSpan{uint32(len(t.pool)), uint32(len(dims))})
	t.pool = append(t.pool, dims...)
	t.dyn = append(t.dyn, l)
	n := countElems(dims)
	if !elem.IsArray() {
		n = 0
	}
	t.elems = append(t.elems, n)
	t.bytes = append(t.bytes, sizeOf(n, elem.Bits()))
	t.tuple = append(t.tuple, graphSpan{})
	t.space = append(t.space, layoutSpace(l.Layout))
	return id
}

// AddTuple interns a tuple shape.
func (t *ShapeTable) AddTuple(members []ShapeID) ShapeID {
	return t.addMembers(ElemTuple, members)
}

// AddBuffer interns the shape b(member).
func (t *ShapeTable) AddBuffer(member ShapeID) ShapeID {
	return t.addMembers(ElemBuffer, []ShapeID{member})
}

func (t *ShapeTable) addMembers(elem ElemType, members []ShapeID) ShapeID {
	k := append(t.buf[:0], byte(elem))
	for _, m := range members {
		k = append(k, byte(m), byte(m>>8), byte(m>>16), byte(m>>24))
	}
	t.buf = k
	if id, ok := t.key[string(k)]; ok {
		return id
	}
	id := ShapeID(len(t.elem))
	t.key[string(k)] = id
	var bytes int64
	for _, m := range members {
		bytes = AddSize(bytes, t.bytes[m])
	}
	t.elem = append(t.elem, elem)
	t.dims = append(t.dims, graphSpan{})
	t.dyn = append(t.dyn, ShapeLayout{})
	t.elems = append(t.elems, 0)
	t.bytes = append(t.bytes, bytes)
	t.tuple = append(t.tuple, graphSpan{uint32(len(t.member)), uint32(len(members))})
	t.member = append(t.member, members...)
	t.space = append(t.space, 0)
	return id
}

// Elem returns the element type of a shape.
func (t *ShapeTable) Elem(s ShapeID) ElemType { return t.elem[s] }

// Dims returns the dimensions of an array shape; dynamic ones hold their
// bound, or DimUnknown. The slice is part of the table.
func (t *ShapeTable) Dims(s ShapeID) []int64 {
	d := t.dims[s]
	return t.pool[d.start : d.start+d.n : d.start+d.n]
}

// Rank returns the number of dimensions.
func (t *ShapeTable) Rank(s ShapeID) int { return int(t.dims[s].n) }

// Tuple returns the members of a tuple or buffer shape, nil for an array.
func (t *ShapeTable) Tuple(s ShapeID) []ShapeID {
	d := t.tuple[s]
	return t.member[d.start : d.start+d.n : d.start+d.n]
}

// IsTuple reports whether s is a tuple, the empty one included.
func (t *ShapeTable) IsTuple(s ShapeID) bool { return t.elem[s] == ElemTuple }

// Count returns the number of elements of an array; 1 for a scalar; 0 for
// what is not an array. It saturates at MaxSize; unknown dimensions count 1.
func (t *ShapeTable) Count(s ShapeID) int64 { return t.elems[s] }

// Bytes returns the bytes of a shape in memory, tuples summed, sub-byte
// elements packed and rounded up to a whole byte. It saturates at MaxSize.
// Tokens and opaque values are 0.
func (t *ShapeTable) Bytes(s ShapeID) int64 { return t.bytes[s] }

// Space returns the memory space n of S(n) in the layout; 0 when not stated.
func (t *ShapeTable) Space(s ShapeID) uint32 { return t.space[s] }

// Layout returns the dynamic marks and layout of a shape.
func (t *ShapeTable) Layout(s ShapeID) ShapeLayout { return t.dyn[s] }

// MinorToMajor appends the dimension order of the layout, fastest-varying
// first, to dst. Without a stated layout it is the default (rank-1 … 0).
func (t *ShapeTable) MinorToMajor(s ShapeID, dst []int64) []int64 {
	l := t.dyn[s]
	n := len(dst)
	for i := 0; i < len(l.Layout) && l.Layout[i] != ':'; {
		j := i
		var v int64
		for j < len(l.Layout) && l.Layout[j] >= '0' && l.Layout[j] <= '9' {
			v = v*10 + int64(l.Layout[j]-'0')
			j++
		}
		if j > i {
			dst = append(dst, v)
		} else {
			j++
		}
		i = j
	}
	if len(dst)-n != t.Rank(s) {
		dst = dst[:n]
		for i := t.Rank(s) - 1; i >= 0; i-- {
			dst = append(dst, int64(i))
		}
	}
	return dst
}

// WithoutLayout returns the shape with layouts and memory spaces removed,
// through tuples.
func (t *ShapeTable) WithoutLayout(s ShapeID) ShapeID {
	switch {
	case t.elem[s] == ElemTuple || t.elem[s] == ElemBuffer:
		members := append([]ShapeID(nil), t.Tuple(s)...)
		same := true
		for i, m := range members {
			members[i] = t.WithoutLayout(m)
			same = same && members[i] == m
		}
		if same {
			return s
		}
		return t.addMembers(t.elem[s], members)
	case t.dyn[s].HasText:
		dims := append([]int64(nil), t.Dims(s)...)
		return t.AddArrayLayout(t.elem[s], dims, ShapeLayout{Dynamic: t.dyn[s].Dynamic})
	}
	return s
}

// SameArray reports whether a and b have the same element type and
// dimensions, whatever their layouts and dynamic marks.
func (t *ShapeTable) SameArray(a, b ShapeID) bool {
	return a == b || t.elem[a] == t.elem[b] && t.SameDims(a, b)
}

// SameDims reports whether a and b have the same dimensions.
func (t *ShapeTable) SameDims(a, b ShapeID) bool {
	x, y := t.Dims(a), t.Dims(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// AppendShape appends the HLO spelling of a shape, layout included.
func (g *Graph) AppendShape(dst []byte, s ShapeID) []byte {
	t := &g.Shapes
	switch e := t.elem[s]; e {
	case ElemTuple:
		dst = append(dst, '(')
		for i, m := range t.Tuple(s) {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = g.AppendShape(dst, m)
		}
		return append(dst, ')')
	case ElemBuffer:
		dst = append(dst, "b("...)
		dst = g.AppendShape(dst, t.Tuple(s)[0])
		return append(dst, ')')
	default:
		dst = append(dst, e.String()...)
		dst = append(dst, '[')
		for i, d := range t.Dims(s) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if d == DimUnknown {
				dst = append(dst, '?')
				continue
			}
			if t.dyn[s].Dynamic>>i&1 != 0 {
				dst = append(dst, "<="...)
			}
			dst = strconv.AppendInt(dst, d, 10)
		}
		dst = append(dst, ']')
		if l := t.dyn[s]; l.HasText {
			dst = append(dst, '{')
			dst = append(dst, l.Layout...)
			dst = append(dst, '}')
		}
		return dst
	}
}

// AddSize adds two sizes, saturating at MaxSize.
func AddSize(a, b int64) int64 {
	if s, carry := bits.Add64(uint64(a), uint64(b), 0); carry == 0 && s <= uint64(MaxSize) {
		return int64(s)
	}
	return MaxSize
}

// MulSize multiplies two sizes that are not negative, saturating at MaxSize.
func MulSize(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo <= uint64(MaxSize) {
		return int64(lo)
	}
	return MaxSize
}

// layoutSpace returns the n of S(n) in a layout text, 0 when there is none.
func layoutSpace(l string) uint32 {
	for i := 0; i+2 < len(l); i++ {
		if l[i] != 'S' || l[i+1] != '(' {
			continue
		}
		var n uint32
		for j := i + 2; j < len(l) && l[j] >= '0' && l[j] <= '9' && n < 1<<24; j++ {
			n = n*10 + uint32(l[j]-'0')
		}
		return n
	}
	return 0
}

func countElems(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		if d == 0 {
			return 0 // an empty array stays empty, however large the others are
		}
	}
	for _, d := range dims {
		if d > 0 {
			n = MulSize(n, d)
		}
	}
	return n
}

func sizeOf(count, bitsPer int64) int64 {
	n := MulSize(count, bitsPer)
	if n == MaxSize {
		// Only the bit count overflows for arrays above 2^60 elements.
		return MulSize(count, (bitsPer+7)/8)
	}
	return (n + 7) / 8
}

func appendKey(dst []byte, v int64) []byte {
	u := uint64(v)
	return append(dst, byte(u), byte(u>>8), byte(u>>16), byte(u>>24),
		byte(u>>32), byte(u>>40), byte(u>>48), byte(u>>56))
}

func itoa(n int) string { return strconv.Itoa(n) }
