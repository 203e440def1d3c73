// Package models builds the operator graphs of the models of the benchmark:
// every family and configuration of the reference benchmark's list, from the
// published architectures, with shapes and element types and without values.
// A graph goes the way of a graph read from HLO text: it is checked, lowered
// and simulated by the same systems, and io/hlo writes it as text.
//
// What is built is inference as a framework's compiler sees it. A batch
// normalisation is its scale and shift per channel (as many parameters as the
// framework's two trained vectors); chains of elementwise operators are
// fusions. Counts of parameters and multiply-accumulates are compared with
// published ones in the tests, which name each figure's source.
package models
