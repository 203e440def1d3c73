package antidep

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/internal/overlap"
)

// Buffer is a piece of memory that is used again: what an anti-dependency
// protects. It is the location of the operand that overwrites it where the
// module has locations, a PSUM bank, or else the range of addresses.
type Buffer struct {
	Memory   components.Memory
	Core     uint16 // of on-chip memory
	Location uint32 // row of the location table plus one, 0 where there is none
	Bank     int8   // of PSUM, -1 elsewhere
	Lo, Hi   uint64 // bytes: per partition on the chip, linear in device memory
}

// None is the buffer of anti-dependencies whose operands do not name one.
var None = Buffer{Bank: -1}

// Name says what the buffer is, for people and for drop=anti:buffer=NAME.
func (b Buffer) Name(m *components.Module) string {
	core := ""
	if b.Core > 0 {
		core = "nc" + strconv.Itoa(int(b.Core)) + "."
	}
	switch {
	case b == None:
		return "unknown"
	case b.Location > 0:
		return core + m.Symbols.String(m.Locations.Name.At(int(b.Location-1)))
	case b.Bank >= 0:
		return core + "PSUM.bank" + strconv.Itoa(int(b.Bank))
	}
	return core + b.Memory.String() + "@0x" + strconv.FormatUint(b.Lo, 16) + "-0x" + strconv.FormatUint(b.Hi, 16)
}

// Tensor returns the name of the logical tensor, "" where none is known.
func (b Buffer) Tensor(m *components.Module) string {
	if b.Location == 0 {
		return ""
	}
	return m.Symbols.String(m.Locations.Tensor.Get(int(b.Location - 1)))
}

// Bytes returns the size of the buffer: per partition on the chip.
func (b Buffer) Bytes(m *components.Module) uint64 {
	switch {
	case b.Location > 0:
		return m.Locations.Bytes.Get(int(b.Location - 1))
	case b.Bank >= 0:
		return bankBytes
	}
	return b.Hi - b.Lo
}

// bankBytes is the size of a PSUM bank per partition: 2 KiB on all machines
// described.
const bankBytes = 2048

// Table says which buffer every anti-dependency protects.
type Table struct {
	Buffers []Buffer // in the order in which the program meets them
	// Edges are the ids of the anti-dependencies, ascending; Of[k] is the row
	// of Buffers that edge Edges[k] protects.
	Edges []uint32
	Of    []uint32
}

// chunk is how many edges one goroutine looks at.
const chunk = 1 << 15

// Buffers finds the buffer of every anti-dependency of a module. anti are the
// ids of these edges (index.AntiEdges); no other edge is looked at.
func Buffers(ctx context.Context, m *components.Module, anti ecs.Set, jobs int) (*Table, error) {
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	edges := make([]uint32, 0, anti.Len())
	for batch := range anti.Batches() {
		edges = append(edges, batch...)
	}
	// Every chunk numbers its own buffers; the numbers become the table's as
	// the chunks are put together in order.
	type part struct {
		edges, of []uint32
		buffers   []Buffer
	}
	parts := make([]part, (len(edges)+chunk-1)/chunk)
	known := m.Operands.Len() > 0
	g, ctx := ecs.NewGroup(ctx, jobs)
	for n := range parts {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			p := &parts[n]
			p.edges = edges[n*chunk : min((n+1)*chunk, len(edges))]
			p.of = make([]uint32, 0, len(p.edges))
			local := map[Buffer]uint32{}
			i := sort.Search(len(off)-1, func(i int) bool { return off[i+1] > p.edges[0] }) // the consumer of the first edge
			for _, e := range p.edges {
				for off[i+1] <= e {
					i++
				}
				b := None
				if known {
					b = of(m, components.InstrID(i), components.InstrID(words[e]&ecs.TargetMask))
				}
				r, ok := local[b]
				if !ok {
					r = uint32(len(p.buffers))
					local[b] = r
					p.buffers = append(p.buffers, b)
				}
				p.of = append(p.of, r)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	t := &Table{Edges: edges, Of: make([]uint32, 0, len(edges))}
	row := map[Buffer]uint32{}
	var global []uint32
	for k := range parts {
		p := &parts[k]
		global = global[:0]
		for _, b := range p.buffers {
			r, ok := row[b]
			if !ok {
				r = uint32(len(t.Buffers))
				row[b] = r
				t.Buffers = append(t.Buffers, b)
			}
			global = append(global, r)
		}
		for _, r := range p.of {
			t.Of = append(t.Of, global[r])
		}
		*p = part{}
	}
	return t, nil
}

// of returns the buffer that writer overwrites while reader reads it.
func of(m *components.Module, writer, reader components.InstrID) Buffer {
	wlo, whi := m.Operands.Range(writer)
	rlo, rhi := m.Operands.Range(reader)
	for w := wlo; w < whi; w++ {
		if m.Operands.Role.At(w) != components.RoleOut {
			continue
		}
		out := m.Operands.At(w)
		for r := rlo; r < rhi; r++ {
			if m.Operands.Role.At(r) == components.RoleOut {
				continue
			}
			if overlap.Of(m, out, m.Operands.At(r)) == overlap.Yes {
				return bufferOf(m, writer, out)
			}
		}
	}
	return None
}

func bufferOf(m *components.Module, i components.InstrID, o components.AccessPattern) Buffer {
	b := Buffer{Memory: o.Memory, Location: o.Where, Bank: -1}
	if o.Memory.InDRAM() {
		b.Memory = components.MemDRAM
	} else {
		b.Core = m.Lanes.Core.At(int(m.Instr.Lane.At(int(i))))
	}
	if o.Where > 0 {
		return b
	}
	b.Lo, b.Hi = o.Span()
	if o.Memory == components.MemPSUM && b.Hi > b.Lo && b.Lo/bankBytes == (b.Hi-1)/bankBytes {
		b.Bank = int8(min(b.Lo/bankBytes, 127))
		b.Lo, b.Hi = uint64(b.Bank)*bankBytes, uint64(b.Bank+1)*bankBytes
	}
	return b
}

// Label is how lists print a buffer: its name, with the tensor where that has
// another one.
func Label(name, tensor string) string {
	if tensor == "" || tensor == name {
		return name
	}
	return name + " of " + tensor
}

// Find returns the row of the buffer with the given name or label, or the rows
// of all buffers of the tensor with that name.
func (t *Table) Find(m *components.Module, name string) ([]uint32, error) {
	var tensor, label []uint32
	for r, b := range t.Buffers {
		own, of := b.Name(m), b.Tensor(m)
		switch {
		case own == name:
			return []uint32{uint32(r)}, nil
		case components.Named(Label(own, of), name):
			label = append(label, uint32(r))
		case of != "" && components.Named(of, name):
			tensor = append(tensor, uint32(r))
		}
	}
	switch {
	case len(label) > 0:
		return label, nil
	case len(tensor) > 0:
		return tensor, nil
	}
	const most = 8
	var known []string
	for _, b := range t.Buffers {
		if len(known) == most {
			known = append(known, "…")
			break
		}
		known = append(known, Label(b.Name(m), b.Tensor(m)))
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("no anti-dependency protects a buffer or tensor called %q: the module has no anti-dependencies", name)
	}
	return nil, fmt.Errorf("no anti-dependency protects a buffer or tensor called %q (%s); explain --antideps lists them", name, strings.Join(known, ", "))
}
