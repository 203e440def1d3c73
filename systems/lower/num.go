package lower

import (
	"math/bits"
	"strconv"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// mulDiv returns a×b/c for numbers that are not negative, with the product in
// 128 bits; it saturates.
func mulDiv(a, b, c int64) int64 {
	if c <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return opgraph.MaxSize
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, uint64(opgraph.MaxSize)))
}

func ceilDiv(a, b int64) int64 { return a/b + b2i(a%b > 0) }

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }

// log2 returns ⌈log2 n⌉ for n ≥ 1.
func log2(n int64) int64 {
	if n <= 1 {
		return 0
	}
	return int64(bits.Len64(uint64(n - 1)))
}

// dtypeOf returns the engine type that stands for an element type, and
// whether two elements of it stand for one (64-bit and complex types).
func dtypeOf(e opgraph.ElemType) (d components.DType, double bool) {
	switch e {
	case opgraph.ElemPred, opgraph.ElemU8, opgraph.ElemU1, opgraph.ElemU2, opgraph.ElemU4:
		return components.Uint8, false
	case opgraph.ElemS1, opgraph.ElemS2, opgraph.ElemS4, opgraph.ElemS8:
		return components.Int8, false
	case opgraph.ElemS16:
		return components.Int16, false
	case opgraph.ElemU16:
		return components.Uint16, false
	case opgraph.ElemS32:
		return components.Int32, false
	case opgraph.ElemU32:
		return components.Uint32, false
	case opgraph.ElemS64:
		return components.Int32, true
	case opgraph.ElemU64:
		return components.Uint32, true
	case opgraph.ElemF4E2M1FN, opgraph.ElemF6E2M3FN, opgraph.ElemF6E3M2FN, opgraph.ElemF8E4M3, opgraph.ElemF8E4M3FNUZ, opgraph.ElemF8E4M3B11FNUZ:
		return components.Float8E4, false
	case opgraph.ElemF8E4M3FN:
		return components.Float8E4M3FN, false
	case opgraph.ElemF8E3M4:
		return components.Float8E3, false
	case opgraph.ElemF8E5M2, opgraph.ElemF8E5M2FNUZ:
		return components.Float8E5, false
	case opgraph.ElemF8E8M0FNU:
		return components.Float8E8M0, false
	case opgraph.ElemBF16:
		return components.BFloat16, false
	case opgraph.ElemF16:
		return components.Float16, false
	case opgraph.ElemF64, opgraph.ElemC64:
		return components.Float32, true
	case opgraph.ElemC128:
		return components.Float32, true
	}
	return components.Float32, false
}
