package models

import (
	"strconv"

	"perfsim/components/opgraph"
)

// emitter turns the nodes of a net into the rows of a graph.
type emitter struct {
	n    *net
	g    *opgraph.Graph
	live []bool
	op   []opgraph.OpID // of the entry

	// root is the last node of the group a node is computed in; members are
	// the groups by their root, in program order.
	root    []val
	members map[val][]val
	users   [][]val

	body   map[val]opgraph.CompID // of a fusion by its root
	region map[opgraph.OpKind]opgraph.CompID
	outer  map[val][]val // operands of a fusion by its root
}

func elementwise(nd *node) bool {
	switch nd.kind {
	case opgraph.OpParameter, opgraph.OpConstant:
		return false
	case opgraph.OpBroadcast:
		return true
	}
	return nd.kind.IsElementwise()
}

// group decides what is fused: a node of elementwise kind is computed where
// its only users are, if those are all in one group of its own size. What
// feeds a broadcast stays outside, or it would be computed once per element
// of the wider shape; constants go in everywhere. No path leaves a group and
// comes back, as all users of an inner node are inside.
func (e *emitter) group() {
	nodes := e.n.nodes
	e.users = make([][]val, len(nodes))
	for v := range nodes {
		if e.live[v] {
			for _, o := range nodes[v].in {
				e.users[o] = append(e.users[o], val(v))
			}
		}
	}
	e.root = make([]val, len(nodes))
	e.members = map[val][]val{}
	for v := len(nodes) - 1; v >= 0; v-- {
		e.root[v] = val(v)
		nd := &nodes[v]
		if len(e.users[v]) == 0 || !e.live[v] || !elementwise(nd) && nd.kind != opgraph.OpConstant {
			continue
		}
		to := e.root[e.users[v][0]]
		for _, u := range e.users[v] {
			un := &nodes[u]
			if e.root[u] != to || !elementwise(un) || un.kind == opgraph.OpBroadcast && nd.kind != opgraph.OpConstant {
				to = val(v)
				break
			}
		}
		e.root[v] = to
	}
	for v := range nodes {
		if e.live[v] {
			e.members[e.root[v]] = append(e.members[e.root[v]], val(v))
		}
	}
}

// inside says that v is computed in a fusion and is not its root.
func (e *emitter) inside(v val) bool { return e.root[v] != v }

// regions adds the scalar functions of the reductions.
func (e *emitter) regions() {
	e.region = map[opgraph.OpKind]opgraph.CompID{}
	for v := range e.n.nodes {
		k := e.n.nodes[v].region
		if _, ok := e.region[k]; ok || k == 0 || !e.live[v] {
			continue
		}
		g, s := e.g, e.g.Array(e.n.elem)
		c := g.BeginComputation("region_" + k.String())
		a, b := g.AddParameter("a", s, 0), g.AddParameter("b", s, 1)
		g.EndComputation(g.AddOp(k, "r", s, a, b))
		e.region[k] = c
	}
}

// plain adds one operator; at gives the rows of its operands.
func (e *emitter) plain(v val, at []opgraph.OpID) opgraph.OpID {
	nd := &e.n.nodes[v]
	ops := make([]opgraph.OpID, len(nd.in))
	for i, o := range nd.in {
		ops[i] = at[o]
	}
	op := e.g.AddOp(nd.kind, opName(nd, int(v)), e.g.Array(nd.elem, nd.dims...), ops...)
	if nd.attrs != nil {
		nd.attrs(e.g, op)
	}
	if nd.region != 0 {
		e.g.AddCall(op, opgraph.RoleToApply, e.region[nd.region])
	}
	return op
}

// fusionBody adds the computation of the group of root r.
func (e *emitter) fusionBody(r val) {
	g, n := e.g, e.n
	c := g.BeginComputation("fused_computation." + strconv.Itoa(int(r)))
	at := make(map[val]opgraph.OpID)
	var outer []val
	for _, v := range e.members[r] {
		for _, o := range n.nodes[v].in {
			if _, ok := at[o]; ok || e.root[o] == r && o != r {
				continue
			}
			od := &n.nodes[o]
			at[o] = g.AddParameter("param_"+strconv.Itoa(len(outer)), g.Array(od.elem, od.dims...), len(outer))
			outer = append(outer, o)
		}
	}
	rows := make([]opgraph.OpID, len(n.nodes))
	for o, id := range at {
		rows[o] = id
	}
	for _, v := range e.members[r] {
		rows[v] = e.plain(v, rows)
		g.Ops.OpName[rows[v]] = g.Str(n.nodes[v].path)
	}
	g.EndComputation(rows[r])
	if e.body == nil {
		e.body, e.outer = map[val]opgraph.CompID{}, map[val][]val{}
	}
	e.body[r], e.outer[r] = c, outer
}

// fusion adds the operator of the group of root r to the entry.
func (e *emitter) fusion(r val) {
	nd := &e.n.nodes[r]
	ops := make([]opgraph.OpID, len(e.outer[r]))
	for i, o := range e.outer[r] {
		ops[i] = e.op[o]
	}
	op := e.g.AddOp(opgraph.OpFusion, "fusion."+strconv.Itoa(int(r)), e.g.Array(nd.elem, nd.dims...), ops...)
	e.g.SetInt(op, opgraph.AttrFusionKind, int64(opgraph.FusionLoop))
	e.g.AddCall(op, opgraph.RoleCalls, e.body[r])
	e.op[r] = op
}
