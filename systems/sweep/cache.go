package sweep

import (
	"context"
	"errors"
	"sync"
)

// cache keeps what the cases at work share: the entries that were asked for
// last. What several ask for at a time is made once.
type cache[V any] struct {
	room int

	mu      sync.Mutex
	entries map[string]*entry[V]
	clock   int
}

type entry[V any] struct {
	done  chan struct{}
	value V
	err   error
	used  int
}

// get returns the value of a key, made by the first who asks. An error is kept
// too, unless the context ended.
func (c *cache[V]) get(ctx context.Context, key string, produce func() (V, error)) (v V, err error) {
	for {
		c.mu.Lock()
		if c.entries == nil {
			c.entries = map[string]*entry[V]{}
		}
		c.clock++
		e := c.entries[key]
		mine := e == nil
		if mine {
			e = &entry[V]{done: make(chan struct{})}
			c.entries[key] = e
		}
		e.used = c.clock
		c.evict()
		c.mu.Unlock()
		if mine {
			c.fill(ctx, key, e, produce)
			return e.value, e.err
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return v, ctx.Err()
		}
		if !errors.Is(e.err, errGivenUp) {
			return e.value, e.err
		}
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
	}
}

// fill makes the value. A panic of produce goes on; those who wait try anew.
func (c *cache[V]) fill(ctx context.Context, key string, e *entry[V], produce func() (V, error)) {
	finished := false
	defer func() {
		if !finished || e.err != nil && ctx.Err() != nil {
			e.err = errGivenUp // one of those who wait makes it
			c.mu.Lock()
			if c.entries[key] == e {
				delete(c.entries, key)
			}
			c.mu.Unlock()
		}
		close(e.done)
	}()
	e.value, e.err = produce()
	finished = true
}

// errGivenUp is the error of an entry whose maker ended before it was made.
var errGivenUp = errors.New("given up")

// evict drops the entries that were asked for longest ago, beyond room.
func (c *cache[V]) evict() {
	for len(c.entries) > c.room {
		oldest := ""
		for key, e := range c.entries {
			if oldest == "" || e.used < c.entries[oldest].used {
				oldest = key
			}
		}
		delete(c.entries, oldest)
	}
}
