package chakra

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/jsonscan"
)

// tensor is a value of an operator: [tensor id, storage id, offset, elements,
// bytes of an element, device].
type tensor struct {
	id, storage uint64
	bytes       uint64
}

// hostNode is a node of a host execution trace and the tensors it reads and
// writes.
type hostNode struct {
	node    int // in graph.nodes
	id      uint64
	parent  uint64
	inputs  span // of tensors
	outputs span
}

// readHost reads an execution trace of PyTorch: schema 1.0.1, whose nodes are
// flat, and the later ones with attrs.
func (g *graph) readHost(ctx context.Context, src *format.Source) error {
	var hosts []hostNode
	var tensors []tensor
	var lists hostLists
	lanes := map[uint64]string{}
	err := g.each(ctx, src, "nodes", func(v jsonscan.Value, off int64) error {
		n := node{offset: off, kind: typeComp}
		h := hostNode{node: len(g.nodes)}
		m := hostMembersOf(v)
		var err error
		if n.id, err = whole(m.id, "id", true); err != nil {
			return err
		}
		h.id = n.id
		parent, key := m.ctrlDeps, "ctrl_deps"
		if parent.Kind() == jsonscan.Absent {
			parent, key = m.parent, "parent"
		}
		if h.parent, err = whole(parent, key, false); err != nil {
			return err
		}
		values := func(v jsonscan.Value) span {
			if v.Kind() == jsonscan.Object {
				v = v.Get("values")
			}
			lo := len(tensors)
			tensors = appendTensors(tensors, v)
			return span{lo, len(tensors)}
		}
		h.inputs, h.outputs = values(m.inputs), values(m.outputs)
		lists.in = withShapes(lists.in[:0], m.inputs, m.inputShapes, &lists)
		lists.out = withShapes(lists.out[:0], m.outputs, m.outputShapes, &lists)
		nameText := m.name.Bytes()
		n.name = g.b.M.Symbols.Intern(nameText)
		name := lists.text(n.name, nameText)
		hostWork(&n, name, lists.in, lists.out)
		lists.dims = lists.dims[:0]
		tid := uint64OrZero(m.tid)
		for a := m.attrs.Elements(); a.Ok(); a = a.Next() {
			if x := a.Value(); string(x.Get("name").Bytes()) == "tid" {
				tid = uint64OrZero(x.Get("value"))
			}
		}
		n.opcode = hostOpcode(name)
		lane, ok := lanes[tid]
		if !ok {
			lane = "thread " + strconv.FormatUint(tid, 10)
			lanes[tid] = lane
		}
		n.lane = lane
		if strings.HasPrefix(name, "nccl:") {
			n.kind, n.lane, n.opcode = typeColl, laneComm, "CollectiveCompute"
			n.noWork, n.sized, n.work, n.bytes = false, false, 0, 0
			n.op = strings.TrimPrefix(name, "nccl:")
			for _, t := range tensors[h.inputs.lo:h.inputs.hi] {
				n.bytes += min(t.bytes, maxSize/4-min(n.bytes, maxSize/4))
			}
			n.bytes = collectiveOf(n.op).sent(n.bytes)
		}
		n.ctrl = g.list([]uint64{h.parent})
		g.nodes = append(g.nodes, n)
		hosts = append(hosts, h)
		return nil
	}, func(key string, text []byte) error {
		g.attribute(key, string(bytes.Trim(text, `"`)))
		return nil
	})
	if err != nil {
		return err
	}
	g.scopes(hosts)
	g.tensorDependencies(hosts, tensors)
	g.rule = "operators by their names and shapes"
	g.b.M.Note("host-trace", "a host execution trace has no durations: a profile of the same run has the times of operators", 1)
	return nil
}

// hostMembers are the members of a node that mean something; of equal keys the
// first.
type hostMembers struct {
	id, ctrlDeps, parent, name, tid, attrs, inputs, outputs, inputShapes, outputShapes jsonscan.Value
}

func hostMembersOf(v jsonscan.Value) (h hostMembers) {
	for m := v.Members(); m.Ok(); m = m.Next() {
		var to *jsonscan.Value
		switch string(m.Key()) {
		case "id":
			to = &h.id
		case "ctrl_deps":
			to = &h.ctrlDeps
		case "parent":
			to = &h.parent
		case "name":
			to = &h.name
		case "tid":
			to = &h.tid
		case "attrs":
			to = &h.attrs
		case "inputs":
			to = &h.inputs
		case "outputs":
			to = &h.outputs
		case "input_shapes":
			to = &h.inputShapes
		case "output_shapes":
			to = &h.outputShapes
		default:
			continue
		}
		if to.Kind() == jsonscan.Absent {
			*to = m.Value()
		}
	}
	return h
}

func uint64OrZero(v jsonscan.Value) uint64 {
	if v.Kind() != jsonscan.Number {
		return 0
	}
	n, _ := v.Uint64()
	return n
}

// hostLists are the lists of one node, used again for the next, and the names
// met so far.
type hostLists struct {
	in, out []array
	dims    []int64
	names   map[ecs.Symbol]string
}

// text returns a name as a string that is kept once.
func (l *hostLists) text(sym ecs.Symbol, name []byte) string {
	s, ok := l.names[sym]
	if !ok {
		if l.names == nil {
			l.names = map[ecs.Symbol]string{}
		}
		s = string(name)
		l.names[sym] = s
	}
	return s
}

