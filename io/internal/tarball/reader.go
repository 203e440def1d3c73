package tarball

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits bound what an archive may expand to. A zero field means no limit.
type Limits struct {
	// Members is the greatest number of members.
	Members int
	// Bytes is the greatest size of the uncompressed archive, and of all
	// members together, whatever their headers say (a sparse member is
	// larger than its place in the archive).
	Bytes int64
	// Depth is the greatest number of folders in the path of a member that is
	// extracted: every one costs system calls.
	Depth int
	// Ratio is how many times its compressed size an archive may be, once
	// it is larger than RatioFrom bytes. Deflate itself reaches 1032.
	Ratio     int64
	RatioFrom int64
}

// DefaultLimits are those of the trace package: a million members, 1 TiB, and
// 300 times the compressed size beyond 1 GiB. Traces compress 7 to 40 times.
var DefaultLimits = Limits{Members: 1 << 20, Bytes: 1 << 40, Depth: 128, Ratio: 300, RatioFrom: 1 << 30}

// sparseFrom is the size from which what a sparse member expands to counts
// against Limits.Ratio: holes take no place in the archive at all.
const sparseFrom = 64 << 20

// ErrLimit is wrapped by every error that says that a limit was passed.
var ErrLimit = errors.New("archive expands beyond the limit")

func (l Limits) check(out, in int64) error {
	if l.Bytes > 0 && out > l.Bytes {
		return fmt.Errorf("%w: more than %d bytes", ErrLimit, l.Bytes)
	}
	if l.Ratio > 0 && out > l.RatioFrom && out/l.Ratio > in {
		return fmt.Errorf("%w: %d bytes out of %d compressed", ErrLimit, out, in)
	}
	return nil
}

// Kind is the type of a member.
type Kind uint8

// The kinds of members.
const (
	Regular Kind = iota
	Directory
	Symlink
	HardLink
	Special // a device, a pipe, or a type that tar does not define
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case Regular:
		return "file"
	case Directory:
		return "directory"
	case Symlink:
		return "symbolic link"
	case HardLink:
		return "hard link"
	}
	return "special file"
}

// Entry is one member as its header describes it.
type Entry struct {
	Name         string // as stored; see SafeName
	Kind         Kind
	Size         int64 // bytes when extracted
	Mode         int64 // permission bits
	ModTime      time.Time
	UID, GID     int
	Uname, Gname string
	Linkname     string
	Sparse       bool // a GNU sparse member: holes that the archive does not hold
	PAX          bool // has PAX extended records
	Type         byte // tar's type flag
}

// Reader reads one archive. Its methods are not safe for concurrent use.
type Reader struct {
	in      *counter
	tail    *tail
	tr      *tar.Reader
	lim     Limits
	gzipped bool
	members int
	globals int
	logical int64 // bytes of members, as read or declared
	sparse  bool  // the current member has holes
	written int64 // bytes read of sparse members
	name    string
	err     error
}

// NewReader begins to read a tar, gzipped or not, which is recognised by its first
// bytes. Reading stops with the context's error when ctx ends.
func NewReader(ctx context.Context, r io.Reader, lim Limits) (*Reader, error) {
	src, in, gzipped, err := open(ctx, r)
	if err != nil {
		return nil, err
	}
	t := &Reader{in: in, lim: lim, gzipped: gzipped}
	t.tail = &tail{r: src, in: in, lim: lim}
	t.tr = tar.NewReader(t.tail)
	return t, nil
}

// Uncompressed returns the bytes of a tar as they are, gunzipped if need be
// and checked as NewReader checks them, but not taken apart.
func Uncompressed(ctx context.Context, r io.Reader, lim Limits) (io.Reader, error) {
	src, in, _, err := open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &tail{r: src, in: in, lim: lim}, nil
}

func open(ctx context.Context, r io.Reader) (src io.Reader, in *counter, gzipped bool, err error) {
	in = &counter{ctx: ctx, r: r}
	br := bufio.NewReaderSize(in, 64<<10)
	magic, err := br.Peek(2)
	switch {
	case len(magic) == 0 && err != nil && !errors.Is(err, io.EOF):
		return nil, nil, false, err
	case len(magic) == 0:
		return nil, nil, false, errors.New("empty file, not an archive")
	case len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		src, err = newGunzip(in, br)
		return src, in, true, err
	}
	return br, in, false, nil
}

