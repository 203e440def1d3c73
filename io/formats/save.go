package formats

import (
	"compress/gzip"
	"io"
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
	if !strings.HasSuffix(path, ".gz") {
		if err := write(f); err != nil {
			return err
		}
		return f.Commit()
	}
	z := gzip.NewWriter(f)
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Commit()
}
