package deps

import (
	"context"
	"math"
	"strings"
	"testing"

	"perfsim/components"
)

// A pattern far beyond PSUM is a piece in each bank and one beyond them, not
// one for every 2 KiB of its numbers.
func TestPatternBeyondPSUM(t *testing.T) {
	s := newSketch()
	s.instr(components.OpcodeTensorCopy, 0, pattern(components.RoleOut, components.MemPSUM, 0, 0, 1, 100, 1<<50))
	s.instr(components.OpcodeTensorCopy, 0, pattern(components.RoleIn, components.MemPSUM, 0, 0, 1, 1<<40, 10))
	s.instr(components.OpcodeTensorCopy, 0, pattern(components.RoleIn, components.MemPSUM, 0, 0, 1, 3*bankBytes, 10))
	m := s.finish(t)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	r := rebuild(t, m, Options{All: true, Bin: 64})
	if want := maxBanks + 1 + 1 + 1; r.Accesses != want || r.Edges[components.Flow] != 2 {
		t.Errorf("%d accesses and %d Flow edges, want %d and 2", r.Accesses, r.Edges[components.Flow], want)
	}
}

// Writes of small pieces between reads of everything meet pieces without end:
// the walk stops with an error that names the instruction.
func TestWorkIsBounded(t *testing.T) {
	s := newSketch()
	for i := range 12_000 {
		s.instr(components.OpcodeTensorCopy, 0,
			pattern(components.RoleIn, components.MemSBUF, 0, 0, 1, 0, 180_000),
			pattern(components.RoleOut, components.MemSBUF, 0, 0, 1, uint64(i*14), 2))
	}
	m := s.finish(t)
	_, err := Rebuild(context.Background(), m, Options{All: true, Bin: 64, free: 1000})
	if err == nil || !strings.Contains(err.Error(), "stopped at instruction I-") {
		t.Errorf("error %v", err)
	}
}

// Patterns and locations whose sums would overflow are refused by the check.
func TestOverflowIsRefused(t *testing.T) {
	for name, c := range map[string]components.AccessPattern{
		"step":    {Steps: []int64{math.MinInt64, 1}, Counts: []uint64{2, 2}},
		"count":   {Steps: []int64{0, 1}, Counts: []uint64{1, math.MaxUint64}},
		"product": {Steps: []int64{1 << 40, 1 << 40}, Counts: []uint64{1 << 30, 1 << 30}},
		"address": {Address: math.MaxUint64, Steps: []int64{1, 1}, Counts: []uint64{1, 1}},
	} {
		s := newSketch()
		c.Memory = components.MemSBUF
		s.instr(components.OpcodeTensorCopy, 0)
		m := s.finish(t)
		m.Operands.Add(c)
		m.Operands.Offsets.Set(1, 1)
		if err := m.Check(); err == nil || !strings.Contains(err.Error(), "operand 0 of instruction I-0") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
