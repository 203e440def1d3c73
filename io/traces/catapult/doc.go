// Package catapult writes and reads traces in the Chrome/Catapult event
// format: the documented perf_sim family (a bare array, eleven thread_name
// records, one complete event per instruction) and a second one with the
// dependency graph.
package catapult
