package netlist

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"go.yaml.in/yaml/v3"
)

// Bounds on what a file may hold. The largest public netlist has 900 KB and
// 1,700 graphs.
const (
	maxBytes    = 64 << 20
	maxNodes    = 4_000_000 // visited, aliases counted each time they are followed
	maxDepth    = 64
	maxProblems = 1000
	maxSide     = 1 << 20 // grid sizes and block counts
	maxBuffer   = 1 << 40 // bytes of a queue's buffer: no device has as much
	addrBits    = 56      // of an address, so that no buffer ends beyond 64
)

// ReadFile reads a netlist, compressed with gzip or plain.
func ReadFile(path string) (*Netlist, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n.Name = path
	return n, nil
}

// slurp reads bounded text, unwrapping gzip.
func slurp(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b {
		z, err := gzip.NewReader(strings.NewReader(string(b)))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		if b, err = io.ReadAll(io.LimitReader(z, maxBytes+1)); err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("more than %d bytes", maxBytes)
	}
	return b, nil
}

// parse reads text into a tree of nodes. Aliases stay aliases.
func parse(b []byte) (root *yaml.Node, err error) {
	defer func() {
		if x := recover(); x != nil { // the parser's own limits panic
			err = fmt.Errorf("not YAML: %v", x)
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("the file is empty")
	}
	return doc.Content[0], nil
}

// errBudget stops a walk through too many nodes.
var errBudget = fmt.Errorf("more than %d entries, aliases counted at each use", maxNodes)

// walker follows nodes with a budget. A walk that runs out is stopped by a
// panic with errBudget, caught in Read.
type walker struct {
	n     *Netlist
	nodes int
}

func (w *walker) visit() {
	if w.nodes++; w.nodes > maxNodes {
		panic(errBudget)
	}
}

// real follows aliases.
func (w *walker) real(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode; i++ {
		w.visit()
		if i > maxDepth {
			panic(errBudget)
		}
		n = n.Alias
	}
	return n
}

func (w *walker) problem(n *yaml.Node, format string, args ...any) {
	if len(w.n.Problems) < maxProblems {
		w.n.Problems = append(w.n.Problems, Problem{Pos{n.Line, n.Column}, fmt.Sprintf(format, args...)})
	}
}

// entries visits the pairs of a mapping, merges ("<<") included.
func (w *walker) entries(n *yaml.Node, what string, visit func(key string, k, v *yaml.Node)) {
	w.pairs(n, what, 0, map[string]bool{}, visit)
}

func (w *walker) pairs(n *yaml.Node, what string, depth int, seen map[string]bool, visit func(key string, k, v *yaml.Node)) {
	n = w.real(n)
	if depth > maxDepth {
		panic(errBudget)
	}
	if n == nil || n.Kind != yaml.MappingNode {
		if n != nil && !(n.Kind == yaml.ScalarNode && n.Tag == "!!null") {
			w.problem(n, "%s is not a mapping", what)
		}
		return
	}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		w.visit()
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" {
			merges = append(merges, v)
			continue
		}
		k = w.real(k)
		if k.Kind != yaml.ScalarNode {
			w.problem(k, "a key of %s is not a word", what)
			continue
		}
		if seen[k.Value] {
			w.problem(k, "%s has the key %q twice; the first counts", what, k.Value)
			continue
		}
		seen[k.Value] = true
		visit(k.Value, k, w.real(v))
	}
	for _, m := range merges { // what is named directly wins
		m = w.real(m)
		if m.Kind == yaml.SequenceNode {
			for _, x := range m.Content {
				w.pairs(x, what, depth+1, seen, visit)
			}
			continue
		}
		w.pairs(m, what, depth+1, seen, visit)
	}
}

// items visits the entries of a list.
func (w *walker) items(n *yaml.Node, what string, visit func(i int, v *yaml.Node)) {
	n = w.real(n)
	if n == nil || n.Kind != yaml.SequenceNode {
		if n != nil && !(n.Kind == yaml.ScalarNode && n.Tag == "!!null") {
			w.problem(n, "%s is not a list", what)
		}
		return
	}
	for i, v := range n.Content {
		w.visit()
		visit(i, w.real(v))
	}
}

