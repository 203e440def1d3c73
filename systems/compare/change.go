package compare

import (
	"cmp"
	"math"
	"slices"

	"perfsim/components"
)

// What became of a group of instructions.
const (
	removed = "removed" // only A has them
	added   = "added"   // only B has them
	changed = "changed" // the same operation on other sizes
	moved   = "moved"   // at another place among the others, or on another engine
	slower  = "slower"
	faster  = "faster"
)

// Change is the difference of the instructions of one operation.
type Change struct {
	// removed, added, changed (another size), moved (another place or engine), slower or faster (by more than 1 % and 1 ns each)
	What   string `json:"change"`
	Engine string `json:"engine"` // of A, or of B where A has none
	Opcode string `json:"opcode"`
	Shape  string `json:"shape,omitempty"`   // partitions × elements and type, or bytes
	ShapeB string `json:"b_shape,omitempty"` // the same of B, where it differs
	Scope  string `json:"scope,omitempty"`   // operator or source line
	N      int    `json:"instructions"`      // instructions to which this happened
	// A and B are the sums of the durations, weighted.
	Two
	BytesA uint64 `json:"a_bytes"` // of transfers, weighted
	BytesB uint64 `json:"b_bytes"` // bytes that they move in B
	FLOPsA uint64 `json:"a_flops"` // weighted
	FLOPsB uint64 `json:"b_flops"` // FLOPs that they compute in B
}

// ScopeSum are the instructions of one scope on both sides.
type ScopeSum struct {
	Scope string `json:"scope"`
	NA    int    `json:"a_instructions"` // instructions of the scope in A
	NB    int    `json:"b_instructions"` // instructions of the scope in B
	Two          // sums of the durations, weighted
}

// changes sums up what became of the instructions: by operation, and by scope
// where a side has scopes.
func (r *Report) changes(a, b *Side, x *matching) {
	v := &vocabulary{texts: map[string]int32{}, keys: map[key]int32{}}
	ka, kb := v.keysOf(a, whole), v.keysOf(b, whole)
	type group struct {
		what string
		a, b int32
	}
	groups := map[group]*Change{}
	scopes := map[string]*ScopeSum{}
	get := func(g group, s *Side, i int) *Change {
		c := groups[g]
		if c == nil {
			m := s.Module
			c = &Change{What: g.what, Engine: engine(m, i), Opcode: opcode(s, i), Shape: shape(m, i), Scope: m.Symbols.String(m.ScopeOf(components.InstrID(i)))}
			groups[g] = c
		}
		return c
	}
	scope := func(s *Side, i int) *ScopeSum {
		name := s.Module.Symbols.String(s.Module.ScopeOf(components.InstrID(i)))
		if scopes[name] == nil {
			scopes[name] = &ScopeSum{Scope: name}
		}
		return scopes[name]
	}
	lasts := func(s *Side, i int) float64 { return (s.End[i] - s.Start[i]) * s.weight(i) }
	// add adds row i of A, and row j of B; -1 for none.
	add := func(c *Change, i, j int) {
		c.N++
		if i >= 0 {
			in := &a.Module.Instr
			c.A += lasts(a, i)
			c.BytesA += uint64(float64(in.DMABytes.Get(i)) * a.weight(i))
			c.FLOPsA += uint64(2 * float64(in.MACs.Get(i)) * a.weight(i))
		}
		if j >= 0 {
			in := &b.Module.Instr
			c.B += lasts(b, j)
			c.BytesB += uint64(float64(in.DMABytes.Get(j)) * b.weight(j))
			c.FLOPsB += uint64(2 * float64(in.MACs.Get(j)) * b.weight(j))
		}
	}
	matched := make([]bool, len(b.Start))
	waits := map[string]bool{}
	for op, w := range a.Module.WaitOpcodes() {
		waits[a.Module.OpcodeName(components.Opcode(op))] = w
	}
	for i := range a.Start {
		if !a.has(i) {
			continue
		}
		sum := scope(a, i)
		sum.NA++
		sum.A += lasts(a, i)
		j := x.to[i]
		if j < 0 {
			add(get(group{removed, ka[i], -1}, a, i), i, -1)
			continue
		}
		matched[j] = true
		g := group{"", ka[i], ka[i]}
		switch {
		case x.change[i]:
			g.what, g.b = changed, kb[j]
		case x.moved[i]:
			g.what = moved
		}
		c := get(g, a, i)
		if g.what == changed {
			c.ShapeB = shape(b.Module, j)
		}
		add(c, i, j)
	}
	for j := range b.Start {
		if !b.has(j) {
			continue
		}
		sum := scope(b, j)
		sum.NB++
		sum.B += lasts(b, j)
		if !matched[j] {
			add(get(group{added, -1, kb[j]}, b, j), -1, j)
		}
	}
	for _, c := range groups {
		c.Two = two(c.A, c.B)
		if (c.What == "" || c.What == moved) && waits[c.Opcode] {
			continue // waiting is summed up by cause
		}
		if c.What == "" {
			switch d := c.B - c.A; {
			case math.Abs(d) < max(0.01*c.A, float64(c.N)):
				continue // as on the other side
			case d > 0:
				c.What = slower
			default:
				c.What = faster
			}
		}
		r.Changes = append(r.Changes, *c)
	}
	slices.SortFunc(r.Changes, func(x, y Change) int {
		return cmp.Or(cmp.Compare(math.Abs(y.B-y.A), math.Abs(x.B-x.A)), cmp.Compare(x.What, y.What), cmp.Compare(x.Engine, y.Engine),
			cmp.Compare(x.Opcode, y.Opcode), cmp.Compare(x.Scope, y.Scope), cmp.Compare(x.Shape, y.Shape), cmp.Compare(x.ShapeB, y.ShapeB), cmp.Compare(x.N, y.N))
	})
	if len(scopes) > 1 {
		for _, s := range scopes {
			s.Two = two(s.A, s.B)
			r.Scopes = append(r.Scopes, *s)
		}
		slices.SortFunc(r.Scopes, func(x, y ScopeSum) int {
			return cmp.Or(cmp.Compare(math.Abs(y.B-y.A), math.Abs(x.B-x.A)), cmp.Compare(x.Scope, y.Scope))
		})
	}
}

// Work is the computation and traffic of a side, weighted. What is not known is
// nil.
type Work struct {
	FLOPs      *uint64  `json:"flops"`             // FLOPs of products and convolutions, weighted
	HBMRead    *uint64  `json:"hbm_read_bytes"`    // bytes read from device memory, weighted
	HBMWritten *uint64  `json:"hbm_written_bytes"` // bytes written to device memory, weighted
	MFU        *float64 `json:"mfu"`               // time of the FLOPs at the peak of their types over the latency
	HFU        *float64 `json:"hfu"`
	MBU        *float64 `json:"mbu"`
}

func workOf(s *Side) (w Work) {
	if f := s.Work; f != nil {
		w.FLOPs, w.HBMRead, w.HBMWritten = f.FLOPs, f.HBMRead, f.HBMWritten
	}
	if r := s.Rates; r != nil {
		w.MFU, w.HFU, w.MBU = r.MFU, r.HFU, r.MBU
	}
	return w
}
