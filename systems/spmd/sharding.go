package spmd

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perfsim/components/opgraph"
)

// axisSet is a set of axes of the device mesh; bit k is axes.list[k].
type axisSet uint64

// spec says how an array is cut: dims[i] are the axes over which dimension i
// is. Nil dims: every device holds all of it.
type spec struct {
	dims []axisSet
	// free marks a value that any device can make in any cut at no cost in
	// communication: constants and what is computed of them alone.
	free bool
	// open is a bit for each dimension that propagation may cut further.
	open uint64
}

func (s spec) at(i int) axisSet {
	if i < len(s.dims) {
		return s.dims[i]
	}
	return 0
}

// used returns the axes over which the array is cut.
func (s spec) used() (u axisSet) {
	for _, d := range s.dims {
		u |= d
	}
	return u
}

// cuts returns dims without the uncut ones at its end.
func (s spec) cuts() []axisSet {
	n := len(s.dims)
	for n > 0 && s.dims[n-1] == 0 {
		n--
	}
	return s.dims[:n]
}

func (s spec) equal(t spec) bool {
	for i := range max(len(s.dims), len(t.dims)) {
		if s.at(i) != t.at(i) {
			return false
		}
	}
	return true
}

// axis is one prime factor of the device numbering: device d has the
// coordinate d / stride % size on it.
type axis struct{ stride, size int64 }

// axes are the axes that the shardings of a module use.
type axes struct {
	list    []axis
	devices int64
	// order is the device at each place of the numbering, such as a ring that
	// follows the wires, and places its inverse; nil where both are the same.
	order, places []int64
}

// maxOrder is the largest number of devices with a numbering of their own.
const maxOrder = 1 << 12

// device returns the device at a place of the numbering.
func (a *axes) device(place int64) int64 {
	if a.order == nil || place >= int64(len(a.order)) {
		return place
	}
	return a.order[place]
}

var errAxes = errors.New("the shardings do not cut the devices along common axes")

// add returns the set of axes that a run of size devices with a stride makes:
// its prime factors.
func (a *axes) add(stride, size int64) (axisSet, error) {
	var set axisSet
	for p := int64(2); size > 1; {
		if size%p != 0 {
			if p++; p*p > size {
				p = size
			}
			continue
		}
		k := slices.Index(a.list, axis{stride, p})
		if k < 0 {
			for _, x := range a.list { // overlapping factors are not independent
				if stride < x.stride*x.size && x.stride < stride*p {
					return 0, errAxes
				}
			}
			if k = len(a.list); k == 64 {
				return 0, errAxes
			}
			a.list = append(a.list, axis{stride, p})
		}
		set |= 1 << k
		stride *= p
		size /= p
	}
	return set, nil
}

// size returns the number of devices along a set of axes.
func (a *axes) size(s axisSet) int64 {
	n := int64(1)
	for ; s != 0; s &= s - 1 {
		n *= a.list[bits.TrailingZeros64(uint64(s))].size
	}
	return n
}

// groups returns the replica groups of a collective over a set of axes.
func (a *axes) groups(s axisSet) opgraph.ReplicaGroups {
	n, lo, hi := a.size(s), int64(0), int64(1)
	for t := s; t != 0; t &= t - 1 {
		x := a.list[bits.TrailingZeros64(uint64(t))]
		if lo == 0 || x.stride < lo {
			lo = x.stride
		}
		hi = max(hi, x.stride*x.size)
	}
	if a.order == nil && lo > 0 && hi/lo == n && a.devices%hi == 0 { // neighbouring axes
		r := opgraph.ReplicaGroups{Form: opgraph.GroupsIota, Dims: []int64{a.devices / n, n}, Reshape: []int64{a.devices / hi, n, lo}, Perm: []int64{0, 2, 1}}
		if lo == 1 {
			r.Reshape, r.Perm = []int64{a.devices}, nil
		}
		return r
	}
	const most = 1 << 10
	if a.devices > most {
		return opgraph.ReplicaGroups{Form: opgraph.GroupsIota, Dims: []int64{max(a.devices/n, 1), n}, Reshape: []int64{a.devices}}
	}
	byKey := map[int64][]int64{} // by the device with coordinate 0 on all axes
	var keys []int64
	for d := range a.devices {
		key := d
		for t := s; t != 0; t &= t - 1 {
			x := a.list[bits.TrailingZeros64(uint64(t))]
			key -= d / x.stride % x.size * x.stride
		}
		if byKey[key] == nil {
			keys = append(keys, key)
		}
		byKey[key] = append(byKey[key], a.device(d))
	}
	r := opgraph.ReplicaGroups{Form: opgraph.GroupsList}
	for _, k := range keys {
		r.Sizes = append(r.Sizes, int64(len(byKey[k])))
		r.Devices = append(r.Devices, byKey[k]...)
	}
	return r
}

