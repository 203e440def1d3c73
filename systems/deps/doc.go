// Package deps rebuilds the dependencies of a module whose instructions have
// access patterns but no edges: the documented passes build_fdeps (Flow) and
// anti_dependency_analyzer (Anti, Output).
//
// Every operand that is an access pattern is an access: a rectangle of
// partitions times bytes in SBUF or in one PSUM bank, a range of bins in
// device memory, or a whole alias set or unplaced tensor. For every point of
// memory the sweep knows the last writer and the readers since, so that
//
//   - a read depends on the last writers of what it reads (Flow),
//   - a write depends on the last writers of what it overwrites (Output) and
//     on their readers since (Anti).
//
// Anything before that is implied through those edges. Reads that no write
// follows make no edge. Where a pair has several kinds, the largest is kept.
//
// As documented, an instruction of the matmul family depends, in each memory,
// on the nearest prior access of each kind only. A matmul that adds to its
// accumulator depends on the matmul before it as Flow. Instructions of a loop
// that meet accesses of the iteration before get loop-carried edges.
//
// Ours, because it is not published: the number of device-memory bins, that
// readers are kept by region and not by whole location, the chain of random
// states and accumulators per engine, that registers make Flow edges only.
package deps
