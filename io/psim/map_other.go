//go:build !unix

package psim

import (
	"io"
	"os"
)

// mapFile reads the file where it cannot be mapped.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	b, err := readGrowing(io.NewSectionReader(f, 0, size), size)
	if err != nil {
		return nil, nil, err
	}
	return b, func() error { return nil }, nil
}
