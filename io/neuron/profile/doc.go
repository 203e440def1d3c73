// Package profile reads the JSON export of the Neuron profiler: the
// measured instruction streams of the engines of one or more cores, with
// typed dependencies, operands as text, DMA packets and clock windows.
//
// The export is one object of lists. The reader walks it with a byte scanner
// that knows strings and brackets, cuts the lists it wants into chunks of
// whole elements, parses those in parallel and commits them in the order of
// the file: memory is bounded by the module, and the result does not depend
// on the number of workers.
//
// What becomes what:
//
//   - An element of "instruction" is a row of the instruction table. Rows are
//     in program order, see programOrder. Engine is the engine that issues
//     (Tensor and TensorMatrix are both the PE); Lane is the DMA lane of its
//     core for instructions that move data with the DMA engines (DMA_*), else
//     the lane of its engine. Each core (subgraph) has its own twelve lanes.
//   - "predecessors" are the edges, with their types.
//   - The operand text is kept whole in column Text and taken apart by
//     ParseOperands into access patterns (table Operands), semaphores (table
//     Syncs), flags and sizes. Column Func holds the activation function, the
//     ALU operations, for the PE the fp32 mode, for a branch its comparison.
//   - Everything is one function and one block: the cores run side by side.
//   - timestamp, duration and evt_wait_time, "dma", "ham" and
//     "semaphore_update" are measurements, in columns and tables of their own.
//   - "summary", "metadata", "profile_info" and "neff_header" are attributes
//     of the module: "summary.total_time", "metadata.pe_clock_freq".
//
// Access patterns in the text run from fast to slow and leave the partitions
// out, which "channels" (vector, scalar and pool engines) or rows*columns
// (PE: rows are the partitions of the input, columns those of the output)
// give. The operand table has them slow to fast, the partition dimension
// first with step 1, without dimensions of one element.
package profile
