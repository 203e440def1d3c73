// Package netlist reads Buda netlists: the YAML that says which operators
// lie on which cores of which chip in which epoch, the queues between them
// and the programs that run the graphs. It also reads the SoC descriptors
// that give a chip's grid.
//
// What is wrong with one entry is a problem with its line and column; the
// rest is used. Only text that is not YAML, or has no graphs, is refused.
package netlist
