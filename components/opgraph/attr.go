package opgraph

import (
	"math"
	"strconv"
)

// OpAttr is the key of an attribute of an operator. Attributes are rare and
// differ by opcode, so they are rows of one table chained from the operator,
// not columns.
type OpAttr uint8

// The attributes, with the HLO spelling and what they hold.
const (
	AttrNone OpAttr = iota

	// Integer lists (Ints).
	AttrDimensions        // dimensions=: of broadcast, reduce, transpose, concatenate, reverse, all-gather, …
	AttrWindow            // window=, seven numbers a dimension; read it with Window
	AttrSlice             // slice=: start, limit, stride of each dimension
	AttrPadding           // padding= of pad: low, high, interior of each dimension
	AttrSliceSizes        // dynamic_slice_sizes= and slice_sizes= of gather
	AttrLHSContract       // lhs_contracting_dims=
	AttrRHSContract       // rhs_contracting_dims=
	AttrLHSBatch          // lhs_batch_dims=
	AttrRHSBatch          // rhs_batch_dims=
	AttrLHSRagged         // lhs_ragged_dims=
	AttrRHSGroup          // rhs_group_dims=
	AttrConvDims          // dim_labels=, packed; read it with ConvDims
	AttrReplicaGroups     // replica_groups=, packed; read it with ReplicaGroups
	AttrSourceTargetPairs // source_target_pairs=, flattened: source, target, …
	AttrOutputAliasing    // output_to_operand_aliasing=: (output path, operand number, operand path)…, as PathIDs
	AttrOffsetDims        // offset_dims= of gather, update_window_dims= of scatter
	AttrCollapsedDims     // collapsed_slice_dims=, inserted_window_dims=
	AttrIndexMap          // start_index_map=, scatter_dims_to_operand_dims=
	AttrOperandBatching   // operand_batching_dims=, input_batching_dims=
	AttrIndicesBatching   // start_indices_batching_dims=, scatter_indices_batching_dims=
	AttrFFTLength         // fft_length=

	// Single integers (Int).
	AttrChannelID
	AttrUseGlobalDeviceIDs // 1 when true
	AttrFeatureGroups      // feature_group_count=
	AttrBatchGroups        // batch_group_count=
	AttrIndexVectorDim     // index_vector_dim=
	AttrIotaDimension      // iota_dimension=
	AttrTripKnown          // known_trip_count of a while; read it with TripCount
	AttrTripDerived        // trip count derived from the condition
	AttrFusionKind         // a FusionKind
	AttrDirection          // comparison direction=, a Direction
	AttrConstInt           // value of a scalar integer or predicate constant
	AttrConstFloat         // bits (math.Float64bits) of a scalar floating-point constant
	AttrIsStable           // is_stable= of sort
	AttrTopK               // k= of topk
	AttrCrossProgram       // cross_program_prefetch_index= of copy-start
	AttrFeatureIndex       // feature_index= of batch-norm
	AttrHostTransfer       // is_host_transfer=

	// Text (AttrStr).
	AttrCustomCallTarget
	AttrBackendConfig // as written: a JSON object, or the content of the quoted string
	AttrSharding      // text of sharding=, braces included
	AttrFrontend      // text of frontend_attributes=, braces included
	AttrLiteral       // text of a constant that is not a small scalar: between the parentheses
	AttrThread        // async_execution_thread=
	AttrOpcode        // opcode word of an OpUnknown
	AttrRaw           // an attribute without a key of its own: Raw gives name and text

	NumOpAttrs
)

// String returns the HLO spelling of the attribute; where it differs by
// opcode, that of the first opcode that has it.
func (a OpAttr) String() string {
	if a >= NumOpAttrs {
		return "invalid"
	}
	return [NumOpAttrs]string{
		"none", "dimensions", "window", "slice", "padding", "slice_sizes",
		"lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims",
		"lhs_ragged_dims", "rhs_group_dims", "dim_labels", "replica_groups", "source_target_pairs",
		"output_to_operand_aliasing", "offset_dims", "collapsed_slice_dims", "start_index_map",
		"operand_batching_dims", "start_indices_batching_dims", "fft_length",
		"channel_id", "use_global_device_ids", "feature_group_count", "batch_group_count",
		"index_vector_dim", "iota_dimension", "known_trip_count", "derived_trip_count", "kind",
		"direction", "constant", "constant", "is_stable", "k", "cross_program_prefetch_index",
		"feature_index", "is_host_transfer",
		"custom_call_target", "backend_config", "sharding", "frontend_attributes", "literal",
		"async_execution_thread", "opcode", "attribute",
	}[a]
}

