package neff

import (
	"context"
	"errors"
	"fmt"
	"io"

	"perfsim/io/internal/tarball"
)

// AddOptions choose how a member is added.
type AddOptions struct {
	// Replace puts the new member in the place of the one of that name.
	// Without it, that there is one is an error: compilers write their
	// framework-level debug information under the same name.
	Replace bool
	// Force adds to a NEFF whose payload does not agree with its hash. The
	// new hash will hide that.
	Force bool
	// Level is the gzip level of the new payload; 0 means 1.
	Level int
	// Limits bound the old payload; the zero value means DefaultLimits.
	Limits Limits
}

// Added says what Add did.
type Added struct {
	Header   Header // of the new NEFF
	Replaced bool
	Size     int64 // of the new NEFF, bytes
}

// ErrMemberExists is wrapped by the error about a member that is there
// already.
var ErrMemberExists = errors.New("a member of that name exists")

// Add writes to out the NEFF in with the member m added after its others. The
// header keeps everything but data size and hash, the tar every byte of the
// other members and of its end, and what follows the payload stays as it is.
// A plain payload stays plain and a gzipped one gzipped. out may be in itself.
func Add(ctx context.Context, in string, m Member, out string, opt AddOptions) (Added, error) {
	lim := opt.Limits
	if lim == (Limits{}) {
		lim = DefaultLimits
	}
	if err := tarball.CheckLevel(opt.Level); err != nil {
		return Added{}, err
	}
	if _, err := tarball.SafeName(m.Name); err != nil {
		return Added{}, fmt.Errorf("member %q: %w", m.Name, err)
	}
	f, err := Open(in)
	if err != nil {
		return Added{}, err
	}
	defer f.Close()
	add := adding{f: f, m: m, opt: opt, lim: lim}
	if err := add.scan(ctx); err != nil {
		return Added{}, fmt.Errorf("%s: %w", in, err)
	}
	h, err := add.write(ctx, out)
	if err != nil {
		return Added{}, err
	}
	return Added{Header: h, Replaced: add.replaced, Size: HeaderSize + int64(h.DataSize) + f.Trailing()}, nil
}

type adding struct {
	f   *File
	m   Member
	opt AddOptions
	lim Limits

	// The new blocks take the place of [from, to) of the uncompressed tar;
	// from and to are equal if nothing is replaced.
	from, to int64
	replaced bool
}

// scan reads the whole payload, so that nothing is built on a broken one, and
// finds the place for the new member.
func (a *adding) scan(ctx context.Context) error {
	if err := a.f.CheckHash(ctx); err != nil && !errors.Is(err, ErrNoHash) {
		var wrong *hashError
		if !errors.As(err, &wrong) || !a.opt.Force {
			return err
		}
	}
	r, err := a.f.Members(ctx, a.lim)
	if err != nil {
		return err
	}
	want, err := tarball.SafeName(a.m.Name)
	if err != nil {
		return err
	}
	var end int64 // where the last member's blocks end
	for {
		globals := r.Globals()
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if e.Sparse {
			return fmt.Errorf("member %q is sparse, which cannot be copied as it is", e.Name)
		}
		begin := end
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
		end = (r.Offset() + blockSize - 1) / blockSize * blockSize
		if name, err := tarball.SafeName(e.Name); err != nil || name != want {
			continue
		}
		switch {
		case !a.opt.Replace:
			return fmt.Errorf("%q: %w", a.m.Name, ErrMemberExists)
		case a.replaced:
			return fmt.Errorf("two members are named %q", e.Name)
		case r.Globals() != globals:
			return fmt.Errorf("a global header lies before %q, which would be lost", e.Name)
		}
		a.from, a.to, a.replaced = begin, end, true
	}
	if !a.replaced {
		a.from, a.to = end, end
	}
	return nil
}

const blockSize = 512 // of tar

// write copies the tar with the new blocks in their place.
func (a *adding) write(ctx context.Context, out string) (Header, error) {
	f := a.f
	data, err := a.m.Open()
	if err != nil {
		return Header{}, err
	}
	defer data.Close()
	trailing := io.NewSectionReader(f.r, HeaderSize+f.dataSize(), f.Trailing())
	payload := func(w io.Writer) error {
		old, err := tarball.Uncompressed(ctx, f.Payload(), a.lim)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(w, old, a.from); err != nil {
			return err
		}
		if err := tarball.AppendBlocks(ctx, w, a.m.header(), data); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, old, a.to-a.from); err != nil {
			return err
		}
		err = copyCtx(ctx, w, old)
		return err
	}
	return writeNEFF(out, f.Header, a.opt.Level, f.Gzipped(), false, payload, trailing)
}
