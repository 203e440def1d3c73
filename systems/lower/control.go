package lower

import (
	"strconv"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// call lowers a while, a call that is not laid out and a conditional: a Call
// instruction for each function, which comes after everything that makes its
// operands and before everything that reads its results. The functions are
// blocks of their own and run as often as they are called.
func (f *fn) call(i int32) {
	x := &f.flats[i]
	l := f.l
	g := l.g
	f.argsInHBM(x.args)
	runs := l.runs[f.comp]
	use := func(c opgraph.CompID, n int64) {
		l.isFn[c] = true
		l.runs[c] = opgraph.AddSize(l.runs[c], opgraph.MulSize(runs, n))
	}
	var callees []opgraph.CompID
	switch x.kind {
	case opgraph.OpWhile:
		n, from := l.trip(x.op)
		l.rep.Trips = append(l.rep.Trips, Trip{g.OpText(x.op), n, from})
		body, cond := g.Called(x.op, opgraph.RoleBody), g.Called(x.op, opgraph.RoleCondition)
		use(body, n)
		use(cond, opgraph.AddSize(n, 1))
		callees = []opgraph.CompID{cond, body}
		// The state is updated in place.
		for k, o := range x.outs {
			if k < len(x.args) && f.values[o.v].total == f.values[x.args[k].v].total && !f.values[x.args[k].v].konst && f.values[x.args[k].v].param < 0 && !f.values[o.v].out {
				if r := f.hbmOf(x.args[k].v); r != nil && f.inPlace(x.args[k].v) {
					f.values[o.v].hbm = f.handOn(r)
				}
			}
		}
	case opgraph.OpConditional:
		best := l.dearest(x.op)
		for k, c := range g.Calls(x.op) {
			use(c.Comp, b2i(k == best))
			callees = append(callees, c.Comp)
		}
		l.e.m.Note("conditional", "every branch is simulated; the one with most FLOPs counts (then most collective bytes, then the first)", 1)
	default:
		c := g.Called(x.op, opgraph.RoleToApply)
		use(c, 1)
		callees = []opgraph.CompID{c}
	}
	f.fresh(x)
	e := &l.e
	for n, c := range callees {
		if n == 0 {
			for _, a := range x.args {
				if f.hbmOf(a.v) != nil {
					f.inMem(components.RoleIn, f.partOf(a.v, 0, f.values[a.v].total), f.values[a.v].total, components.Uint8)
				}
			}
		} else if f.lastCtl != 0 {
			e.after(f.lastCtl-1, components.ClassOrdered)
		}
		if n == len(callees)-1 {
			for _, o := range x.outs {
				if r := f.hbmOf(o.v); r != nil {
					f.inMem(components.RoleOut, whole(r), 0, components.Uint8)
				}
			}
		}
		row := e.add(ins{op: components.OpcodeCall, eng: components.All, lane: components.LaneUnassigned, dtype: components.Float32, fn: e.sym(g.CompText(c))})
		f.lastCtl = row + 1
	}
	l.count(x.op, Lowered, "")
}

// dearest returns the branch of a conditional that Graph.Totals counts.
func (l *lowerer) dearest(op opgraph.OpID) int {
	best := 0
	var most opgraph.Totals
	for k, c := range l.g.Calls(op) {
		t := l.compTotals(c.Comp)
		if k == 0 || t.FLOPs > most.FLOPs || t.FLOPs == most.FLOPs && t.CollectiveBytes > most.CollectiveBytes {
			best, most = k, t
		}
	}
	return best
}

// compTotals is Totals of one computation as if it were the entry.
func (l *lowerer) compTotals(c opgraph.CompID) opgraph.Totals {
	g := *l.g
	g.Entry = c
	return g.Totals(l.opt.DefaultTrip)
}

// host lowers transfers to and from the host and other programs.
func (f *fn) host(i int32) {
	x := &f.flats[i]
	f.argsInHBM(x.args)
	f.fresh(x)
	e := &f.l.e
	var bytes int64
	for _, a := range x.args {
		if !f.values[a.v].konst {
			bytes = opgraph.AddSize(bytes, f.values[a.v].total)
		}
	}
	op, eng, lane := components.OpcodeCollectiveSend, components.Pool, f.l.streams[0]
	flags := components.FlagCollective
	switch x.kind {
	case opgraph.OpRecv:
		op, bytes = components.OpcodeCollectiveRecv, 0
		for _, o := range x.outs {
			if f.values[o.v].def == i {
				bytes = opgraph.AddSize(bytes, f.values[o.v].total)
			}
		}
	case opgraph.OpInfeed, opgraph.OpOutfeed:
		op, eng, lane, flags = components.OpcodeDMACopy, components.DMA, components.LaneDMA, components.FlagSrcDRAM|components.FlagDstDRAM
		for _, o := range x.outs {
			bytes = opgraph.AddSize(bytes, f.values[o.v].total)
		}
	}
	f.allOf(x)
	e.add(ins{op: op, eng: eng, lane: lane, flags: flags, elems: ceilDiv(bytes, f.l.arr.parts), parts: f.l.arr.parts, dtype: components.Uint8, bytes: bytes, rowLen: bytes,
		fn: e.sym(x.kind.String())})
	f.l.count(x.op, Lowered, "")
}

// allOf says that the instruction being made reads all operands and writes
// all results of x, in device memory.
func (f *fn) allOf(x *flat) {
	for _, a := range x.args {
		if f.hbmOf(a.v) != nil {
			f.inMem(components.RoleIn, f.partOf(a.v, 0, f.values[a.v].total), f.values[a.v].total, components.Uint8)
		}
	}
	for _, o := range x.outs {
		if v := &f.values[o.v]; v.hbm != nil && v.def == x.me {
			f.inMem(components.RoleOut, whole(v.hbm), 0, components.Uint8)
		}
	}
}

// collective lowers a collective as one CollectiveCompute on a stream: that of
// its replica groups. Its bytes are the input of one device; what the algorithm
// moves is the cost model's.
func (f *fn) collective(i int32) {
	x := &f.flats[i]
	g := f.l.g
	in, _ := g.CollectiveBytes(x.op)
	f.argsInHBM(x.args)
	f.fresh(x)
	e := &f.l.e
	f.allOf(x)
	size := int64(0)
	if r, ok := g.ReplicaGroups(x.op); ok {
		size = r.Size()
	}
	if p := g.Ints(x.op, opgraph.AttrSourceTargetPairs); len(p) > 0 {
		size = 2
	}
	if size == 0 {
		size = max(g.Replicas, 1) * max(g.Partitions, 1)
	}
	lane := f.l.stream(x.op)
	d := components.Float32
	if len(x.args) > 0 {
		d = f.values[x.args[0].v].dtype
	}
	e.add(ins{op: components.OpcodeCollectiveCompute, eng: components.Pool, lane: lane, flags: components.FlagCollective | components.FlagSrcDRAM | components.FlagDstDRAM,
		elems: ceilDiv(in, f.l.arr.parts*int64(max(d.Size(), 1))), parts: f.l.arr.parts, dtype: d, bytes: in, rowLen: in, fn: e.sym(collectiveName(x.kind) + " " + strconv.FormatInt(size, 10))})
	f.ccBytes = opgraph.AddSize(f.ccBytes, in)
	f.ccs++
	f.l.count(x.op, Lowered, "")
}

// stream returns the stream of a collective. Collectives over the same devices
// share one, as they share a communicator; streams are taken in the order in
// which the groups are first used. Channel ids are names and choose nothing.
func (l *lowerer) stream(op opgraph.OpID) uint16 {
	g := l.g
	var key []byte
	if p := g.Ints(op, opgraph.AttrSourceTargetPairs); len(p) > 0 {
		key = append(key, 'p')
		for _, d := range p {
			key = strconv.AppendInt(append(key, ' '), d, 10)
		}
	} else {
		r, _ := g.ReplicaGroups(op) // all devices where none are stated
		const most = 1 << 12        // members of a group by which groups are distinguished
		key = strconv.AppendInt(append(key, 'g'), r.Count(), 10)
		if r.Size() <= most {
			for _, d := range r.AppendGroup(nil, 0) {
				key = strconv.AppendInt(append(key, ' '), d, 10)
			}
		}
	}
	s, ok := l.streamOf[string(key)]
	if !ok {
		s = l.streams[len(l.streamOf)%len(l.streams)]
		l.streamOf[string(key)] = s
	}
	return s
}

// collectiveName is the kind of a collective without the start of a pair.
func collectiveName(k opgraph.OpKind) string {
	switch k {
	case opgraph.OpAllGatherStart:
		return opgraph.OpAllGather.String()
	case opgraph.OpAllReduceStart:
		return opgraph.OpAllReduce.String()
	case opgraph.OpCollectivePermuteStart:
		return opgraph.OpCollectivePermute.String()
	}
	return k.String()
}
