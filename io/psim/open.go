package psim

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// Snapshot is an opened snapshot: its directory, and its columns as bytes.
type Snapshot struct {
	Name string // of the file, for messages
	// Instructions is the number of instructions that the file claims.
	Instructions int64
	pre          preamble
	cols         []Column
	raw          [][]byte // by column; nil where it was not read
	head         *header
}

var errBigEndian = errors.New("snapshots are little-endian and this machine is not")

func littleEndian() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}

// Open reads the snapshot at path: its directory, then the columns that want
// (nil for all) says yes to, on up to jobs goroutines.
func Open(ctx context.Context, path string, jobs int, want func(column string) bool) (*Snapshot, error) {
	return open(ctx, path, jobs, func(*header) func(string) bool { return want })
}

// open is Open with the columns chosen when the format is known from which
// the module was first read.
//
// The columns go to memory of the process's own and are not mapped. A mapped
// page shows what another process writes to the file after the check, and is
// a SIGBUS where the file was cut; the placement indexes by these columns
// without bounds checks. Huge pages make up for the copy.
func open(ctx context.Context, path string, jobs int, choose func(h *header) func(column string) bool) (*Snapshot, error) {
	s, f, err := openFront(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return s, s.fetch(ctx, f, jobs, choose(s.head))
}

// openFront opens the snapshot at path, whose size the preamble states.
func openFront(path string) (*Snapshot, *os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	s, err := func() (*Snapshot, error) {
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: not a regular file", path)
		}
		s, err := readFront(path, f)
		if err == nil && uint64(st.Size()) != s.pre.fileSize {
			err = fmt.Errorf("%s: snapshot is cut short or has something behind it: %d bytes, not %d", path, st.Size(), s.pre.fileSize)
		}
		return s, err
	}()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return s, f, nil
}

// fetch reads the columns that want says yes to.
func (s *Snapshot) fetch(ctx context.Context, f io.ReaderAt, jobs int, want func(column string) bool) error {
	type piece struct {
		col    int
		lo, hi int64 // bytes of the column
	}
	var todo []piece
	var total uint64
	at := make([]uint64, len(s.cols))
	for i, c := range s.cols {
		if want != nil && !want(c.Name) {
			continue
		}
		at[i] = total
		total += align(uint64(c.Bytes), cacheLine)
		for lo := int64(0); lo < c.Bytes; lo += readPiece {
			todo = append(todo, piece{i, lo, min(lo+readPiece, c.Bytes)})
		}
	}
	if err := format.Reserve(ctx, total, s.Name); err != nil {
		return err
	}
	room := ecs.NewColumn[uint64]("snapshot")
	room.Resize(int(total / 8))
	b := room.Raw()
	for _, p := range todo {
		n := uint64(s.cols[p.col].Bytes)
		s.raw[p.col] = b[at[p.col] : at[p.col]+n : at[p.col]+n]
	}
	g, ctx := ecs.NewGroup(ctx, jobs)
	for _, p := range todo {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			c := &s.cols[p.col]
			if n, err := f.ReadAt(s.raw[p.col][p.lo:p.hi], c.Offset+p.lo); err != nil && n < int(p.hi-p.lo) {
				return readError(s.Name, "column "+c.Name, s.raw[p.col][:p.lo], err)
			}
			return nil
		})
	}
	return g.Wait()
}

// readPiece is how many bytes of a column one goroutine reads at a time.
const readPiece = 4 << 20

