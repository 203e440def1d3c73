package format

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	kgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// position counts the bytes taken from the file.
type position struct {
	r io.Reader
	n int64
}

// Read takes no more at first than what decides the format: a snapshot is
// mapped then, and the rest of the buffer is never touched.
func (p *position) Read(b []byte) (int, error) {
	if p.n == 0 && len(b) > SniffLen {
		b = b[:SniffLen]
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// gunzip unwraps gzip member by member, so that it can say where in the file
// something is wrong: the library's own errors name neither file nor place.
type gunzip struct {
	in  *bufio.Reader // the decoder reads bytes from it and never too many
	at  *position
	z   *kgzip.Reader
	err error
}

func newGunzip(in *bufio.Reader, at *position) (*gunzip, error) {
	g := &gunzip{in: in, at: at}
	z, err := kgzip.NewReader(in)
	if err != nil {
		return nil, g.explain(err)
	}
	z.Multistream(false)
	g.z = z
	return g, nil
}

// offset is the byte of the file that comes next.
func (g *gunzip) offset() int64 { return g.at.n - int64(g.in.Buffered()) }

func (g *gunzip) Read(p []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	n, err := g.z.Read(p)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		err = g.explain(err)
	default:
		if err = g.next(); err == nil {
			return n, nil
		}
	}
	g.err = err
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// next begins another member, or reports that there is none. Zeros behind the
// last member are padding, as gzip itself has it.
func (g *gunzip) next() error {
	at := g.offset()
	padding := false
	for {
		head, err := g.in.Peek(2)
		switch {
		case len(head) == 0 && errors.Is(err, io.EOF):
			return io.EOF
		case len(head) == 0:
			return err
		case head[0] == 0:
			padding = true
			if _, err := g.in.Discard(1); err != nil {
				return err
			}
			continue
		case !padding && len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b:
			if err := g.z.Reset(g.in); err != nil {
				return g.explain(err)
			}
			g.z.Multistream(false)
			return nil
		}
		return fmt.Errorf("the gzip data end at byte %d of the file, and something that is no gzip follows at byte %d (0x%02x): cut the file there, or make it anew", at, g.offset(), head[0])
	}
}

// explain says where in the file what is wrong.
func (g *gunzip) explain(err error) error {
	at := g.offset()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("the gzip data break off at the end of the file, at byte %d: the file is cut short (%w)", at, io.ErrUnexpectedEOF)
	case errors.Is(err, gzip.ErrHeader) || errors.Is(err, kgzip.ErrHeader):
		return fmt.Errorf("starts like gzip but its header is damaged, before byte %d of the file", at)
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, kgzip.ErrChecksum):
		return fmt.Errorf("the gzip data that end at byte %d of the file do not match their checksum: the file is damaged", at)
	}
	return fmt.Errorf("the gzip data are damaged before byte %d of the file: %w", at, err)
}

// unzstd names the place of an error of the zstd decoder.
type unzstd struct {
	z  *zstd.Decoder
	in *bufio.Reader
	at *position
}

func (u *unzstd) Read(p []byte) (int, error) {
	n, err := u.z.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	at := u.at.n - int64(u.in.Buffered())
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("the zstd data break off at the end of the file, at byte %d: the file is cut short (%w)", at, err)
	case errors.Is(err, zstd.ErrMagicMismatch):
		err = fmt.Errorf("something that is no zstd follows the zstd data, before byte %d of the file", at)
	default:
		err = fmt.Errorf("the zstd data are damaged before byte %d of the file: %w", at, err)
	}
	return n, err
}
