//go:build !faults

package fault

import "io"

// At is called before the operation op on path. Its error is that of the
// operation.
func At(op, path string) error { return nil }

// Writer returns w with At before every write; path is that of the file.
func Writer(w io.Writer, path string) io.Writer { return w }
