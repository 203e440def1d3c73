package lower_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/io/xla/hlo"
	"perfsim/systems/lower"
)

// folds are the scalar functions of the modules below.
const folds = `
max { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] maximum(x, y) }
add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT r = f32[] add(x, y) }
`

// softmaxOf is softmax of the last dimension of [s, s] as JAX writes it.
func softmaxOf(x string) string {
	return strings.ReplaceAll(`
 ninf = f32[] constant(-inf)
 zero = f32[] constant(0)
 m = f32[256] reduce(X, ninf), dimensions={1}, to_apply=max
 mb = f32[256,256] broadcast(m), dimensions={0}
 sub = f32[256,256] subtract(X, mb)
 e = f32[256,256] exponential(sub)
 su = f32[256] reduce(e, zero), dimensions={1}, to_apply=add
 sb = f32[256,256] broadcast(su), dimensions={0}
 p = f32[256,256] divide(e, sb)
`, "X", x)
}

// functions counts the instructions of a module by what they do.
func functions(m *components.Module) map[string]int {
	n := map[string]int{}
	for i := range m.Instr.Len() {
		n[m.OpcodeName(m.Instr.Opcode.At(i))]++
		if s := m.Symbols.String(m.Instr.Func.At(i)); s != "" {
			n[s]++
		}
	}
	return n
}

