package format

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// maxInput bounds what an input may unwrap to: a defence against
// decompression bombs that still lets the largest modules through (100
// million instructions of text are about 40 GB).
const maxInput = 256 << 30

// Source is an opened input.
type Source struct {
	Name string // for messages: the path, or "standard input"
	Path string // where it can be opened again and mapped; "" where it cannot
	// Packed names the compression found: "", "gzip" or "zstd".
	Packed string
	// Decoded says that the text was in UTF-16 or UTF-32; what is read is UTF-8.
	Decoded bool
	// Size is the number of bytes on disk, or -1 where it is not known.
	Size int64

	in    *bufio.Reader
	close []func() error
	limit int64 // bytes that may be read
	left  int64
	ctx   context.Context
	done  int64
	tell  func(int64)
	err   error
}

// Open opens the file at path, or standard input for "-".
func Open(ctx context.Context, path string, stdin io.Reader) (*Source, error) {
	s := &Source{Name: path, Size: -1, limit: maxInput, left: maxInput, ctx: ctx}
	var raw io.Reader
	if path == "-" {
		s.Name = "standard input"
		raw = untilDone(ctx, stdin)
	} else {
		f, err := openUntilDone(ctx, path)
		if err != nil {
			return nil, err
		}
		st, err := f.Stat()
		if err == nil && st.IsDir() {
			err = fmt.Errorf("%s is a directory", path)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if st.Mode().IsRegular() {
			s.Size = st.Size()
			raw = f
		} else {
			raw = untilDone(ctx, f)
		}
		s.close = append(s.close, f.Close)
	}
	if err := s.unwrap(&counter{raw, s}); err != nil {
		s.Close()
		return nil, named(s.Name, err)
	}
	if s.Packed == "" && !s.Decoded && path != "-" && s.Size >= 0 {
		s.Path = path
	}
	return s, nil
}

// FromBytes returns a source over b, for tests and for members of archives.
func FromBytes(name string, b []byte) (*Source, error) {
	return OpenBytes(context.Background(), name, b, maxInput)
}

// OpenBytes returns a source over b that gives up to limit bytes unwrapped,
// until ctx ends.
func OpenBytes(ctx context.Context, name string, b []byte, limit int64) (*Source, error) {
	s := &Source{Name: name, Size: int64(len(b)), limit: limit, left: limit, ctx: ctx}
	if err := s.unwrap(bytes.NewReader(b)); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// OnProgress makes the source call tell with the number of bytes taken from the
// file.
func (s *Source) OnProgress(tell func(int64)) { s.tell = tell }

// Head returns up to SniffLen first bytes without consuming them. Where there
// are none, Err says whether that is an error.
func (s *Source) Head() []byte { return s.HeadN(SniffLen) }

// HeadN is Head for up to n bytes.
func (s *Source) HeadN(n int) []byte {
	if n > s.in.Size() {
		s.in = bufio.NewReaderSize(s.in, n)
	}
	b, err := s.in.Peek(n)
	if len(b) == 0 && err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return b
}

// Recognise calls know with the first SniffLen bytes, and with more up to
// MostSniffed where they are text of which know says no: comments and metadata
// may be long. It reports whether know said yes.
func (s *Source) Recognise(know func(head []byte) bool) bool {
	head := s.Head()
	if know(head) {
		return true
	}
	if len(head) < SniffLen || bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for n := 1 << 20; n <= MostSniffed; n *= 8 {
		b := s.HeadN(n)
		if know(b) {
			return true
		}
		if len(b) < n {
			break
		}
	}
	return false
}

// Err returns what kept Head from seeing any bytes.
func (s *Source) Err() error {
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Name, s.err)
}

// Read implements io.Reader over the unwrapped bytes. It fails when the
// context ends and when the input unwraps to more than MaxInput.
func (s *Source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.left <= 0 {
		return 0, fmt.Errorf("%s: unwraps to more than %d bytes", s.Name, s.limit)
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.in.Read(p)
	s.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = named(s.Name, err)
	}
	return n, err
}

// named puts the name of an input before an error that does not have it.
func named(name string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok && pe.Path == name {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// ReadAll returns the whole unwrapped input, failing where it is longer than
// limit bytes or would pass the memory limit.
func (s *Source) ReadAll(limit int64) ([]byte, error) {
	size := int64(1 << 20)
	if s.Packed == "" && s.Size > 0 && s.Size <= limit {
		size = s.Size + 1 // one more, to see the end
	}
	var buf []byte
	for n := 0; ; {
		if n == len(buf) {
			if n > 0 {
				size = min(2*int64(n), limit+1)
			}
			if size >= bigRead {
				if err := Reserve(s.ctx, uint64(size), s.Name); err != nil {
					return nil, err
				}
			}
			more := make([]byte, size)
			copy(more, buf)
			buf = more
		}
		k, err := s.Read(buf[n:])
		if n += k; int64(n) > limit {
			return nil, fmt.Errorf("%s: longer than %d bytes", s.Name, limit)
		}
		if errors.Is(err, io.EOF) {
			return buf[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// bigRead is the size from which ReadAll asks before it takes memory.
const bigRead = 16 << 20

// Close releases the file.
func (s *Source) Close() error {
	var err error
	for i := len(s.close) - 1; i >= 0; i-- {
		err = errors.Join(err, s.close[i]())
	}
	s.close = nil
	return err
}

const bufSize = 1 << 20

// maxWindow bounds what the head of a zstd frame can ask for: the window of
// zstd --long, beyond which zstd -d asks its user too.
const maxWindow = 128 << 20

func (s *Source) unwrap(raw io.Reader) error {
	at := &position{r: raw}
	size := bufSize
	if s.Size >= 0 { // a small input needs no large buffer
		size = int(min(max(s.Size, SniffLen), bufSize))
	}
	in := bufio.NewReaderSize(at, size)
	magic, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		s.Packed = "gzip"
		z, err := newGunzip(in, at)
		if err != nil {
			return err
		}
		in = bufio.NewReaderSize(z, bufSize)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		s.Packed = "zstd"
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		s.close = append(s.close, func() error { z.Close(); return nil })
		in = bufio.NewReaderSize(&unzstd{z, in, at}, bufSize)
	}
	s.in, s.Decoded = DecodeText(in)
	return nil
}

// counter counts the bytes taken from the file, for progress.
type counter struct {
	r io.Reader
	s *Source
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.s.done += int64(n)
	if c.s.tell != nil {
		c.s.tell(c.s.done)
	}
	return n, err
}