// comment is what XLA prints between every five elements of a tuple.
var comment = regexp.MustCompile(`/\*.*?\*/`)

// parseHLO reads the text of a sharding attribute: one spec for each array, or
// one for all. ok is false for a sharding that says nothing (manual, unknown).
func (a *axes) parseHLO(text string) (list []spec, err error) {
	text = strings.TrimSpace(comment.ReplaceAllLiteralString(text, ""))
	in := strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
	if strings.HasPrefix(in, "{") || in == "" { // a tuple
		for _, part := range splitTop(in) {
			one, err := a.parseHLO(part)
			if err != nil {
				return nil, err
			}
			list = append(list, one...)
		}
		return list, nil
	}
	if named, ok := strings.CutPrefix(in, "mesh["); ok { // mesh['x'=4], [{'x'}, {}]
		if before, ids, ok := strings.Cut(named, " device_ids=("); ok { // how the devices are numbered
			_, rest, _ := strings.Cut(ids, "), ")
			named = before + rest
		}
		list, err = a.parseSdy(strings.ReplaceAll("<mesh<["+strings.Replace(named, "]", "]>", 1), "'", `"`), nil)
		if err == nil && len(list) == 0 {
			list = []spec{{}}
		}
		return list, err
	}
	rest, ok := strings.CutPrefix(in, "devices=[")
	if !ok {
		word, _, _ := strings.Cut(in, " ")
		if !slices.Contains([]string{"replicated", "maximal", "manual", "unknown", "unreduced"}, word) {
			return nil, fmt.Errorf("sharding %s is not understood", text)
		}
		return []spec{{}}, nil
	}
	dimText, rest, ok := strings.Cut(rest, "]")
	tiles, ok2 := numbers(dimText)
	if !ok || !ok2 || len(tiles) == 0 {
		return nil, fmt.Errorf("sharding %s is not understood", text)
	}
	total := int64(1)
	for _, n := range tiles {
		total = opgraph.MulSize(total, n)
	}
	if total <= 0 || total > 1<<24 {
		return nil, fmt.Errorf("sharding %s has %d tiles", text, total)
	}
	a.devices = max(a.devices, total)
	strides, sizes, err := a.deviceOrder(rest, total)
	if err != nil {
		return nil, fmt.Errorf("sharding %s: %w", text, err)
	}
	rank := len(tiles)
	if strings.Contains(rest, "last_tile_dim_replicate") {
		rank--
	} else if i := strings.Index(rest, "last_tile_dims={"); i >= 0 {
		names, _, _ := strings.Cut(rest[i+len("last_tile_dims={"):], "}")
		rank -= len(strings.Split(names, ","))
	}
	s := spec{dims: make([]axisSet, max(rank, 0))}
	// The tiles in order are a mixed-radix number over the device order: cut
	// each tile dimension off its minor end.
	k := len(sizes) - 1
	for i := len(tiles) - 1; i >= 0; i-- {
		need := tiles[i]
		for need > 1 {
			for k >= 0 && sizes[k] == 1 {
				k--
			}
			if k < 0 {
				return nil, errAxes
			}
			n := opgraph.GCD(need, sizes[k])
			if n == 1 {
				return nil, errAxes
			}
			set, err := a.add(strides[k], n)
			if err != nil {
				return nil, err
			}
			if i < rank {
				s.dims[i] |= set
			}
			strides[k] *= n
			sizes[k] /= n
			need /= n
		}
	}
	return []spec{s}, nil
}

