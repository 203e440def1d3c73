package psim

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
)

// Rows is an opened snapshot whose large columns are read some rows at a time.
type Rows struct {
	*Snapshot
	file   *os.File
	verify bool
}

// OpenRows opens the snapshot at path. The columns that whole says yes to are
// read at once, for Module; the others come from Column. verify reports whether
// checksums are checked.
func OpenRows(ctx context.Context, path string, jobs int, verify bool, whole func(column string) bool) (*Rows, error) {
	s, f, err := openFront(path)
	if err != nil {
		return nil, err
	}
	if err = s.fetch(ctx, f, jobs, whole); err == nil && verify {
		err = s.Verify(ctx, jobs, whole, nil)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Rows{s, f, verify}, nil
}

// Close closes the file.
func (r *Rows) Close() error { return r.file.Close() }

// Rows returns how many rows a column has; 0 where the file has no such column.
func (r *Rows) Rows(column string) int64 {
	for _, c := range r.cols {
		if c.Name == column {
			return c.Rows()
		}
	}
	return 0
}

// Column returns a reader of a column from its first byte on; nil where the file
// has no such column.
func (r *Rows) Column(name string) *ColumnReader {
	for i := range r.cols {
		if c := &r.cols[i]; c.Name == name {
			return &ColumnReader{r: r, c: c, have: -1}
		}
	}
	return nil
}

// ColumnReader reads a column in order.
type ColumnReader struct {
	r    *Rows
	c    *Column
	at   int64
	have int    // the chunk that buf holds
	buf  []byte // for chunks of which a part is asked for
}

// ReadAt reads the bytes of the column from at on. Their checksums are not
// checked.
func (c *ColumnReader) ReadAt(dst []byte, at int64) (int, error) {
	if at < 0 || at > c.c.Bytes-int64(len(dst)) {
		return 0, fmt.Errorf("%s: column %s has %d bytes, not %d", c.r.Name, c.c.Name, c.c.Bytes, at+int64(len(dst)))
	}
	n, err := c.r.file.ReadAt(dst, c.c.Offset+at)
	if n < len(dst) {
		return n, readError(c.r.Name, "column "+c.c.Name, nil, err)
	}
	return n, nil
}

// Next reads the next len(dst) bytes of the column, of chunks whose checksums are
// right.
func (c *ColumnReader) Next(dst []byte) error {
	for len(dst) > 0 {
		k, in, left := int(c.at/chunkSize), c.at%chunkSize, c.c.Bytes-c.at
		n := int64(len(dst))
		switch {
		case n > left:
			return fmt.Errorf("%s: column %s has %d bytes, not %d", c.r.Name, c.c.Name, c.c.Bytes, c.at+n)
		case in == 0 && (n == left || n >= chunkSize):
			// Chunks that are wanted whole go where they are wanted.
			if n < left {
				n = n / chunkSize * chunkSize
			}
			if err := c.chunks(dst[:n], k); err != nil {
				return err
			}
		default:
			if c.have != k {
				c.have = -1
				c.buf = slices.Grow(c.buf[:0], chunkSize)[:min(chunkSize, left+in)]
				if err := c.chunks(c.buf, k); err != nil {
					return err
				}
				c.have = k
			}
			n = int64(copy(dst, c.buf[in:]))
		}
		c.at, dst = c.at+n, dst[n:]
	}
	return nil
}

// chunks reads b from chunk k on and checks it.
func (c *ColumnReader) chunks(b []byte, k int) error {
	if _, err := c.ReadAt(b, int64(k)*chunkSize); err != nil {
		return err
	}
	if !c.r.verify {
		return nil
	}
	for j := range int(chunks(uint64(len(b)))) {
		piece := chunk(b, j)
		if got := crc32.Checksum(piece, castagnoli); got != c.c.sums[k+j] {
			return c.r.damaged(c.c, k+j, len(piece), got)
		}
	}
	return nil
}
