//go:build !invariants

package systems

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
)

// spoil overwrites a component with zeros.
func spoil(w *World, c ecs.Component) {
	switch c {
	case "events":
		clear(w.Events.Arrive.Raw())
		clear(w.Events.Dur.Raw())
	case "results":
		w.Blocks = slices.Clone(w.Blocks)
		for i := range w.Blocks {
			w.Blocks[i] = components.BlockResult{Block: w.Blocks[i].Block}
		}
	case "summary", "metrics": // only a later system of the same kind adds to them
	default:
		for _, col := range columnsOf(w, c) {
			clear(col.Raw())
		}
	}
}

func TestSystemsReadWhatTheyDeclare(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		_, list := stage(t, seed, 0)
		for n, sys := range list {
			if len(sys.Writes) == 0 {
				continue
			}
			whole, _ := stage(t, seed, n)
			if err := sys.Do(context.Background(), whole); err != nil {
				t.Fatal(err)
			}
			for _, c := range tables {
				if slices.Contains(sys.Reads, c) || slices.Contains(sys.Earlier, c) || slices.Contains(sys.Writes, c) {
					continue
				}
				w, _ := stage(t, seed, n)
				spoil(w, c)
				if err := runSafely(sys, w); err != nil {
					t.Errorf("seed %d: %s fails without %s, which it does not declare: %v", seed, sys.Name, c, err)
					continue
				}
				for _, out := range sys.Writes {
					if digest(w, out) != digest(whole, out) {
						t.Errorf("seed %d: the %s that %s writes depends on %s, which it does not declare", seed, out, sys.Name, c)
					}
				}
			}
		}
	}
}

func runSafely(sys System, w *World) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return sys.Do(context.Background(), w)
}
