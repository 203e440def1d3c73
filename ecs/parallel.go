package ecs

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Parallel calls f for 0..n-1 on all processors; f writes only what belongs to
// its index.
func Parallel(n int, f func(i int)) {
	p := min(runtime.GOMAXPROCS(0), n)
	if p <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	g, _ := NewGroup(context.Background(), p)
	for range p {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				f(i)
			}
		})
	}
	g.Wait() // no function fails
}
