package birjson

import (
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// syncNames are the names of the operations in the member "op", which we add
// where an operation is not the usual one of its list.
var syncNames = [...]string{components.WaitGE: "WaitGE", components.WaitEQ: "WaitEQ", components.SetInc: "SetInc",
	components.SetDec: "SetDec", components.SetTo: "SetTo"}

// syncs reads sync_info: waits for semaphores and what is added to them when
// the instruction completes (docs/birjson.md).
func (w *worker) syncs(in *instr, v jsonscan.Value) error {
	o := &w.b.out
	in.syncs = rng{uint32(len(o.syncs)), uint32(len(o.syncs))}
	if v.Kind() <= jsonscan.Null {
		return nil
	}
	obj, err := object(v)
	if err != nil {
		return fmt.Errorf("sync_info: %w", err)
	}
	if in.flags&components.FlagLoop != 0 {
		w.rest("sync_info", v) // a loop has no row of its own in the table
		return nil
	}
	for _, side := range []struct {
		key, value string
		op         components.SyncOp
	}{{"on_wait", "wait_value", components.WaitGE}, {"on_update", "update_value", components.SetInc}} {
		list := obj.Get(side.key)
		for _, e := range list.All() {
			s := syncOp{op: side.op, space: 'S'}
			if x := e.Get("id"); x.Kind() != jsonscan.Absent {
				n, err := number(x, 0, math.MaxUint32)
				if err != nil {
					return fmt.Errorf("sync_info: id: %w", err)
				}
				s.id = uint32(n)
			}
			if x := e.Get(side.value); x.Kind() != jsonscan.Absent {
				if s.value, err = number(x, math.MinInt64, math.MaxInt64); err != nil {
					return fmt.Errorf("sync_info: %s: %w", side.value, err)
				}
			}
			if b := text(e.Get("op")); b != nil {
				for op, n := range syncNames {
					if n == string(b) {
						s.op = components.SyncOp(op)
					}
				}
			}
			if x := e.Get("space"); x.Kind() != jsonscan.Absent {
				n, err := number(x, 0, 255)
				if err != nil {
					return fmt.Errorf("sync_info: space: %w", err)
				}
				s.space = uint8(n)
			}
			s.owner = o.keep(text(e.Get("from")))
			o.syncs = append(o.syncs, s)
		}
	}
	in.syncs.hi = uint32(len(o.syncs))
	return nil
}
