//go:build !linux

package psim

// populate does nothing where the system has no call for it.
func (s *Snapshot) populate(func(column string) bool) error { return nil }
