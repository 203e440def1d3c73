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
