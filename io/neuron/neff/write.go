package neff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perfsim/io/internal/atomicfile"
	"perfsim/io/internal/tarball"
)

// owner is the user and group name of every member, as documented.
const owner = "nobody"

// Member is a file to be put into a NEFF.
type Member struct {
	Name string // slash-separated path inside the NEFF
	Size int64
	Open func() (io.ReadCloser, error)
}

// FileMember is a member with the bytes of the file path. The file is looked
// at now and opened when it is written.
func FileMember(name, path string) (Member, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return Member{}, err
	}
	if !fi.Mode().IsRegular() {
		return Member{}, fmt.Errorf("%s: not a regular file", path)
	}
	return Member{Name: name, Size: fi.Size(), Open: func() (io.ReadCloser, error) { return os.Open(path) }}, nil
}

// BytesMember is a member with those bytes.
func BytesMember(name string, data []byte) Member {
	return Member{Name: name, Size: int64(len(data)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

// DirMembers returns the regular files below dir as members named by their
// paths in it. Symbolic links are not followed and are errors, because a NEFF
// would silently lack what they name.
func DirMembers(dir string) ([]Member, error) {
	var out []Member
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s: not a regular file", path)
		}
		m, err := FileMember(filepath.ToSlash(rel), path)
		out = append(out, m)
		return err
	})
	return out, err
}

func (m Member) header() tarball.Header {
	return tarball.Header{Name: m.Name, Size: m.Size, Uname: owner, Gname: owner}
}

// NewHeader returns the header of a new NEFF of package version 2: NEFF
// version 2.0, one TPB. Create fills in sizes, hash and UUID.
func NewHeader(name string) (Header, error) {
	h := Header{PkgVersion: 2, HeaderSize: HeaderSize, VersionMajor: 2, NumTPB: 1, RequestedTPB: 1, LNCSize: 1}
	h.TPBPerNode[0] = 1
	if err := h.SetName(name); err != nil {
		return h, err
	}
	return h, h.SetBuildVersion("perfsim")
}

// CreateOptions choose how a NEFF is written.
type CreateOptions struct {
	Level int // gzip level of package version 2; 0 means 1, the documented one
}

// Create writes a NEFF to path from a header and members, which are sorted by
// name. Package version 1 gives a plain tar with SHA-256, version 2 a gzipped
// one with MD5. DataSize, HeaderSize and Hash are filled in, and a zero UUID
// is replaced by one that follows from the payload, so that the same members
// give the same NEFF; the documented writer draws a random one. Returned is
// the header as written.
func Create(ctx context.Context, path string, h Header, members []Member, opt CreateOptions) (Header, error) {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return writeNEFF(path, h, opt.Level, h.PkgVersion == 2, true, func(w io.Writer) error {
		tw := tarball.NewWriter(w)
		for _, m := range members {
			if _, err := tarball.SafeName(m.Name); err != nil {
				return fmt.Errorf("member %q: %w", m.Name, err)
			}
			if err := addMember(ctx, tw, m); err != nil {
				return err
			}
		}
		return tw.Close()
	}, nil)
}

func addMember(ctx context.Context, tw *tarball.Writer, m Member) error {
	r, err := m.Open()
	if err != nil {
		return fmt.Errorf("member %q: %w", m.Name, err)
	}
	defer r.Close()
	return tw.Add(ctx, m.header(), r, nil)
}

// writeNEFF writes header, payload and trailing bytes to path. payload writes
// the uncompressed tar. fill makes a UUID if there is none.
func writeNEFF(path string, h Header, level int, gzipped bool, fill bool, payload func(io.Writer) error, trailing io.Reader) (Header, error) {
	sum, err := newHash(h.PkgVersion)
	if err != nil {
		return h, err
	}
	out, err := atomicfile.Create(path)
	if err != nil {
		return h, err
	}
	defer out.Abort()
	// The header comes last, when size and hash are known.
	if _, err := out.Write(make([]byte, HeaderSize)); err != nil {
		return h, err
	}
	id := sha256.New()
	dst := &payloadWriter{w: out, hashes: []hash.Hash{sum, id}}
	if err := writePayload(dst, level, gzipped, payload); err != nil {
		return h, err
	}
	if trailing != nil {
		if _, err := io.Copy(out, trailing); err != nil {
			return h, err
		}
	}
	h.HeaderSize = HeaderSize
	h.DataSize = uint64(dst.n)
	h.Hash = hashField(sum.Sum(nil))
	if fill && h.UUID == [16]byte{} {
		copy(h.UUID[:], id.Sum(nil))
		h.UUID[6] = h.UUID[6]&0x0f | 0x40 // looks like version 4
		h.UUID[8] = h.UUID[8]&0x3f | 0x80 // RFC 4122 variant
	}
	if _, err := out.WriteAt(h.Bytes(), 0); err != nil {
		return h, fmt.Errorf("header: %w (a NEFF can be written to a file only)", err)
	}
	return h, out.Commit()
}

func writePayload(dst io.Writer, level int, gzipped bool, payload func(io.Writer) error) error {
	if !gzipped {
		return payload(dst)
	}
	z, err := tarball.NewGzip(dst, level)
	if err != nil {
		return err
	}
	err = payload(z)
	if cerr := z.Close(); err == nil { // always: it stops goroutines
		err = cerr
	}
	return err
}

type payloadWriter struct {
	w      io.Writer
	hashes []hash.Hash
	n      int64
}

func (p *payloadWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	for _, h := range p.hashes {
		h.Write(b[:n])
	}
	p.n += int64(n)
	if err == nil && n < len(b) {
		err = errors.New("short write")
	}
	return n, err
}
