package nki

import (
	"slices"

	"perfsim/components"
	"perfsim/components/nkirecord"
)

// unmovable are operations that do not compute the same twice, or whose
// operands depend on what else runs.
var unmovable = map[string]bool{
	"LoopReduce": true, "SendRecv": true, "CoreBarrier": true, "AllReduce": true, "Rand": true, "Rng": true, "RandSetState": true,
	"RandGetState": true, "SetRandState": true, "Dropout": true, "RegisterAlu": true, "RegisterMove": true, "TensorLoad": true, "TensorSave": true,
}

// hoist is a value that a program computes in every iteration of a loop
// although it is the same each time. The compiler of the old API takes it out
// of the loop: the counters of public profiles on trn1 show a quarter to a
// twelfth of the transposes that the sources of four kernels ask for (bmm,
// bmm_softmax, lora, swiglu; docs/nki.md), and all of a fifth (matmul).
type hoist struct {
	step   map[int][]int32 // by step: the loops of which only the first iteration runs it
	tensor [][]int32       // by tensor: the loops whose iterations share its blocks
}

// access is one use of an on-chip tensor.
type access struct {
	step  int
	write bool
	at    uint32 // of its block among the values
}

// invariant finds what to hoist. A tensor is shared by the iterations of a
// loop where each has a block of its own (a block dimension that counts the
// loop), all its uses are in the loop, and what writes it reads only what is
// the same in all iterations.
func invariant(rec *nkirecord.Record, p *nkirecord.Program) hoist {
	h := hoist{step: map[int][]int32{}, tensor: make([][]int32, len(rec.Tensors))}
	uses := make([][]access, len(rec.Tensors)) // on-chip tensors
	written := map[int32][]int{}               // steps that write a tensor
	within := make([][]int32, len(p.Steps))    // loops around a step
	var stack []int32
	for i := range p.Steps {
		s := &p.Steps[i]
		switch s.Form {
		case nkirecord.LoopBegin:
			stack = append(slices.Clone(stack), int32(s.First))
			continue
		case nkirecord.LoopEnd:
			stack = stack[:len(stack)-1]
			continue
		}
		within[i] = stack
		each(rec, p, i, func(tensor int32, at uint32, write bool) {
			if !rec.Tensors[tensor].Memory.InDRAM() {
				uses[tensor] = append(uses[tensor], access{i, write, at})
			}
			if write {
				written[tensor] = append(written[tensor], i)
			}
		})
	}
	loops := map[int32]bool{}
	for _, w := range within {
		for _, l := range w {
			loops[l] = true
		}
	}
	for l := int32(0); int(l) < rec.Loops; l++ {
		if loops[l] {
			h.loop(rec, p, l, uses, written, within)
		}
	}
	return h
}

// each calls f for every operand of step i.
func each(rec *nkirecord.Record, p *nkirecord.Program, i int, f func(tensor int32, at uint32, write bool)) {
	form := &rec.Forms[p.Steps[i].Form]
	at := uint32(p.Steps[i].First)
	for k := range len(form.Outs) + len(form.Ins) {
		t := int32(p.Values[at].C)
		f(t, at+1, k < len(form.Outs))
		if rec.Tensors[t].Memory.InDRAM() {
			at += 2
		} else {
			at += 4
		}
	}
}

// loop adds what is the same in all iterations of loop l.
func (h *hoist) loop(rec *nkirecord.Record, p *nkirecord.Program, l int32, uses [][]access, written map[int32][]int, within [][]int32) {
	factor := func(at uint32) int64 {
		v := &p.Values[at]
		for _, t := range p.Terms[v.First : v.First+v.N] {
			if int32(t.Loop) == l {
				return t.K
			}
		}
		return 0
	}
	inside := func(step int) bool { return slices.Contains(within[step], l) }
	same := map[int32]bool{}
	for t, list := range uses {
		ok := len(list) > 0 && rec.Tensors[t].Blocks() > 1
		for n, a := range list {
			ok = ok && inside(a.step) && factor(a.at+1) == 0 && factor(a.at+2) == 0 && factor(a.at) != 0 && factor(a.at) == factor(list[0].at)
			ok = ok && (n > 0 || a.write)
		}
		if ok {
			same[int32(t)] = true
		}
	}
	movable := func(step int) bool {
		form := &rec.Forms[p.Steps[step].Form]
		ok := len(form.Outs) > 0 && !unmovable[form.Op]
		for _, x := range form.Outs {
			ok = ok && !x.Dynamic
		}
		for _, x := range form.Ins {
			ok = ok && !x.Dynamic
		}
		each(rec, p, step, func(tensor int32, at uint32, write bool) {
			switch {
			case !ok || same[tensor]:
			case write || factor(at) != 0:
				ok = false
			case !rec.Tensors[tensor].Memory.InDRAM() && (factor(at+1) != 0 || factor(at+2) != 0):
				ok = false
			default: // an input that nothing in the loop writes
				ok = !slices.ContainsFunc(written[tensor], inside)
			}
		})
		return ok
	}
	for changed := true; changed; {
		changed = false
		for t := range uses {
			if !same[int32(t)] {
				continue
			}
			for _, a := range uses[t] {
				// PSUM has no room for what waits a whole loop for its readers.
				if (a.write || rec.Tensors[t].Memory == components.MemPSUM) && !movable(a.step) {
					delete(same, int32(t))
					changed = true
					break
				}
			}
		}
	}
	for t := range uses {
		if !same[int32(t)] {
			continue
		}
		h.tensor[t] = append(h.tensor[t], l)
		for _, a := range uses[t] {
			if a.write && !slices.Contains(h.step[a.step], l) {
				h.step[a.step] = append(h.step[a.step], l)
			}
		}
	}
}

// again reports whether step i has run in an earlier iteration of a loop that
// it is taken out of.
func (x *expander) again(i int) bool {
	for _, l := range x.hoist.step[i] {
		if x.index[l] > 0 {
			return true
		}
	}
	return false
}

// block is the block of a tensor for the current iteration: the first
// iteration's where loops share it.
func (x *expander) block(tensor int32, v *nkirecord.Value) int64 {
	n := x.value(v)
	if x.hoist.tensor == nil {
		return n
	}
	for _, l := range x.hoist.tensor[tensor] {
		for _, t := range x.p.Terms[v.First : v.First+v.N] {
			if int32(t.Loop) == l {
				n -= t.K * x.index[l]
			}
		}
	}
	return n
}
