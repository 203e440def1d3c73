package nki

import (
	"perfsim/systems/sched"
)

// Options are the decisions that the compiler makes and a record cannot know.
type Options struct {
	// Policy is the order: sched.TimeAware by default, sched.Keep for kernels
	// that were compiled with the scheduler off.
	Policy sched.Policy
	// SBUF is the bytes of a partition that kernels may use.
	SBUF int64
	// MaxInstructions bounds the module.
	MaxInstructions int
	// DynamicDMA generates descriptors on the device for every transfer;
	// by default transfers with known addresses have descriptors in memory.
	DynamicDMA bool
	// SingleMatmul gives the loaded operand of nl.matmul one buffer: the compiler
	// versions with which the old API was measured on trn2 do not prefetch it.
	SingleMatmul bool
	// Jobs is how many goroutines may work.
	Jobs int
}

// sbufBytes is the part of an SBUF partition that the compiler gives to
// kernels (documented as nl.tile_size.total_available_sbuf_size).
const sbufBytes = 192 << 10

// DefaultOptions are those of a kernel about which nothing else is known.
func DefaultOptions() Options {
	return Options{Policy: sched.TimeAware, SBUF: sbufBytes, MaxInstructions: 1 << 24, SingleMatmul: true, Jobs: 1}
}