// Gzipped reports whether the archive is compressed.
func (r *Reader) Gzipped() bool { return r.gzipped }

// CompressedBytes returns how much of the input was consumed, read-ahead
// included.
func (r *Reader) CompressedBytes() int64 { return r.in.n }

// Offset returns the place in the uncompressed archive.
func (r *Reader) Offset() int64 { return r.tail.n }

// Globals returns the number of PAX global headers met so far.
func (r *Reader) Globals() int { return r.globals }

// Next goes to the next member, over what was not read of the last. At the end
// it returns io.EOF, and only if the archive is sound to its last byte: closed
// by the end-of-archive mark, with nothing but zeros after it and checksums
// that agree. PAX global headers are not members and are passed over; "x"
// headers are applied.
func (r *Reader) Next() (Entry, error) {
	if r.err != nil {
		return Entry{}, r.err
	}
	e, err := r.next()
	if err != nil {
		r.err = err
	}
	return e, err
}

func (r *Reader) next() (Entry, error) {
	for {
		h, err := r.tr.Next()
		if errors.Is(err, io.EOF) {
			return Entry{}, r.finish()
		}
		if err != nil {
			return Entry{}, r.wrap(err)
		}
		r.members++
		if r.lim.Members > 0 && r.members > r.lim.Members {
			return Entry{}, fmt.Errorf("%w: more than %d members", ErrLimit, r.lim.Members)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			r.globals++
			continue
		}
		e := entry(h)
		if e.Size < 0 {
			return Entry{}, fmt.Errorf("member %q: negative size", e.Name)
		}
		if r.lim.Bytes > 0 && e.Size > r.lim.Bytes-r.logical {
			return Entry{}, fmt.Errorf("member %q: %w: size of %d bytes", e.Name, ErrLimit, e.Size)
		}
		r.logical += e.Size
		r.name, r.sparse = e.Name, e.Sparse
		return e, nil
	}
}

// Read reads the bytes of the current member.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.tr.Read(p)
	if r.sparse {
		r.written += int64(n)
		if r.lim.Ratio > 0 && r.written > sparseFrom && r.written/r.lim.Ratio > r.in.n {
			err = fmt.Errorf("%w: sparse members of %d bytes and more out of %d", ErrLimit, r.written, r.in.n)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.wrap(err)
		r.err = err
	}
	return n, err
}

// wrap says where in the archive an error was met.
func (r *Reader) wrap(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("archive is cut short: %w", err)
	}
	after := "before the first member"
	if r.name != "" {
		after = fmt.Sprintf("at or after member %q", r.name)
	}
	return fmt.Errorf("%s, archive byte %d: %w", after, r.tail.n, err)
}

func (r *Reader) finish() error {
	if r.tail.n == 0 {
		return errors.New("holds no tar archive: the compressed data are empty")
	}
	if !r.tail.closed() {
		return fmt.Errorf("archive is cut short: no end mark after its %d bytes", r.tail.n)
	}
	if err := onlyZeros(r.tail, "archive", r.tail.n); err != nil {
		return r.wrap(err)
	}
	return io.EOF
}

func entry(h *tar.Header) Entry {
	e := Entry{
		Name: h.Name, Size: h.Size, Mode: h.Mode, ModTime: h.ModTime,
		UID: h.Uid, GID: h.Gid, Uname: h.Uname, Gname: h.Gname, Linkname: h.Linkname,
		PAX: len(h.PAXRecords) > 0, Type: h.Typeflag,
	}
	switch h.Typeflag {
	case tar.TypeReg, '\x00', tar.TypeCont: // '\x00' is the flag of the oldest tars
	case tar.TypeGNUSparse:
		e.Sparse = true
	case tar.TypeDir:
		e.Kind = Directory
	case tar.TypeSymlink:
		e.Kind = Symlink
	case tar.TypeLink:
		e.Kind = HardLink
	default:
		e.Kind = Special
	}
	if e.Kind == Regular && strings.HasSuffix(e.Name, "/") {
		e.Kind = Directory // as old tars mark them
	}
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			e.Sparse = true
		}
	}
	return e
}
