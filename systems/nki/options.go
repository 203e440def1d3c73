package nki

import (
	"perfsim/systems/sched"
)

// Options are the decisions that the compiler makes and a record cannot know.
type Options struct {
	// Policy is the order; orderByAPI by default, sched.Keep for kernels that
	// were compiled with the scheduler off.
	Policy sched.Policy
	// SBUF is the bytes of a partition that kernels may use.
	SBUF int64
	// MaxInstructions bounds the module.
	MaxInstructions int
	// DynamicDMA generates the descriptors of every transfer on the device,
	// StaticDMA has those of transfers with known addresses made before the run.
	// By default it is the first for kernels in the new API where the machine
	// generates descriptors in hardware, and the second otherwise.
	DynamicDMA, StaticDMA bool
	// Hoist takes out of loops what is the same in all iterations, for kernels in
	// the old API.
	Hoist bool
	// SingleMatmul gives the loaded operand of nl.matmul one buffer: the compiler
	// versions with which the old API was measured on trn2 do not prefetch it.
	SingleMatmul bool
	// LoadOnce loads each part of the right operand of nl.matmul once, as the
	// compiler of trn1 does.
	LoadOnce bool
	// Jobs is how many goroutines may work.
	Jobs int
}

// sbufBytes is the part of an SBUF partition that the compiler gives to
// kernels (documented as nl.tile_size.total_available_sbuf_size).
const sbufBytes = 192 << 10

// orderByAPI is the order that the API's compiler makes: the new API has a list
// scheduler of its own (sched.Greedy), kernels in the old one go through the
// compiler's time-aware scheduler.
const orderByAPI sched.Policy = -1

// hardwareDGE is the architecture level from which on hardware generates
// descriptors (documented: Trainium2 and newer).
const hardwareDGE = 30

// resolve replaces what depends on API and machine.
func (o *Options) resolve(newAPI bool, arch int) {
	o.Hoist = o.Hoist && !newAPI
	o.LoadOnce = o.LoadOnce && !newAPI && arch < hardwareDGE
	o.SingleMatmul = o.SingleMatmul && !o.LoadOnce
	if o.Policy == orderByAPI {
		o.Policy = sched.TimeAware
		if newAPI {
			o.Policy = sched.Greedy
		}
	}
	if !o.StaticDMA {
		o.DynamicDMA = o.DynamicDMA || newAPI && arch >= hardwareDGE
	}
}

// DefaultOptions are those of a kernel about which nothing else is known.
func DefaultOptions() Options {
	return Options{Policy: orderByAPI, SBUF: sbufBytes, MaxInstructions: 1 << 24, Hoist: true, SingleMatmul: true, LoadOnce: true, Jobs: 1}
}
