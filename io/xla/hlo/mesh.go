package hlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// meshAxis is one axis of a device mesh.
type meshAxis struct {
	name string
	size int64
}

// meshGroups takes the mesh form of replica groups,
// "mesh['x'=2,'y'=4] {'y'}": one group for each place on the axes that are
// not named, of the devices along the named ones, in their order. It is kept
// in the iota form, or as a list when the mesh numbers its devices itself.
// "'x':(2)4" is the part of size 4 of axis x after a part of size 2.
func (p *parser) meshGroups(op opgraph.OpID) bool {
	at := p.pos
	if w := p.word(); w != "mesh" {
		return p.failAt(at, "replica groups begin with %q, want '{', '[' or mesh", w)
	}
	axes, ids, ok := p.mesh()
	if !ok {
		return false
	}
	if !p.expect('{', "before the axes of the replica groups") {
		return false
	}
	var picked []int64 // indices into dims, after axes were split
	for p.peek() != '}' {
		refAt := p.pos
		name, ok := p.axisName()
		if !ok {
			return false
		}
		pre, size := int64(1), int64(0)
		if p.accept(':') {
			var v []int64
			if v, ok = p.intsBetween('(', ')', nil); !ok || len(v) != 1 {
				return p.failAt(refAt, "a part of an axis is written 'x':(2)4")
			}
			pre = v[0]
			if size, ok = p.int(); !ok {
				return false
			}
		}
		if axes, ok = splitAxis(axes, name, pre, size); !ok {
			return p.failAt(refAt, "the mesh has no such axis %q", name)
		}
		key := axisKey(name, pre, size)
		for i, a := range axes {
			if a.name == key {
				picked = append(picked, int64(i))
			}
		}
		if !p.accept(',') {
			break
		}
	}
	if !p.expect('}', "to end the axes") {
		return false
	}
	r, ok := meshToGroups(axes, picked, ids)
	if !ok {
		return p.failAt(at, "the mesh does not fit its devices or axes")
	}
	p.g.SetReplicaGroups(op, r)
	return true
}

// mesh takes "['x'=2, 'y'=4, device_ids=(…)]".
func (p *parser) mesh() (axes []meshAxis, ids []int64, ok bool) {
	if !p.expect('[', "after mesh") {
		return nil, nil, false
	}
	for p.peek() != ']' {
		if p.isWord("device_ids") {
			p.pos += len("device_ids")
			if !p.expect('=', "after device_ids") {
				return nil, nil, false
			}
			end := byte(')')
			open := p.peek()
			if open == '[' {
				end = ']'
			} else {
				open = '('
			}
			if ids, ok = p.intsBetween(open, end, nil); !ok {
				return nil, nil, false
			}
		} else {
			name, ok := p.axisName()
			if !ok || !p.expect('=', "after the name of an axis") {
				return nil, nil, false
			}
			size, ok := p.int()
			if !ok {
				return nil, nil, false
			}
			if len(axes) == maxRank || size <= 0 {
				return nil, nil, p.fail("axis %q of size %d", name, size)
			}
			axes = append(axes, meshAxis{axisKey(name, 1, 0), size})
		}
		if !p.accept(',') {
			break
		}
	}
	return axes, ids, p.expect(']', "to end the mesh")
}

// axisName takes a name in single or double quotes.
func (p *parser) axisName() (string, bool) {
	if p.peek() == '"' {
		return p.quoted()
	}
	if !p.expect('\'', "before the name of an axis") {
		return "", false
	}
	n := strings.IndexByte(p.s[p.pos:], '\'')
	if n < 0 {
		return "", p.fail("name of an axis is not closed")
	}
	name := p.s[p.pos : p.pos+n]
	p.pos += n + 1
	return name, true
}

// axisKey names a part of an axis: size 0 is the whole.
func axisKey(name string, pre, size int64) string {
	if size == 0 {
		return name
	}
	return name + ":" + string(appendInt(nil, pre)) + ":" + string(appendInt(nil, size))
}

// splitAxis replaces axis name by pre, size and the rest when a part of it is
// meant.
func splitAxis(axes []meshAxis, name string, pre, size int64) ([]meshAxis, bool) {
	for i, a := range axes {
		if a.name == axisKey(name, pre, size) {
			return axes, true
		}
		if a.name != name {
			continue
		}
		if size <= 0 || pre <= 0 || a.size%pre != 0 || a.size/pre%size != 0 || len(axes)+2 > maxRank {
			return nil, false
		}
		out := append([]meshAxis(nil), axes[:i]...)
		out = append(out, meshAxis{name + ":", pre}, meshAxis{axisKey(name, pre, size), size}, meshAxis{name + "::", a.size / pre / size})
		return append(out, axes[i+1:]...), true
	}
	return nil, false
}

// meshToGroups makes replica groups of the picked axes.
func meshToGroups(axes []meshAxis, picked, ids []int64) (opgraph.ReplicaGroups, bool) {
	r := opgraph.ReplicaGroups{Form: opgraph.GroupsIota}
	var seen uint64
	size, total := int64(1), int64(1)
	for _, a := range picked {
		if seen>>a&1 != 0 {
			return r, false
		}
		seen |= 1 << a
		size = opgraph.MulSize(size, axes[a].size)
	}
	identity := true
	for i, a := range axes {
		r.Reshape = append(r.Reshape, a.size)
		total = opgraph.MulSize(total, a.size)
		if seen>>i&1 == 0 {
			r.Perm = append(r.Perm, int64(i))
		}
	}
	r.Perm = append(r.Perm, picked...)
	for i, d := range r.Perm {
		identity = identity && int64(i) == d
	}
	r.Dims = []int64{total / size, size}
	if len(axes) == 0 {
		r.Reshape = []int64{1}
		identity = true
	}
	if identity {
		r.Perm = nil
	}
	if !validIota(r) || len(ids) != 0 && int64(len(ids)) != total {
		return r, false
	}
	if len(ids) == 0 {
		return r, true
	}
	list := opgraph.ReplicaGroups{Form: opgraph.GroupsList}
	for i := range r.Count() {
		list.Sizes = append(list.Sizes, size)
		list.Devices = r.AppendGroup(list.Devices, i)
	}
	for i, d := range list.Devices {
		list.Devices[i] = ids[d]
	}
	return list, true
}