// Read reads a netlist.
func Read(r io.Reader) (n *Netlist, err error) {
	b, err := slurp(r)
	if err != nil {
		return nil, err
	}
	root, err := parse(b)
	if err != nil {
		return nil, err
	}
	n = &Netlist{queue: map[string]int{}, graph: map[string]int{}}
	w := &walker{n: n}
	defer func() {
		if x := recover(); x != nil {
			if x != errBudget {
				panic(x)
			}
			n, err = nil, errBudget
		}
	}()
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d:%d: a netlist is a mapping with devices, queues, graphs and programs", root.Line, root.Column)
	}
	graphs := false
	w.entries(root, "the netlist", func(key string, _, v *yaml.Node) {
		n.Sections = append(n.Sections, key)
		switch key {
		case "devices":
			w.devices(v)
		case "queues":
			w.entries(v, "queues", w.queue)
		case "graphs":
			graphs = true
			w.entries(v, "graphs", w.graph)
		case "programs":
			w.items(v, "programs", w.program)
		case "fused_ops":
			w.entries(v, "fused_ops", w.fused)
		}
	})
	if !graphs {
		return nil, errors.New("not a netlist: no section graphs")
	}
	w.check()
	return n, nil
}

func (w *walker) devices(v *yaml.Node) {
	w.entries(v, "devices", func(key string, _, v *yaml.Node) {
		if key == "arch" {
			w.n.Arch = w.words(v, "arch")
		}
	})
}

// words reads one word or a list of them.
func (w *walker) words(v *yaml.Node, what string) []string {
	if v.Kind == yaml.ScalarNode {
		if v.Tag == "!!null" {
			return nil
		}
		return []string{v.Value}
	}
	var out []string
	w.items(v, what, func(_ int, x *yaml.Node) {
		if x.Kind == yaml.ScalarNode {
			out = append(out, x.Value)
		} else {
			w.problem(x, "%s holds something other than words", what)
		}
	})
	return out
}

func (w *walker) integer(v *yaml.Node, what string, low, high int64) (int, bool) {
	if v.Kind == yaml.ScalarNode {
		if x, err := strconv.ParseInt(strings.ReplaceAll(v.Value, "_", ""), 0, 64); err == nil {
			if x < low || x > high {
				w.problem(v, "%s is %d, outside %d to %d", what, x, low, high)
				return 0, false
			}
			return int(x), true
		}
	}
	w.problem(v, "%s is not a whole number", what)
	return 0, false
}

func (w *walker) boolean(v *yaml.Node, what string) bool {
	switch strings.ToLower(v.Value) {
	case "true", "1", "yes", "on":
		return true
	case "false", "0", "no", "off":
		return false
	}
	w.problem(v, "%s is neither true nor false", what)
	return false
}

// size reads a pair of numbers, each at least low.
func (w *walker) size(v *yaml.Node, what string, low int64) (Size, bool) {
	var x [2]int
	n, ok := 0, true
	if v.Kind != yaml.SequenceNode {
		w.problem(v, "%s is not a pair [rows, columns]", what)
		return Size{}, false
	}
	w.items(v, what, func(i int, e *yaml.Node) {
		n++
		if i < 2 {
			var good bool
			x[i], good = w.integer(e, what, low, maxSide)
			ok = ok && good
		}
	})
	if n != 2 {
		w.problem(v, "%s has %d numbers, not 2", what, n)
		return Size{}, false
	}
	return Size{x[0], x[1]}, ok
}

func (w *walker) queue(name string, k, v *yaml.Node) {
	q := Queue{Pos: Pos{k.Line, k.Column}, Name: name, Entries: 1, Grid: Size{1, 1}, Shape: Shape{T: 1, MBlock: Size{1, 1}, UBlock: Size{1, 1}}}
	what := func(s string) string { return fmt.Sprintf("%s of queue %s", s, name) }
	good := v != nil && v.Kind == yaml.MappingNode
	w.entries(v, "queue "+name, func(key string, _, v *yaml.Node) {
		switch key {
		case "type":
			q.Type = v.Value
		case "input":
			q.Input = v.Value
		case "entries":
			if x, ok := w.integer(v, what(key), 0, 1<<31); ok {
				q.Entries = x
			}
		case "grid_size":
			if s, ok := w.size(v, what(key), 1); ok {
				q.Grid = s
			}
		case "t":
			if x, ok := w.integer(v, what(key), 1, maxSide); ok {
				q.Shape.T = x
			}
		case "mblock":
			if s, ok := w.size(v, what(key), 1); ok {
				q.Shape.MBlock = s
			}
		case "ublock":
			if s, ok := w.size(v, what(key), 1); ok {
				q.Shape.UBlock = s
			}
		case "df":
			q.Format = v.Value
			if _, ok := TileBytes(q.Format); !ok {
				w.problem(v, "%s: data format %q is unknown", what(key), v.Value)
			}
		case "target_device":
			if x, ok := w.integer(v, what(key), 0, 1<<20); ok {
				q.Device = x
			}
		case "loc":
			q.Loc = strings.ToLower(v.Value)
		case "alias":
			q.Alias = v.Value
		case "dram", "host":
			q.Buffers = w.addrs(v, what(key), key == "dram")
		}
	})
	if !good {
		return
	}
	if _, dup := w.n.queue[name]; !dup {
		w.n.queue[name] = len(w.n.Queues)
		w.n.Queues = append(w.n.Queues, q)
	}
}

