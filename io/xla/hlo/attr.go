package hlo

import (
	"math"
	"strings"

	"perfsim/components/opgraph"
)

// attributes takes ", key=value …" after the operands of op.
func (p *parser) attributes(op opgraph.OpID) bool {
	for p.exact(", ") || p.accept(',') {
		p.peek()
		at := p.pos
		key := p.wordHere()
		if key == "" {
			return p.fail("expected an attribute, found %s", p.found())
		}
		if !p.exact("=") && !p.expectAfter('=', "after attribute", key) {
			return false
		}
		if !p.attribute(op, key, at) {
			return p.failAt(at, "bad attribute %s", key)
		}
	}
	return true
}

func (p *parser) attribute(op opgraph.OpID, key string, at int) bool {
	g := p.g
	if key == "metadata" { // by far the most frequent
		return p.metadata(op)
	}
	if p.attrs == nil {
		p.attrs = attrs()
	}
	if r := p.attrs.word(key); r != nil {
		if taken, ok := r.take(p, op); taken {
			return ok
		}
	}
	switch key {
	case "control-predecessors":
		return p.controlPredecessors(op)
	case "index":
		if g.Ops.Kind[op] != opgraph.OpGetTupleElement {
			break
		}
		v, ok := p.int()
		if !ok {
			return false
		}
		if v < 0 || v > 1<<30 {
			return p.failAt(at, "index=%d", v)
		}
		g.Ops.Index[op] = int32(v)
		return true
	case "literal":
		return p.literalAttr(op)
	}
	v, ok := p.value()
	if !ok {
		return false
	}
	g.AddRaw(op, key, v)
	return true
}

// literalAttr takes the literal= of a custom-call: a shape and a value, as text.
func (p *parser) literalAttr(op opgraph.OpID) bool {
	p.peek()
	at := p.pos
	if p.peek() == '(' { // a tuple: shapes and values mixed
		if _, ok := p.balanced(); !ok {
			return false
		}
	} else if !p.skipShape() {
		return false
	} else if _, ok := p.value(); !ok {
		return false
	}
	p.g.AddRaw(op, "literal", p.s[at:p.pos])
	return true
}

// callee takes a computation, or several in braces.
func (p *parser) callee(op opgraph.OpID, role opgraph.CallRole) bool {
	if p.peek() != '{' {
		return p.oneCallee(op, role)
	}
	if p.startsInline() {
		return p.inlineCallee(op, role)
	}
	p.pos++
	for p.peek() != '}' {
		if !p.oneCallee(op, role) {
			return false
		}
		if !p.accept(',') {
			break
		}
	}
	return p.expect('}', "to end the computations")
}

// startsInline reports whether the braces at the cursor hold instructions: a
// computation in the place of its name.
func (p *parser) startsInline() bool {
	save := p.pos
	defer func() { p.pos = save }()
	p.pos++
	return p.isWord("ROOT") && !p.assigned("ROOT") || p.named()
}

// inlineCallee skips a computation in the place of its name and has it read
// when the one around it is complete.
func (p *parser) inlineCallee(op opgraph.OpID, role opgraph.CallRole) bool {
	at := p.pos
	if _, ok := p.balanced(); !ok {
		return false
	}
	p.inlines = append(p.inlines, lateCall{op: op, i: len(p.g.Calls(op)), pos: at})
	p.g.AddCall(op, role, opgraph.NoComp)
	return true
}

func (p *parser) oneCallee(op opgraph.OpID, role opgraph.CallRole) bool {
	p.peek()
	at := p.pos
	name, ok := p.name()
	if !ok {
		return false
	}
	c := p.compNamed(name)
	if c == opgraph.NoComp {
		p.late = append(p.late, lateCall{op, len(p.g.Calls(op)), name, at})
	}
	p.g.AddCall(op, role, c)
	return true
}

func (p *parser) controlPredecessors(op opgraph.OpID) bool {
	if !p.expect('{', "before the control predecessors") {
		return false
	}
	for p.peek() != '}' {
		at := p.pos
		name, ok := p.name()
		if !ok {
			return false
		}
		pred := p.opNamed(name)
		if pred == opgraph.NoOp || pred == op {
			return p.failAt(at, "control predecessor %q is not defined before in the computation", name)
		}
		p.g.AddControl(op, pred)
		if !p.accept(',') {
			break
		}
	}
	return p.expect('}', "to end the control predecessors")
}

