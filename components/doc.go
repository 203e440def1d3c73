// Package components says what is stored: instructions, edges, operands,
// blocks, lanes and events, each a table of columns. It holds no behaviour
// beyond keeping its tables whole; package systems computes. Operator graphs are
// in opgraph, device logs in zonelog, machine descriptions in machine.
package components
