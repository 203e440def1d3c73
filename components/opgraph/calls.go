package opgraph

// callWalk visits computations depth first along their calls. It keeps its own
// stack, so that deep graphs do not take the program's.
type callWalk struct {
	g     *Graph
	state []uint8
	order []CompID // callees before callers
	stack []callFrame
}

// callFrame is a computation that is being visited.
type callFrame struct {
	comp CompID
	op   OpID // next operator to look at
	call int  // next of its calls
}

// The states of a computation.
const (
	callNew    = iota
	callActive // on the stack
	callDone
)

func newCallWalk(g *Graph) *callWalk { return &callWalk{g: g, state: make([]uint8, g.NumComps())} }

// from visits what is reachable from c and was not visited yet. A call of a
// computation that is on the stack is recursion: it is not followed, and the
// first one is returned.
func (w *callWalk) from(c CompID) (by OpID, to CompID, recursion bool) {
	if w.state[c] != callNew {
		return 0, 0, false
	}
	g := w.g
	w.state[c] = callActive
	w.stack = append(w.stack[:0], callFrame{c, g.Comps.First[c], 0})
walk:
	for len(w.stack) > 0 {
		f := &w.stack[len(w.stack)-1]
		for f.op < g.Comps.End[f.comp] {
			calls := g.Calls(f.op)
			if f.call == len(calls) {
				f.op, f.call = f.op+1, 0
				continue
			}
			callee := calls[f.call].Comp
			f.call++
			switch w.state[callee] {
			case callActive:
				if !recursion {
					by, to, recursion = f.op, callee, true
				}
			case callNew:
				w.state[callee] = callActive
				w.stack = append(w.stack, callFrame{callee, g.Comps.First[callee], 0})
				continue walk
			}
		}
		w.state[f.comp] = callDone
		w.order = append(w.order, f.comp)
		w.stack = w.stack[:len(w.stack)-1]
	}
	return by, to, recursion
}