// metadata takes "{key=value key=value}" and keeps what leads to the user's
// program.
func (p *parser) metadata(op opgraph.OpID) bool {
	if !p.expect('{', "before the metadata") {
		return false
	}
	t := &p.g.Ops
	for !p.accept('}') {
		at := p.pos
		key := p.word()
		if key == "" {
			return p.fail("expected a metadata item, found %s", p.found())
		}
		if !p.expectAfter('=', "after metadata item", key) {
			return false
		}
		switch key {
		case "op_name", "source_file", "scheduling_name", "op_type":
			v, ok := p.quoted()
			if !ok {
				return false
			}
			switch key {
			case "op_name":
				t.OpName[op] = p.g.Str(v)
			case "source_file":
				t.SourceFile[op] = p.g.Str(v)
			}
		case "source_line", "stack_frame_id":
			v, ok := p.int()
			if !ok {
				return false
			}
			if v < 0 || v > math.MaxUint32 {
				return p.failAt(at, "%s=%d is outside 32 bits", key, v)
			}
			if key == "source_line" {
				t.SourceLine[op] = uint32(v)
			} else {
				t.Frame[op] = uint32(v)
			}
		default:
			if _, ok := p.value(); !ok {
				return false
			}
		}
		p.accept(',')
	}
	return true
}

// intList takes "{0,1}" into scratch space that the next call reuses.
func (p *parser) intList() ([]int64, bool) {
	if !p.expect('{', "before the list") {
		return nil, false
	}
	v := p.ints[:0]
	for p.peek() != '}' {
		i, ok := p.int()
		if !ok {
			return nil, false
		}
		v = append(v, i)
		if !p.accept(',') {
			break
		}
	}
	p.ints = v
	return v, p.expect('}', "to end the list")
}

// intsBetween takes "[0,1]" or "(0,1)" likewise, appending to dst.
func (p *parser) intsBetween(open, end byte, dst []int64) ([]int64, bool) {
	if !p.expect(open, "before the list") {
		return nil, false
	}
	for p.peek() != end {
		i, ok := p.int()
		if !ok {
			return nil, false
		}
		dst = append(dst, i)
		if !p.accept(',') {
			break
		}
	}
	return dst, p.expect(end, "to end the list")
}

// slices takes "{[0:2], [1:9:2]}".
func (p *parser) slices(op opgraph.OpID) bool {
	if !p.expect('{', "before the slice ranges") {
		return false
	}
	v := p.ints[:0]
	for p.peek() != '}' {
		if !p.expect('[', "before a slice range") {
			return false
		}
		lo, ok := p.int()
		if !ok || !p.expect(':', "after the start of a slice") {
			return false
		}
		hi, ok := p.int()
		if !ok {
			return false
		}
		stride := int64(1)
		if p.accept(':') {
			if stride, ok = p.int(); !ok {
				return false
			}
		}
		v = append(v, lo, hi, stride)
		if !p.expect(']', "to end a slice range") {
			return false
		}
		if !p.accept(',') {
			break
		}
	}
	p.ints = v
	p.g.SetInts(op, opgraph.AttrSlice, v...)
	return p.expect('}', "to end the slice ranges")
}

