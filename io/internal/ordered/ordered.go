// Package ordered renders pieces of an output side by side and writes them in
// order: the bytes do not depend on how many goroutines rendered them.
package ordered

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Write calls render for pieces 0 to n, each with an empty buffer to append
// to, on up to jobs goroutines, and writes what they return to w in order.
// Not more than twice jobs pieces are in memory. It ends at the first error
// of a write and when ctx does.
func Write(ctx context.Context, w io.Writer, jobs, n int, render func(piece int, buf []byte) []byte) error {
	if jobs = min(jobs, n); jobs <= 1 {
		var buf []byte
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			buf = render(i, buf[:0])
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
		return nil
	}
	// A worker takes a buffer before it takes a piece, and a buffer comes back
	// when its piece has been written: the pieces under way are within 2*jobs
	// of the one to be written next, so that each has a slot of its own.
	free := make(chan []byte, 2*jobs)
	slots := make([]chan []byte, 2*jobs)
	for i := range slots {
		free <- nil
		slots[i] = make(chan []byte, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	var next atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range jobs {
		wg.Go(func() {
			for {
				select {
				case buf := <-free:
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					slots[i%len(slots)] <- render(i, buf[:0])
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case buf := <-slots[i%len(slots)]:
			if _, err := w.Write(buf); err != nil {
				return err
			}
			free <- buf
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
