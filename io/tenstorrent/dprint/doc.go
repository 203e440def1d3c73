// Package dprint is the kernel debug print of Tenstorrent devices: the print
// buffer of each processor, the device side that writes typed records into
// it and waits when it is full, and the host side that polls, formats as a
// C++ stream does, and prints line by line. Dumped buffers are decoded with
// the same code.
//
// The buffer has 204 bytes: write and read position (32 bits each), core x
// and y (16 bits each) and 192 bytes of records, each a type, a size and a
// payload. It is not a ring: a writer without room waits until the host has
// read everything, then starts at 0 again.
package dprint