type attrRow struct {
	a, b uint32
	next uint32 // row+1 of the next attribute of the operator, 0 at the end
	key  OpAttr
}

func (g *Graph) findAttr(op OpID, key OpAttr) *attrRow {
	for i := g.Ops.attrs[op]; i != 0; i = g.attr[i-1].next {
		if g.attr[i-1].key == key {
			return &g.attr[i-1]
		}
	}
	return nil
}

// putAttr sets an attribute; rows are kept in the order of first setting.
func (g *Graph) putAttr(op OpID, key OpAttr, a, b uint32) {
	if key != AttrRaw {
		if r := g.findAttr(op, key); r != nil {
			r.a, r.b = a, b
			return
		}
	}
	g.attr = append(g.attr, attrRow{a: a, b: b, key: key})
	row := uint32(len(g.attr))
	i := g.Ops.attrs[op]
	if i == 0 {
		g.Ops.attrs[op] = row
		return
	}
	for g.attr[i-1].next != 0 {
		i = g.attr[i-1].next
	}
	g.attr[i-1].next = row
}

// Has reports whether the operator carries the attribute.
func (g *Graph) Has(op OpID, key OpAttr) bool { return g.findAttr(op, key) != nil }

// SetInts sets an integer-list attribute.
func (g *Graph) SetInts(op OpID, key OpAttr, v ...int64) {
	s := g.addInts(v)
	g.putAttr(op, key, s.start, s.n)
}

// Ints returns an integer-list attribute, nil when absent. The slice is part
// of the graph.
func (g *Graph) Ints(op OpID, key OpAttr) []int64 {
	r := g.findAttr(op, key)
	if r == nil {
		return nil
	}
	return g.intSpan(graphSpan{r.a, r.b})
}

// SetInt sets a single-integer attribute.
func (g *Graph) SetInt(op OpID, key OpAttr, v int64) {
	g.putAttr(op, key, uint32(v), uint32(uint64(v)>>32))
}

// Int returns a single-integer attribute and whether it is present.
func (g *Graph) Int(op OpID, key OpAttr) (int64, bool) {
	r := g.findAttr(op, key)
	if r == nil {
		return 0, false
	}
	return int64(uint64(r.a) | uint64(r.b)<<32), true
}

// IntOr returns a single-integer attribute, or def when it is absent.
func (g *Graph) IntOr(op OpID, key OpAttr, def int64) int64 {
	if v, ok := g.Int(op, key); ok {
		return v
	}
	return def
}

// SetAttrStr sets a text attribute.
func (g *Graph) SetAttrStr(op OpID, key OpAttr, v string) { g.putAttr(op, key, uint32(g.Str(v)), 0) }

// AttrStr returns a text attribute, "" when absent.
func (g *Graph) AttrStr(op OpID, key OpAttr) string {
	r := g.findAttr(op, key)
	if r == nil {
		return ""
	}
	return g.strs.text[r.a]
}

// AddRaw appends an attribute that has no key of its own, as text.
func (g *Graph) AddRaw(op OpID, name, value string) {
	g.putAttr(op, AttrRaw, uint32(g.Str(name)), uint32(g.Str(value)))
}

// Raw returns the text of an attribute kept by name, and whether it is there.
func (g *Graph) Raw(op OpID, name string) (string, bool) {
	for i := g.Ops.attrs[op]; i != 0; i = g.attr[i-1].next {
		if r := g.attr[i-1]; r.key == AttrRaw && g.strs.text[r.a] == name {
			return g.strs.text[r.b], true
		}
	}
	return "", false
}

// Attrs calls f for each attribute of op in order until f returns false. For
// AttrRaw, raw holds the name and the text.
func (g *Graph) Attrs(op OpID, f func(key OpAttr, raw RawAttr) bool) {
	for i := g.Ops.attrs[op]; i != 0; i = g.attr[i-1].next {
		r := g.attr[i-1]
		var raw RawAttr
		if r.key == AttrRaw {
			raw = RawAttr{StrID(r.a), StrID(r.b)}
		}
		if !f(r.key, raw) {
			return
		}
	}
}