// addrs reads [[channel, address], ...], or [address, ...] of a host queue.
func (w *walker) addrs(v *yaml.Node, what string, dram bool) []Addr {
	var out []Addr
	w.items(v, what, func(_ int, e *yaml.Node) {
		if e.Kind == yaml.ScalarNode && !dram {
			if x, err := strconv.ParseUint(e.Value, 0, addrBits); err == nil {
				out = append(out, Addr{Addr: x})
			} else {
				w.problem(e, "%s: %q is not an address", what, e.Value)
			}
			return
		}
		var a Addr
		n, ok := 0, true
		w.items(e, what, func(i int, x *yaml.Node) {
			n++
			switch i {
			case 0:
				var good bool
				a.Channel, good = w.integer(x, what, 0, 1<<16)
				ok = ok && good
			case 1:
				u, err := strconv.ParseUint(x.Value, 0, addrBits)
				if err != nil {
					w.problem(x, "%s: %q is not an address", what, x.Value)
					ok = false
				}
				a.Addr = u
			}
		})
		if n != 2 {
			w.problem(e, "%s: a buffer is [channel, address]", what)
			return
		}
		if ok {
			out = append(out, a)
		}
	})
	return out
}

func (w *walker) graph(name string, k, v *yaml.Node) {
	g := Graph{Pos: Pos{k.Line, k.Column}, Name: name}
	if v == nil || v.Kind != yaml.MappingNode {
		w.problem(k, "graph %s is not a mapping", name)
		return
	}
	w.entries(v, "graph "+name, func(key string, k, v *yaml.Node) {
		switch key {
		case "target_device":
			g.Device, _ = w.integer(v, "target_device of graph "+name, 0, 1<<20)
		case "input_count":
			g.InputCount, _ = w.integer(v, "input_count of graph "+name, 0, 1<<31)
		default:
			if op, ok := w.op(key, k, v); ok {
				g.Ops = append(g.Ops, op)
			}
		}
	})
	if _, dup := w.n.graph[name]; !dup {
		w.n.graph[name] = len(w.n.Graphs)
		w.n.Graphs = append(w.n.Graphs, g)
	}
}

func (w *walker) op(name string, k, v *yaml.Node) (Op, bool) {
	o := Op{Pos: Pos{k.Line, k.Column}, Name: name, BufMB: 2, Shape: Shape{T: 1, MBlock: Size{1, 1}, UBlock: Size{1, 1}}}
	if v == nil || v.Kind != yaml.MappingNode {
		return o, false // a setting of the graph that is not an operator
	}
	what := func(s string) string { return fmt.Sprintf("%s of op %s", s, name) }
	haveLoc, haveGrid := false, false
	w.entries(v, "op "+name, func(key string, _, v *yaml.Node) {
		switch key {
		case "type":
			o.Type = v.Value
		case "grid_loc":
			o.Loc, haveLoc = w.size(v, what(key), 0)
		case "grid_size":
			o.Grid, haveGrid = w.size(v, what(key), 1)
		case "inputs":
			o.Inputs = w.words(v, what(key))
		case "t":
			if x, ok := w.integer(v, what(key), 1, maxSide); ok {
				o.Shape.T = x
			}
		case "mblock":
			if s, ok := w.size(v, what(key), 1); ok {
				o.Shape.MBlock = s
			}
		case "ublock":
			if s, ok := w.size(v, what(key), 1); ok {
				o.Shape.UBlock = s
			}
		case "buf_size_mb":
			o.BufMB, _ = w.integer(v, what(key), 0, maxSide)
		case "in_df":
			o.InFormats = w.words(v, what(key))
		case "out_df":
			o.OutFormat = v.Value
		case "math_fidelity":
			o.Fidelity = v.Value
		case "grid_transpose":
			o.Transpose = w.boolean(v, what(key))
		case "gradient_op":
			o.Gradient = w.boolean(v, what(key))
		case "attributes":
			w.entries(v, what(key), func(key string, _, v *yaml.Node) {
				switch key {
				case "m_k":
					o.MK, _ = w.integer(v, what(key), 0, maxSide)
				case "u_kt":
					o.UKT, _ = w.integer(v, what(key), 0, maxSide)
				case "identity":
					o.Identity = w.boolean(v, what(key))
				case "fused_op_id":
					o.Kind = v.Value
				}
			})
		}
	})
	if o.Type == "" || !haveLoc || !haveGrid {
		if o.Type != "" || haveLoc || haveGrid {
			w.problem(k, "op %s lacks type, grid_loc or grid_size; left out", name)
		}
		return o, false
	}
	return o, true
}

