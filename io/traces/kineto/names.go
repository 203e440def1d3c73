package kineto

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perfsim/components"
	"perfsim/ecs"
)

// isCollective recognises the kernels of the collective libraries.
func isCollective(name []byte) bool {
	low := bytes.ToLower(name)
	for _, lib := range []string{"nccl", "rccl", "oneccl", "hccl"} {
		if bytes.Contains(low, []byte(lib)) {
			return true
		}
	}
	return false
}

// collective is isCollective for a name, which is looked at once.
func (t *trace) collective(name ecs.Symbol) bool {
	is, ok := t.library[name]
	if !ok {
		is = isCollective(t.b.M.Symbols.Bytes(name))
		t.library[name] = is
	}
	return is
}

// matrixWords are parts of the names of kernels that multiply matrices.
var matrixWords = []string{"gemm", "gemv", "conv", "cutlass", "wgrad", "dgrad", "matmul", "_mm_", "fmha", "flash", "attn", "cijk_", "winograd", "implicit"}

// engineOf is the kind of unit a device event keeps busy: PE for matrix
// kernels, DMA for copies and fills, Pool (whose streams they are on Neuron)
// for collectives, DVE for the rest.
func (d *deviceTrace) engineOf(e *event) components.Engine {
	switch {
	case e.collective:
		return components.Pool
	case e.memory:
		return components.DMA
	}
	engine, ok := d.engines[e.name]
	if !ok {
		engine = components.DVE
		low := strings.ToLower(d.b.M.Symbols.String(e.name))
		if slices.ContainsFunc(matrixWords, func(w string) bool { return strings.Contains(low, w) }) {
			engine = components.PE
		}
		d.engines[e.name] = engine
	}
	return engine
}

// opcodeOf shortens the name of a device event to what reports group by: the
// function's name without result type, namespaces, template and value
// arguments; copies and fills without the kinds of memory in parentheses.
func opcodeOf(e *event, name string) string {
	if e.memory {
		if i := strings.IndexByte(name, '('); i > 0 {
			name = name[:i]
		}
		return strings.TrimSpace(name)
	}
	if e.collective {
		return "CollectiveCompute"
	}
	name = strings.TrimPrefix(name, "void ")
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	return function(name, 0)
}

// opcodes returns the opcodes of all device events. Kernels whose template
// arguments alone differ are distinguished by them: copy<float> and copy<half>.
func (t *trace) opcodes() map[ecs.Symbol]string {
	out := map[ecs.Symbol]string{}
	args := map[ecs.Symbol][]string{}
	first := map[string][]string{}  // by opcode, the arguments met first
	differ := map[string]([]bool){} // by opcode, the arguments that are not always those
	for i := range t.events {
		e := &t.events[i]
		if _, done := out[e.name]; done || e.cat != catDevice {
			continue
		}
		name := t.b.M.Symbols.String(e.name)
		op := opcodeOf(e, name)
		out[e.name] = op
		if e.memory || e.collective {
			continue
		}
		list := templateArguments(name)
		args[e.name] = list
		seen, known := first[op]
		if !known {
			first[op], differ[op] = list, make([]bool, len(list))
			continue
		}
		for k := range max(len(seen), len(list)) {
			if k >= len(seen) || k >= len(list) || seen[k] != list[k] {
				for len(differ[op]) <= k {
					differ[op] = append(differ[op], false)
				}
				differ[op][k] = true
			}
		}
	}
	for name, list := range args {
		op := out[name]
		var parts []string
		for k, d := range differ[op] {
			if d && k < len(list) {
				parts = append(parts, list[k])
			}
		}
		if len(parts) > 0 {
			out[name] = op + "<" + strings.Join(parts, ", ") + ">"
		}
	}
	return out
}

var (
	namespaces = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:\w+::)+`) })
	enclosed   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\([^()]*\)|\{[^{}]*\}`) })
	behind     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x00[^<>,]*") }) // of a function in an argument, what follows its arguments
)

