// Package suite measures perfsim against the machine it runs on, against C
// and against other simulators, and writes BENCHMARKS.md. Times are CPU
// times, taken in turns where two things are compared, so that a busy machine
// disturbs the ratios little.
package suite
