package occupancy

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// Report is the content of the memories of a module's cores over time.
type Report struct {
	// End is the end of the axis in ns: the top-level blocks one after the other,
	// each once.
	End    uint64  `json:"axis_ns"`
	Spaces []Space `json:"spaces"` // HBM, and SBUF and PSUM of every core
	Spills *Spills `json:"spills"` // nil where nothing was spilled
}

// Space is one memory.
type Space struct {
	Name string `json:"space"`      // HBM, SBUF or PSUM
	Core uint16 `json:"core"`       // of SBUF and PSUM
	Unit string `json:"unit"`       // bytes, or bytes of a partition
	Size uint64 `json:"size_bytes"` // bytes that the machine has; of SBUF and PSUM, of a partition
	// Peak is the most bytes that are held at once; of SBUF and PSUM, of a
	// partition. Held are bytes that are written and still needed: SBUF in cells
	// of 64 bytes, PSUM in banks, device memory by tensor from its first write
	// to the last access (inputs from the start, outputs to the end of their
	// function).
	Peak uint64 `json:"peak_bytes"`
	At   uint64 `json:"at_ns"` // when it is first reached
	Fits bool   `json:"fits"`  // whether the peak is at most the size
	// Tensors are those held at the peak, largest first.
	Tensors []Tensor `json:"tensors"`
	// Series are the levels in time order.
	Series []Level `json:"series"`
	// Absent is why nothing is known; all else is empty then.
	Absent string `json:"absent,omitempty"`
}

// Level is the bytes held from a time on.
type Level struct {
	NS    uint64 `json:"ns"`    // time from which on it holds
	Bytes uint64 `json:"bytes"` // bytes held
}

// Tensor is a tensor that is held at the peak.
type Tensor struct {
	Name     string `json:"name"`               // name of the tensor
	Bytes    uint64 `json:"bytes"`              // bytes that it takes; of SBUF and PSUM, of a partition
	From     uint64 `json:"from_ns"`            // when it is first written, or there
	To       uint64 `json:"to_ns"`              // when it is last needed
	Kind     string `json:"kind"`               // input, output or internal
	Operator string `json:"operator,omitempty"` // that writes it
	Source   string `json:"source,omitempty"`   // file:line of what writes it
}

// Spills are the transfers that make room and bring back.
type Spills struct {
	StoredBytes   uint64 `json:"stored_bytes"`   // bytes of values that had to make room, weighted
	ReloadedBytes uint64 `json:"reloaded_bytes"` // bytes of such values that are read again, weighted
	Transfers     uint64 `json:"transfers"`
	BusyNS        uint64 `json:"busy_ns"` // of the DMA lanes
}

// life is bytes held for a time.
type life struct {
	from, to uint64
	bytes    uint64
	by       components.InstrID // what wrote it first
	where    uint32             // location plus one, 0 for none
}

