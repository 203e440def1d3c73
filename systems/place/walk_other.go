//go:build !amd64

package place

// hasFast reports whether the plain path has assembly on this machine.
func hasFast() bool { return false }

func padRows(*block) int { panic("place: no assembly") }

func walkRows(*block, int, int) int { panic("place: no assembly") }

func walkVariants(*variantWalk, uint32, uint32) uint32 { panic("place: no assembly") }
