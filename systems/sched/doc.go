// Package sched is the documented pass post_sched: it changes the program
// order of a module so that it runs in less time.
//
// Policy 0 keeps the order; 1 and 2 are greedy list schedulers by height (the
// longest chain of dependants), 1 with the loads first; 3 is aware of time:
// it places every instruction it picks with the placement engine and goes by
// when things could start.
//
// Instructions move within a run of one basic block that no loop, full
// barrier or call cuts. All dependencies are kept, those too whose producer
// comes later in the program order, which the placement of the input skips.
// Matmuls that add up in one accumulator stay together, in their order. Ties
// go to the instruction that is first in program order, so that the result
// does not depend on anything else.
//
// The published description of the time-aware scheduler does not say how it
// weighs engines against one another. Ours: the engine whose next instruction
// starts first goes first; on one engine the largest height wins among those
// that could start when it is free, then the one that stays in the PSUM bank.
package sched