// Make finds what a placed world holds in run A.
func Make(ctx context.Context, w *components.World) (*Report, error) {
	t := components.NewTimeline(w, -1, components.Process{Name: "A", Run: components.RunA})
	r := &Report{End: t.End()}
	var mem machine.Memory
	if !w.Replayed() { // else no machine was simulated
		mem = w.Machine.Memory
	}
	hbm := hbmOf(t)
	hbm.Size = uint64(max(mem.HBMBytes, 0))
	hbm.Fits = hbm.Absent == "" && hbm.Peak <= hbm.Size
	r.Spaces = append(r.Spaces, hbm)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	_, cores := Cores(w.Module)
	size := uint64(max(mem.SBUFBytes, 0))
	sbuf := make([][]life, len(cores))
	beyond, known := SBUF(t, 0, size, collect(sbuf, CellBytes))
	for core, list := range sbuf {
		if list == nil {
			continue
		}
		s := onChip(t, "SBUF", cores[core], size, list, components.MemSBUF)
		s.Fits = beyond == 0 && s.Peak <= size
		r.Spaces = append(r.Spaces, s)
	}
	if !known {
		r.Spaces = append(r.Spaces, Space{Name: "SBUF", Unit: perPartition, Size: size, Absent: noAccesses(w.Module, "SBUF")})
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Spills = spills(w)
	bank := uint64(cmp.Or(max(mem.PSUMBankBytes, 0), bankBytes))
	total := uint64(max(mem.PSUMBankBytes*mem.PSUMBanks, 0))
	psum := make([][]life, len(cores))
	PSUM(t, 0, collect(psum, bank))
	found := false
	for core, list := range psum {
		if list == nil {
			continue
		}
		found = true
		s := onChip(t, "PSUM", cores[core], total, list, components.MemPSUM)
		s.Fits = s.Peak <= s.Size
		r.Spaces = append(r.Spaces, s)
	}
	if !found {
		r.Spaces = append(r.Spaces, Space{Name: "PSUM", Unit: perPartition, Size: total, Absent: "no instruction uses a bank of PSUM"})
	}
	return r, nil
}

// bankBytes are those of a bank of PSUM in a partition where no machine is
// known.
const bankBytes = 2048

const perPartition = "bytes of a partition"

func noAccesses(m *components.Module, space string) string {
	if m.Operands.Len() == 0 {
		return "the input has no access patterns"
	}
	return "no access pattern is in " + space
}

// collect returns what keeps the lives of cells by core; lives of neighbouring
// cells that are the same otherwise are one.
func collect(cores [][]life, bytes uint64) Done {
	return func(core, _ int, from, to uint64, by components.InstrID) {
		list := cores[core]
		if n := len(list); n > 0 && list[n-1].from == from && list[n-1].to == to && list[n-1].by == by {
			list[n-1].bytes += bytes
			return
		}
		cores[core] = append(list, life{from: from, to: to, bytes: bytes, by: by})
	}
}

// curve adds lives up over time: the levels, the first of the highest and its
// time.
func curve(list []life) (levels []Level, peak, at uint64) {
	// What a time adds, or takes: below 0 it wraps, and back.
	all := make([]ecs.Keyed[uint64], 0, 2*len(list))
	for _, l := range list {
		if l.to > l.from {
			all = append(all, ecs.Keyed[uint64]{Key: l.from, V: l.bytes}, ecs.Keyed[uint64]{Key: l.to, V: -l.bytes})
		}
	}
	ecs.SortByKey(all)
	now := uint64(0)
	for k := 0; k < len(all); {
		here := all[k].Key
		was := now
		for ; k < len(all) && all[k].Key == here; k++ {
			now += all[k].V
		}
		if now != was || len(levels) == 0 {
			levels = append(levels, Level{here, now})
		}
		if now > peak {
			peak, at = now, here
		}
	}
	return levels, peak, at
}

// onChip makes the space of one core.
func onChip(t *components.Timeline, name string, core uint16, size uint64, list []life, memory components.Memory) Space {
	s := Space{Name: name, Core: core, Unit: perPartition, Size: size}
	var levels []Level
	levels, s.Peak, s.At = curve(list)
	s.Series = thin(levels, t.End())
	m := t.World.Module
	for k := range list {
		l := &list[k]
		if l.from <= s.At && s.At < l.to {
			l.where = written(m, l.by, memory)
			s.Tensors = addTensor(s.Tensors, m, *l)
		}
	}
	sortTensors(s.Tensors)
	return s
}

// written returns the location (plus one) that a row writes in a memory, else
// the first that it reads there.
func written(m *components.Module, i components.InstrID, memory components.Memory) uint32 {
	lo, hi := m.Operands.Range(i)
	found := uint32(0)
	for r := lo; r < hi; r++ {
		if m.Operands.Memory.At(r) != memory || m.Operands.Where.At(r) == 0 {
			continue
		}
		if m.Operands.Role.At(r) == components.RoleOut {
			return m.Operands.Where.At(r)
		}
		if found == 0 {
			found = m.Operands.Where.At(r)
		}
	}
	return found
}

// addTensor adds a life to the tensors of the peak: of one tensor to what there
// is of it.
func addTensor(list []Tensor, m *components.Module, l life) []Tensor {
	x := Tensor{Bytes: l.bytes, From: l.from, To: l.to, Kind: "internal"}
	if l.by != components.NoInstr {
		x.Operator, x.Source = m.OperatorOf(l.by), m.Symbols.String(m.Instr.Source.Get(int(l.by)))
	}
	switch {
	case l.where > 0:
		x.Name, x.Kind = m.Symbols.String(m.Locations.Name.At(int(l.where)-1)), kindOf(m, l.where)
	case l.by != components.NoInstr:
		x.Name = "of " + m.InstrName(l.by)
	}
	for k := range list {
		if y := &list[k]; y.Name == x.Name && y.Operator == x.Operator {
			y.Bytes += x.Bytes
			y.From, y.To = min(y.From, x.From), max(y.To, x.To)
			return list
		}
	}
	return append(list, x)
}

func sortTensors(list []Tensor) {
	slices.SortStableFunc(list, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.From, b.From), cmp.Compare(a.Name, b.Name))
	})
}

// mostLevels bounds the levels of a series.
const mostLevels = 2000

// thin keeps the highest level of each of mostLevels pieces of the time where
// there are more levels.
func thin(levels []Level, end uint64) []Level {
	if len(levels) <= mostLevels || end == 0 {
		return levels
	}
	width := end/mostLevels + 1
	out := make([]Level, 0, mostLevels)
	last := uint64(0)
	for k := 0; k < len(levels); {
		piece := levels[k].NS / width
		high := Level{piece * width, last} // what is held as the piece begins
		for ; k < len(levels) && levels[k].NS/width == piece; k++ {
			high.Bytes = max(high.Bytes, levels[k].Bytes)
			last = levels[k].Bytes
		}
		out = append(out, high)
		if next := (piece + 1) * width; (k == len(levels) || levels[k].NS >= next) && last != high.Bytes && (k == len(levels) || levels[k].NS/width != piece+1) {
			out = append(out, Level{next, last})
		}
	}
	return out
}

// kinds of tensors, by their ordinals (docs/birjson.md).
func kindOf(m *components.Module, where uint32) string {
	switch mem := m.Locations.Memory.At(int(where) - 1); {
	case mem == components.MemInput:
		return "input"
	case mem == components.MemOutput:
		return "output"
	case !mem.InDRAM():
		return "internal"
	}
	switch m.Locations.Kind.Get(int(where) - 1) {
	case 0, 1, 2, 6:
		return "input"
	case 3, 4, 5:
		return "output"
	}
	return "internal"
}

// Head is the peak of one memory for a summary.
type Head struct {
	Name   string `json:"space"`
	Core   uint16 `json:"core"`
	Size   uint64 `json:"size_bytes"`
	Peak   uint64 `json:"peak_bytes"`
	AtMost bool   `json:"at_most"` // Peak is an upper bound
	Fits   bool   `json:"fits"`
	Absent string `json:"absent,omitempty"`
}

// Heads returns the peaks.
func (r *Report) Heads() []Head {
	var out []Head
	for _, s := range r.Spaces {
		out = append(out, Head{Name: s.Name, Core: s.Core, Size: s.Size, Peak: s.Peak, Fits: s.Fits, Absent: s.Absent})
	}
	return out
}
