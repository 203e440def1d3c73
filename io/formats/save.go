package formats

import (
	"compress/gzip"
	"io"
	"os"
	"strings"

	"perfsim/io/internal/atomicfile"
)

// Save writes a file that appears when it is whole; see atomicfile. "-" is
// stdout, and what goes to a name that ends in .gz is compressed (without name
// or time, so that the bytes depend on the content alone).
func Save(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := Packed(path, f, write); err != nil {
		return err
	}
	return f.Commit()
}

// Packed writes to w what path holds: compressed where path ends in .gz.
func Packed(path string, w io.Writer, write func(io.Writer) error) error {
	if !strings.HasSuffix(path, ".gz") {
		return write(w)
	}
	z := gzip.NewWriter(w)
	if err := write(z); err != nil {
		return err
	}
	return z.Close()
}

// SaveAt is Save for a writer that needs places in the file, which must be one
// for which Regular is true.
func SaveAt(path string, write func(io.WriterAt) error) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// Regular reports whether path is, or will be, a regular file that nothing
// compresses.
func Regular(path string) bool {
	if path == "-" {
		return false
	}
	for _, p := range packings {
		if strings.HasSuffix(path, p.suffix) {
			return false
		}
	}
	st, err := os.Stat(path)
	return err != nil || st.Mode().IsRegular()
}