// withShapes appends the inputs or outputs of an operator with their dimensions:
// members of an object from schema 1.0.2 on, lists before.
func withShapes(to []array, x, shapes jsonscan.Value, l *hostLists) []array {
	if x.Kind() == jsonscan.Object {
		if in := x.Get("values"); in.Kind() != jsonscan.Absent {
			return arrays(to, in, x.Get("shapes"), 0, l)
		}
	}
	return arrays(to, x, shapes, 0, l)
}

// hostOpcode is the name of an operator, or of annotations what is common to
// them.
func hostOpcode(name string) string {
	switch {
	case strings.HasPrefix(name, "["):
		return "thread"
	case strings.HasPrefix(name, "##"):
		return "annotation"
	}
	if i := strings.IndexAny(name, "#: "); i > 0 && !strings.Contains(name, "::") {
		return name[:i]
	}
	return name
}

// appendTensors appends the tensors in a value, which may be lists of lists.
func appendTensors(to []tensor, v jsonscan.Value) []tensor {
	if v.Kind() != jsonscan.Array {
		return to
	}
	if f, is := tensorFields(v); is {
		if t, ok := readTensor(&f); ok {
			return append(to, t)
		}
	}
	for e := v.Elements(); e.Ok(); e = e.Next() {
		to = appendTensors(to, e.Value())
	}
	return to
}

// tensorFields returns the first six elements of a list, and whether they are
// [id, storage, offset, elements, bytes of an element, device].
func tensorFields(v jsonscan.Value) (f [6]jsonscan.Value, is bool) {
	n := 0
	for e := v.Elements(); e.Ok(); e = e.Next() {
		if f[n] = e.Value(); n == 0 && f[0].Kind() != jsonscan.Number {
			return f, false
		}
		if n++; n == len(f) {
			return f, f[5].Kind() == jsonscan.String
		}
	}
	return f, false
}

// readTensor reads a tensor, false where a number of it is none.
func readTensor(f *[6]jsonscan.Value) (tensor, bool) {
	id, err1 := f[0].Uint64()
	storage, err2 := f[1].Uint64()
	elems, err3 := f[3].Uint64()
	size, err4 := f[4].Uint64()
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		return tensor{}, false
	}
	if elems > 1<<48 || size > 1<<10 {
		elems = 0
	}
	return tensor{id, storage, elems * size}, true
}

// tensorDependencies derives data dependencies from the tensors of operators
// that call no others, in the order of ids, which is the order in which they
// began. Reading a tensor depends on what last wrote it or its storage. An
// output that is an input too was changed in place, one on another storage
// than all inputs was made: both write the storage, which follows its last
// writer (Output) and what read it since (Anti). An output that is new on the
// storage of an input is a view and writes nothing.
func (g *graph) tensorDependencies(hosts []hostNode, tensors []tensor) {
	slices.SortStableFunc(hosts, func(a, b hostNode) int {
		switch {
		case a.id < b.id:
			return -1
		case a.id > b.id:
			return 1
		}
		return 0
	})
	hasChild := make(map[uint64]bool, len(hosts))
	for _, h := range hosts {
		if h.parent != h.id {
			hasChild[h.parent] = true
		}
	}
	type state struct {
		writer  uint64
		written bool
		readers []uint64
	}
	storages := map[uint64]*state{}
	maker := map[uint64]uint64{} // the last operator that put out a tensor
	at := func(s uint64) *state {
		x := storages[s]
		if x == nil {
			x = &state{}
			storages[s] = x
		}
		return x
	}
	var flow, anti, out []uint64
	add := func(to []uint64, have map[uint64]bool, id, self uint64) []uint64 {
		if id == self || have[id] {
			return to
		}
		have[id] = true
		return append(to, id)
	}
	for _, h := range hosts {
		n := &g.nodes[h.node]
		if hasChild[h.id] {
			// Its work is that of the operators it calls, but a communication's is
			// its own.
			n.noWork = n.kind != typeColl || n.bytes == 0
			continue
		}
		flow, anti, out = flow[:0], anti[:0], out[:0]
		// Sets, as a list of tensors may have any length.
		ids, read, flows, outs := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
		inputs, outputs := tensors[h.inputs.lo:h.inputs.hi], tensors[h.outputs.lo:h.outputs.hi]
		for _, t := range inputs {
			ids[t.id], read[t.storage] = true, true
			if w, ok := maker[t.id]; ok {
				flow = add(flow, flows, w, h.id)
			}
			s := at(t.storage)
			if s.written {
				flow = add(flow, flows, s.writer, h.id)
			}
			if len(s.readers) == 0 || s.readers[len(s.readers)-1] != h.id {
				s.readers = append(s.readers, h.id)
			}
		}
		for _, t := range outputs {
			maker[t.id] = h.id
			if !ids[t.id] && read[t.storage] {
				continue // a view
			}
			s := at(t.storage)
			if s.written {
				out = add(out, outs, s.writer, h.id)
			}
			for _, r := range s.readers {
				if r != h.id {
					anti = append(anti, r)
				}
			}
			s.writer, s.written, s.readers = h.id, true, nil
		}
		n.data, n.anti, n.out = g.list(flow), g.list(anti), g.list(out)
	}
}
