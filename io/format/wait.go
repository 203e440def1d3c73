package format

import (
	"context"
	"io"
	"os"
)

// waiting reads from what may keep it waiting for ever: a terminal, a pipe. A
// read in the background ends with the context, not with the data.
type waiting struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte
	took chan result
}

type result struct {
	n   int
	err error
}

// untilDone returns a reader of r whose reads end when ctx does. The read under
// way goes on in the background: r must not be read by others then.
func untilDone(ctx context.Context, r io.Reader) io.Reader {
	if ctx.Done() == nil {
		return r
	}
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return r // never waits
		}
	}
	return &waiting{ctx: ctx, r: r, buf: make([]byte, bufSize), took: make(chan result, 1)}
}

func (w *waiting) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	buf := w.buf[:min(len(p), len(w.buf))]
	go func() {
		n, err := w.r.Read(buf)
		w.took <- result{n, err}
	}()
	select {
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	case t := <-w.took:
		copy(p, buf[:t.n])
		return t.n, t.err
	}
}

// openUntilDone opens a file for reading. Opening a named pipe waits for a
// writer, at most until ctx ends.
func openUntilDone(ctx context.Context, path string) (*os.File, error) {
	if st, err := os.Stat(path); err != nil || st.Mode().IsRegular() || ctx.Done() == nil {
		return os.Open(path)
	}
	type opened struct {
		f   *os.File
		err error
	}
	took := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		took <- opened{f, err}
	}()
	select {
	case <-ctx.Done():
		go func() { // a process that opens the other end later finds no reader
			if o := <-took; o.f != nil {
				o.f.Close()
			}
		}()
		return nil, ctx.Err()
	case o := <-took:
		return o.f, o.err
	}
}
