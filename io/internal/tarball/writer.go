package tarball

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// chunk is how much is copied between two looks at the context.
const chunk = 256 << 10

// Header is the metadata of a member. Reproducible archives use the zero value
// of every field but Name and Size; a Mode of zero stands for 0644.
type Header struct {
	Name    string    // slash-separated, stored as it is
	Size    int64     // bytes, known before the data
	Mode    int64     // permission bits; 0 means 0644
	ModTime time.Time // cut to whole seconds; zero and before 1970 mean 1970-01-01
	// AccessTime and ChangeTime, where not zero, are stored in PAX records, as
	// is then the fraction of ModTime.
	AccessTime, ChangeTime time.Time
	UID, GID               int
	Uname, Gname           string
}

// Writer writes the members of one archive. It is not safe for concurrent use.
type Writer struct {
	tw   *tar.Writer
	seen map[string]struct{}
	buf  []byte
	err  error // the first failure; the stream is unusable after it
}

// NewWriter returns a writer of uncompressed tar to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{tw: tar.NewWriter(w), seen: make(map[string]struct{})}
}

// Add writes one member whose h.Size bytes come from r. A reader that holds
// fewer or more bytes than that is an error, because a header that lies about
// its member cannot be mended afterwards, and so is a second member of the
// same name. progress, if not nil, is called with how many bytes were copied since
// its last call.
func (w *Writer) Add(ctx context.Context, h Header, r io.Reader, progress func(n int64)) error {
	if w.err != nil {
		return w.err
	}
	if err := w.add(ctx, h, r, progress); err != nil {
		w.err = err
		return err
	}
	return nil
}

func (w *Writer) add(ctx context.Context, h Header, r io.Reader, progress func(n int64)) error {
	if h.Name == "" || strings.ContainsRune(h.Name, 0) || strings.HasSuffix(h.Name, "/") {
		return fmt.Errorf("%q cannot name a member", h.Name)
	}
	if h.Size < 0 {
		return fmt.Errorf("member %q: negative size %d", h.Name, h.Size)
	}
	if _, dup := w.seen[h.Name]; dup {
		return fmt.Errorf("two members are named %q", h.Name)
	}
	w.seen[h.Name] = struct{}{}
	if err := w.tw.WriteHeader(h.tar()); err != nil {
		return fmt.Errorf("member %q: header: %w", h.Name, err)
	}
	if w.buf == nil {
		w.buf = make([]byte, chunk)
	}
	for left := h.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, w.buf[:min(left, chunk)])
		if _, werr := w.tw.Write(w.buf[:n]); werr != nil {
			return fmt.Errorf("member %q: write: %w", h.Name, werr)
		}
		left -= int64(n)
		if progress != nil && n > 0 {
			progress(int64(n))
		}
		if left == 0 {
			break
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("member %q: ended after %d of %d bytes", h.Name, h.Size-left, h.Size)
		}
		if err != nil {
			return fmt.Errorf("member %q: read: %w", h.Name, err)
		}
	}
	if err := atEnd(r); err != nil {
		return fmt.Errorf("member %q: %w", h.Name, err)
	}
	return nil
}

// atEnd reports whether r is exhausted.
func atEnd(r io.Reader) error {
	var b [1]byte
	for range 100 { // as bufio: a reader may return nothing now and then
		n, err := r.Read(b[:])
		switch {
		case n > 0:
			return errors.New("holds more bytes than its stated size (did it grow?)")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
	}
	return io.ErrNoProgress
}

func (h Header) tar() *tar.Header {
	mode := h.Mode
	if mode == 0 {
		mode = 0o644
	}
	sec := h.ModTime.Unix() // a fraction of a second would need a PAX record
	if h.ModTime.IsZero() || sec < 0 {
		sec = 0
	}
	mtime := time.Unix(sec, 0)
	if !h.AccessTime.IsZero() || !h.ChangeTime.IsZero() {
		mtime = h.ModTime
	}
	return &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     h.Name,
		Size:     h.Size,
		Mode:     mode,
		ModTime:  mtime, AccessTime: h.AccessTime, ChangeTime: h.ChangeTime,
		Uid: h.UID, Gid: h.GID,
		Uname: h.Uname, Gname: h.Gname,
		// PAX allows records; none is written that no field needs.
		Format: tar.FormatPAX,
	}
}

// AppendBlocks returns the bytes of one whole member (headers, data, padding)
// without an end-of-archive mark, for insertion into an existing archive.
// The data are streamed to w.
func AppendBlocks(ctx context.Context, w io.Writer, h Header, r io.Reader) error {
	tw := NewWriter(w)
	if err := tw.Add(ctx, h, r, nil); err != nil {
		return err
	}
	return tw.tw.Flush() // pads the member; Close would add the two zero blocks
}

// Close writes the end-of-archive mark. It does not close the stream below.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("archive is closed")
	return w.tw.Close()
}
