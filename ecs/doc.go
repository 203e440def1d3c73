// Package ecs is the storage core: columns, one-to-many relations, bitmap
// indexes, interned symbols and the fixed-order schedule. It knows nothing
// of instructions or engines; package components says what is stored.
//
// An entity is a row number. A component is a column. A system is a loop
// over columns. Nothing in a hot path chases a pointer, calls an interface,
// allocates or looks at a string.
package ecs