// parseFront reads preamble and directory.
func parseFront(name string, b []byte) (*Snapshot, error) {
	if !littleEndian() {
		return nil, errBigEndian
	}
	p, err := readPreamble(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if uint64(len(b)) < preambleSize+p.dirSize {
		return nil, fmt.Errorf("%s: snapshot is cut short: %d bytes, its directory ends at %d", name, len(b), preambleSize+p.dirSize)
	}
	cols, h, err := readDirectory(p, b[preambleSize:preambleSize+p.dirSize])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Snapshot{Name: name, Instructions: int64(min(p.rows, math.MaxInt64)), pre: p, cols: cols, raw: make([][]byte, len(cols)), head: h}, nil
}

// read reads a snapshot from a stream, keeping the columns chosen when the
// header is known (a nil choice keeps all). Memory is taken as the bytes
// arrive, not as the preamble claims.
func read(name string, r io.Reader, choose func(h *header) func(column string) bool) (*Snapshot, error) {
	s, err := readFront(name, r)
	if err != nil {
		return nil, err
	}
	want := choose(s.head)
	at := int64(preambleSize + s.pre.dirSize)
	for i, c := range s.cols {
		if _, err := io.CopyN(io.Discard, r, c.Offset-at); err != nil {
			return nil, readError(name, "column "+c.Name, nil, err)
		}
		at = c.Offset + c.Bytes
		if want != nil && !want(c.Name) {
			if _, err := io.CopyN(io.Discard, r, c.Bytes); err != nil {
				return nil, readError(name, "column "+c.Name, nil, err)
			}
			continue
		}
		if s.raw[i], err = readGrowing(r, c.Bytes); err != nil {
			return nil, readError(name, "column "+c.Name, nil, err)
		}
	}
	if _, err := io.CopyN(io.Discard, r, int64(s.pre.fileSize)-at); err != nil {
		return nil, readError(name, "its end", nil, err)
	}
	if n, err := io.CopyN(io.Discard, r, 1); n > 0 {
		return nil, fmt.Errorf("%s: snapshot has something behind its %d bytes", name, s.pre.fileSize)
	} else if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// readFront reads preamble and directory from a stream.
func readFront(name string, r io.Reader) (*Snapshot, error) {
	front := make([]byte, preambleSize)
	if n, err := io.ReadFull(r, front); err != nil {
		return nil, readError(name, "its preamble", front[:n], err)
	}
	p, err := readPreamble(front)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	dir, err := readGrowing(r, int64(p.dirSize))
	if err != nil {
		return nil, readError(name, "its directory", dir, err)
	}
	return parseFront(name, append(front, dir...))
}

func readError(name, where string, got []byte, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: snapshot is cut short in %s (%d bytes of it are there)", name, where, len(got))
	}
	return fmt.Errorf("%s: %w", name, err)
}

// firstTake is how much of a column is allocated before any of it has been
// seen; what is taken doubles as it fills.
const firstTake = 64 << 20

// readGrowing reads n bytes into memory aligned for any column.
func readGrowing(r io.Reader, n int64) ([]byte, error) {
	var words []uint64
	var b []byte
	for int64(len(b)) < n {
		size := min(n, max(firstTake, int64(len(b))*2))
		grown := make([]uint64, (size+7)/8)
		copy(grown, words)
		words = grown
		old := len(b)
		b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
		if k, err := io.ReadFull(r, b[old:]); err != nil {
			return b[:old+k], err
		}
	}
	return b, nil
}

// Columns lists the columns of the file in their order.
func (s *Snapshot) Columns() []Column { return s.cols }

// Verify checks the checksums of the columns that want (nil for all) says
// yes to, in parallel, and names the first damage by column, byte and row.
// Columns that were not read are left out. progress, where not nil, receives
// the number of bytes checked so far.
func (s *Snapshot) Verify(ctx context.Context, jobs int, want func(column string) bool, progress func(int64)) error {
	type place struct{ col, chunk int }
	var todo []place
	for i, c := range s.cols {
		if s.raw[i] == nil || want != nil && !want(c.Name) {
			continue
		}
		for k := 0; k < len(c.sums); k += sumBatch {
			todo = append(todo, place{i, k})
		}
	}
	bad := make([]error, len(todo))
	var done atomic.Int64
	g, gctx := ecs.NewGroup(ctx, jobs)
	for n, at := range todo {
		g.Go(func() error {
			c, raw := &s.cols[at.col], s.raw[at.col]
			for k := at.chunk; k < min(at.chunk+sumBatch, len(c.sums)); k++ {
				piece := chunk(raw, k)
				if got := crc32.Checksum(piece, castagnoli); got != c.sums[k] {
					bad[n] = s.damaged(c, k, len(piece), got)
					return nil // the first in the file's order is reported, not the first found
				}
				if progress != nil {
					progress(done.Add(int64(len(piece))))
				}
			}
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, err := range bad {
		if err != nil {
			return err
		}
	}
	return nil
}

// damaged is the error of chunk k of a column, of that many bytes, whose checksum
// is got.
func (s *Snapshot) damaged(c *Column, k, bytes int, got uint32) error {
	lo := int64(k) * chunkSize
	hi := lo + int64(bytes)
	return fmt.Errorf("%s: snapshot is damaged: column %s, rows %d to %d (bytes %d to %d of the file) have checksum %08x, not %08x", s.Name, c.Name,
		lo/int64(c.ElemSize), (hi-1)/int64(c.ElemSize), c.Offset+lo, c.Offset+hi, got, c.sums[k])
}

// Module makes a module of the columns that want (nil for all) says yes to,
// without copying or looking at them. Where the file is not trusted the
// caller has to call the module's Check before any system sees it.
func (s *Snapshot) Module(want func(column string) bool) (*components.Module, error) {
	m := components.NewModule("", "")
	if err := s.head.fill(m); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	known := map[string]ecs.AnyColumn{}
	for _, c := range m.Columns() {
		known[c.Name()] = c
	}
	for i, c := range s.cols {
		col, ok := known[c.Name]
		switch {
		case !ok:
			m.Note("snapshot-column", "column "+c.Name+" of the snapshot is of a later version and was left out", 1)
			continue
		case col.ElemSize() != c.ElemSize:
			return nil, fmt.Errorf("%s: snapshot is damaged: column %s has rows of %d bytes, not %d", s.Name, c.Name, c.ElemSize, col.ElemSize())
		case s.raw[i] == nil || want != nil && !want(c.Name):
			continue
		}
		if err := col.AdoptRaw(s.raw[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return m, nil
}
