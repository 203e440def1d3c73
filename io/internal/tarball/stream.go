package tarball

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// counter counts the bytes that pass, and gives up when the context ends.
type counter struct {
	ctx context.Context
	r   io.Reader
	n   int64
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// gunzip reads the members of a gzip file one after the other, to the end of
// the file, so that every checksum is compared and nothing after the last
// member goes unnoticed. Zero bytes there are padding (tapes, block devices)
// and allowed.
type gunzip struct {
	in    *counter
	br    *bufio.Reader
	z     *gzip.Reader
	ended bool
}

func newGunzip(in *counter, br *bufio.Reader) (*gunzip, error) {
	z, err := gzip.NewReader(br)
	if err != nil {
		return nil, fmt.Errorf("gzip header: %w", noEOF(err))
	}
	z.Multistream(false)
	return &gunzip{in: in, br: br, z: z}, nil
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.ended {
		return 0, io.EOF
	}
	n, err := g.z.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("gzip data near compressed byte %d: %w", g.offset(), err)
	}
	if err := g.next(); err != nil {
		return n, err
	}
	if n == 0 && g.ended {
		return 0, io.EOF
	}
	return n, nil
}

// next begins the following gzip member, or finds the end of the file.
func (g *gunzip) next() error {
	magic, err := g.br.Peek(2)
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		at := g.offset()
		if err := g.z.Reset(g.br); err != nil {
			return fmt.Errorf("gzip header at byte %d: %w", at, noEOF(err))
		}
		g.z.Multistream(false)
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := g.offset()
	if err := onlyZeros(g.br, "compressed data", at); err != nil {
		return err
	}
	g.ended = true
	return nil
}

func (g *gunzip) offset() int64 { return g.in.n - int64(g.br.Buffered()) }

// noEOF makes an end of file inside a structure an unexpected one, so that it
// is never taken for the regular end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// onlyZeros reads r to its end and fails at the first byte that is not zero.
// at is the offset of r's first byte in what it is a part of.
func onlyZeros(r io.Reader, what string, at int64) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for i, b := range buf[:n] {
			if b != 0 {
				return fmt.Errorf("unknown bytes after the end of the %s, at byte %d", what, at+int64(i))
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// tail remembers the last bytes of the uncompressed tar, to distinguish an
// archive that was closed from one that was cut between two members, and holds
// the stream to its limits.
type tail struct {
	r    io.Reader
	in   *counter
	lim  Limits
	n    int64 // bytes passed
	last [blockSize]byte
}

const blockSize = 512

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		t.n += int64(n)
		if n >= blockSize {
			copy(t.last[:], p[n-blockSize:n])
		} else {
			copy(t.last[:], t.last[n:])
			copy(t.last[blockSize-n:], p[:n])
		}
		if lerr := t.lim.check(t.n, t.in.n); lerr != nil {
			return n, lerr
		}
	}
	return n, err
}

// closed reports whether the last whole block that passed was zero, which is
// how every tar ends.
func (t *tail) closed() bool {
	return t.n >= blockSize && t.n%blockSize == 0 && t.last == [blockSize]byte{}
}
