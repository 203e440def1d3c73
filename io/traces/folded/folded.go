// Package folded writes a timeline as folded stacks, the input of flamegraph.pl,
// inferno and speedscope: a line per stack, its frames separated by ";", and
// the busy time in ns, weighted by executions.
package folded

import (
	"bufio"
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// stack is what makes a line: frames that are equal have equal numbers.
type stack struct {
	process int
	lane    uint16
	scope   ecs.Symbol
	opcode  components.Opcode
}

// Write writes the busy time of every stack of process, lane, scope (a frame
// for each part of its path) and opcode. The lines are sorted.
func Write(ctx context.Context, out io.Writer, t *components.Timeline) error {
	m := t.World.Module
	waits := m.WaitOpcodes()
	sums := map[stack]uint64{}
	n := 0
	err := t.Merge(func(e *components.TimelineEvent) error {
		if n++; n&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if ns := t.Busy(e, waits); ns > 0 {
			k := stack{e.Process, e.Lane, scopeOf(m, e.Instr), m.Instr.Opcode.At(int(e.Instr))}
			sums[k] = ecs.AddSat(sums[k], ns)
		}
		return nil
	})
	if err != nil {
		return err
	}
	lines := make(map[string]uint64, len(sums))
	for k, ns := range sums {
		lines[k.text(t)] += ns
	}
	w := bufio.NewWriter(out)
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		w.WriteString(line)
		w.WriteByte(' ')
		w.WriteString(strconv.FormatUint(lines[line], 10))
		w.WriteByte('\n')
	}
	return w.Flush()
}

// scopeOf returns where an instruction comes from: its HLO instruction, else
// its source line, else 0.
func scopeOf(m *components.Module, i components.InstrID) ecs.Symbol {
	if s := m.Instr.HLO.Get(int(i)); s != 0 {
		return s
	}
	return m.Instr.Source.Get(int(i))
}

func (k stack) text(t *components.Timeline) string {
	m := t.World.Module
	frames := []string{t.Processes[k.process].Name, m.LaneName(k.lane)}
	if k.scope != 0 {
		frames = append(frames, m.Symbols.String(k.scope))
	}
	frames = append(frames, m.OpcodeName(k.opcode))
	for i, f := range frames {
		frames[i] = clean(f)
	}
	return strings.Join(frames, ";")
}

// clean returns a frame without what separates frames and lines.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case r < ' ':
			return ' '
		}
		return r
	}, s)
	if s == "" {
		return "?"
	}
	return s
}