// window takes "{size=2x2 stride=1x2 pad=0_0x1_1 lhs_dilate= rhs_dilate=
// rhs_reversal=0x1}".
func (p *parser) window(op opgraph.OpID) bool {
	if !p.expect('{', "before the window") {
		return false
	}
	var w []opgraph.WindowDim
	p.peek()
	at := p.pos
	for !p.accept('}') {
		key := p.word()
		if key == "" {
			return p.fail("expected a window item, found %s", p.found())
		}
		if !p.expectAfter('=', "after window item", key) {
			return false
		}
		for i := 0; ; i++ {
			if i == maxRank {
				return p.fail("window of rank above %d", maxRank)
			}
			v, ok := p.int()
			if !ok {
				return false
			}
			if i == len(w) {
				w = append(w, opgraph.WindowDim{Size: 1, Stride: 1, LHSDilate: 1, RHSDilate: 1})
			}
			switch key {
			case "size":
				w[i].Size = v
			case "stride":
				w[i].Stride = v
			case "lhs_dilate":
				w[i].LHSDilate = v
			case "rhs_dilate":
				w[i].RHSDilate = v
			case "rhs_reversal":
				w[i].Reversed = v != 0
			case "pad":
				w[i].PadLow = v
				if p.pos >= len(p.s) || p.s[p.pos] != '_' {
					return p.fail("expected low_high after pad=")
				}
				p.pos++
				if w[i].PadHigh, ok = p.int(); !ok {
					return false
				}
			default:
				return p.failAt(at, "unknown window item %q", key)
			}
			if p.pos >= len(p.s) || p.s[p.pos] != 'x' {
				break
			}
			p.pos++
		}
		p.accept(',')
	}
	for _, d := range w {
		if d.Size < 0 || d.Stride <= 0 || d.LHSDilate <= 0 || d.RHSDilate <= 0 {
			return p.failAt(at, "window sizes must not be negative, strides and dilations positive")
		}
	}
	p.g.SetWindow(op, w)
	return true
}

// padding takes "0_0x1_1_2": low, high and interior of each dimension. The
// word "valid" or "same" that custom-calls have here is kept as text.
func (p *parser) padding(op opgraph.OpID) bool {
	b := p.peek()
	if b != '-' && b-'0' > 9 {
		v, ok := p.value()
		if ok {
			p.g.AddRaw(op, "padding", v)
		}
		return ok
	}
	v := p.ints[:0]
	for {
		var d [3]int64
		for i := range d {
			var ok bool
			if d[i], ok = p.int(); !ok {
				return false
			}
			if p.pos >= len(p.s) || p.s[p.pos] != '_' {
				if i == 0 {
					return p.fail("expected low_high in padding=")
				}
				break
			}
			p.pos++
		}
		v = append(v, d[0], d[1], d[2])
		if p.pos >= len(p.s) || p.s[p.pos] != 'x' {
			break
		}
		p.pos++
	}
	p.ints = v
	p.g.SetInts(op, opgraph.AttrPadding, v...)
	return true
}

// dimLabels takes "b01f_01io->b01f": the place of batch, feature and spatial
// dimensions in input, kernel and output.
func (p *parser) dimLabels(op opgraph.OpID) bool {
	p.peek()
	at := p.pos
	for p.pos < len(p.s) && (class[p.s[p.pos]]&classWord != 0 || p.s[p.pos] == '>' || p.s[p.pos] == '?') {
		p.pos++
	}
	text := p.s[at:p.pos]
	d, ok := parseDimLabels(text)
	if !ok {
		return p.failAt(at, "dim_labels=%q is not like b01f_01io->b01f", text)
	}
	p.g.SetConvDims(op, d)
	return true
}

// maxSpatial is how many spatial dimensions have a digit to be named by.
const maxSpatial = 10

func parseDimLabels(text string) (d opgraph.ConvDims, ok bool) {
	lhs, rest, ok1 := strings.Cut(text, "_")
	rhs, out, ok2 := strings.Cut(rest, "->")
	if !ok1 || !ok2 {
		return d, false
	}
	// '?' stands for a dimension that is not known yet (dynamic); it takes
	// part in nothing.
	lhs, rhs, out = strings.ReplaceAll(lhs, "?", ""), strings.ReplaceAll(rhs, "?", ""), strings.ReplaceAll(out, "?", "")
	n := len(lhs) - 2
	if n < 0 || n > maxSpatial || len(rhs) != n+2 || len(out) != n+2 {
		return d, false
	}
	var okIn, okKer, okOut bool
	d.InputSpatial, d.InputBatch, d.InputFeature, okIn = labels(lhs, n, 'b', 'f')
	d.KernelSpatial, d.KernelInput, d.KernelOutput, okKer = labels(rhs, n, 'i', 'o')
	d.OutputSpatial, d.OutputBatch, d.OutputFeature, okOut = labels(out, n, 'b', 'f')
	return d, okIn && okKer && okOut
}

