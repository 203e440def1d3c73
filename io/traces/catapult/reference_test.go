package catapult

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
)

// plainTrace is what Write must give, in the plainest code.
func plainTrace(w *components.World, block int, r components.Run, graph bool, style Style) string {
	m := w.Module
	var b strings.Builder
	text := func(s string) string { return string(format.AppendJSONText(nil, s)) }
	id := func(i uint32) string {
		if m.Instr.Ref.Len() == 0 {
			return fmt.Sprint(i)
		}
		if x := m.Instr.Ref.At(int(i)); x > 1<<53 {
			return fmt.Sprintf("%q", fmt.Sprint(x))
		}
		return fmt.Sprint(m.Instr.Ref.At(int(i)))
	}
	span := func(i uint32) (start, end uint64) { return w.Events.Span(m, components.InstrID(i), r) }
	tids, _ := threads(m, style.Barriers)
	first, end := m.Blocks.First.At(block), m.Blocks.End.At(block)
	b.WriteString("[\n")
	for tid, name := range documentedLanes {
		if tid > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"name":"thread_name","ph":"M","pid":0,"tid":%d,"args":{"name":"%s"}}`, tid, name)
	}
	b.WriteString("\n")
	lanes := make([][]uint32, m.Lanes.Len())
	for i := first; i < end; i++ {
		if m.Instr.Flags.At(int(i))&components.FlagLoop == 0 {
			l := m.Instr.Lane.At(int(i))
			if l == components.LaneBarrier && !style.Barriers {
				l = 0
			}
			lanes[l] = append(lanes[l], i)
		}
	}
	for l, rows := range lanes {
		if tids[l] >= len(documentedLanes) && len(rows) > 0 {
			fmt.Fprintf(&b, `,{"name":"thread_name","ph":"M","pid":0,"tid":%d,"args":{"name":"%s"}}`+"\n", tids[l], text(laneTitle(m, l)))
		}
	}
	shown := map[uint32]uint64{}
	for l, rows := range lanes {
		slices.SortStableFunc(rows, func(a, b uint32) int {
			x, _ := span(a)
			y, _ := span(b)
			return int(min(1, max(-1, int64(x)-int64(y))))
		})
		for n, i := range rows {
			from, to := span(i)
			until := to
			if style.Cut && n+1 < len(rows) {
				next, _ := span(rows[n+1])
				until = min(to, next)
			}
			shown[i] = until - from
			in := &m.Instr
			if in.Flags.At(int(i))&components.FlagTransfer != 0 {
				name := "dma_transfer_inst"
				if in.Elems.At(int(i)) == 0 {
					name = "null"
				}
				fmt.Fprintf(&b, `,{"name":"%s","ph":"X","ts":%d,"dur":%d,"pid":0,"tid":%d,"args":{"bir_id":%s}}`+"\n", name, from, until-from, tids[l], id(i))
				continue
			}
			name, op := text(m.InstrName(components.InstrID(i))), text(m.OpcodeName(in.Opcode.At(int(i))))
			fmt.Fprintf(&b, `,{"name":"%s","ph":"X","ts":%d,"dur":%d,"pid":0,"tid":%d,"args":{"bir_id":%s,"bir_name":"%s","opcode":"%s","nki_source_location":"%s",`,
				name, from, until-from, tids[l], id(i), name, op, text(m.Symbols.String(in.Source.Get(int(i)))))
			dump := op
			if f := in.Func.Get(int(i)); f != 0 {
				dump += "." + text(m.Symbols.String(f))
			}
			if s := in.Text.Get(int(i)); s != 0 {
				dump += " " + text(m.Symbols.String(s))
			}
			fmt.Fprintf(&b, `"input_shapes":"","output_shapes":"","input_access_patterns":"","output_access_patterns":"","inst_dump":"%s"`, dump)
			if to != until {
				fmt.Fprintf(&b, `,"latency_ns":%d`, to-from)
			}
			if in.Flags.At(int(i))&components.FlagBarrier != 0 && !style.Barriers {
				b.WriteString(`,"engine":"ALL"`)
			}
			if x := in.Banks.At(int(i)); x != 0 || in.Flags.At(int(i))&components.FlagDstPSUM != 0 {
				written := fmt.Sprint(x >> 8)
				if x>>8 == 0 && in.Flags.At(int(i))&components.FlagDstPSUM != 0 {
					written = "null"
				}
				fmt.Fprintf(&b, `,"psum_banks":[%d,%s]`, x&0xff, written)
			}
			b.WriteString(`,"deps":[`)
			row := slices.Clone(m.Edges.Preds.Row(int(i)))
			slices.SortStableFunc(row, func(a, b uint32) int { return int(a&ecs.TargetMask) - int(b&ecs.TargetMask) })
			for n, e := range row {
				p := e & ecs.TargetMask
				_, at := span(p)
				if n > 0 {
					b.WriteString(",")
				}
				fmt.Fprintf(&b, `{"bir_id":%s`, id(p))
				if pl := in.Lane.At(int(p)); pl != in.Lane.At(int(i)) {
					fmt.Fprintf(&b, `,"engine":"Engine%d"`, pl)
				}
				class := uint8(e >> ecs.ClassShift)
				fmt.Fprintf(&b, `,"edge_type":"%s","end_time":%d`, classText[class], at)
				if graph && r == components.RunB && class == components.ClassAnti {
					b.WriteString(`,"honoured":false`)
				}
				b.WriteString("}")
			}
			b.WriteString("]}}\n")
		}
	}
	for i := first; graph && i < end; i++ {
		if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
			continue
		}
		to, _ := span(i)
		for n, e := range m.Edges.Preds.Row(int(i)) {
			p, class := e&ecs.TargetMask, uint8(e>>ecs.ClassShift)
			if r == components.RunB && class == components.ClassAnti {
				continue
			}
			from, _ := span(p)
			if shown[p] > 0 {
				from += shown[p] - 1
			}
			arrow := func(ph string, at uint64, row uint32, more string) {
				fmt.Fprintf(&b, `,{"name":"%s","cat":"dep","ph":"%s","id":%d,"ts":%d,"pid":0,"tid":%d%s}`+"\n", components.KindOfClass(class), ph,
					int(m.Edges.Preds.Offsets()[i])+n, at, tids[m.Instr.Lane.At(int(row))], more)
			}
			arrow("s", min(from, to), p, "")
			arrow("f", to, i, `,"bp":"e"`)
		}
	}
	return b.String() + "]\n"
}

// drawWorld draws a module of two blocks, placed at random times: what the
// writer has to cope with, whether or not a simulation would give it.
func drawWorld(t *rapid.T) *components.World {
	m := components.NewModule("drawn", "test")
	m.AddCoreLanes(0)
	m.AddCoreLanes(1)
	n := rapid.IntRange(1, 700).Draw(t, "rows")
	m.Instr.Grow(n)
	in := &m.Instr
	in.Issue.Resize(n)
	seed := rapid.Uint64().Draw(t, "seed")
	rnd := func(below uint64) uint64 { // xorshift: hundreds of rows are too many to draw one by one
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		return seed % below
	}
	seed |= 1
	mostTime := rapid.SampledFrom([]uint64{3, 1000, 1e6, 1e9, 1e12, 1e15, 1e17}).Draw(t, "times")
	latency := in.Latency.Resize(n)
	if rapid.Bool().Draw(t, "named") {
		in.Name.Resize(n)
	}
	if rapid.Bool().Draw(t, "ids") {
		in.Ref.Resize(n)
	}
	texts := []string{"", "f", "quoted \"x\"", "bad \xff", strings.Repeat("long ", 100)}
	for k, c := range []*ecs.Column[ecs.Symbol]{&in.Source, &in.Func, &in.Text} {
		if rapid.Bool().Draw(t, fmt.Sprint("text", k)) {
			for i := range c.Resize(n) {
				c.Set(i, m.Symbols.InternString(texts[rnd(uint64(len(texts)))]))
			}
		}
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	arrive := w.Events.Arrive.Resize(n)
	durs := rapid.Bool().Draw(t, "durations")
	if durs {
		w.Events.Dur.Resize(n)
	}
	ordered := rapid.Bool().Draw(t, "ordered")
	cut := uint32(rapid.IntRange(0, n).Draw(t, "blocks"))
	for i := range n {
		in.Opcode.Set(i, components.Opcode(rnd(uint64(m.NumOpcodes()))))
		in.Lane.Set(i, uint16(rnd(uint64(m.Lanes.Len()))))
		in.Flags.Set(i, []components.Flags{0, 0, 0, components.FlagTrigger, components.FlagLoop, components.FlagTransfer, components.FlagBarrier, components.FlagDstPSUM}[rnd(8)])
		in.Elems.Set(i, uint32(rnd(2)))
		if rnd(2) == 0 {
			in.Banks.Set(i, uint16(rnd(1<<16)))
		}
		latency[i] = uint32(rnd(min(mostTime, 1e9)))
		if in.Name.Len() > 0 && rnd(4) > 0 {
			in.Name.Set(i, m.Symbols.InternString(fmt.Sprint(texts[rnd(uint64(len(texts)))], i)))
		}
		if in.Ref.Len() > 0 {
			in.Ref.Set(i, rnd(1<<63)>>rnd(63))
		}
		for r := range arrive[i] {
			at := rnd(mostTime)
			if ordered {
				at = uint64(i) * mostTime / 1000
			}
			arrive[i][r] = at + uint64(latency[i])
			if durs {
				w.Events.Dur.Slice()[i][r] = uint32(rnd(uint64(latency[i]) + 1))
			}
		}
		var row []uint32
		from := uint32(0)
		if uint32(i) >= cut {
			from = cut
		}
		for range rnd(6) {
			if p := uint32(rnd(uint64(uint32(i)-from+1))) + from; p < uint32(i) {
				row = append(row, ecs.Word(uint8(rnd(uint64(components.NumClasses))), p))
			}
		}
		m.Edges.Preds.AppendRow(row)
		m.Operands.EndRow()
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("one"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, cut)
	m.Blocks.Add(m.Symbols.InternString("two"), uint32(f), cut, 0, 1)
	m.Blocks.End.Set(1, uint32(n))
	return w
}

// Every byte is that of the plainest code.
func TestWriteIsPlain(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for block := range 2 {
			r := components.Run(rapid.IntRange(0, 1).Draw(t, "run"))
			graph := rapid.Bool().Draw(t, "graph")
			style := Style{Barriers: rapid.Bool().Draw(t, "barriers"), Cut: rapid.Bool().Draw(t, "cut")}
			var got bytes.Buffer
			if err := style.Write(context.Background(), &got, w, block, r, graph, 1); err != nil {
				t.Fatal(err)
			}
			want := plainTrace(w, block, r, graph, style)
			if got.String() != want {
				a, b := strings.Split(got.String(), "\n"), strings.Split(want, "\n")
				for k := range min(len(a), len(b)) {
					if a[k] != b[k] {
						t.Fatalf("line %d is\n%s\nand should be\n%s", k+1, a[k], b[k])
					}
				}
				t.Fatalf("%d lines instead of %d", len(a), len(b))
			}
		}
	})
}
