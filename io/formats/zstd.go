package formats

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// frameSize is how much input each zstd frame holds. Frames are compressed side
// by side and written in order; every zstd program reads a stream of frames,
// and the bytes depend on this size only.
const frameSize = 8 << 20

// frames is a writer that compresses in frames.
type frames struct {
	w    io.Writer
	enc  *zstd.Encoder // EncodeAll may be called by several goroutines
	fill []byte
	// order has a channel for each frame under way, oldest first.
	order []chan []byte
	jobs  int
	spare [][]byte
	err   error
}

func zstdFrames(w io.Writer, jobs int) (io.WriteCloser, error) {
	jobs = max(1, jobs)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(jobs), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return &frames{w: w, enc: enc, jobs: jobs}, nil
}

func (z *frames) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && z.err == nil {
		if z.fill == nil {
			z.fill = z.buffer()
		}
		k := copy(z.fill[len(z.fill):cap(z.fill)], p)
		z.fill = z.fill[:len(z.fill)+k]
		p = p[k:]
		n += k
		if len(z.fill) == cap(z.fill) {
			z.start()
		}
	}
	return n, z.err
}

func (z *frames) buffer() []byte {
	if n := len(z.spare); n > 0 {
		b := z.spare[n-1]
		z.spare = z.spare[:n-1]
		return b[:0]
	}
	return make([]byte, 0, frameSize)
}

// start begins to compress what has been filled, waiting for the oldest
// frame where enough are under way.
func (z *frames) start() {
	in := z.fill
	z.fill = nil
	for len(z.order) >= z.jobs {
		z.finish()
	}
	done := make(chan []byte, 1)
	z.order = append(z.order, done)
	go func() {
		out := z.enc.EncodeAll(in, nil)
		done <- out
		done <- in[:0]
	}()
}

// finish writes the oldest frame.
func (z *frames) finish() {
	out, in := <-z.order[0], <-z.order[0]
	z.order = z.order[1:]
	z.spare = append(z.spare, in)
	if z.err == nil {
		_, z.err = z.w.Write(out)
	}
}

// Close writes what is left; an empty stream becomes one empty frame.
func (z *frames) Close() error {
	if len(z.fill) > 0 {
		z.start()
	}
	for len(z.order) > 0 {
		z.finish()
	}
	if z.err != nil {
		return z.err
	}
	return z.enc.Close()
}