func labels(s string, n int, a, b byte) (spatial []int64, at, bt int64, ok bool) {
	spatial = make([]int64, n)
	at, bt = -1, -1
	seen := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == a && at < 0:
			at = int64(i)
		case c == b && bt < 0:
			bt = int64(i)
		case c-'0' <= 9 && int(c-'0') < n && seen>>(c-'0')&1 == 0:
			spatial[c-'0'] = int64(i)
			seen |= 1 << (c - '0')
		default:
			return nil, 0, 0, false
		}
	}
	return spatial, at, bt, true
}

// pairs takes "{{0,1},{1,2}}".
func (p *parser) pairs(op opgraph.OpID) bool {
	at := p.pos
	sizes, v, ok := p.groups()
	if !ok {
		return false
	}
	for _, n := range sizes {
		if n != 2 {
			return p.failAt(at, "source_target_pairs has a group of %d", n)
		}
	}
	p.g.SetInts(op, opgraph.AttrSourceTargetPairs, v...)
	return true
}

// groups takes "{{0,1},{2,3}}": the sizes of the groups and their members.
func (p *parser) groups() (sizes, v []int64, ok bool) {
	if !p.expect('{', "before the groups") {
		return nil, nil, false
	}
	v = p.ints[:0]
	for p.peek() != '}' {
		n := len(v)
		if v, ok = p.intsBetween('{', '}', v); !ok {
			return nil, nil, false
		}
		sizes = append(sizes, int64(len(v)-n))
		if !p.accept(',') {
			break
		}
	}
	p.ints = v
	return sizes, v, p.expect('}', "to end the groups")
}

// replicaGroups takes the list, iota or mesh form.
func (p *parser) replicaGroups(op opgraph.OpID) bool {
	switch p.peek() {
	case '{':
		sizes, v, ok := p.groups()
		if !ok {
			return false
		}
		r := opgraph.ReplicaGroups{Form: opgraph.GroupsList, Sizes: sizes, Devices: v}
		if len(sizes) == 0 {
			r = opgraph.ReplicaGroups{}
		}
		p.g.SetReplicaGroups(op, r)
		return true
	case '[':
		r, ok := p.iotaGroups()
		if ok {
			p.g.SetReplicaGroups(op, r)
		}
		return ok
	}
	return p.meshGroups(op)
}

// iotaGroups takes "[2,4]<=[8]" or "[2,4]<=[4,2]T(1,0)" into scratch space
// that the next list reuses.
func (p *parser) iotaGroups() (r opgraph.ReplicaGroups, ok bool) {
	at := p.pos
	r.Form = opgraph.GroupsIota
	v, ok := p.intsBetween('[', ']', p.ints[:0])
	if !ok {
		return r, false
	}
	if !p.expect('<', "in the iota form of replica groups") || !p.expect('=', "after '<'") {
		return r, false
	}
	dims := len(v)
	if v, ok = p.intsBetween('[', ']', v); !ok {
		return r, false
	}
	reshape := len(v)
	if p.peek() == 'T' {
		p.pos++
		if v, ok = p.intsBetween('(', ')', v); !ok {
			return r, false
		}
	}
	p.ints = v
	r.Dims, r.Reshape, r.Perm = v[:dims:dims], v[dims:reshape:reshape], v[reshape:]
	return r, validIota(r) || p.failAt(at, "replica groups %v<=%v%v do not name each device once", r.Dims, r.Reshape, r.Perm)
}

// validIota reports whether the iota form is well-formed.
func validIota(r opgraph.ReplicaGroups) bool {
	a, b := int64(1), int64(1)
	for _, d := range r.Dims {
		if d <= 0 {
			return false
		}
		a = opgraph.MulSize(a, d)
	}
	for _, d := range r.Reshape {
		if d <= 0 {
			return false
		}
		b = opgraph.MulSize(b, d)
	}
	if a != b || a == opgraph.MaxSize || len(r.Dims) == 0 || len(r.Reshape) > maxRank {
		return false
	}
	if len(r.Perm) == 0 {
		return true
	}
	if len(r.Perm) != len(r.Reshape) {
		return false
	}
	var seen uint64
	for _, d := range r.Perm {
		if d < 0 || d >= int64(len(r.Reshape)) || seen>>d&1 != 0 {
			return false
		}
		seen |= 1 << d
	}
	return true
}
