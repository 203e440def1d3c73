package ecs

import (
	"context"
	"fmt"
	"time"
)

// Component names a column or table that systems read or write, for the
// order check and for people: "instr.latency", "edges".
type Component string

// Condition is a state of a world of type W in which a system runs.
type Condition[W any] struct {
	Name  string // for people: "unless placed"
	Holds func(w *W) bool
}

// System is one step of a schedule over worlds of type W.
type System[W any] struct {
	Name string
	// When are the conditions under which it runs: all of them must hold.
	When   []Condition[W]
	Run    func(ctx context.Context, w *W) error
	Reads  []Component
	Writes []Component
	// Earlier are components that it reads where an earlier system wrote them.
	Earlier []Component
}

// Do runs the system where its conditions hold.
func (s System[W]) Do(ctx context.Context, w *W) error {
	for _, c := range s.When {
		if !c.Holds(w) {
			return nil
		}
	}
	return s.Run(ctx, w)
}

// Schedule runs systems in the order in which they are listed.
type Schedule[W any] struct {
	Systems []System[W]
	// Given are the components that exist before the first system runs.
	Given []Component
	// Reasons say why what reads a component needs it.
	Reasons map[Component]string
}

// Check reports whether every component is written, or given, before it is
// read, and whether names are unique.
func (s Schedule[W]) Check() error {
	have := map[Component]bool{}
	for _, c := range s.Given {
		have[c] = true
	}
	names := map[string]bool{}
	for _, sys := range s.Systems {
		if names[sys.Name] {
			return fmt.Errorf("system %s is scheduled twice", sys.Name)
		}
		names[sys.Name] = true
		for _, c := range sys.Reads {
			if !have[c] {
				return fmt.Errorf("system %s reads %s before any system wrote it: %s", sys.Name, c, s.Reasons[c])
			}
		}
		for _, c := range sys.Writes {
			have[c] = true
		}
	}
	return nil
}

// Timing is the time of one system.
type Timing struct {
	System string
	Wall   time.Duration
}

// Run runs the systems one after the other, stops at the first error or when
// ctx ends, and returns how long each took; one whose conditions do not hold
// takes no time. before, where not nil, is called with
// the index and name of each system as it starts.
func (s Schedule[W]) Run(ctx context.Context, w *W, before func(i int, name string)) ([]Timing, error) {
	out := make([]Timing, 0, len(s.Systems))
	for i, sys := range s.Systems {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if before != nil {
			before(i, sys.Name)
		}
		start := time.Now()
		err := sys.Do(ctx, w)
		out = append(out, Timing{sys.Name, time.Since(start)})
		if err != nil {
			return out, fmt.Errorf("%s: %w", sys.Name, err)
		}
	}
	return out, nil
}
