// Package goal reads schedules in GOAL, the text that LogGOPSim's tools use:
// for every rank operations (send, recv, calc) with labels and the order
// between them. docs/traces.md says what is taken and what is lost.
package goal
