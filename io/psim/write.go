package psim

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// Exporter writes snapshots.
var Exporter = format.Exporter{Name: "psim", Title: "perfsim snapshot: the tables as they lie in memory", Suffix: ".psim", Module: Write}

// Write writes a snapshot of m. The bytes depend on the module only.
func Write(ctx context.Context, w io.Writer, m *components.Module, opt format.Options) error {
	if !littleEndian() {
		return errBigEndian
	}
	data := present(m)
	cols := make([]Column, len(data))
	for i, c := range data {
		if len(c.Name()) > nameSize {
			return fmt.Errorf("column name %q is longer than %d bytes", c.Name(), nameSize)
		}
		cols[i] = Column{Name: c.Name(), ElemSize: c.ElemSize(), Bytes: c.Bytes(), sums: make([]uint32, chunks(uint64(c.Bytes())))}
	}
	h := headerOf(m)
	for _, s := range []string{h.name, h.format, h.arch} {
		if len(s) > math.MaxInt32 {
			return fmt.Errorf("a name of %d bytes is too long for a snapshot", len(s))
		}
	}
	g, gctx := ecs.NewGroup(ctx, opt.Jobs)
	for i := range cols {
		raw, sums := data[i].Raw(), cols[i].sums
		for lo := 0; lo < len(sums); lo += sumBatch {
			g.Go(func() error {
				for k := lo; k < min(lo+sumBatch, len(sums)); k++ {
					sums[k] = crc32.Checksum(chunk(raw, k), castagnoli)
				}
				return gctx.Err()
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}

	p, err := arrange(cols, h)
	if err != nil {
		return err
	}
	p.rows = uint64(m.Instr.Len())
	dir := appendDirectory(nil, cols, h)
	p.dirSum = crc32.Checksum(dir, castagnoli)

	out := writer{ctx: ctx, w: w, tell: opt.Progress}
	out.write(p.append(nil))
	out.write(dir)
	for i := range cols {
		out.padTo(cols[i].Offset)
		out.write(data[i].Raw())
	}
	out.padTo(int64(p.fileSize)) // a module without columns ends with its directory's page
	return out.err
}

// arrange gives the columns their places. The directory's size does not depend on
// what it says.
func arrange(cols []Column, h *header) (preamble, error) {
	p := preamble{columns: uint32(len(cols))}
	p.dirSize = uint64(len(appendDirectory(nil, cols, h)))
	if p.dirSize > maxDirectory {
		return p, fmt.Errorf("the directory of the snapshot would have %d bytes, more than %d", p.dirSize, maxDirectory)
	}
	end := align(preambleSize+p.dirSize, pageSize)
	for i := range cols {
		at := place(end, uint64(cols[i].Bytes))
		cols[i].Offset = int64(at)
		end = at + uint64(cols[i].Bytes)
	}
	p.fileSize = end
	return p, nil
}

// sumBatch is how many chunks one goroutine takes at a time.
const sumBatch = 64

// chunk returns the k-th share of a column's bytes.
func chunk(raw []byte, k int) []byte {
	return raw[k*chunkSize : min((k+1)*chunkSize, len(raw))]
}

// writer writes in order, keeps the first error and ends when ctx does.
type writer struct {
	ctx  context.Context
	w    io.Writer
	at   int64
	tell func(int64)
	err  error
}

// writePiece bounds one write, so that a break is noticed soon.
const writePiece = 16 << 20

func (w *writer) write(b []byte) {
	for len(b) > 0 && w.err == nil {
		if w.err = w.ctx.Err(); w.err != nil {
			return
		}
		n, err := w.w.Write(b[:min(len(b), writePiece)])
		w.at += int64(n)
		w.err = err
		b = b[n:]
		if w.tell != nil {
			w.tell(w.at)
		}
	}
}

func (w *writer) padTo(at int64) {
	var zero [pageSize]byte
	for w.at < at && w.err == nil {
		w.write(zero[:min(at-w.at, pageSize)])
	}
}
