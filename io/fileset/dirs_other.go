//go:build !unix

package fileset

import "os"

// dirs names files below root by their paths.
type dirs struct{ root *os.Root }

func (d *dirs) rename(from, to string) error { return d.root.Rename(from, to) }
func (d *dirs) link(from, to string) error   { return d.root.Link(from, to) }
func (d *dirs) close()                       {}
