package compare

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// How much of an instruction's work its key holds.
type detail int

const (
	whole    detail = iota // engine, opcode, function, shape, type, scope
	anywhere               // the same on any engine
	shaped                 // without the scope
	kinds                  // engine, opcode, function
)

// key says what an instruction does. Keys of two modules are equal where the
// work is.
type key struct {
	engine, opcode, fn, scope int32
	elems, out                uint32
	parts                     uint16
	dtype                     components.DType
	bytes                     uint64
}

// vocabulary numbers the texts and keys of two modules alike.
type vocabulary struct {
	texts map[string]int32
	keys  map[key]int32
}

func (v *vocabulary) text(s string) int32 {
	n, ok := v.texts[s]
	if !ok {
		n = int32(len(v.texts))
		v.texts[s] = n
	}
	return n
}

// keysOf returns the numbers of the keys of all rows.
func (v *vocabulary) keysOf(s *Side, d detail) []int32 {
	m := s.Module
	in := &m.Instr
	out := make([]int32, len(s.Start))
	opcodes := map[components.Opcode]int32{}
	symbols := map[ecs.Symbol]int32{}
	engines := map[[2]uint16]int32{}
	for i := range out {
		op := in.Opcode.At(i)
		code, ok := opcodes[op]
		if !ok {
			code = v.text(m.OpcodeName(op))
			opcodes[op] = code
		}
		symbol := func(x ecs.Symbol) int32 {
			n, ok := symbols[x]
			if !ok {
				n = v.text(m.Symbols.String(x))
				symbols[x] = n
			}
			return n
		}
		k := key{opcode: code, fn: symbol(in.Func.Get(i))}
		if d != anywhere {
			e := [2]uint16{uint16(in.Engine.At(i)), in.Lane.At(i)}
			if k.engine, ok = engines[e]; !ok {
				k.engine = v.text(engine(m, i))
				engines[e] = k.engine
			}
		}
		if d != kinds {
			k.elems, k.out, k.parts, k.dtype, k.bytes = in.Elems.At(i), in.OutElems.Get(i), in.Parts.At(i), in.DType.At(i), in.DMABytes.Get(i)
		}
		if d == whole || d == anywhere {
			k.scope = symbol(m.ScopeOf(components.InstrID(i)))
		}
		n, ok := v.keys[k]
		if !ok {
			n = int32(len(v.keys))
			v.keys[k] = n
		}
		out[i] = n
	}
	return out
}

// shape is the work of row i in words: elements, type, function, bytes.
func shape(m *components.Module, i int) string {
	in := &m.Instr
	var parts []string
	if f := in.Func.Get(i); f != 0 {
		parts = append(parts, m.Symbols.String(f))
	}
	if n := in.DMABytes.Get(i); n > 0 {
		parts = []string{fmt.Sprintf("%d B", n)}
		switch f := in.Flags.At(i); {
		case f.Has(components.FlagSrcDRAM | components.FlagDstDRAM):
			parts = append(parts, "within device memory")
		case f.Has(components.FlagSrcDRAM):
			parts = append(parts, "read")
		case f.Has(components.FlagDstDRAM):
			parts = append(parts, "written")
		}
		return strings.Join(parts, " ")
	}
	if in.Elems.At(i) > 0 && in.Parts.At(i) > 0 {
		parts = append(parts, fmt.Sprintf("%d×%d", in.Parts.At(i), in.Elems.At(i)))
		if t := in.DType.At(i).String(); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, " ")
}

// matching says which rows of two sides are the same work.
type matching struct {
	to     []int  // by row of A: row of B, or -1
	moved  []bool // by row of A: its place among the others differs
	change []bool // by row of A: the partner is another size of the same operation
}

// pairs lists the pairs in the order of A.
func (x *matching) pairs() (out [][2]int) {
	for i, j := range x.to {
		if j >= 0 {
			out = append(out, [2]int{i, j})
		}
	}
	return out
}

// byWork aligns the instructions of every engine in program order by what they
// do: first by all of it, then what is between two pairs without the scope,
// then by the kind of operation alone. What is left is matched wherever it
// went, on its engine first.
func byWork(a, b *Side) *matching {
	x := &matching{to: slices.Repeat([]int{-1}, len(a.Start)), moved: make([]bool, len(a.Start)), change: make([]bool, len(a.Start))}
	taken := make([]bool, len(b.Start))
	v := &vocabulary{texts: map[string]int32{}, keys: map[key]int32{}}
	rowsA, rowsB := byEngine(a), byEngine(b)
	at := make([]int, len(b.Start))
	for _, d := range []detail{whole, shaped, kinds} {
		v.keys = map[key]int32{}
		ka, kb := v.keysOf(a, d), v.keysOf(b, d)
		for _, e := range sortedKeys(rowsA, nil) {
			between(rowsA[e], rowsB[e], x.to, at, func(ra, rb []int) {
				align(pick(ka, ra), pick(kb, rb), func(i, j int) {
					x.to[ra[i]] = rb[j]
					taken[rb[j]] = true
					x.change[ra[i]] = d == kinds
				})
			})
		}
	}
	for _, d := range []detail{whole, anywhere} {
		v.keys = map[key]int32{}
		ka, kb := v.keysOf(a, d), v.keysOf(b, d)
		free := map[int32][]int{}
		for j, k := range kb {
			if b.has(j) && !taken[j] {
				free[k] = append(free[k], j)
			}
		}
		for i, k := range ka {
			if list := free[k]; a.has(i) && x.to[i] < 0 && len(list) > 0 {
				x.to[i], x.moved[i], taken[list[0]] = list[0], true, true
				free[k] = list[1:]
			}
		}
	}
	return x
}

func pick(keys []int32, rows []int) []int32 {
	out := make([]int32, len(rows))
	for n, i := range rows {
		out[n] = keys[i]
	}
	return out
}

// byEngine lists the rows of every engine in program order.
func byEngine(s *Side) map[string][]int {
	out := map[string][]int{}
	names := map[[2]uint16]string{}
	for i := range s.Start {
		if !s.has(i) {
			continue
		}
		e := [2]uint16{uint16(s.Module.Instr.Engine.At(i)), s.Module.Instr.Lane.At(i)}
		name, ok := names[e]
		if !ok {
			name = engine(s.Module, i)
			names[e] = name
		}
		out[name] = append(out[name], i)
	}
	return out
}

// between calls f with the runs of rows that lie between two pairs of rows
// already matched, where both sides have some. at is memory for a number by
// row of B.
func between(rowsA, rowsB []int, to, at []int, f func(ra, rb []int)) {
	for n, j := range rowsB {
		at[j] = n
	}
	type span struct{ i, n, j, m int }
	var spans []span
	i, j := 0, 0
	for n, row := range append(slices.Clone(rowsA), -1) {
		m := len(rowsB)
		if row >= 0 {
			if to[row] < 0 {
				continue
			}
			m = at[to[row]]
		}
		if i < n && j < m {
			spans = append(spans, span{i, n, j, m})
		}
		i, j = n+1, m+1
	}
	for _, s := range spans {
		f(rowsA[s.i:s.n], rowsB[s.j:s.m])
	}
}