// RemoveAttr removes an attribute that has a key of its own, if present.
func (g *Graph) RemoveAttr(op OpID, key OpAttr) {
	at := &g.Ops.attrs[op]
	for *at != 0 {
		r := &g.attr[*at-1]
		if r.key == key {
			*at = r.next
			return
		}
		at = &r.next
	}
}

// MoveAttrs gives the attributes and the called computations of from to to,
// which must have none. It is how "dot-start(…)" becomes an async-start and a
// dot in a computation of its own.
func (g *Graph) MoveAttrs(to, from OpID) {
	g.Ops.attrs[to], g.Ops.attrs[from] = g.Ops.attrs[from], 0
	g.Ops.calls[to], g.Ops.calls[from] = g.Ops.calls[from], graphSpan{}
}

// Dims returns the dimensions= attribute.
func (g *Graph) Dims(op OpID) []int64 { return g.Ints(op, AttrDimensions) }

// DotDims are the dimension numbers of a dot: which dimensions of each
// operand are contracted, and which are batch dimensions.
type DotDims struct{ LHSContract, RHSContract, LHSBatch, RHSBatch []int64 }

// SetDot sets the dimension numbers of a dot.
func (g *Graph) SetDot(op OpID, d DotDims) {
	g.SetInts(op, AttrLHSContract, d.LHSContract...)
	g.SetInts(op, AttrRHSContract, d.RHSContract...)
	if len(d.LHSBatch)+len(d.RHSBatch) > 0 {
		g.SetInts(op, AttrLHSBatch, d.LHSBatch...)
		g.SetInts(op, AttrRHSBatch, d.RHSBatch...)
	}
}

// Dot returns the dimension numbers of a dot.
func (g *Graph) Dot(op OpID) DotDims {
	return DotDims{
		LHSContract: g.Ints(op, AttrLHSContract), RHSContract: g.Ints(op, AttrRHSContract),
		LHSBatch: g.Ints(op, AttrLHSBatch), RHSBatch: g.Ints(op, AttrRHSBatch),
	}
}

// WindowDim is one dimension of a window attribute. Dilations and strides
// are 1 when not stated.
type WindowDim struct {
	Size, Stride         int64
	PadLow, PadHigh      int64 // may be negative
	LHSDilate, RHSDilate int64 // base dilation, window dilation
	Reversed             bool
}

// SetWindow sets the window of a convolution, reduce-window or
// select-and-scatter.
func (g *Graph) SetWindow(op OpID, w []WindowDim) {
	s := graphSpan{uint32(len(g.ints)), uint32(7 * len(w))}
	for _, d := range w {
		var r int64
		if d.Reversed {
			r = 1
		}
		g.ints = append(g.ints, d.Size, d.Stride, d.PadLow, d.PadHigh, d.LHSDilate, d.RHSDilate, r)
	}
	g.putAttr(op, AttrWindow, s.start, s.n)
}

// Window appends the window of op to dst; nothing when it has none.
func (g *Graph) Window(op OpID, dst []WindowDim) []WindowDim {
	v := g.Ints(op, AttrWindow)
	for ; len(v) >= 7; v = v[7:] {
		dst = append(dst, WindowDim{v[0], v[1], v[2], v[3], v[4], v[5], v[6] != 0})
	}
	return dst
}

// ConvDims are the dimension numbers of a convolution (dim_labels).
type ConvDims struct {
	InputBatch, InputFeature    int64
	KernelInput, KernelOutput   int64
	OutputBatch, OutputFeature  int64
	InputSpatial, KernelSpatial []int64
	OutputSpatial               []int64
}

// SetConvDims sets the dimension numbers of a convolution. The three spatial
// lists have equal lengths.
func (g *Graph) SetConvDims(op OpID, d ConvDims) {
	n := 6 + len(d.InputSpatial) + len(d.KernelSpatial) + len(d.OutputSpatial)
	s := graphSpan{uint32(len(g.ints)), uint32(n)}
	g.ints = append(g.ints, d.InputBatch, d.InputFeature, d.KernelInput, d.KernelOutput, d.OutputBatch, d.OutputFeature)
	g.ints = append(g.ints, d.InputSpatial...)
	g.ints = append(g.ints, d.KernelSpatial...)
	g.ints = append(g.ints, d.OutputSpatial...)
	g.putAttr(op, AttrConvDims, s.start, s.n)
}

