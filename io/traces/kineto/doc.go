// Package kineto reads execution traces in the Chrome event format: those of
// PyTorch's profiler (Kineto), where the work of devices becomes the
// instructions and the host threads that launch it are kept as far as they
// matter, and plain ones, where every thread is a lane. docs/traces.md says
// what is taken and what is lost.
package kineto
