// Package neff reads and writes NEFF files, what the compiler hands to the
// runtime: a header of 1024 bytes, then a tar that is gzipped (package version
// 2, MD5 in the header) or plain (version 1, SHA-256).
//
// The header is the struct that the vendor's documentation prints. An older
// description says that there is none; files without it are refused with a
// message that says so.
//
// A member is added without touching anything else: the header keeps every
// byte but data size and hash, the tar every byte of the other members, in
// their order. The compressed bytes change, as they must: the end of the old
// archive lies inside them.
package neff