// What frameworks spell out in many operators takes the passes that a
// hand-written kernel makes.
func TestRecognised(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       map[string]int // 0: must not be there
	}{
		{"gelu by erf", `
 d = f32[256,512] parameter(0)
 c = f32[] constant(0.70710678)
 cb = f32[256,512] broadcast(c), dimensions={}
 h = f32[] constant(0.5)
 hb = f32[256,512] broadcast(h), dimensions={}
 o = f32[] constant(1)
 ob = f32[256,512] broadcast(o), dimensions={}
 z = f32[256,512] multiply(d, cb)
 r = f32[256,512] erf(z)
 r1 = f32[256,512] add(r, ob)
 dh = f32[256,512] multiply(d, hb)
 ROOT y = f32[256,512] multiply(dh, r1)`, map[string]int{"gelu": 1, "erf": 0, "TensorTensor": 0, "TensorScalar": 0}},
		{"silu by exp", `
 d = f32[256,512] parameter(0)
 o = f32[] constant(1)
 ob = f32[256,512] broadcast(o), dimensions={}
 n = f32[256,512] negate(d)
 e = f32[256,512] exponential(n)
 s = f32[256,512] add(e, ob)
 ROOT y = f32[256,512] divide(d, s)`, map[string]int{"silu": 1, "exp": 0, "Reciprocal": 0}},
		{"a gate that someone else reads stays", `
 d = f32[256,512] parameter(0)
 l = f32[256,512] logistic(d)
 y = f32[256,512] multiply(d, l)
 ROOT t = (f32[256,512], f32[256,512]) tuple(y, l)`, map[string]int{"silu": 0, "sigmoid": 1}},
		{"RMSNorm", `
 d = f32[256,512] parameter(0)
 zero = f32[] constant(0)
 inv = f32[] constant(0.001953125)
 invb = f32[256] broadcast(inv), dimensions={}
 eps = f32[] constant(1e-6)
 epsb = f32[256] broadcast(eps), dimensions={}
 q = f32[256,512] multiply(d, d)
 s = f32[256] reduce(q, zero), dimensions={1}, to_apply=add
 v = f32[256] multiply(s, invb)
 w = f32[256] add(v, epsb)
 r = f32[256] rsqrt(w)
 rb = f32[256,512] broadcast(r), dimensions={0}
 ROOT y = f32[256,512] multiply(d, rb)`, map[string]int{"square": 2, "rsqrt": 1, "mult_add": 2, "TensorReduce": 0, "TensorTensor": 0}}, // 256 rows are two a partition
		{"LayerNorm", `
 d = f32[256,512] parameter(0)
 zero = f32[] constant(0)
 inv = f32[] constant(0.001953125)
 invb = f32[256] broadcast(inv), dimensions={}
 eps = f32[] constant(1e-6)
 epsb = f32[256] broadcast(eps), dimensions={}
 s = f32[256] reduce(d, zero), dimensions={1}, to_apply=add
 mean = f32[256] multiply(s, invb)
 meanb = f32[256,512] broadcast(mean), dimensions={0}
 x = f32[256,512] subtract(d, meanb)
 q = f32[256,512] multiply(x, x)
 s2 = f32[256] reduce(q, zero), dimensions={1}, to_apply=add
 v = f32[256] multiply(s2, invb)
 w = f32[256] add(v, epsb)
 r = f32[256] rsqrt(w)
 rb = f32[256,512] broadcast(r), dimensions={0}
 ROOT y = f32[256,512] multiply(x, rb)`, map[string]int{"BNStats": 2, "BNStatsAggregate": 1, "mult_add": 2, "TensorReduce": 0, "TensorTensor": 0}},
		// 4,096 rows of 128: x·cos and the sum are whole, the product with the
		// exchanged halves is two halves, of which the sign is part.
		{"rotary embedding, halves exchanged", `
 x = f32[256,16,128] parameter(0)
 c = f32[256,128] parameter(1)
 s = f32[256,128] parameter(2)
 cb = f32[256,16,128] broadcast(c), dimensions={0,2}
 sb = f32[256,16,128] broadcast(s), dimensions={0,2}
 lo = f32[256,16,64] slice(x), slice={[0:256], [0:16], [0:64]}
 hi = f32[256,16,64] slice(x), slice={[0:256], [0:16], [64:128]}
 n = f32[256,16,64] negate(hi)
 r = f32[256,16,128] concatenate(n, lo), dimensions={2}
 a = f32[256,16,128] multiply(x, cb)
 b = f32[256,16,128] multiply(r, sb)
 ROOT y = f32[256,16,128] add(a, b)`, map[string]int{"TensorTensor": 8, "mult": 6, "add": 2, "TensorScalar": 0, "DMACopy": 8}}, // two tiles
		{"rotary embedding, sums of products", `
 x = f32[256,16,128] parameter(0)
 c = f32[256,64] parameter(1)
 s = f32[256,64] parameter(2)
 cb = f32[256,16,64] broadcast(c), dimensions={0,2}
 sb = f32[256,16,64] broadcast(s), dimensions={0,2}
 lo = f32[256,16,64] slice(x), slice={[0:256], [0:16], [0:64]}
 hi = f32[256,16,64] slice(x), slice={[0:256], [0:16], [64:128]}
 a = f32[256,16,64] multiply(lo, cb)
 b = f32[256,16,64] multiply(hi, sb)
 d = f32[256,16,64] multiply(hi, cb)
 e = f32[256,16,64] multiply(lo, sb)
 p = f32[256,16,64] subtract(a, b)
 q = f32[256,16,64] add(d, e)
 ROOT y = f32[256,16,128] concatenate(p, q), dimensions={2}`, map[string]int{"mult": 8, "subtract": 2, "add": 2, "TensorCopy": 0, "DMACopy": 6}},
		{"halves that someone else reads are joined in memory", `
 x = f32[256,16,128] parameter(0)
 lo = f32[256,16,64] slice(x), slice={[0:256], [0:16], [0:64]}
 hi = f32[256,16,64] slice(x), slice={[0:256], [0:16], [64:128]}
 n = f32[256,16,64] negate(hi)
 r = f32[256,16,128] concatenate(n, lo), dimensions={2}
 ROOT t = (f32[256,16,128], f32[256,16,64]) tuple(r, n)`, map[string]int{"mult": 1}},
		{"softmax", " x = f32[256,256] parameter(0)" + softmaxOf("x") + " ROOT y = f32[256,256] copy(p)", map[string]int{"exp": 2, "Reciprocal": 1, "TensorTensor": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := functions(lowerText(t, c.body).Module)
			for f, want := range c.want {
				if n[f] != want {
					t.Errorf("%d instructions of %s, want %d; all: %v", n[f], f, want, n)
				}
			}
		})
	}
}

