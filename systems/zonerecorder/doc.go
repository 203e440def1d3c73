// Package zonerecorder is the device side of the profiler, bit for bit: zones
// identified by a 16-bit hash, markers of two words in a 512-word buffer of
// each processor, four guaranteed slots, room kept for the ends of open
// zones, the push to DRAM at the end of a launch or when a dispatch
// core runs full, and what is dropped where there is no room. Package profilelog
// is the host side, which decodes the buffers.
//
// run --device-profile uses it to write the log that the simulated device
// would write, with its limits: one processor a lane.
package zonerecorder
