// Package components says what is stored: instructions, edges, operands,
// blocks, lanes, events, zones and graphs, each a table of columns. It holds
// no behaviour beyond keeping its tables whole; package systems computes.
package components
