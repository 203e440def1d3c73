// Package floorplan analyses netlists: what lies on the core grid of each chip
// in each epoch, how much of the grid that uses, what overlaps or leaves the
// grid, operators by type, queues by size and DRAM channel; and draws it.
//
// An epoch is one graph loaded on a chip at one time. Its number comes from
// the graph's name (..._temporal_epoch_3) or, in netlists without such
// names, from the order of execution.
package floorplan