func (w *walker) program(_ int, v *yaml.Node) {
	w.entries(v, "program", func(name string, k, v *yaml.Node) {
		p := Program{Pos: Pos{k.Line, k.Column}, Name: name}
		w.items(v, "program "+name, func(_ int, e *yaml.Node) {
			if e.Kind == yaml.ScalarNode {
				p.Instrs = append(p.Instrs, Instr{Pos: Pos{e.Line, e.Column}, Name: e.Value})
				return
			}
			w.entries(e, "instruction", func(key string, k, v *yaml.Node) {
				in := Instr{Pos: Pos{k.Line, k.Column}, Name: key}
				switch {
				case key == "execute":
					w.entries(v, "execute", func(key string, _, v *yaml.Node) {
						switch key {
						case "graph_name":
							in.Graph = v.Value
						case "queue_settings":
							w.entries(v, "queue_settings", func(q string, _, _ *yaml.Node) { in.Queues = append(in.Queues, q) })
						}
					})
				case v == nil:
				case v.Kind == yaml.MappingNode:
					w.entries(v, key, func(name string, _, v *yaml.Node) { in.Args = append(in.Args, name+"="+v.Value) })
				default:
					in.Args = w.words(v, key)
				}
				p.Instrs = append(p.Instrs, in)
			})
		})
		w.n.Programs = append(w.n.Programs, p)
	})
}

func (w *walker) fused(name string, k, v *yaml.Node) {
	f := FusedOp{Name: name}
	w.entries(v, "fused op "+name, func(key string, _, v *yaml.Node) {
		switch key {
		case "inputs":
			f.Inputs, _ = w.integer(v, "inputs of fused op "+name, 0, maxSide)
		case "schedules":
			w.items(v, "schedules", func(_ int, s *yaml.Node) {
				w.items(s, "schedule", func(_ int, o *yaml.Node) {
					w.entries(o, "schedule", func(_ string, _, v *yaml.Node) {
						w.entries(v, "fused op", func(key string, _, v *yaml.Node) {
							if key == "type" {
								f.Ops = append(f.Ops, v.Value)
							}
						})
					})
				})
			})
		}
	})
	w.n.FusedOps = append(w.n.FusedOps, f)
}

// check looks at references between sections.
func (w *walker) check() {
	n := w.n
	ops := map[string]bool{}
	for g := range n.Graphs {
		for i := range n.Graphs[g].Ops {
			ops[n.Graphs[g].Ops[i].Name] = true
		}
	}
	add := func(p Pos, format string, args ...any) {
		if len(n.Problems) < maxProblems {
			n.Problems = append(n.Problems, Problem{p, fmt.Sprintf(format, args...)})
		}
	}
	for g := range n.Graphs {
		for i := range n.Graphs[g].Ops {
			o := &n.Graphs[g].Ops[i]
			for _, in := range o.Inputs {
				if _, ok := n.queue[in]; !ok && !ops[in] {
					add(o.Pos, "op %s reads %s, which is neither a queue nor an op", o.Name, in)
				}
			}
		}
	}
	for i := range n.Queues {
		q := &n.Queues[i]
		if q.Input != "" && q.Input != "HOST" && !ops[q.Input] {
			if _, ok := n.queue[q.Input]; !ok {
				add(q.Pos, "queue %s is fed by %s, which is not an op", q.Name, q.Input)
			}
		}
		if _, known := TileBytes(q.Format); known {
			if _, ok := q.BufferBytes(); !ok {
				add(q.Pos, "a buffer of queue %s has more than %d bytes", q.Name, maxBuffer)
			}
		}
		if q.Loc == "dram" && len(q.Buffers) != q.Grid.Cells() && q.Alias == "" {
			add(q.Pos, "queue %s has a grid of %dx%d and %d buffers", q.Name, q.Grid.R, q.Grid.C, len(q.Buffers))
		}
	}
	for p := range n.Programs {
		for i := range n.Programs[p].Instrs {
			in := &n.Programs[p].Instrs[i]
			if in.Name == "execute" {
				if _, ok := n.graph[in.Graph]; !ok {
					add(in.Pos, "program %s executes %q, which is not a graph", n.Programs[p].Name, in.Graph)
				}
			}
		}
	}
}
