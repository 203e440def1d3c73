package fit

import (
	"bytes"
	"fmt"
	"strconv"

	"perfsim/components/machine"
)

// section returns the calibrated section of a machine as it stands in its
// description.
func section(m *machine.Machine) []byte {
	c := &m.Calibrated
	var b []byte
	b = append(b, "calibrated:\n"...)
	if c.Scaled != "" {
		b = append(append(append(b, "  scaled: "...), c.Scaled...), '\n')
	}
	b = append(b, "  ops:\n"...)
	for _, name := range c.OpNames() {
		o := c.Ops[name]
		b = append(append(append(b, "    "...), name...), ": {"...)
		for _, f := range []struct {
			name   string
			v      float64
			always bool
		}{{"per_elem", o.PerElem, true}, {"base", o.Base, true}, {"block", o.Block, false}, {"min", o.Min, false}, {"latency_ns", o.LatencyNs, true},
			{"spacing_base", o.SpacingBase, false}, {"n", float64(o.Samples), false}, {"spread_ns", o.Spread, false}} {
			if f.always || f.v != 0 {
				b = append(append(append(b, f.name...), ": "...), number(f.v)...)
				b = append(b, ", "...)
			}
		}
		b = append(append(append(b, "mark: "...), o.Mark...), "}\n"...)
	}
	b = append(b, "  constants:\n"...)
	for _, name := range c.Names() {
		k := c.Constants[name]
		b = append(append(append(b, "    "...), name...), ": {value: "...)
		b = append(b, number(k.Value)...)
		if k.Samples > 0 {
			b = append(b, ", n: "...)
			b = strconv.AppendInt(b, int64(k.Samples), 10)
			b = append(append(b, ", spread: "...), number(k.Spread)...)
		}
		b = append(append(append(b, ", mark: "...), k.Mark...), "}\n"...)
	}
	return b
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Splice replaces the calibrated section of a description's text, or adds it
// at the end, and checks that the result reads back.
func Splice(text []byte, m *machine.Machine) ([]byte, error) {
	start, end := len(text), len(text)
	at := 0
	for _, line := range bytes.SplitAfter(text, []byte("\n")) {
		top := len(line) > 0 && line[0] != ' ' && line[0] != '#' && line[0] != '\n'
		switch {
		case bytes.HasPrefix(line, []byte("calibrated:")):
			start = at
		case top && start < at && end == len(text):
			end = at
		}
		at += len(line)
	}
	head := text[:start]
	if len(head) > 0 && head[len(head)-1] != '\n' {
		head = append(bytes.Clone(head), '\n')
	}
	out := bytes.Join([][]byte{head, section(m), text[end:]}, nil)
	if _, err := machine.Parse("the result", out); err != nil {
		return nil, fmt.Errorf("internal: the fitted description does not read back: %w", err)
	}
	return out, nil
}
