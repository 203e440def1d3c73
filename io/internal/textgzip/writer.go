package textgzip

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"sync/atomic"
)

// blockSize is how much is compressed on its own. The bytes out depend on it
// and on nothing about the machine.
const blockSize = 1 << 20

// header says deflate, no name, no time, fastest, Unix.
var header = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3}

// Writer compresses blocks side by side and writes them in order. It is not
// safe for concurrent use.
type Writer struct {
	crc   uint32
	size  uint32
	free  chan *block
	queue chan *block
	done  chan error
	fault atomic.Pointer[error] // of the stream below
	now   *block
	ended bool
}

// block is what one goroutine compresses, with the memory that it needs.
type block struct {
	raw   []byte
	c     compressor
	ready chan struct{}
}

// NewWriter returns a writer of one gzip stream to w. It must be closed, also
// after an error, because it has goroutines.
func NewWriter(w io.Writer) *Writer {
	jobs := runtime.GOMAXPROCS(0) + 1
	z := &Writer{free: make(chan *block, jobs), queue: make(chan *block, jobs), done: make(chan error, 1)}
	for range jobs {
		z.free <- nil // made when needed
	}
	go func() {
		_, err := w.Write(header)
		for b := range z.queue {
			<-b.ready
			if err == nil {
				if _, err = w.Write(b.c.out); err != nil {
					z.fault.Store(&err)
				}
			}
			z.free <- b
		}
		z.done <- err
	}()
	return z
}

// Write compresses p. An error of the stream below is told by a later call or
// by Close.
func (z *Writer) Write(p []byte) (int, error) {
	if z.ended {
		return 0, errors.New("gzip stream is closed")
	}
	if err := z.fault.Load(); err != nil {
		return 0, *err
	}
	z.crc = crc32.Update(z.crc, crc32.IEEETable, p)
	z.size += uint32(len(p))
	size := len(p)
	for len(p) > 0 {
		if z.now == nil {
			if z.now = <-z.free; z.now == nil {
				z.now = &block{raw: make([]byte, 0, blockSize+slack), ready: make(chan struct{}, 1)}
			}
			z.now.raw = z.now.raw[:0]
		}
		b := z.now
		n := min(len(p), blockSize-len(b.raw))
		b.raw, p = append(b.raw, p[:n]...), p[n:]
		if len(b.raw) == blockSize {
			z.send()
		}
	}
	return size, nil
}

func (z *Writer) send() {
	b := z.now
	z.now = nil
	z.queue <- b
	go func() {
		b.c.compress(b.raw)
		b.ready <- struct{}{}
	}()
}

// Close ends the stream and returns the first error of a write. It does not
// close the stream below.
func (z *Writer) Close() error {
	if z.ended {
		return nil
	}
	z.ended = true
	if z.now != nil {
		z.send()
	}
	// The last block is empty and stored; then come checksum and size.
	end := &block{ready: make(chan struct{}, 1)}
	end.c.out = binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0xff, 0xff}, z.crc)
	end.c.out = binary.LittleEndian.AppendUint32(end.c.out, z.size)
	end.ready <- struct{}{}
	<-z.free // it takes the place of another
	z.queue <- end
	close(z.queue)
	return <-z.done
}
