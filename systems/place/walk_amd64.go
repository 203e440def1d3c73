package place

import "golang.org/x/sys/cpu"

// hasFast reports whether the plain path has assembly on this machine.
func hasFast() bool { return cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasPOPCNT }

// padRows fills pad and state for the rows of the block and returns how many
// it did: all, or up to the first whose edges lie too near the end of the
// table, or outside it.
//
//go:noescape
func padRows(b *block) int

// walkRows places rows from to to of the block and returns the first it did
// not: to, or a row that is the Go code's.
//
//go:noescape
func walkRows(b *block, from, to int) int

// walkVariants places rows lo to hi for eight variants and returns the first
// row it did not: hi, a loop, or a row with ordered edges.
//
//go:noescape
func walkVariants(w *variantWalk, lo, hi uint32) uint32
