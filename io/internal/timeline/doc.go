// Package timeline turns what execution traces hold, pieces of work on lanes
// and dependencies between them, into the tables of a module.
//
// There are two kinds of input. Where starts were recorded (Builder.Measured)
// program order is the order of the starts, and what keeps an instruction
// waiting beyond what lanes and dependencies explain is made visible as a Wait
// instruction, so that replaying gives the recorded times back. Where there
// are durations only (Builder.Listed) program order is that of a list
// scheduler that gives every free lane the ready instruction with the lowest
// number.
package timeline
