//go:build !linux

package ecs

import "unsafe"

// adviseHuge does nothing where the system chooses page sizes by itself.
func adviseHuge(unsafe.Pointer, uintptr) {}

// populate does nothing where the system has no call for it.
func populate([]byte) {}
