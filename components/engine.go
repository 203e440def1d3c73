package components

import "strings"

// Engine is the kind of unit an instruction belongs to: EngineType of the
// Neuron compiler, with its ordinals and names.
type Engine uint8

// The engine types.
const (
	Unassigned Engine = iota
	Pool
	Activation
	PE
	DMA
	DVE
	SP
	All // the synthetic full barrier
	NumEngines
)

var engineNames = [NumEngines]string{"Unassigned", "Pool", "Activation", "PE", "DMA", "DVE", "SP", "ALL"}

// String returns the name used in files.
func (e Engine) String() string {
	if e < NumEngines {
		return engineNames[e]
	}
	return "Unassigned"
}

// ParseEngine returns the engine with the given name; names of the official
// profiler (Tensor, Vector, Scalar, GpSimd, Sync) are understood too.
func ParseEngine(name string) (Engine, bool) {
	for e, n := range engineNames {
		if name == n {
			return Engine(e), true
		}
	}
	switch strings.ToLower(name) {
	case "tensor", "tensormatrix", "pe":
		return PE, true
	case "vector", "dve":
		return DVE, true
	case "scalar", "act", "activation":
		return Activation, true
	case "gpsimd", "pool":
		return Pool, true
	case "sync", "sp":
		return SP, true
	case "dma":
		return DMA, true
	case "all":
		return All, true
	}
	return Unassigned, false
}

// The lanes every Neuron core has: SimEngineId of the compiler.
// Lane 7 exists so that lane numbers equal SimEngineId; nothing is placed on
// it, because a full barrier (engine ALL) spans the five data-path lanes.
const (
	LaneUnassigned = uint16(Unassigned)
	LanePool       = uint16(Pool)
	LaneActivation = uint16(Activation)
	LanePE         = uint16(PE)
	LaneDMA        = uint16(DMA)
	LaneDVE        = uint16(DVE)
	LaneSP         = uint16(SP)
	LaneBarrier    = uint16(All)
	LaneCC0        = uint16(8) // collective stream 0; streams 1 to 3 follow
	LanesPerCore   = 12
	NumStreams     = 4
)
