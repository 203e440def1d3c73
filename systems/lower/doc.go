// Package lower turns an operator graph (HLO, StableHLO, a model builder)
// into the engine instructions of a machine: it is a small compiler back end
// with documented rules and no cleverness that a user cannot follow
// (docs/lowering.md).
//
// Every computation becomes a function: fusions and small calls are laid out
// where they are called, whiles, conditionals and large calls become functions
// with a run count. The operators of a function are cut into kernels in
// program order. A kernel is a loop over tiles: it loads what is not on chip,
// computes and stores what does not stay on chip. Tile loops with many
// iterations are kept as loops of the module with a trip count.
//
// SBUF and PSUM are finite. SBUF holds the rotating buffers of the running
// kernel and the values that fit and have a later use; a value that must make
// room is stored first where nobody else has it. A buffer that is used again
// gives Anti edges (its readers before the new writer) and Output edges (its
// writer before the new writer); a producer and its consumer are joined by a
// Flow edge.
package lower
