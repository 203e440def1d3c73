// Package birjson reads and writes BIR JSON, the serialised module of the
// Neuron compiler, as text and as CBOR.
//
// The text is cut into instructions by a byte scanner and the instructions
// are parsed on several goroutines; the merge is in input order, so the
// module does not depend on how many there are. Nothing of the text outlives
// its batch: memory is bounded by the module.
//
// What the module has columns for goes there; every other key of an
// instruction, known or not, is kept as a JSON object in the Text column and
// written back. Where a module has values that the documented keys cannot
// express (a generated module without operands, a converted profile) the
// writer adds one key of ours, "perfsim", which other readers ignore.
package birjson