// ConvDims returns the dimension numbers of a convolution; ok is false when
// they are absent.
func (g *Graph) ConvDims(op OpID) (d ConvDims, ok bool) {
	v := g.Ints(op, AttrConvDims)
	if len(v) < 6 {
		return ConvDims{}, false
	}
	n := (len(v) - 6) / 3
	return ConvDims{
		InputBatch: v[0], InputFeature: v[1], KernelInput: v[2], KernelOutput: v[3],
		OutputBatch: v[4], OutputFeature: v[5],
		InputSpatial: v[6 : 6+n], KernelSpatial: v[6+n : 6+2*n], OutputSpatial: v[6+2*n : 6+3*n],
	}, true
}

// GroupForm is how replica groups are stated.
type GroupForm int64

// The forms of replica groups.
const (
	GroupsAll  GroupForm = iota // {}: one group of all devices
	GroupsList                  // {{0,1},{2,3}}
	GroupsIota                  // [2,4]<=[8] or [2,4]<=[4,2]T(1,0)
)

// ReplicaGroups says which devices take part in a collective together.
// A list holds groups one after another with Sizes; the iota form holds
// Groups×Size devices numbered by Reshape and transposed by Perm
// (nil: identity): device ids are iota(product(Reshape)).reshape(Reshape).
// transpose(Perm).reshape(Groups, Size).
type ReplicaGroups struct {
	Form    GroupForm
	Sizes   []int64 // list: size of each group
	Devices []int64 // list: the members, group after group
	Dims    []int64 // iota: dimensions left of '<='; the last is the group size
	Reshape []int64
	Perm    []int64
}

// SetReplicaGroups sets the replica groups of a collective.
func (g *Graph) SetReplicaGroups(op OpID, r ReplicaGroups) {
	start := uint32(len(g.ints))
	g.ints = append(g.ints, int64(r.Form))
	switch r.Form {
	case GroupsList:
		g.ints = append(g.ints, int64(len(r.Sizes)))
		g.ints = append(g.ints, r.Sizes...)
		g.ints = append(g.ints, r.Devices...)
	case GroupsIota:
		g.ints = append(g.ints, int64(len(r.Dims)), int64(len(r.Reshape)))
		g.ints = append(g.ints, r.Dims...)
		g.ints = append(g.ints, r.Reshape...)
		g.ints = append(g.ints, r.Perm...)
	}
	g.putAttr(op, AttrReplicaGroups, start, uint32(len(g.ints))-start)
}

// ReplicaGroups returns the replica groups of a collective; ok is false when
// the attribute is absent.
func (g *Graph) ReplicaGroups(op OpID) (r ReplicaGroups, ok bool) {
	v := g.Ints(op, AttrReplicaGroups)
	if len(v) == 0 {
		return ReplicaGroups{}, false
	}
	r.Form = GroupForm(v[0])
	switch r.Form {
	case GroupsList:
		n := v[1]
		r.Sizes, r.Devices = v[2:2+n], v[2+n:]
	case GroupsIota:
		nd, nr := v[1], v[2]
		r.Dims, r.Reshape, r.Perm = v[3:3+nd], v[3+nd:3+nd+nr], v[3+nd+nr:]
	}
	return r, true
}

// Size returns the number of devices of a group: the largest one of a list,
// 0 for GroupsAll (the whole machine).
func (r ReplicaGroups) Size() int64 {
	var n int64
	switch r.Form {
	case GroupsList:
		for _, s := range r.Sizes {
			n = max(n, s)
		}
	case GroupsIota:
		if len(r.Dims) > 0 {
			n = r.Dims[len(r.Dims)-1]
		}
	}
	return n
}

// Count returns the number of groups, 1 for GroupsAll.
func (r ReplicaGroups) Count() int64 {
	switch r.Form {
	case GroupsList:
		return int64(len(r.Sizes))
	case GroupsIota:
		n := int64(1)
		for i := 0; i+1 < len(r.Dims); i++ {
			n = MulSize(n, r.Dims[i])
		}
		return n
	}
	return 1
}

