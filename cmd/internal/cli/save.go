package cli

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// save writes a file by way of a temporary name beside it, so that a failure
// leaves nothing; "-" is standard output, and a name that ends in .gz is
// compressed (without name or time, so that the bytes depend on the content
// alone).
func save(path string, stdout io.Writer, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".perfsim-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	out := io.Writer(f)
	var z *gzip.Writer
	if strings.HasSuffix(path, ".gz") {
		z = gzip.NewWriter(f)
		out = z
	}
	if err := write(out); err != nil {
		return err
	}
	if z != nil {
		if err := z.Close(); err != nil {
			return err
		}
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