// lowerText lowers a module of the folds and an entry, and has it checked byte
// by byte.
func lowerText(t *testing.T, entry string) *lower.Result {
	t.Helper()
	gs, err := hlo.ReadText("test", []byte("HloModule test\n"+folds+"ENTRY main {\n"+entry+"\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gs[0]
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	opt := lower.DefaultOptions()
	opt.Operands = true
	res, err := lower.Lower(context.Background(), g, loadMachine(t, "trn2"), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Report.Conserved(); err != nil {
		t.Error(err)
	}
	r, err := checkModule(res.Module)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(res.Module); err != nil {
		t.Error(err)
	}
	return res
}

// Attention keeps its scores on chip: nothing but queries, keys, values, the
// mask and the result is in device memory.
func TestAttentionOnChip(t *testing.T) {
	const s, d = 256, 64
	qkv := fmt.Sprintf(` q = f32[%d,%d] parameter(0)
 k = f32[%d,%d] parameter(1)
 v = f32[%d,%d] parameter(2)
 sc = f32[256,256] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
 ei = f32[] constant(0.125)
 eb = f32[256,256] broadcast(ei), dimensions={}
 scaled = f32[256,256] multiply(sc, eb)
`, s, d, s, d, s, d)
	const out = " ROOT o = f32[256,64] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
	for _, c := range []struct {
		name, entry string
		loads       int64 // bytes
	}{
		{"plain", qkv + softmaxOf("scaled") + out, 3 * s * d * 4},
		{"with a mask that is added", qkv + " mask = f32[256,256] parameter(3)\n masked = f32[256,256] add(scaled, mask)" + softmaxOf("masked") + out, 3*s*d*4 + s*s*4},
		{"with a mask that selects", qkv + ` mask = pred[256,256] parameter(3)
 low = f32[] constant(-1e9)
 lows = f32[256,256] broadcast(low), dimensions={}
 masked = f32[256,256] select(mask, scaled, lows)` + softmaxOf("masked") + out, 3*s*d*4 + s*s},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := lowerText(t, c.entry)
			if r := &res.Report; r.LoadBytes != c.loads || r.StoreBytes != s*d*4 || r.CopyBytes != 0 {
				t.Errorf("%d bytes loaded, want %d; %d stored, want %d; %d copied", r.LoadBytes, c.loads, r.StoreBytes, s*d*4, r.CopyBytes)
			}
			if n := functions(res.Module); n["exp"] != 2 { // two row blocks
				t.Errorf("%d exponentials, want one for each of two row blocks", n["exp"])
			}
		})
	}
	// Scores that someone else reads are made as ever.
	res := lowerText(t, strings.Replace(qkv+softmaxOf("scaled")+out, " ROOT o", " o", 1)+"\n ROOT t = (f32[256,64], f32[256,256]) tuple(o, p)")
	if res.Report.StoreBytes < s*s*4 {
		t.Errorf("%d bytes stored: the probabilities are a result", res.Report.StoreBytes)
	}
}

// What follows a product is done as its sums leave PSUM: no instruction copies
// them first.
func TestFinishedInPSUM(t *testing.T) {
	res := lowerText(t, ` a = f32[128,128] parameter(0)
 b = f32[128,512] parameter(1)
 bias = f32[512] parameter(2)
 r = f32[128,512] parameter(3)
 x = f32[128,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 bb = f32[128,512] broadcast(bias), dimensions={1}
 y = f32[128,512] add(x, bb)
 z = f32[128,512] tanh(y)
 ROOT o = f32[128,512] add(z, r)`)
	n := functions(res.Module)
	if n["tanh"] != 1 || n["add"] != 2 || n["Matmult"] != 2 { // the product and a transpose of its data
		t.Errorf("instructions %v: want a bias, a tanh, a residual", n)
	}
	if n["copy"] != 1 { // of the transpose
		t.Errorf("%d copies, want that of the transpose alone", n["copy"])
	}
}