// AppendGroup appends the device ids of group i, in order, to dst.
func (r ReplicaGroups) AppendGroup(dst []int64, i int64) []int64 {
	switch r.Form {
	case GroupsList:
		var at int64
		for k, s := range r.Sizes {
			if int64(k) == i {
				return append(dst, r.Devices[at:at+s]...)
			}
			at += s
		}
	case GroupsIota:
		size := r.Size()
		for k := i * size; k < (i+1)*size; k++ {
			dst = append(dst, r.iotaDevice(k))
		}
	}
	return dst
}

// iotaDevice returns element k of the flattened, transposed iota.
func (r ReplicaGroups) iotaDevice(k int64) int64 {
	if len(r.Perm) == 0 {
		return k
	}
	// Walk the transposed shape from its minor dimension; the stride of
	// transposed dimension j is that of source dimension Perm[j].
	var id int64
	for j := len(r.Perm) - 1; j >= 0; j-- {
		p := r.Perm[j]
		d := r.Reshape[p]
		stride := int64(1)
		for q := int(p) + 1; q < len(r.Reshape); q++ {
			stride *= r.Reshape[q]
		}
		id += k % d * stride
		k /= d
	}
	return id
}

// TripSource says where the trip count of a while comes from.
type TripSource uint8

// The sources of a trip count.
const (
	TripUnknown TripSource = iota // nobody says; it must not be taken for 1
	TripKnown                     // known_trip_count in backend_config
	TripDerived                   // computed from init, bound, step and direction
)

// String returns "unknown", "known" or "derived".
func (s TripSource) String() string { return [...]string{"unknown", "known", "derived"}[s] }

// TripCount returns how often the body of a while runs and who says so; n is
// 0 when unknown.
func (g *Graph) TripCount(op OpID) (n int64, from TripSource) {
	if n, ok := g.Int(op, AttrTripKnown); ok {
		return n, TripKnown
	}
	if n, ok := g.Int(op, AttrTripDerived); ok {
		return n, TripDerived
	}
	return 0, TripUnknown
}

// SetTripCount states the trip count of a while, as known_trip_count does:
// in the configuration too, so that it survives writing.
func (g *Graph) SetTripCount(op OpID, n int64) {
	g.SetInt(op, AttrTripKnown, n)
	g.SetAttrStr(op, AttrBackendConfig, `{"known_trip_count":{"n":"`+strconv.FormatInt(n, 10)+`"}}`)
}

// FusionKind is the kind= of a fusion.
type FusionKind int64

// The fusion kinds.
const (
	FusionLoop FusionKind = iota + 1
	FusionInput
	FusionOutput
	FusionCustom
)

// String returns the HLO word.
func (k FusionKind) String() string {
	if k < FusionLoop || k > FusionCustom {
		return ""
	}
	return [...]string{"kLoop", "kInput", "kOutput", "kCustom"}[k-1]
}

// ParseFusionKind returns the kind with an HLO word.
func ParseFusionKind(word string) (FusionKind, bool) {
	for k := FusionLoop; k <= FusionCustom; k++ {
		if k.String() == word {
			return k, true
		}
	}
	return 0, false
}

// Direction is the direction= of a compare.
type Direction int64

// The directions.
const (
	DirEQ Direction = iota + 1
	DirNE
	DirGE
	DirGT
	DirLE
	DirLT
)

// String returns the HLO word.
func (d Direction) String() string {
	if d < DirEQ || d > DirLT {
		return ""
	}
	return [...]string{"EQ", "NE", "GE", "GT", "LE", "LT"}[d-1]
}

// ParseDirection returns the direction with an HLO word.
func ParseDirection(word string) (Direction, bool) {
	for d := DirEQ; d <= DirLT; d++ {
		if d.String() == word {
			return d, true
		}
	}
	return 0, false
}

// SetFloat sets the value of a scalar floating-point constant. All NaNs are
// the same one: payloads differ between file formats and mean nothing here.
func (g *Graph) SetFloat(op OpID, v float64) {
	if v != v {
		v = math.NaN()
	}
	g.SetInt(op, AttrConstFloat, int64(math.Float64bits(v)))
}

// Float returns the value of a scalar floating-point constant.
func (g *Graph) Float(op OpID) (float64, bool) {
	v, ok := g.Int(op, AttrConstFloat)
	return math.Float64frombits(uint64(v)), ok
}
