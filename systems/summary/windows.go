package summary

import "perfsim/components"

// Windows adds up a world whose module holds some rows at a time, in program
// order, with loop bodies placed once.
type Windows struct {
	totals totals
	waits  []bool
	block  laneBusy
	until  []uint64 // by lane: where its busy time in the block so far ends
}

// NewWindows returns a sum for module m, of no rows so far.
func NewWindows(m *components.Module) *Windows {
	lanes := m.Lanes.Len()
	return &Windows{waits: m.WaitOpcodes(), block: laneBusy{make([]uint64, lanes), make([]int, lanes)}, until: make([]uint64, lanes)}
}

// Edges counts the edges of the window that w holds.
func (s *Windows) Edges(w *components.World) {
	for k, n := range w.Module.Edges.Counts() {
		s.totals.edges[k] += n
	}
}

// Rows adds rows lo to hi of the window that w holds, which are placed and in
// one top-level block.
func (s *Windows) Rows(w *components.World, lo, hi int) {
	addBusy(w, s.waits, lo, hi, s.until, s.block.sum, s.block.count)
	for _, f := range w.Module.Instr.Flags.View(lo, hi) {
		s.totals.instructions += int(1 - f&components.FlagTransfer/components.FlagTransfer)
	}
}

// EndBlock ends a top-level block that runs so many times.
func (s *Windows) EndBlock(runs uint64) {
	s.totals.add(s.block, runs)
	clear(s.block.sum)
	clear(s.block.count)
	clear(s.until)
}

// Summary returns the figures of all windows; w has the whole module's tables
// and the results of its blocks.
func (s *Windows) Summary(w *components.World) Summary { return s.totals.summary(w) }
