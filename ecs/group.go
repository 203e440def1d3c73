package ecs

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Group runs functions on up to a number of goroutines and returns the first
// error. With one goroutine they run in the caller's own, in order. A panic of
// a function is raised again in Wait, so that the caller can recover from it.
type Group struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	g      *errgroup.Group // nil where the functions run in the caller
	err    error           // first error of functions that ran in the caller

	mu       sync.Mutex
	panicked error
}

// NewGroup returns a group for up to jobs goroutines, at least one, and the
// context for its functions, which ends with the first error.
func NewGroup(ctx context.Context, jobs int) (*Group, context.Context) {
	if jobs <= 1 {
		ctx, cancel := context.WithCancelCause(ctx)
		return &Group{ctx: ctx, cancel: cancel}, ctx
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	return &Group{ctx: ctx, g: g}, ctx
}

// Go calls f, or has a goroutine call it; it waits while all are busy. After
// the first error in the caller's own goroutine no further function is called.
func (g *Group) Go(f func() error) {
	if g.g == nil {
		if g.err != nil {
			return
		}
		if g.err = f(); g.err != nil {
			g.cancel(g.err)
		}
		return
	}
	g.g.Go(func() (err error) {
		defer func() {
			if x := recover(); x != nil {
				err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
				g.mu.Lock()
				g.panicked = err
				g.mu.Unlock()
			}
		}()
		return f()
	})
}

// Wait returns the first error once all functions have returned. It panics
// where one of them did.
func (g *Group) Wait() error {
	if g.g == nil {
		g.cancel(g.err)
		return g.err
	}
	err := g.g.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
	return err
}
