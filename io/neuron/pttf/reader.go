package pttf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"perfsim/io/internal/tarball"
)

// Reading a package and reading any tar are the same work; these are the same
// types.
type (
	// Reader reads a package member by member.
	Reader = tarball.Reader
	// Entry describes a member.
	Entry = tarball.Entry
	// Limits bound what a package may expand to.
	Limits = tarball.Limits
	// ExtractOptions choose what is extracted and how.
	ExtractOptions = tarball.ExtractOptions
	// Extracted is a file that was written.
	Extracted = tarball.Extracted
)

// Regular is the kind of a member that is a file.
const Regular = tarball.Regular

// DefaultLimits are generous to traces and not to bombs.
var DefaultLimits = tarball.DefaultLimits

// ErrLimit is wrapped by errors that say a limit was passed.
var ErrLimit = tarball.ErrLimit

// ErrFileExists is wrapped by the error about a file that extraction would
// have to replace.
var ErrFileExists = tarball.ErrFileExists

// NewReader reads a package, gzipped or a plain tar, from a stream. See
// tarball.Reader for what is checked.
func NewReader(ctx context.Context, r io.Reader, lim Limits) (*Reader, error) {
	return tarball.NewReader(ctx, r, lim)
}

// List returns the members of the package in r, having read and checked all
// of it.
func List(ctx context.Context, r io.Reader, lim Limits) ([]Entry, error) {
	tr, err := NewReader(ctx, r, lim)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for {
		e, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
}

// ListFile is List of the named file.
func ListFile(ctx context.Context, path string, lim Limits) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, err := List(ctx, f, lim)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// Extract writes the members of r below dir, all or nothing.
func Extract(r *Reader, dir string, opt ExtractOptions) ([]Extracted, error) {
	return tarball.Extract(r, dir, opt)
}
