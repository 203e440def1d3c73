package nki

import (
	"fmt"

	"perfsim/components"
	"perfsim/components/nkirecord"
)

// opcodes are the recorder's names that are not the compiler's.
var opcodes = map[string]string{
	"ScalarTensorTensor": "SCALAR_TENSOR_TENSOR", "TensorTensorScan": "TENSOR_TENSOR_SCAN", "PartitionReduce": "TensorReduce", "AllReduce": "TensorCopy",
}

var engineNames = map[string]components.Engine{
	"PE": components.PE, "DVE": components.DVE, "Activation": components.Activation, "Pool": components.Pool, "SP": components.SP,
	"DMA": components.SP, "ALL": components.All,
}

// instruction writes one step out.
func (x *expander) instruction(s *nkirecord.Step) error {
	if len(x.rows) >= x.opt.MaxInstructions {
		return fmt.Errorf("the kernel has more than %d instructions", x.opt.MaxInstructions)
	}
	f := &x.rec.Forms[s.Form]
	var part onceKey
	keep := false
	if x.once != nil && f.Op == "DMACopy" && x.once[x.p.Values[s.First].C] {
		known := false
		if part, known = x.loadedBefore(s); known {
			x.left++
			return nil
		}
		keep = true
	}
	var buf [6]ref
	refs, err := x.operands(f, s, buf[:0])
	if err != nil {
		return err
	}
	if keep {
		x.parts[part] = refs[0].tile
	}
	matmul := f.Op == "Matmult" || f.Op == "MatmultMx" || f.Op == "Transpose" && f.Engine == "PE"
	x.initial(s.Form, refs, matmul)
	switch f.Op {
	case "Matmult", "MatmultMx":
		x.matmul(f, s.Form, refs)
	case "Transpose":
		x.transpose(f, s.Form, refs)
	case "PartitionBroadcast":
		x.broadcast(s.Form, refs)
	case "LoopReduce":
		x.loopReduce(s.Form, refs)
	case "DMACopy":
		x.dma(f, s.Form, refs)
	case "CoreBarrier":
		x.sync = append(x.sync, syncPoint{row: len(x.rows), form: f, src: s.Form})
	case "SendRecv":
		x.sync = append(x.sync, syncPoint{row: len(x.rows), form: f, src: s.Form, recv: refs[0], send: refs[1]})
		x.touch(refs)
	default:
		x.plain(f, s.Form, refs)
	}
	return nil
}

// touch extends the life of tiles to the next row.
func (x *expander) touch(refs []ref) {
	i := int32(len(x.rows))
	for _, a := range refs {
		t := &x.tiles[a.tile]
		if t.first < 0 {
			t.first = i
		}
		t.last = max(t.last, i)
		t.state |= written
	}
}

func (x *expander) plain(f *nkirecord.Form, form int32, refs []ref) {
	name := f.Op
	if n, ok := opcodes[name]; ok {
		name = n
	}
	r := row{op: x.m.Opcode(name), form: form, any: f.Engine == ""}
	e, ok := engineNames[f.Engine]
	if !ok {
		e = components.DVE
	}
	r.engine = e
	switch f.Op {
	case "Memset":
		if f.Attrs.Zero {
			r.flags |= components.FlagZeroConst
		}
		if r.any {
			r.engine = components.Pool
		}
	case "ScalarTensorTensor":
		r.flags |= components.FlagScalarTT
	case "TensorTensorScan":
		r.flags |= components.FlagScan
	case "PartitionReduce":
		r.flags |= components.FlagCrossPart
	case "CollectiveCompute":
		r.flags |= components.FlagCollective
	case "RegisterAlu", "RegisterMove", "TensorLoad", "TensorSave":
		r.flags |= components.FlagSequencer
		r.any = false
	case "Rand", "Rng", "RandSetState", "RandGetState", "SetRandState":
		if r.any {
			r.engine, r.any = components.Pool, false
		}
	}
	x.put(r, refs...)
}

