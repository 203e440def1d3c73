// Package calibrated predicts when every instruction of a module runs, from
// constants fitted to measured profiles. Nothing measured is read: the input
// is the program (order on each engine, operands, semaphores or dependencies)
// and the machine description.
//
// The machine is a set of engines, each with a sequencer that takes
// instructions strictly in program order and a data path that the sequencer
// feeds through a queue, of sixteen DMA engines, and of semaphores:
//
//   - The sequencer waits for an instruction's semaphores, then hands it to the
//     data path or, for control instructions and DMA triggers, executes it
//     itself. It runs ahead of the data path. From a semaphore's change to the
//     start of what waited for it passes the engine's wake delay.
//   - A data-path instruction occupies its engine for the issue interval and
//     retires a latency later; its semaphore changes a retire delay after that.
//     Results of one engine retire at least a spacing apart.
//   - On the PE weights load while the previous matmul streams; a matmul starts
//     when its weights are there and the array is free. The array streams at
//     full rate or, after a window of low use, at a fraction of it (the clock
//     governor), with a short burst at full rate after idling. Use counts the
//     rows of the array that work: 64 of 128 rows use it half.
//   - A DMA trigger keeps its sequencer for a while; its descriptors reach the
//     DMA engines later, which serve transfers in order of arrival at a fixed
//     cost per row plus bytes over a rate. A queue that starts reading again
//     pays a read latency once. The semaphore rises a completion delay later.
//     Transfers whose descriptors were made before the run stream without
//     generation, queue room or read latencies.
//
// Time advances event by event (engine steps and semaphore changes), so the
// order in which transfers meet on the DMA engines follows from the prediction
// itself. Modules without semaphores (BIR, lowered graphs) are synchronised by
// their dependencies with the same delays.
//
// The phase of the governor's windows is free-running on the hardware and so
// not predictable; short modules are run for several phases and the one that is
// central among them is reported, with the spread.
package calibrated
