package cli

import (
	"io"

	"perfsim/io/formats"
)

// save writes a file that appears when it is whole: a failure leaves nothing,
// a device or pipe is written in place, and "-" is standard output.
func save(path string, stdout io.Writer, write func(io.Writer) error) error {
	return formats.Save(path, stdout, write)
}

// saveBytes saves a file that is in memory.
func saveBytes(path string, stdout io.Writer, b []byte) error {
	return save(path, stdout, func(w io.Writer) error { _, err := w.Write(b); return err })
}