// deviceOrder reads "<=[4,2]T(1,0)", or a list of devices, as a mixed-radix
// numbering: sizes and device strides, major first.
func (a *axes) deviceOrder(text string, total int64) (strides, sizes []int64, err error) {
	if rest, ok := strings.CutPrefix(text, "<=["); ok {
		dimText, rest, _ := strings.Cut(rest, "]")
		dims, ok := numbers(dimText)
		n := int64(1)
		for _, d := range dims {
			n = opgraph.MulSize(n, d)
		}
		if !ok || n != total {
			return nil, nil, fmt.Errorf("the device list has %d devices, the tiles %d", n, total)
		}
		stride := make([]int64, len(dims))
		for i, s := len(dims)-1, int64(1); i >= 0; i-- {
			stride[i] = s
			s *= dims[i]
		}
		perm := make([]int64, len(dims))
		for i := range perm {
			perm[i] = int64(i)
		}
		if rest, ok := strings.CutPrefix(rest, "T("); ok {
			p, _, _ := strings.Cut(rest, ")")
			if perm, ok = numbers(p); !ok || len(perm) != len(dims) {
				return nil, nil, errors.New("its transpose is no permutation")
			}
		}
		seen := make([]bool, len(dims))
		for _, p := range perm {
			if p < 0 || p >= int64(len(dims)) || seen[p] {
				return nil, nil, errors.New("its transpose is no permutation")
			}
			seen[p] = true
			strides, sizes = append(strides, stride[p]), append(sizes, dims[p])
		}
		if a.order == nil || total != int64(len(a.order)) {
			return strides, sizes, nil
		}
		list := make([]int64, total)
		for i := range list {
			at := int64(i)
			for k := len(sizes) - 1; k >= 0; k-- {
				list[i] += at % sizes[k] * strides[k]
				at /= sizes[k]
			}
		}
		return a.strides(list)
	}
	end := 0
	for end < len(text) && (text[end] == ',' || text[end] >= '0' && text[end] <= '9') {
		end++
	}
	list, ok := numbers(strings.Trim(text[:end], ","))
	if !ok || int64(len(list)) != total {
		return nil, nil, fmt.Errorf("it lists %d devices for %d tiles", len(list), total)
	}
	if strides, sizes, err = a.strides(list); err == nil || a.order != nil || len(a.list) > 0 {
		return strides, sizes, err
	}
	// No cut so far relies on the devices' own numbers: the first list that is
	// no grid of them gives the numbering.
	if total > maxOrder {
		return nil, nil, err
	}
	places := slices.Repeat([]int64{-1}, int(total))
	for i, d := range list {
		if d >= total || places[d] >= 0 {
			return nil, nil, err
		}
		places[d] = int64(i)
	}
	a.order, a.places = list, places
	return a.strides(list)
}

// strides finds what mixed-radix numbering gives a list of devices.
func (a *axes) strides(list []int64) (strides, sizes []int64, err error) {
	if a.order != nil {
		if len(list) != len(a.order) {
			return nil, nil, errAxes
		}
		list = slices.Clone(list)
		for i, d := range list {
			if d >= int64(len(a.places)) {
				return nil, nil, errAxes
			}
			list[i] = a.places[d]
		}
	}
	total := int64(len(list))
	// Runs of equal steps, from the minor end.
	for n := int64(1); n < total; {
		step, r := list[n]-list[0], int64(1)
		for n*r < total && list[n*r]-list[n*(r-1)] == step {
			r++
		}
		for total%(n*r) != 0 {
			r--
		}
		if r < 2 || step <= 0 {
			return nil, nil, errAxes
		}
		strides, sizes = append([]int64{step}, strides...), append([]int64{r}, sizes...)
		n *= r
	}
	for i, d := range list { // the strides must give the list
		at, want := int64(i), list[0]
		for k := len(sizes) - 1; k >= 0; k-- {
			want += at % sizes[k] * strides[k]
			at /= sizes[k]
		}
		if want != d {
			return nil, nil, errAxes
		}
	}
	return strides, sizes, nil
}

// mesh is a named mesh of Shardy: axis names with sizes, major first.
type mesh struct {
	names []string
	sizes []int64
}

