package compare

import "slices"

// align pairs equal keys of two sequences in order: it calls pair(i, j) with
// ascending positions so that as few positions as it can find stay without a
// partner. It is Myers' algorithm (An O(ND) Difference Algorithm, 1986); past
// mostEdits the sequences are cut at keys that each has once, or where the
// farthest path has come, so that time is O((n+m)·mostEdits).
func align(a, b []int32, pair func(i, j int)) {
	s := aligner{a: a, b: b, pair: pair}
	s.part(0, len(a), 0, len(b), true)
}

// mostEdits bounds the edits of one part of an alignment.
const mostEdits = 400

type aligner struct {
	a, b  []int32
	pair  func(i, j int)
	trace []int32 // farthest positions in a, by edits and diagonal
}

// part aligns a[i:n] with b[j:m]; cut allows cuts at keys that are unique.
func (s *aligner) part(i, n, j, m int, cut bool) {
	for {
		for i < n && j < m && s.a[i] == s.b[j] {
			s.pair(i, j)
			i, j = i+1, j+1
		}
		tail := 0
		for i < n-tail && j < m-tail && s.a[n-1-tail] == s.b[m-1-tail] {
			tail++
		}
		end, endB := n-tail, m-tail
		if i == end || j == endB {
			i, j = end, endB
		} else {
			x, y, done := s.edits(i, end, j, endB, cut)
			switch {
			case done:
				i, j = end, endB
			case cut:
				for _, c := range append(s.unique(i, end, j, endB), [2]int{end, endB}) {
					s.part(i, c[0], j, c[1], false)
					if i, j = c[0], c[1]; i < end {
						s.pair(i, j)
						i, j = i+1, j+1
					}
				}
				i, j = end, endB
			default:
				i, j = x, y
				n, m = end, endB
				defer s.tail(end, endB, tail)
				continue
			}
		}
		s.tail(end, endB, tail)
		return
	}
}

// tail pairs the equal ends of a part.
func (s *aligner) tail(i, j, n int) {
	for k := range n {
		s.pair(i+k, j+k)
	}
}

// edits pairs a[i:n] with b[j:m] where at most mostEdits edits do it. Else,
// unless dry, it pairs along the path that has come farthest and returns where
// that ends.
func (s *aligner) edits(i, n, j, m int, dry bool) (x, y int, done bool) {
	limit := min(mostEdits, n-i+m-j)
	width := 2*limit + 2
	v := make([]int32, width+1)
	at := func(k int) *int32 { return &v[k+limit+1] }
	s.trace = s.trace[:0]
	for d := 0; d <= limit; d++ {
		for k := -d; k <= d; k += 2 {
			var p int32
			if k == -d || k != d && *at(k - 1) < *at(k + 1) {
				p = *at(k + 1)
			} else {
				p = *at(k - 1) + 1
			}
			for int(p) < n-i && int(p)-k < m-j && int(p)-k >= 0 && s.a[i+int(p)] == s.b[j+int(p)-k] {
				p++
			}
			*at(k) = p
			if int(p) >= n-i && int(p)-k >= m-j {
				s.save(v, d, limit)
				s.back(i, j, d, k)
				return n, m, true
			}
		}
		s.save(v, d, limit)
	}
	if dry {
		return 0, 0, false
	}
	far, best := 0, -1
	for k := -limit; k <= limit; k += 2 {
		p := int(*at(k))
		if p > n-i || p-k > m-j || p-k < 0 {
			continue
		}
		if 2*p-k > best {
			far, best = k, 2*p-k
		}
	}
	p := int(*at(far))
	s.back(i, j, limit, far)
	return i + p, j + p - far, false
}

// save keeps the diagonals -d to d behind those of fewer edits: those of d
// edits begin at d².
func (s *aligner) save(v []int32, d, limit int) {
	s.trace = append(s.trace, v[limit+1-d:limit+2+d]...)
}

// back walks a path of d edits back from diagonal k and pairs along it.
func (s *aligner) back(i, j, d, k int) {
	at := func(d, k int) int { return int(s.trace[d*d+k+d]) }
	type run struct{ x, y, n int }
	var runs []run
	for p := at(d, k); ; d-- {
		var from, last int // where the diagonal run begins, and the diagonal before
		if d == 0 {
			runs = append(runs, run{0, 0, p})
			break
		}
		if k == -d || k != d && value(at, d-1, k-1) < value(at, d-1, k+1) {
			last = k + 1
			from = at(d-1, last)
		} else {
			last = k - 1
			from = at(d-1, last) + 1
		}
		runs = append(runs, run{from, from - k, p - from})
		k, p = last, at(d-1, last)
	}
	for _, r := range slices.Backward(runs) {
		for t := range r.n {
			s.pair(i+r.x+t, j+r.y+t)
		}
	}
}

// value is at, with a position before all where a diagonal is out of reach.
func value(at func(d, k int) int, d, k int) int {
	if k < -d || k > d {
		return -1
	}
	return at(d, k)
}

// unique returns cuts: pairs of keys that both parts have once, of which the
// most that are in one order.
func (s *aligner) unique(i, n, j, m int) [][2]int {
	count := map[int32][2]int{}
	where := map[int32]int{}
	for _, k := range s.a[i:n] {
		c := count[k]
		c[0]++
		count[k] = c
	}
	for t, k := range s.b[j:m] {
		c := count[k]
		c[1]++
		count[k] = c
		where[k] = j + t
	}
	var once [][2]int
	for t, k := range s.a[i:n] {
		if count[k] == [2]int{1, 1} {
			once = append(once, [2]int{i + t, where[k]})
		}
	}
	// The longest ascending subsequence: ends[l] is the lowest end of those of
	// length l+1.
	before := make([]int, len(once))
	var ends []int
	for t, c := range once {
		l, _ := slices.BinarySearchFunc(ends, c[1], func(e, y int) int { return once[e][1] - y })
		before[t] = -1
		if l > 0 {
			before[t] = ends[l-1]
		}
		if l == len(ends) {
			ends = append(ends, t)
		} else {
			ends[l] = t
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var out [][2]int
	for t := ends[len(ends)-1]; t >= 0; t = before[t] {
		out = append(out, once[t])
	}
	slices.Reverse(out)
	return out
}
