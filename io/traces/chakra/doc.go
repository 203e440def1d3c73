// Package chakra reads execution graphs of MLCommons Chakra: its protobuf
// files, the JSON flavour that its feeder reads, and the host execution traces
// of PyTorch from which they are made. docs/traces.md says what is taken and
// what is lost.
package chakra
