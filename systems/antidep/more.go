package antidep

import (
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/internal/overlap"
	"perfsim/systems/scenario"
)

// MoreBuffers gives every buffer of the table its number of copies in a copy
// of a world: the writer of a buffer's version then waits for the readers (and
// the writer) of the version so many before it, not of the one before. Buffers
// that are not known stay as they are.
func MoreBuffers(c *components.World, t *Table, copies []int) {
	m := c.Module
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	tops := m.TopBlocks()
	// What every version's writer waits for, by buffer, in program order.
	type version struct {
		writer components.InstrID
		block  int
		waits  []uint32 // words
	}
	versions := make([][]version, len(t.Buffers))
	drop := map[uint32]bool{}                // edges that go
	add := map[components.InstrID][]uint32{} // words that come
	block := 0
	eachVersion(m, t, func(buffer uint32, writer components.InstrID, readers []uint32) {
		n := copies[buffer]
		if t.Buffers[buffer] == None || n <= 1 {
			return
		}
		for block+1 < len(tops) && m.Blocks.First.At(tops[block+1]) <= uint32(writer) {
			block++
		}
		v := version{writer: writer, block: block}
		for e := off[writer]; e < off[writer+1]; e++ {
			p, class := words[e]&ecs.TargetMask, uint8(words[e]>>ecs.ClassShift)
			switch {
			case class == components.ClassAnti && slices.Contains(readers, p):
			case class == components.ClassOutput && overwrites(m, writer, components.InstrID(p), t.Buffers[buffer]):
			default:
				continue
			}
			v.waits = append(v.waits, words[e])
			drop[e] = true
		}
		list := append(versions[buffer], v)
		versions[buffer] = list
		if k := len(list) - n; k >= 0 && list[k].block == block {
			add[writer] = append(add[writer], list[k].waits...)
		}
	})
	replace(c, drop, add)
}

// overwrites reports whether writer and the earlier p both write the buffer.
func overwrites(m *components.Module, writer, p components.InstrID, buffer Buffer) bool {
	wlo, whi := m.Operands.Range(writer)
	plo, phi := m.Operands.Range(p)
	for w := wlo; w < whi; w++ {
		if m.Operands.Role.At(w) != components.RoleOut || bufferOf(m, writer, m.Operands.At(w)) != buffer {
			continue
		}
		for q := plo; q < phi; q++ {
			if m.Operands.Role.At(q) == components.RoleOut && overlap.Of(m, m.Operands.At(w), m.Operands.At(q)) == overlap.Yes {
				return true
			}
		}
	}
	return false
}

// replace gives the copy a relation without some edges and with others.
func replace(c *components.World, drop map[uint32]bool, add map[components.InstrID][]uint32) {
	scenario.Without(c, func(_ uint32, e int, _ uint32) bool { return drop[uint32(e)] })
	if len(add) == 0 {
		return
	}
	old := c.Module.Edges.Preds
	rel := ecs.NewRelation("edges")
	rel.Reserve(old.Rows(), old.Len())
	var row []uint32
	for i := range old.Rows() {
		row = append(row[:0], old.Row(i)...)
		for _, w := range add[components.InstrID(i)] {
			if !slices.ContainsFunc(row, func(x uint32) bool { return x&ecs.TargetMask == w&ecs.TargetMask }) {
				row = append(row, w)
			}
		}
		rel.AppendRow(row)
	}
	c.Module.Edges.Preds = rel
}
