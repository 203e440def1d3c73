package chakra

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"perfsim/io/format"
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
	values := func(v *fastjson.Value, key string) span {
		x := v.Get(key)
		if in := x.Get("values"); x != nil && x.Type() == fastjson.TypeObject {
			x = in
		}
		lo := len(tensors)
		tensors = appendTensors(tensors, x)
		return span{lo, len(tensors)}
	}
	err := g.each(ctx, src, "nodes", func(v *fastjson.Value, off int64) error {
		n := node{offset: off, kind: typeComp}
		h := hostNode{node: len(g.nodes)}
		var err error
		if n.id, err = number(v, "id", true); err != nil {
			return err
		}
		h.id = n.id
		key := "ctrl_deps"
		if v.Get(key) == nil {
			key = "parent"
		}
		if h.parent, err = number(v, key, false); err != nil {
			return err
		}
		h.inputs, h.outputs = values(v, "inputs"), values(v, "outputs")
		hostWork(&n, string(v.GetStringBytes("name")), withShapes(v, "input"), withShapes(v, "output"))
		tid := uint64(0)
		if x := v.Get("tid"); x != nil {
			tid = x.GetUint64()
		}
		for _, a := range v.GetArray("attrs") {
			if string(a.GetStringBytes("name")) == "tid" {
				tid = a.GetUint64("value")
			}
		}
		name := string(v.GetStringBytes("name"))
		n.name = g.b.M.Symbols.InternString(name)
		n.opcode = hostOpcode(name)
		n.lane = "thread " + strconv.FormatUint(tid, 10)
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
	g.b.M.Note("host-trace", "a host execution trace has no durations: it takes a profile of the same run to tell how long operators last", 1)
	return nil
}

// withShapes returns the inputs or outputs of an operator with their
// dimensions: members of an object from schema 1.0.2 on, lists before.
func withShapes(v *fastjson.Value, which string) []array {
	x := v.Get(which + "s")
	if in := x.Get("values"); x != nil && x.Type() == fastjson.TypeObject {
		return arrays(nil, in, x.Get("shapes"), 0)
	}
	return arrays(nil, x, v.Get(which+"_shapes"), 0)
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
func appendTensors(to []tensor, v *fastjson.Value) []tensor {
	if v == nil || v.Type() != fastjson.TypeArray {
		return to
	}
	list := v.GetArray()
	if len(list) >= 6 && list[0].Type() == fastjson.TypeNumber && list[5].Type() == fastjson.TypeString {
		id, err1 := list[0].Uint64()
		storage, err2 := list[1].Uint64()
		elems, err3 := list[3].Uint64()
		size, err4 := list[4].Uint64()
		if err1 == nil && err2 == nil && err3 == nil && err4 == nil {
			if elems > 1<<48 || size > 1<<10 {
				elems = 0
			}
			return append(to, tensor{id, storage, elems * size})
		}
	}
	for _, e := range list {
		to = appendTensors(to, e)
	}
	return to
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