// templateArguments returns the template arguments of a function, without
// namespaces, and without the value arguments of functions in them.
func templateArguments(name string) (list []string) {
	if strings.IndexByte(name, '<') < 0 {
		return nil
	}
	// Most names have none of these, and expressions are slow.
	name = strings.ReplaceAll(name, "(anonymous namespace)::", "")
	if strings.ContainsAny(name, "({") {
		for was := ""; was != name; {
			was = name
			name = enclosed().ReplaceAllString(name, "\x00")
		}
		name = behind().ReplaceAllString(name, "")
	}
	if strings.Contains(name, "::") {
		name = namespaces().ReplaceAllString(name, "")
	}
	open := strings.IndexByte(name, '<')
	if open < 0 {
		return nil
	}
	depth, start := 0, open+1
	for i := open; i < len(name); i++ {
		switch name[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return append(list, strings.TrimSpace(name[start:i]))
			}
		case ',':
			if depth == 1 {
				list = append(list, strings.TrimSpace(name[start:i]))
				start = i + 1
			}
		}
	}
	return append(list, strings.TrimSpace(name[start:]))
}

// function returns the name of a function without namespaces and arguments.
// A wrapper that launches what its template argument says is called by that
// argument.
func function(name string, depth int) string {
	full := name
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	if i := strings.LastIndex(name, "::"); i >= 0 && i+2 < len(name) {
		name = name[i+2:]
	}
	name = strings.TrimSpace(name)
	if isWrapper(name) && depth < 4 {
		if arg := typeArgument(full); arg != "" {
			return function(arg, depth+1)
		}
	}
	if name == "" {
		return "kernel"
	}
	return name
}

// isWrapper reports whether a function's name says nothing about its work:
// the entry points of CUTLASS, CUB, CK and others.
func isWrapper(name string) bool {
	switch name {
	case "device_kernel", "Kernel", "Kernel2", "kernel", "kernel_entry", "GemmUniversal", "kentry", "run_kernel", "launch_kernel", "generic_kernel":
		return true
	}
	return false
}

// typeArgument returns the first template argument that is a type, "" for
// none.
func typeArgument(name string) string {
	open := strings.IndexByte(name, '<')
	if open < 0 {
		return ""
	}
	depth, start := 0, open+1
	for i := open; i < len(name); i++ {
		end := false
		switch name[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
			end = depth == 0
		case ',':
			end = depth == 1
		}
		if !end {
			continue
		}
		arg := strings.TrimSpace(name[start:i])
		if c := strings.TrimLeft(arg, ":"); c != "" && (c[0] == '_' || c[0]|0x20 >= 'a' && c[0]|0x20 <= 'z') && !strings.HasPrefix(c, "(") && c != "true" && c != "false" && c != "float" && c != "int" {
			return arg
		}
		if depth == 0 {
			break
		}
		start = i + 1
	}
	return ""
}

// lane adds the lane of a thread. A thread without a name is called by its
// id, kind is "thread" or "stream"; the process is put in front where the trace has several.
func (t *trace) lane(n uint32, several bool, kind, suffix string) (uint16, error) {
	th := &t.threads[n]
	name := th.name
	switch {
	case name == "":
		if name = th.tid; !strings.HasPrefix(name, kind+" ") {
			name = kind + " " + name
		}
	case !strings.Contains(name, th.tid):
		name += " " + th.tid
	}
	if several {
		p := t.process[th.pid]
		if p == "" || !strings.Contains(p, th.pid) {
			p = strings.TrimSpace(p + " " + th.pid)
		}
		name = p + "/" + name
	}
	return t.b.Lane(name + suffix)
}

// severalProcesses reports whether the threads in use are of more than one
// process.
func (t *trace) severalProcesses(use func(thread uint32) bool) bool {
	first := ""
	seen := false
	for n := range t.threads {
		if !use(uint32(n)) {
			continue
		}
		if seen && t.threads[n].pid != first {
			return true
		}
		first, seen = t.threads[n].pid, true
	}
	return false
}
