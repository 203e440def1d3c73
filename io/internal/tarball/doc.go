// Package tarball holds what the trace package (file.perf-sim) and the NEFF
// payload have in common: a tar writer whose bytes depend on its input only,
// and a reader for archives that nobody vouches for.
//
// The writer makes POSIX.1-2001 (PAX) archives with extended records only
// where a value needs one (a name that ustar cannot hold, a size of 8 GiB or
// more), because several viewers open plain ustar members only.
//
// The reader takes plain and gzipped tar of every dialect, and checks what a
// careless reader misses: the gzip checksum of the whole stream, the
// end-of-archive mark, bytes after it, sizes that lie, and expansion without
// bound. Extraction never leaves its folder and is all or nothing.
package tarball
