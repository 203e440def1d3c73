package kineto

import (
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// opHost is the opcode of what a host thread does between the calls that
// matter.
const opHost = "Host"

// hosts adds the lanes of the host threads that launch work or wait for it,
// as a chain of pieces: the time between two calls, named by the operator it
// led to; a call up to the start of the work it launches; the rest of a call,
// which for one that waits begins when the awaited work has ended. The pieces
// depend on one another as the device's work on them, so the time that waiting
// took is in no piece and comes out of the replay.
func (d *deviceTrace) hosts() error {
	t := d.trace
	d.nameCalls()
	used := map[uint32]bool{}
	for i := range d.list {
		if c := &d.list[i]; len(c.devs) > 0 || c.blocking {
			used[c.ev.thread] = true
		}
	}
	several := t.severalProcesses(func(n uint32) bool { return used[n] })
	lane, before := uint16(0), int64(0)
	fresh := true // no call of this thread yet
	for i := range d.list {
		c := &d.list[i]
		if i == 0 || d.list[i-1].ev.thread != c.ev.thread {
			if !used[c.ev.thread] {
				continue
			}
			var err error
			if lane, err = t.lane(c.ev.thread, several, "thread", " host"); err != nil {
				return err
			}
			before, fresh = 0, true
		}
		if len(c.devs) == 0 && !c.blocking {
			continue
		}
		if fresh {
			before = c.outer
			fresh = false
		}
		if from := max(before, c.outer); c.open && from < c.start {
			r := d.row(c.named, opHost, lane, from, c.start)
			r.Op, r.Scope = c.named, c.scope
			t.b.Add(r)
		}
		d.pieces(c, lane)
		before = c.end
	}
	return nil
}

// pieces adds the rows of one call.
func (d *deviceTrace) pieces(c *call, lane uint16) {
	t := d.trace
	opcode := t.b.M.Symbols.String(c.ev.name)
	add := func(start, end int64) int {
		r := d.row(c.ev.name, opcode, lane, start, end)
		r.Op, r.Scope, r.Ref = c.named, c.scope, c.ev.corr
		return t.b.Add(r)
	}
	from := c.start
	awaited := int32(-1)
	if len(c.devs) > 0 {
		cut := c.end
		for _, x := range c.devs {
			cut = min(cut, d.devs[x].start)
			if t.b.Rows[x].Op == 0 {
				t.b.Rows[x].Op = c.named
			}
			if t.b.Rows[x].Scope == 0 {
				t.b.Rows[x].Scope = c.scope
			}
		}
		cut = max(cut, c.start)
		head := add(c.start, cut)
		for _, x := range c.devs {
			t.b.Depend(int(x), head, components.Flow)
		}
		from = cut
		if strings.Contains(opcode, "emcpy") {
			// A copy that is over when its call returns: the call may have waited.
			for _, x := range c.devs {
				if e := d.devs[x].end; e <= c.end && (awaited < 0 || e > d.devs[awaited].end) {
					awaited = x
				}
			}
		}
	} else {
		awaited = d.awaited(c)
	}
	if awaited >= 0 {
		from = max(from, d.devs[awaited].end)
	}
	if from < c.end || len(c.devs) == 0 {
		tail := add(from, max(from, c.end))
		if awaited >= 0 {
			t.b.Depend(tail, int(awaited), components.Flow)
		}
	}
}

// awaited returns the device event that a waiting call waited for: the last
// of those it can have waited for to end before it returned; -1 for none.
func (d *deviceTrace) awaited(c *call) int32 {
	k := streamKey{d.threads[c.ev.thread].pid, -1}
	if s := c.sync; s != nil {
		if record, ok := d.byCorr[s.record]; ok && s.record != 0 && s.waitStream >= 0 {
			last, _ := d.lastLaunched(streamKey{k.pid, s.waitStream}, d.list[record].start)
			if last >= 0 && d.devs[last].end > c.end {
				return -1
			}
			return last
		}
		if s.stream >= 0 {
			k.stream = s.stream
		}
	}
	return d.lastEnded(k, c.end)
}

// nameCalls finds for every call the innermost operator around it, or the
// innermost slice where there is no operator, the start of the outermost, and
// the scope: annotations, modules and operators around the call.
func (d *deviceTrace) nameCalls() {
	t := d.trace
	var around []*event
	for i := range t.events {
		if e := &t.events[i]; e.cat == catOp || e.cat == catOther || e.cat == catPython {
			around = append(around, e)
		}
	}
	sortSlices(around)
	scopes := newScopes(t)
	var stack []*event
	n := 0
	for i := range d.list {
		c := &d.list[i]
		if i == 0 || d.list[i-1].ev.thread != c.ev.thread {
			stack = stack[:0]
			for n < len(around) && around[n].thread < c.ev.thread {
				n++
			}
		}
		for ; n < len(around) && around[n].thread == c.ev.thread && around[n].start <= c.start; n++ {
			stack = popEnded(stack, around[n].start)
			stack = append(stack, around[n])
		}
		stack = popEnded(stack, c.start)
		c.scope = scopes.at(c.ev.thread, c.start)
		if len(stack) == 0 {
			continue
		}
		c.open, c.outer, c.named = true, stack[0].start, innermost(stack)
	}
}

// popEnded takes slices off that ended by the given time.
func popEnded(stack []*event, at int64) []*event {
	for len(stack) > 0 && stack[len(stack)-1].end <= at {
		stack = stack[:len(stack)-1]
	}
	return stack
}

// deepest bounds how far innermost looks for an operator.
const deepest = 64

func innermost(stack []*event) ecs.Symbol {
	for i := len(stack) - 1; i >= max(0, len(stack)-deepest); i-- {
		if stack[i].cat == catOp {
			return stack[i].name
		}
	}
	return stack[len(stack)-1].name
}
