// Package speedscope writes a timeline as a speedscope file: a profile per lane
// and process, a frame per opcode, times in ns.
package speedscope

import (
	"bufio"
	"context"
	"io"
	"strconv"

	"perfsim/components"
	"perfsim/io/format"
)

// schema names the file format (github.com/jlfwong/speedscope,
// src/lib/file-format-spec.ts).
const schema = "https://www.speedscope.app/file-format-schema.json"

// Write writes every lane that has events as an evented profile. Events of no
// drawn length are left out: speedscope shows no instants. It returns the
// number of events written; progress, where not nil, is called with it.
func Write(ctx context.Context, out io.Writer, t *components.Timeline, exporter string, progress func(events int64)) (int64, error) {
	m := t.World.Module
	w := bufio.NewWriterSize(out, 1<<18)
	b := append([]byte(`{"$schema":"`+schema+`","exporter":`), format.AppendJSONString(nil, exporter)...)
	b = append(b, `,"name":`...)
	b = format.AppendJSONString(b, m.Name)
	b = append(b, `,"shared":{"frames":[`...)
	for op := range m.NumOpcodes() {
		if op > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = format.AppendJSONString(b, m.OpcodeName(components.Opcode(op)))
		b = append(b, '}')
	}
	b = append(b, `]},"profiles":[`...)
	var events int64
	end := t.End()
	any := false
	for p, proc := range t.Processes {
		for l, rows := range t.Lanes(p) {
			if len(rows) == 0 {
				continue
			}
			if any {
				b = append(b, ',')
			}
			any = true
			b = append(b, "\n"+`{"type":"evented","name":`...)
			b = format.AppendJSONString(b, proc.Name+": "+m.LaneName(uint16(l)))
			b = append(b, `,"unit":"nanoseconds","startValue":0,"endValue":`...)
			b = append(strconv.AppendUint(b, end, 10), `,"events":[`...)
			first := true
			for k, i := range rows {
				start, dur, _ := t.Drawn(p, rows, k)
				if dur == 0 {
					continue
				}
				if !first {
					b = append(b, ',')
				}
				first = false
				b = event(b, 'O', m.Instr.Opcode.At(int(i)), start)
				b = event(append(b, ','), 'C', m.Instr.Opcode.At(int(i)), start+dur)
				events++
				if len(b) > 1<<16 {
					if err := ctx.Err(); err != nil {
						return events, err
					}
					if progress != nil {
						progress(events)
					}
					if _, err := w.Write(b); err != nil {
						return events, err
					}
					b = b[:0]
				}
			}
			b = append(b, "]}"...)
		}
	}
	b = append(b, "\n]}\n"...)
	if _, err := w.Write(b); err != nil {
		return events, err
	}
	return events, w.Flush()
}

// event appends an event that opens ('O') or closes ('C') a frame.
func event(b []byte, kind byte, frame components.Opcode, at uint64) []byte {
	b = append(append(b, `{"type":"`...), kind)
	b = strconv.AppendUint(append(b, `","frame":`...), uint64(frame), 10)
	b = strconv.AppendUint(append(b, `,"at":`...), at, 10)
	return append(b, '}')
}
