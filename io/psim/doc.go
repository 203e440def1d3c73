// Package psim reads and writes snapshots of modules (.psim): every column
// of every table as it lies in memory, so that reading is a copy. docs/snapshot.md draws the bytes.
//
// # Trust
//
// A snapshot may come from anywhere, so nothing in it is believed. Opening
// checks what is needed to find the columns: sizes, alignment, the checksum
// of the directory. Reading columns checks their checksums, one per MiB, so
// that damage is named by column and row; the module's own Check then proves
// that the tables fit together, whatever the checksums say: a file made with
// care by somebody who means harm has correct checksums too. There is
// therefore no mark in the file that says "checked".
//
// # Memory
//
// Wanted columns are read into memory of the process's own. They are not
// mapped: a mapped page follows later changes of the file, which the check
// has not seen, and ends the process where the file is cut.
package psim
