package deps

import (
	"perfsim/components"
)

// slow is the reference: for every access it walks back over all accesses
// before it, point by point, until what it touches is overwritten. Nothing of
// it is shared with the sweep but the accesses themselves, which have tests of
// their own.
type slow struct {
	m     *components.Module
	list  []access
	space []space

	edges   map[[2]uint32]components.EdgeKind
	carried map[[2]uint32]components.EdgeKind
}

type point struct {
	space uint32
	part  uint32
	byte  uint64
}

// moment is one run of one access.
type moment struct {
	a    access
	iter int
}

func points(a access) map[point]bool {
	out := map[point]bool{}
	for p := a.p0; p < a.p1; p++ {
		for b := a.lo; b < a.hi; b++ {
			out[point{a.space, p, b}] = true
		}
	}
	return out
}

func (s *slow) note(into map[[2]uint32]components.EdgeKind, from, to uint32, k components.EdgeKind) {
	key := [2]uint32{from, to}
	into[key] = max(into[key], k)
}

// depend finds what the last moment of h depends on.
func (s *slow) depend(h []moment, adds bool, record func(p moment, k components.EdgeKind)) {
	now := h[len(h)-1]
	left := points(now.a)
	matmul := s.m.Instr.Opcode.At(int(now.a.row)).IsMatmul() && now.a.write
	register := s.space[now.a.space].kind == spaceRegister
	// What an earlier output of the same instruction wrote is its own.
	i := len(h) - 2
	for ; i >= 0 && h[i].a.row == now.a.row && h[i].iter == now.iter; i-- {
		if h[i].a.write {
			for p := range points(h[i].a) {
				delete(left, p)
			}
		}
	}
	anti, output := false, false
	for ; i >= 0 && len(left) > 0; i-- {
		p := h[i]
		meets := false
		var covered []point
		for q := range points(p.a) {
			if left[q] {
				meets = true
				covered = append(covered, q)
			}
		}
		if !meets {
			continue
		}
		if p.a.write {
			for _, q := range covered {
				delete(left, q)
			}
		}
		if p.a.row == now.a.row {
			continue
		}
		switch {
		case !now.a.write && p.a.write:
			record(p, components.Flow)
		case now.a.write && p.a.write:
			if matmul && output {
				continue
			}
			output = true
			switch {
			case matmul && adds && s.space[now.a.space].kind == spacePSUM && s.m.Instr.Opcode.At(int(p.a.row)).IsMatmul():
				record(p, components.Flow)
			case !register:
				record(p, components.Output)
			}
		case now.a.write && !p.a.write && !register:
			if matmul && anti {
				continue
			}
			anti = true
			record(p, components.Anti)
		}
	}
}

// run finds all dependencies: those within one run of everything, and for
// each loop those to the iteration before.
func (s *slow) run(accumulate bool, loops []loopRange) {
	s.edges, s.carried = map[[2]uint32]components.EdgeKind{}, map[[2]uint32]components.EdgeKind{}
	adds := func(row uint32) bool {
		return accumulate && s.m.Instr.Flags.At(int(row))&components.FlagAccStart == 0
	}
	var h []moment
	for _, a := range s.list {
		h = append(h, moment{a, 0})
		s.depend(h, adds(a.row), func(p moment, k components.EdgeKind) { s.note(s.edges, a.row, p.a.row, k) })
	}
	for _, l := range loops {
		var h []moment
		for _, a := range s.list {
			if a.row < l.end {
				h = append(h, moment{a, 0})
			}
		}
		for _, a := range s.list {
			if a.row < l.first || a.row >= l.end {
				continue
			}
			h = append(h, moment{a, 1})
			s.depend(h, adds(a.row), func(p moment, k components.EdgeKind) {
				if p.iter == 0 && p.a.row > a.row {
					s.note(s.carried, a.row, p.a.row, k)
				}
			})
		}
	}
}
