package nki

import "perfsim/components/nkirecord"

// onceKey is a load of one part of an input into a tensor.
type onceKey struct {
	tensor, source, form int32
	block, at            int64
}

// once finds the tensors that nl.matmul reads and that one load fills with part
// of an input of the kernel, and nothing else writes.
//
// The compiler of trn1 loads each such part once and keeps it while there is
// room: two public profiles read 42.0 and 98.1 MB where every part once is 42.0
// and 83.9 MB, and the loops of the sources ask for seven times that.
func once(rec *nkirecord.Record, p *nkirecord.Program) []bool {
	high := make([]bool, len(rec.Tensors))
	writers := make([][]int, len(rec.Tensors))
	for i := range p.Steps {
		if p.Steps[i].Form < 0 {
			continue
		}
		f := &rec.Forms[p.Steps[i].Form]
		each(rec, p, i, func(tensor int32, _ uint32, write bool) {
			switch {
			case write:
				writers[tensor] = append(writers[tensor], i)
			case f.Attrs.High:
				high[tensor] = true
			}
		})
	}
	for t := range high {
		ok := high[t] && !rec.Tensors[t].Memory.InDRAM() && len(writers[t]) == 1
		if ok {
			step := writers[t][0]
			f := &rec.Forms[p.Steps[step].Form]
			ok = f.Op == "DMACopy" && len(f.Outs) == 1 && len(f.Ins) == 1 && !f.Ins[0].Dynamic && !f.Attrs.Transpose && f.Attrs.RMW == ""
			each(rec, p, step, func(tensor int32, _ uint32, write bool) {
				ok = ok && (write || rec.Tensors[tensor].Memory.InDRAM() && len(writers[tensor]) == 0)
			})
		}
		high[t] = ok
	}
	return high
}

// loadedBefore makes the tile that has the part that a step loads the tensor's
// own, where an earlier step loaded it, and reports whether one did.
func (x *expander) loadedBefore(s *nkirecord.Step) (k onceKey, known bool) {
	v := x.p.Values[s.First:]
	k = onceKey{tensor: int32(v[0].C), source: int32(v[4].C), form: s.Form, block: x.block(int32(v[0].C), &v[1]), at: x.value(&v[5])}
	id, ok := x.parts[k]
	if !ok {
		return k, false
	}
	if x.live[k.tensor] == nil {
		x.live[k.tensor] = make([]uint32, x.rec.Tensors[k.tensor].Blocks())
	}
	x.live[k.tensor][k.block] = id + 1
	return k, true
}