var meshText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([\w.]+) *= *#sdy\.mesh<\[([^\]]*)\]`) })
var meshAxis = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"]+)" *= *(\d+)`) })

// meshes reads the meshes that the module's frontend attributes define.
func meshes(g *opgraph.Graph) map[string]mesh {
	out := map[string]mesh{}
	for _, r := range g.ModuleAttrs {
		if g.Text(r.Key) != "frontend_attributes" {
			continue
		}
		for _, m := range meshText().FindAllStringSubmatch(strings.ReplaceAll(g.Text(r.Value), `\`, ""), -1) {
			out[m[1]] = parseMesh(m[2])
		}
	}
	return out
}

// parseMesh reads the axes of a mesh: "x"=4, "y"=2.
func parseMesh(text string) (x mesh) {
	for _, f := range meshAxis().FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseInt(f[2], 10, 32)
		if err != nil {
			continue
		}
		x.names, x.sizes = append(x.names, f[1]), append(x.sizes, n)
	}
	return x
}

var sdyAxis = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"]+)"(?::\((\d+)\)(\d+))?`) })

// parseSdy reads "#sdy.sharding<@mesh, [{"x"}, {}]>", the same with
// mesh<["x"=4]> for @mesh, and "#sdy.sharding_per_value<[<@mesh, …>, …]>".
func (a *axes) parseSdy(text string, known map[string]mesh) (list []spec, err error) {
	text = strings.ReplaceAll(text, `\`, "")
	for {
		name, m := "", mesh{}
		i, j := strings.Index(text, "<@"), strings.Index(text, "<mesh<[")
		switch {
		case i < 0 && j < 0:
			return list, nil
		case i < 0 || j >= 0 && j < i: // the mesh itself stands in the place of its name
			axes, rest, _ := strings.Cut(text[j+len("<mesh<["):], "]")
			m, text = parseMesh(axes), rest
			if ids, _, ok := strings.Cut(rest, ">"); ok { // behind the numbers of its devices
				text = rest[len(ids):]
			}
		default:
			var ok bool
			name, text, _ = strings.Cut(text[i+2:], ",")
			if m, ok = known[strings.TrimSpace(name)]; !ok {
				return nil, fmt.Errorf("mesh @%s is not defined", strings.TrimRight(strings.TrimSpace(name), ">]"))
			}
		}
		open := strings.IndexByte(text, '[')
		if open < 0 {
			return list, nil
		}
		end := open
		for depth := 0; end < len(text); end++ {
			if text[end] == '[' || text[end] == '{' {
				depth++
			} else if text[end] == ']' || text[end] == '}' {
				if depth--; depth == 0 {
					break
				}
			}
		}
		var s spec
		all := int64(1)
		for _, n := range m.sizes {
			all *= n
		}
		a.devices = max(a.devices, all)
		for _, dim := range splitTop(text[open+1 : min(end, len(text))]) {
			var set axisSet
			for _, f := range sdyAxis().FindAllStringSubmatch(dim, -1) {
				k := slices.Index(m.names, f[1])
				if k < 0 {
					return nil, fmt.Errorf("mesh @%s has no axis %q", strings.TrimSpace(name), f[1])
				}
				stride, size := int64(1), m.sizes[k]
				for _, n := range m.sizes[k+1:] {
					stride *= n
				}
				if f[2] != "" { // a part of the axis: "x":(before)size
					before, _ := strconv.ParseInt(f[2], 10, 32)
					part, _ := strconv.ParseInt(f[3], 10, 32)
					if before < 1 || part < 1 || size%(before*part) != 0 {
						return nil, fmt.Errorf("axis %s is no part of the mesh", f[0])
					}
					stride *= size / (before * part)
					size = part
				}
				x, err := a.add(stride, size)
				if err != nil {
					return nil, err
				}
				set |= x
			}
			if strings.Contains(dim, "?") && len(s.dims) < 64 {
				s.open |= 1 << len(s.dims)
			}
			s.dims = append(s.dims, set)
		}
		list = append(list, s)
	}
}

var sdyAttribute = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`xla\.sdy\.(sharding|in_shardings|out_shardings)="((?:[^"\\]|\\.)*)"`)
})

// sdyText returns the text of one of Shardy's shardings among frontend
// attributes, "" where it is not there.
func sdyText(attributes, key string) string {
	for _, m := range sdyAttribute().FindAllStringSubmatch(attributes, -1) {
		if m[1] == key {
			return m[2]
		}
	}
	return ""
}

// splitTop splits at commas outside brackets.
func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[start:]); last != "" {
		out = append(out, last)
	}
	return out
}

// numbers reads integers with commas between them.
func numbers(s string) ([]int64, bool) {
	var out []int64
	for f := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(f), 10, 64)
		if err != nil || n < 0 {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}
