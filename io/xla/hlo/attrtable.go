package hlo

import (
	"strings"
	"sync"

	"perfsim/components/opgraph"
)

// attrRow is an HLO attribute: how it is spelled, what it holds, and where it
// stands in the protobuf message of an instruction. Text reader, protobuf
// reader and writer follow the table; a new attribute is a row.
type attrRow struct {
	key  opgraph.OpAttr
	form attrForm
	// words are the spellings. The first is written; the second by scatter, or
	// for formSizes by a dynamic-slice.
	words []string
	// field is the number in the protobuf message, 0 where it is not read by
	// this table; least is the smallest value of a number that says something
	// there.
	field, least int64
	// role is that of the computations of formCallee.
	role opgraph.CallRole
	// enum translates the words of formEnum.
	enum *enum
	// read and write are those of formOwn.
	read  func(*parser, opgraph.OpID) bool
	write func(*writer, []byte, opgraph.OpID) []byte
}

type attrForm uint8

const (
	formList   attrForm = iota // {1,2,3}
	formSizes                  // a list with a spelling of its own in a dynamic-slice
	formNumber                 // 5
	formYes                    // true; false is left out
	formEnum                   // a word
	formQuoted                 // "text"
	formText                   // a value as written, or quoted where it is not one value
	formConfig                 // formText, written without quotes only as a JSON object
	formCallee                 // the name of a computation, or several in braces
	formOwn                    // a grammar of its own
)

// enum is a set of words for the values of a number.
type enum struct {
	parse func(string) (int64, bool)
	name  func(int64) string
}

const anyNumber = -1 << 63

