package ecs

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestGroup(t *testing.T) {
	for _, jobs := range []int{0, 1, 3} {
		g, _ := NewGroup(context.Background(), jobs)
		got := make([]int, 10)
		for i := range got {
			g.Go(func() error { got[i] = i + 1; return nil })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != i+1 {
				t.Errorf("%d jobs: function %d did not run", jobs, i)
			}
		}
		want := errors.New("first")
		g, ctx := NewGroup(context.Background(), jobs)
		g.Go(func() error { return want })
		if jobs > 1 {
			<-ctx.Done()
		}
		if ctx.Err() == nil {
			t.Errorf("%d jobs: the context goes on after an error", jobs)
		}
		g.Go(func() error { return ctx.Err() })
		if err := g.Wait(); err != want {
			t.Errorf("%d jobs: %v, want %v", jobs, err, want)
		}
	}
}

// A panic reaches the goroutine that waits, with what it said.
func TestGroupPanic(t *testing.T) {
	for _, jobs := range []int{1, 2} {
		func() {
			defer func() {
				x := recover()
				if err, ok := x.(error); ok {
					x = err.Error()
				}
				if s, _ := x.(string); !strings.Contains(s, "out of order") {
					t.Errorf("%d jobs: recovered %v", jobs, x)
				}
			}()
			g, _ := NewGroup(context.Background(), jobs)
			g.Go(func() error { panic("out of order") })
			g.Wait()
			t.Errorf("%d jobs: no panic", jobs)
		}()
	}
}
