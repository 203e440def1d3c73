package systems

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/sched"
)

// The lists of what systems read and write are held to what they do: a system
// may change nothing that it does not write, and what it writes may not depend
// on anything that it does not read.

// tables are the components that the tests can look at and take away.
var tables = []ecs.Component{"instr", "edges", "blocks", "operands", "lanes", "instr.issue", "instr.latency", "events", "results", "summary", "metrics"}

// columnsOf returns the columns of the module that a component consists of.
func columnsOf(w *World, c ecs.Component) (out []ecs.AnyColumn) {
	for _, col := range w.Module.Columns() {
		name := col.Name()
		cost := name == "instr.issue" || name == "instr.latency"
		if string(c) == name || strings.HasPrefix(name, string(c)+".") && !cost {
			out = append(out, col)
		}
	}
	return out
}

// digest returns a hash of a component's contents.
func digest(w *World, c ecs.Component) uint64 {
	h := fnv.New64a()
	switch c {
	case "events":
		h.Write(w.Events.Arrive.Raw())
		h.Write(w.Events.Dur.Raw())
	case "results":
		for _, b := range w.Blocks {
			fmt.Fprintln(h, b.Block, b.Latency, b.LatencyTrips)
		}
	case "summary":
		fmt.Fprintf(h, "%+v", w.Summary)
	case "metrics":
		fmt.Fprintf(h, "%+v", w.Metrics)
	default:
		for _, col := range columnsOf(w, c) {
			fmt.Fprintln(h, col.Name(), col.Len())
			h.Write(col.Raw())
		}
	}
	return h.Sum64()
}

// stage returns a fresh world of a random module in which the first n systems
// of the whole pipeline have run, and the systems.
func stage(t *testing.T, seed uint64, n int) (*World, []System) {
	t.Helper()
	m := randmod.Module(rand.New(rand.NewPCG(31, seed)), randmod.Options{Streams: 2, Blocks: true, Nested: true, NoCollectives: true})
	w := newWorld(m)
	var err error
	if w.Machine, err = machine.Load("trn2"); err != nil {
		t.Fatal(err)
	}
	w.Config = components.Config{Model: components.Reference, Jobs: 1, Loops: components.Once}
	w.Policy = sched.Greedy
	s, err := order(Options{EnablePerfSim: true, Skip: []string{"metric_store", "perf_sim_package_pass"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, sys := range s.Systems[:n] {
		if err := sys.Do(context.Background(), w); err != nil {
			t.Fatalf("%s: %v", sys.Name, err)
		}
	}
	return w, s.Systems
}

func TestSystemsWriteWhatTheyDeclare(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w, list := stage(t, seed, 0)
		for _, sys := range list {
			before := make([]uint64, len(tables))
			for i, c := range tables {
				before[i] = digest(w, c)
			}
			if err := sys.Do(context.Background(), w); err != nil {
				t.Fatalf("%s: %v", sys.Name, err)
			}
			for i, c := range tables {
				// New rows have no cost before the cost system has run.
				grown := strings.HasSuffix(sys.Name, "/transfers") && (c == "instr.issue" || c == "instr.latency")
				if digest(w, c) != before[i] && !grown && !slices.Contains(sys.Writes, c) {
					t.Errorf("seed %d: %s changes %s, which it does not declare", seed, sys.Name, c)
				}
			}
		}
	}
}
