// Package psim reads and writes snapshots of modules (.psim): every column
// of every table as it lies in memory, so that a file is mapped and used
// where it is. docs/snapshot.md draws the bytes.
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
// # Mapping
//
// The file is mapped privately and writable: a system that overwrites a
// column gets its own copy of the pages and the file stays as it is. A file
// that is cut short while it is mapped ends the process, as with every
// mapped file; perfsim replaces files by renaming and never cuts them.
package psim
