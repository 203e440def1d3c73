package zonerecorder

import (
	"cmp"
	"context"
	"io"
	"slices"

	"perfsim/components"
	"perfsim/io/tenstorrent/dprint"
)

// PrintTrace prints run A of a placed world through the kernel print: every
// lane has a print buffer, writes a line for each instruction as it starts,
// and waits when the buffer is full; the server prints with the prefixes of
// cores and processors. It returns how often a lane had to wait.
func PrintTrace(ctx context.Context, w *components.World, out io.Writer) (waits uint64, err error) {
	m := w.Module
	srv := dprint.NewServer(dprint.Options{Dialect: dprint.DialectCurrent, Out: out, Prefix: true})
	printers := make([]*dprint.Printer, m.Lanes.Len())
	poll := func() error { _, err := srv.Poll(); return err }
	base := uint64(0)
	type event struct {
		start, end uint64
		row        components.InstrID
	}
	var events []event
	for _, b := range m.TopBlocks() {
		if err := ctx.Err(); err != nil {
			return waits, err
		}
		events = events[:0]
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			if m.Instr.Flags.At(int(i))&components.FlagLoop == 0 {
				start, end := w.Events.Span(m, components.InstrID(i), components.RunA)
				events = append(events, event{base + start, base + end, components.InstrID(i)})
			}
		}
		slices.SortFunc(events, func(x, y event) int { return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.row, y.row)) })
		for k, e := range events {
			if k%4096 == 0 {
				if err := ctx.Err(); err != nil {
					return waits, err
				}
			}
			l := m.Instr.Lane.At(int(e.row))
			p := printers[l]
			if p == nil {
				core := m.Lanes.Core.At(int(l))
				buf := dprint.NewBuffer(dprint.DialectCurrent, core, 0)
				srv.Attach(dprint.Key{X: int(core), Risc: int(l), Name: m.LaneName(l)}, buf)
				p = &dprint.Printer{Buf: buf, OnFull: poll}
				printers[l] = p
			}
			p.Str(m.OpcodeName(m.Instr.Opcode.At(int(e.row))) + " " + m.InstrName(e.row) + " ").U64(e.start).Str("..").U64(e.end).Str(" ns").Endl()
			if p.Err() != nil {
				return waits, p.Err()
			}
			// The server looks after every line, so that lines of different
			// lanes come in the order of time.
			if err := poll(); err != nil {
				return waits, err
			}
		}
		base += w.Blocks[b].Extent(components.RunA)
	}
	for _, p := range printers {
		if p != nil {
			waits += p.Buf.Waits
		}
	}
	if err := srv.Drain(); err != nil {
		return waits, err
	}
	return waits, srv.Close()
}
