package proto

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Stream reads numbers and messages from a stream and counts their bytes; what
// is read of the Reader itself is not counted.
type Stream struct {
	*bufio.Reader
	N int64 // bytes read
}

// ReadByte reads a byte.
func (s *Stream) ReadByte() (byte, error) {
	b, err := s.Reader.ReadByte()
	if err == nil {
		s.N++
	}
	return b, err
}

// Uvarint reads a number; io.EOF where there is none, io.ErrUnexpectedEOF where
// the input ends in it.
func (s *Stream) Uvarint() (uint64, error) { return binary.ReadUvarint(s) }

// Take reads n bytes into the memory of buf, which grows as they come, so that a
// wrong length takes no more than there is. What was read before an error is
// returned too; the end of the input is io.ErrUnexpectedEOF.
func (s *Stream) Take(buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	buf = buf[:0]
	for len(buf) < n {
		at := len(buf)
		buf = append(buf, make([]byte, min(n-at, step))...)
		k, err := io.ReadFull(s.Reader, buf[at:])
		s.N += int64(k)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return buf[:at+k], err
		}
	}
	return buf, nil
}