// matmul puts one matmul; whether it starts an accumulation group follows
// from what the kernel says, else from whether the region was written.
func (x *expander) matmul(f *nkirecord.Form, form int32, refs []ref) {
	dst := refs[0]
	k := region{dst.tile, dst.p, dst.f}
	t := &x.tiles[dst.tile]
	start := false
	switch {
	case f.Attrs.Accumulate == 0:
		start = true
	case f.Attrs.Accumulate == 1 && !f.Attrs.Implied:
	case f.Attrs.Accumulate < 0 && x.rec.Generation == "old":
		start = true
	default:
		start = !x.open[k] && t.state&memsetIt == 0
	}
	x.open[k] = true
	flags := components.FlagAccStop
	if start {
		flags |= components.FlagAccStart
	}
	if f.Attrs.Transpose {
		flags |= components.FlagTranspose
	}
	op := components.OpcodeMatmult
	if f.Op == "MatmultMx" {
		op = components.OpcodeMatmultMx
	}
	if f.Attrs.High && x.opt.SingleMatmul && x.rec.Generation == "old" {
		if y := x.tiles[refs[1].tile].tensor; y >= 0 && x.rec.Tensors[y].Name == "" {
			x.single[y] = true
		}
	}
	// Operands of BIR are inputs in the order moving, stationary.
	x.put(row{op: op, engine: components.PE, form: form, flags: flags}, refs...)
}

// transpose is a product with an identity on the PE, an instruction of its own
// on the DVE.
func (x *expander) transpose(f *nkirecord.Form, form int32, refs []ref) {
	dst, src := refs[0], refs[1]
	if f.Engine != "PE" {
		x.put(row{op: components.OpcodeStreamTranspose, engine: components.DVE, form: form}, dst, src)
		return
	}
	d := src.pat.DType
	id, ok := x.ident[d]
	if !ok {
		size := int64(d.Size())
		from := x.add(tile{tensor: -1, mem: components.MemDRAM, bytes: 128 * 128 * size, parts: 1, dtype: d})
		id = x.add(tile{tensor: -1, mem: components.MemSBUF, bytes: 128 * size, parts: 128, dtype: d, core: x.core})
		whole := &nkirecord.Pattern{DType: d, Parts: 128, Step: 1, Dims: [][2]int64{{128, 128}, {1, 128}}}
		x.put(x.load(form), ref{tile: id, role: components.RoleOut, pat: x.flat(d, 128, 128)}, ref{tile: from, role: components.RoleIn, pat: whole})
		x.ident[d] = id
	}
	moving := ref{tile: id, role: components.RoleIn, p: src.p, pat: x.flat(d, src.pat.Parts, src.pat.Parts)}
	x.open[region{dst.tile, dst.p, dst.f}] = false
	x.put(row{op: components.OpcodeMatmult, engine: components.PE, form: form,
		flags: components.FlagAccStart | components.FlagAccStop | components.FlagTranspose}, dst, moving, src)
}

// broadcast is a product with ones; what reads it takes it from PSUM.
func (x *expander) broadcast(form int32, refs []ref) {
	dst, src := refs[0], refs[1]
	d := src.pat.DType
	one, ok := x.ones[d]
	if !ok {
		one = x.add(tile{tensor: -1, mem: components.MemSBUF, bytes: 128 * int64(d.Size()), parts: 128, dtype: d, core: x.core})
		x.put(row{op: components.OpcodeMemset, engine: components.Pool, form: form}, ref{tile: one, role: components.RoleOut, pat: x.flat(d, 128, 128)})
		x.ones[d] = one
	}
	n, parts := int(src.pat.Elems()), dst.pat.Parts
	t := &x.tiles[dst.tile]
	inPSUM := int64(n)*4 <= psumBytes/2
	if inPSUM {
		t.mem, t.bytes, t.dtype, t.retyped = components.MemPSUM, int64(n)*4, components.Float32, true
	}
	stationary := ref{tile: one, role: components.RoleIn, p: 0, pat: x.flat(d, 1, parts)}
	for at := 0; at < n; at += 512 {
		w := min(512, n-at)
		out := ref{tile: dst.tile, role: components.RoleOut, f: int64(at), pat: x.flat(components.Float32, parts, w)}
		moving := ref{tile: src.tile, role: components.RoleIn, p: src.p, f: src.f + int64(at), pat: x.flat(d, 1, w)}
		if !inPSUM {
			out.tile = x.add(tile{tensor: -1, mem: components.MemPSUM, bytes: int64(w) * 4, parts: int32(parts), dtype: components.Float32, core: x.core})
			out.f = 0
		}
		x.put(row{op: components.OpcodeMatmult, engine: components.PE, form: form, flags: components.FlagAccStart | components.FlagAccStop}, out, moving, stationary)
		if !inPSUM {
			from := out
			from.role = components.RoleIn
			x.put(row{op: components.OpcodeTensorCopy, engine: components.DVE, any: true, form: form},
				ref{tile: dst.tile, role: components.RoleOut, f: int64(at), pat: x.flat(dst.pat.DType, parts, w)}, from)
		}
	}
}

