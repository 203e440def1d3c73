// Package attribute says why a placed module takes the time it takes: what
// held every instruction, what every lane's time was, the chain of
// instructions that makes the makespan, and how much each instruction could
// slip.
//
// It reads what the placement left behind (the start and end of every
// instruction) and the rules of the model, in passes of its own, so that the
// placement itself stays lean. Where the rules explain a start exactly the
// binding constraint does; where a model adds delays of its own the rest is
// named CauseModel (CauseTransfer behind a DMA trigger), so that all sums
// stay exact for any model.
//
// # What a lane's time is made of
//
// A lane's time from 0 to the makespan is cut into consecutive pieces, each
// of one kind, so that the kinds add up to the makespan exactly:
//
//   - issue: an instruction keeps the lane, so that the next cannot start
//     (start to start + issue interval);
//   - stretch: the part of the above by which the instruction takes longer
//     than its cost: clock governor, shared bandwidth;
//   - finish: the lane could take another instruction and none has started,
//     but the last one's result is not there yet (an instruction leaves its
//     lane latency - issue before its end);
//   - control: the same two, of an instruction that only the engine's
//     sequencer executes (waiting for semaphores, draining, branching);
//   - idle, by the cause that held the next instruction of the lane;
//   - not started: before the lane's first instruction starts;
//   - drained: behind the end of its last.
//
// issue + stretch + finish is the time in which the lane has work; with
// control it is the BUSY column of the run command, but that a DMA lane is
// taken to finish until the transfer is there where the model times transfers
// apart from the instructions that trigger them. An instruction that a
// model hands to a lane from another one's sequencer may be held by CauseLane
// while its own lane is idle; on one lane that is CauseModel.
//
// # Loops and several blocks
//
// Every top-level block is looked at by itself. A loop body is placed once or,
// where trip counts count (--loops trips), as often as it runs; its events are
// then those of the last iteration. The time of the others is shared out on
// every lane by what the last does (repeat.go) and on the critical path by the
// steps through which an iteration follows from the one before (back.go), so
// that all sums stay exact. Totals over blocks weigh each block by the runs of
// its function.
package attribute
