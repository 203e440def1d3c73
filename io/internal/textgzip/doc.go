// Package textgzip compresses text in which the same phrases stand between
// numbers, as traces are, to one gzip stream (RFC 1951, RFC 1952): faster than
// a general compressor at its lowest level, because it looks for repetitions
// where phrases begin and takes the digits of numbers as they are. Any bytes
// may be written; bytes that are not such text become larger than with another
// compressor, never much larger than they are.
package textgzip
