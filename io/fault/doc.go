// Package fault counts the file operations that write outputs and makes one
// of them fail, in programs built with the tag "faults". The campaign of
// docs/reliability.md runs such a program once for every operation: a full
// disk, an I/O error, an interrupted call, a kill. In other builds At does
// nothing and costs nothing.
package fault
