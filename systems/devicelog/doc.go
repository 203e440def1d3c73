// Package devicelog analyses device profiler logs: statistics of zones by
// processor, core, device and launch, launches and the idle time between
// them, the analyses that the vendor's scripts define (with their names and,
// next to ours, their results), the columns of the vendor's report, occupancy
// of the core grid, and the comparison of two logs.
//
// Durations come from matched pairs of markers only. Launches are matched by
// the identity that the log gives them, times are compared within a device
// only, and totals of launches that overlap are the length of their union.
package devicelog