// loopReduce stores the first value and adds later ones.
func (x *expander) loopReduce(form int32, refs []ref) {
	dst, src := refs[0], refs[1]
	k := region{dst.tile, dst.p, dst.f}
	if !x.folded[k] {
		x.folded[k] = true
		x.put(row{op: components.OpcodeTensorCopy, engine: components.DVE, any: true, form: form}, dst, src)
		return
	}
	in := dst
	in.role = components.RoleIn
	x.put(row{op: components.OpcodeTensorTensor, engine: components.DVE, form: form}, dst, in, src)
}

// load is a transfer into SBUF with known addresses.
func (x *expander) load(form int32) row {
	return row{op: components.OpcodeDMACopy, engine: components.SP, form: form, queue: queueLoad, flags: components.FlagStaticDMA}
}

func (x *expander) dma(f *nkirecord.Form, form int32, refs []ref) {
	r := x.load(form)
	dst := refs[0]
	store := x.tiles[dst.tile].mem.InDRAM()
	if store { // on another sequencer than the loads, which would wait behind it
		r.queue, r.engine = queueStore, components.Pool
	}
	indirect := false // the address comes from memory: only software makes such descriptors
	for i := range refs {
		indirect = indirect || refs[i].pat.Dynamic
	}
	switch {
	case f.Attrs.DGE == "swdge" || indirect && f.Attrs.DGE != "hwdge":
		r.flags, r.engine, r.queue = components.FlagSWDGE, components.Pool, queueSoft
		if indirect {
			r.op = components.OpcodeIndirectLoad
			if store {
				r.op = components.OpcodeIndirectSave
			}
		}
	case f.Engine == "Activation":
		r.engine, r.queue, r.flags = components.Activation, queueActivation, components.FlagHWDGE
	case f.Engine == "Pool":
		r.flags, r.engine, r.queue = components.FlagSWDGE, components.Pool, queueSoft
	case f.Attrs.DGE == "hwdge" || x.opt.DynamicDMA && f.Attrs.DGE != "none":
		// In measured profiles SP triggers the loads, Activation the stores.
		r.engine, r.queue, r.flags = components.SP, queueDynamic, components.FlagHWDGE
		switch {
		case store && f.Engine == "SP":
			r.queue = queueDynamicStore
		case store:
			r.engine, r.queue = components.Activation, queueActivation
		}
	}
	if f.Attrs.Transpose {
		r.flags |= components.FlagTranspose
	}
	if f.Attrs.RMW != "" {
		in := dst
		in.role = components.RoleIn
		refs = append(refs, in)
	}
	x.put(r, refs...)
}

// The queues of a module, rows of its table.
const (
	queueNone uint16 = iota
	queueLoad
	queueStore
	queueDynamic
	queueDynamicStore
	queueActivation
	queueSoft
)

var queues = []struct {
	name   string
	engine components.Engine
}{
	{"qLoad", components.SP}, {"qStore", components.Pool}, {"qDynamicLoad", components.SP}, {"qDynamicStore", components.SP},
	{"qActivation", components.Activation}, {"qSoftware", components.Pool},
}