var attrRows = []attrRow{
	{key: opgraph.AttrDimensions, form: formList, words: []string{"dimensions"}},
	{key: opgraph.AttrLHSContract, form: formList, words: []string{"lhs_contracting_dims"}},
	{key: opgraph.AttrRHSContract, form: formList, words: []string{"rhs_contracting_dims"}},
	{key: opgraph.AttrLHSBatch, form: formList, words: []string{"lhs_batch_dims"}},
	{key: opgraph.AttrRHSBatch, form: formList, words: []string{"rhs_batch_dims"}},
	{key: opgraph.AttrLHSRagged, form: formList, words: []string{"lhs_ragged_dims"}},
	{key: opgraph.AttrRHSGroup, form: formList, words: []string{"rhs_group_dims"}},
	{key: opgraph.AttrSliceSizes, form: formSizes, words: []string{"slice_sizes", "dynamic_slice_sizes"}},
	{key: opgraph.AttrOffsetDims, form: formList, words: []string{"offset_dims", "update_window_dims"}},
	{key: opgraph.AttrCollapsedDims, form: formList, words: []string{"collapsed_slice_dims", "inserted_window_dims"}},
	{key: opgraph.AttrIndexMap, form: formList, words: []string{"start_index_map", "scatter_dims_to_operand_dims"}},
	{key: opgraph.AttrOperandBatching, form: formList, words: []string{"operand_batching_dims", "input_batching_dims"}},
	{key: opgraph.AttrIndicesBatching, form: formList, words: []string{"start_indices_batching_dims", "scatter_indices_batching_dims"}},
	{key: opgraph.AttrFFTLength, form: formList, words: []string{"fft_length"}, field: 32},

	{key: opgraph.AttrChannelID, form: formNumber, words: []string{"channel_id"}, field: 26, least: 1},
	{key: opgraph.AttrIotaDimension, form: formNumber, words: []string{"iota_dimension"}},
	{key: opgraph.AttrIndexVectorDim, form: formNumber, words: []string{"index_vector_dim"}},
	{key: opgraph.AttrFeatureGroups, form: formNumber, words: []string{"feature_group_count"}, field: 50, least: 2},
	{key: opgraph.AttrBatchGroups, form: formNumber, words: []string{"batch_group_count"}, field: 58, least: 2},
	{key: opgraph.AttrFeatureIndex, form: formNumber, words: []string{"feature_index"}, field: 25, least: 1},
	{key: opgraph.AttrCrossProgram, form: formNumber, words: []string{"cross_program_prefetch_index"}, field: 80, least: anyNumber},
	{key: opgraph.AttrTopK, form: formNumber, words: []string{"k"}, field: 81, least: 1},
	{key: opgraph.AttrUseGlobalDeviceIDs, form: formYes, words: []string{"use_global_device_ids"}, field: 71},
	{key: opgraph.AttrIsStable, form: formYes, words: []string{"is_stable"}, field: 60},
	{key: opgraph.AttrHostTransfer, form: formYes, words: []string{"is_host_transfer"}, field: 47},
	{key: opgraph.AttrFusionKind, form: formEnum, words: []string{"kind"}, field: 11, enum: &enum{
		func(w string) (int64, bool) { k, ok := opgraph.ParseFusionKind(w); return int64(k), ok },
		func(v int64) string { return opgraph.FusionKind(v).String() }}},
	{key: opgraph.AttrDirection, form: formEnum, words: []string{"direction"}, field: 63, enum: &enum{
		func(w string) (int64, bool) { d, ok := opgraph.ParseDirection(w); return int64(d), ok },
		func(v int64) string { return opgraph.Direction(v).String() }}},

	{key: opgraph.AttrCustomCallTarget, form: formQuoted, words: []string{"custom_call_target"}, field: 28},
	{key: opgraph.AttrThread, form: formQuoted, words: []string{"async_execution_thread"}},
	{key: opgraph.AttrBackendConfig, form: formConfig, words: []string{"backend_config"}, field: 43},
	{key: opgraph.AttrSharding, form: formText, words: []string{"sharding"}},
	{key: opgraph.AttrFrontend, form: formText, words: []string{"frontend_attributes"}},

	{form: formCallee, words: []string{"calls"}, role: opgraph.RoleCalls},
	{form: formCallee, words: []string{"to_apply"}, role: opgraph.RoleToApply},
	{form: formCallee, words: []string{"body"}, role: opgraph.RoleBody},
	{form: formCallee, words: []string{"condition"}, role: opgraph.RoleCondition},
	{form: formCallee, words: []string{"branch_computations", "true_computation", "false_computation"}, role: opgraph.RoleBranch},
	{form: formCallee, words: []string{"select"}, role: opgraph.RoleSelect},
	{form: formCallee, words: []string{"scatter"}, role: opgraph.RoleScatter},
	{form: formCallee, words: []string{"called_computations"}, role: opgraph.RoleCalled},

	{key: opgraph.AttrWindow, form: formOwn, words: []string{"window"}, read: (*parser).window, write: (*writer).window},
	{key: opgraph.AttrSlice, form: formOwn, words: []string{"slice"}, read: (*parser).slices, write: (*writer).slices},
	{key: opgraph.AttrPadding, form: formOwn, words: []string{"padding"}, read: (*parser).padding, write: (*writer).padding},
	{key: opgraph.AttrConvDims, form: formOwn, words: []string{"dim_labels"}, read: (*parser).dimLabels, write: (*writer).dimLabels},
	{key: opgraph.AttrReplicaGroups, form: formOwn, words: []string{"replica_groups"}, read: (*parser).replicaGroups, write: (*writer).groups},
	{key: opgraph.AttrSourceTargetPairs, form: formOwn, words: []string{"source_target_pairs"}, read: (*parser).pairs, write: (*writer).pairs},
	{key: opgraph.AttrOutputAliasing, form: formOwn, words: []string{"output_to_operand_aliasing"}, read: (*parser).outputAliasing, write: (*writer).outputAliasing},
}

// attrIndex finds the rows of the table.
type attrIndex struct {
	byKey   [opgraph.NumOpAttrs]*attrRow
	byField map[int64]*attrRow
	// words is a hash table with open addressing: reading text looks a word up
	// for every attribute, and a map takes a tenth of its time.
	words [256]struct {
		word string
		row  *attrRow
	}
}

func wordSlot(w string) uint8 { return uint8(len(w))*31 + w[0] + w[len(w)/2]*5 + w[len(w)-1]*17 }

// word returns the row with a spelling, or nil.
func (x *attrIndex) word(w string) *attrRow {
	for h := wordSlot(w); x.words[h].row != nil; h++ {
		if x.words[h].word == w {
			return x.words[h].row
		}
	}
	return nil
}

