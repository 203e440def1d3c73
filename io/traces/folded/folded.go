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

// stack identifies a line: frames that are equal have equal numbers.
type stack struct {
	process int
	lane    uint16
	place   ecs.Symbol // scope, source line or operator
	path    bool       // place is a scope, which has parts
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
			k := stack{e.Process, e.Lane, m.ScopeOf(e.Instr), m.Instr.Scope.Get(int(e.Instr)) != 0, m.Instr.Opcode.At(int(e.Instr))}
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

func (k stack) text(t *components.Timeline) string {
	m := t.World.Module
	frames := []string{t.Processes[k.process].Name, m.LaneName(k.lane)}
	switch place := m.Symbols.String(k.place); {
	case k.path:
		frames = append(frames, parts(place)...)
	case place != "":
		frames = append(frames, place)
	}
	frames = append(frames, m.OpcodeName(k.opcode))
	for i, f := range frames {
		frames[i] = clean(f)
	}
	return strings.Join(frames, ";")
}

// parts returns the parts of a scope, outermost first.
func parts(scope string) []string {
	var out []string
	for scope != "" {
		var last string
		scope, last = components.SplitScope(scope)
		out = append(out, last)
	}
	slices.Reverse(out)
	return out
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
