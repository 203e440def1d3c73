package neff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"perfsim/io/internal/tarball"
)

// Reading the payload and reading any tar are the same work; these are the
// same types.
type (
	// Reader reads the members one by one.
	Reader = tarball.Reader
	// Entry describes a member.
	Entry = tarball.Entry
	// Limits bound what a payload may expand to.
	Limits = tarball.Limits
	// ExtractOptions choose what is extracted and how.
	ExtractOptions = tarball.ExtractOptions
	// Extracted is a file that was written.
	Extracted = tarball.Extracted
)

// DefaultLimits are those of a payload: a million members and 1 TiB. There is
// no limit of the ratio, because weights may well be gigabytes of zeros.
var DefaultLimits = Limits{Members: 1 << 20, Bytes: 1 << 40}

// File is an open NEFF.
type File struct {
	Header Header
	Size   int64 // of the file, bytes
	raw    [HeaderSize]byte
	r      io.ReaderAt
	close  func() error
}

// Open opens a NEFF and checks its header and that the payload is all there.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var n *File
	if err == nil {
		n, err = New(f, fi.Size())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n.close = f.Close
	return n, nil
}

// New reads a NEFF of size bytes from r.
func New(r io.ReaderAt, size int64) (*File, error) {
	f := &File{Size: size, r: r, close: func() error { return nil }}
	head := f.raw[:min(size, HeaderSize)]
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return nil, fmt.Errorf("header: %w", err)
	}
	var err error
	if f.Header, err = parseHeader(head); err != nil {
		return nil, err
	}
	if rest := uint64(size - HeaderSize); f.Header.DataSize > rest {
		return nil, fmt.Errorf("cut short: the header promises %d bytes of data, the file holds %d", f.Header.DataSize, rest)
	}
	if f.Header.DataSize == 0 {
		return nil, errors.New("the header says that there are no data")
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.close() }

// dataSize is the payload's size; New has checked that it fits.
func (f *File) dataSize() int64 { return int64(f.Header.DataSize) }

// Payload returns the payload as it is stored.
func (f *File) Payload() *io.SectionReader {
	return io.NewSectionReader(f.r, HeaderSize, f.dataSize())
}

// Trailing returns the number of bytes after the payload, which loaders do not
// look at.
func (f *File) Trailing() int64 { return f.Size - HeaderSize - f.dataSize() }

// Gzipped reports whether the payload is compressed.
func (f *File) Gzipped() bool {
	var magic [2]byte
	f.r.ReadAt(magic[:], HeaderSize) // a short read leaves zeros: not gzip
	return magic == [2]byte{0x1f, 0x8b}
}

// Members begins to read the payload.
func (f *File) Members(ctx context.Context, lim Limits) (*Reader, error) {
	return tarball.NewReader(ctx, f.Payload(), lim)
}

// CheckHash compares the payload with the header's hash, in either byte order of
// its words. Only the bytes that the hash has are compared, as loaders do. A
// field of zeros is ErrNoHash.
func (f *File) CheckHash(ctx context.Context) error {
	h, err := newHash(f.Header.PkgVersion)
	if err != nil {
		return err
	}
	if f.Header.Hash == [32]byte{} {
		return ErrNoHash
	}
	if err := copyCtx(ctx, h, f.Payload()); err != nil {
		return err
	}
	sum := h.Sum(nil)
	if want := f.Header.Hash[:len(sum)]; !bytes.Equal(sum, want) && !bytes.Equal(reversedWords(sum), want) {
		return &hashError{Want: want, Got: sum}
	}
	return nil
}

// ErrNoHash says that whoever wrote the header left its hash out.
var ErrNoHash = errors.New("the header has no hash")

// hashError says that the payload is not the one that the header was made for.
type hashError struct{ Want, Got []byte }

func (e *hashError) Error() string {
	return fmt.Sprintf("the data hash to %x, the header says %x", e.Got, e.Want)
}

// Walk calls visit with every member and a reader of its bytes, having read
// and checked all of the payload.
func (f *File) Walk(ctx context.Context, lim Limits, visit func(Entry, io.Reader) error) error {
	r, err := f.Members(ctx, lim)
	if err != nil {
		return err
	}
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(e, r); err != nil {
			return err
		}
	}
}

// List returns the members.
func (f *File) List(ctx context.Context, lim Limits) ([]Entry, error) {
	var out []Entry
	err := f.Walk(ctx, lim, func(e Entry, _ io.Reader) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// Extract writes members below dir, all or nothing.
func (f *File) Extract(ctx context.Context, dir string, lim Limits, opt ExtractOptions) ([]Extracted, error) {
	r, err := f.Members(ctx, lim)
	if err != nil {
		return nil, err
	}
	return tarball.Extract(r, dir, opt)
}

// copyCtx copies until the end or until ctx ends.
func copyCtx(ctx context.Context, w io.Writer, r io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(w, r, 1<<20); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
