package psim

import (
	"fmt"
	"hash/crc32"
	"io"

	"perfsim/components"
)

// Builder writes a snapshot whose large columns come in pieces: what Write
// writes for the module in memory.
type Builder struct {
	w    io.WriterAt
	pre  preamble
	cols []Column
	head *header
	done []int64 // bytes of each column that are written
}

// NewBuilder begins a snapshot of rows instructions. The columns that m has are
// written as they stand; of the others it will have those for which size returns
// how many bytes will come, and not those for which it returns 0. What is not in
// columns is taken from m by Close.
func NewBuilder(w io.WriterAt, m *components.Module, rows uint64, size func(column string) int64) (*Builder, error) {
	if !littleEndian() {
		return nil, errBigEndian
	}
	b := &Builder{w: w, head: headerOf(m)}
	var here [][]byte
	for _, c := range m.Columns() {
		n := c.Bytes()
		if n == 0 {
			n = size(c.Name())
		}
		if n > 0 {
			b.cols = append(b.cols, Column{Name: c.Name(), ElemSize: c.ElemSize(), Bytes: n, sums: make([]uint32, chunks(uint64(n)))})
			here = append(here, c.Raw())
		}
	}
	var err error
	if b.pre, err = arrange(b.cols, b.head); err != nil {
		return nil, err
	}
	b.pre.rows = rows
	b.done = make([]int64, len(b.cols))
	for i, raw := range here {
		if err := b.append(i, raw); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Append writes the next bytes of a column. Columns may take turns.
func (b *Builder) Append(column string, raw []byte) error {
	for i := range b.cols {
		if b.cols[i].Name == column {
			return b.append(i, raw)
		}
	}
	return fmt.Errorf("the snapshot has no column %s", column)
}

func (b *Builder) append(i int, raw []byte) error {
	c := &b.cols[i]
	if int64(len(raw)) > c.Bytes-b.done[i] {
		return fmt.Errorf("column %s is longer than %d bytes", c.Name, c.Bytes)
	}
	for len(raw) > 0 {
		at := b.done[i]
		part := raw[:min(int64(len(raw)), chunkSize-at%chunkSize)]
		sum := &c.sums[at/chunkSize]
		*sum = crc32.Update(*sum, castagnoli, part)
		if _, err := b.w.WriteAt(part, c.Offset+at); err != nil {
			return err
		}
		b.done[i] += int64(len(part))
		raw = raw[len(part):]
	}
	return nil
}

// Close writes what stands before the columns and returns the bytes of the
// snapshot.
func (b *Builder) Close() (int64, error) {
	for i, c := range b.cols {
		if b.done[i] != c.Bytes {
			return 0, fmt.Errorf("column %s has %d bytes, not %d", c.Name, b.done[i], c.Bytes)
		}
	}
	dir := appendDirectory(nil, b.cols, b.head)
	b.pre.dirSum = crc32.Checksum(dir, castagnoli)
	front := append(b.pre.append(nil), dir...)
	_, err := b.w.WriteAt(front, 0)
	return int64(b.pre.fileSize), err
}