var attrs = sync.OnceValue(func() *attrIndex {
	x := &attrIndex{byField: map[int64]*attrRow{}}
	for n := range attrRows {
		r := &attrRows[n]
		if r.form != formCallee {
			x.byKey[r.key] = r
		}
		for _, w := range r.words {
			h := wordSlot(w)
			for x.words[h].row != nil {
				h++
			}
			x.words[h].word, x.words[h].row = w, r
		}
		if r.field != 0 {
			x.byField[r.field] = r
		}
	}
	return x
})

// take reads the value of the attribute of op behind its "=". It returns false
// for a list of lists too, which is not taken: taken says whether it did.
func (r *attrRow) take(p *parser, op opgraph.OpID) (taken, ok bool) {
	g := p.g
	switch r.form {
	case formCallee:
		return true, p.callee(op, r.role)
	case formList, formSizes:
		// A list of lists (slice_sizes of an in-place collective-permute) is
		// kept as text.
		if p.peek() != '{' || strings.HasPrefix(p.s[p.pos:], "{{") {
			return false, false
		}
		v, ok := p.intList()
		if ok {
			g.SetInts(op, r.key, v...)
		}
		return true, ok
	case formNumber:
		v, ok := p.int()
		if ok {
			g.SetInt(op, r.key, v)
		}
		return true, ok
	case formYes:
		v, ok := p.bool()
		if ok && v {
			g.SetInt(op, r.key, 1)
		}
		return true, ok
	case formEnum:
		p.peek()
		at := p.pos
		w := p.word()
		v, ok := r.enum.parse(w)
		if !ok {
			return true, p.failAt(at, "%q is not one of its values", w)
		}
		g.SetInt(op, r.key, v)
		return true, true
	case formQuoted, formText, formConfig:
		read := p.value
		if r.form == formQuoted || p.peek() == '"' {
			read = p.quoted
		}
		v, ok := read()
		if ok {
			g.SetAttrStr(op, r.key, v)
		}
		return true, ok
	}
	return true, r.read(p, op)
}

// put appends the attribute of op as text.
func (r *attrRow) put(w *writer, dst []byte, op opgraph.OpID) []byte {
	g := w.g
	if r.form == formOwn {
		return r.write(w, dst, op)
	}
	v, _ := g.Int(op, r.key)
	if r.form == formYes && v == 0 {
		return dst
	}
	word := r.words[0]
	if len(r.words) > 1 && (r.form == formSizes && g.Ops.Kind[op] == opgraph.OpDynamicSlice || r.form == formList && g.Ops.Kind[op] == opgraph.OpScatter) {
		word = r.words[1]
	}
	dst = beginAttr(dst, word)
	switch r.form {
	case formList, formSizes:
		return w.braced(dst, g.Ints(op, r.key))
	case formNumber:
		return appendInt(dst, v)
	case formYes:
		return append(dst, "true"...)
	case formEnum:
		return append(dst, r.enum.name(v)...)
	}
	text := g.AttrStr(op, r.key)
	if r.form != formQuoted && isValue(text) && (text[0] == '{' || r.form == formText && text[0] != '"') {
		return append(dst, text...)
	}
	return appendQuoted(dst, text)
}

// fromProto sets the attribute of op from its field of the message.
func (r *attrRow) fromProto(g *opgraph.Graph, op opgraph.OpID, m *message) {
	switch r.form {
	case formList:
		g.SetInts(op, r.key, m.ints(nil)...)
	case formNumber:
		if v := m.int(); v >= r.least {
			g.SetInt(op, r.key, v)
		}
	case formYes:
		if m.Uint != 0 {
			g.SetInt(op, r.key, 1)
		}
	case formEnum:
		if v, ok := r.enum.parse(m.str()); ok {
			g.SetInt(op, r.key, v)
		}
	default:
		if len(m.Data) > 0 {
			g.SetAttrStr(op, r.key, m.str())
		}
	}
}

func beginAttr(dst []byte, word string) []byte {
	return append(append(append(dst, ", "...), word...), '=')
}
