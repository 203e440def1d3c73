package profile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"perfsim/io/format"
	"perfsim/io/internal/jsonscan"
)

// chunkBytes is about how much text a worker gets at once.
const chunkBytes = 256 << 10

// chunk is a run of elements of one section: their text, and what a worker
// made of it.
type chunk struct {
	sec    section
	name   string  // of the section
	prefix string  // of its attributes
	first  int     // index of the first element in the section
	count  int     // elements
	size   int64   // bytes of their text
	buf    []byte  // the text, where another goroutine parses it
	ends   []int   // where each element ends in buf
	offs   []int64 // where each element starts in the input
	out    result
	err    error
	done   chan struct{}
}

// skipped counts the elements of a section that is not read.
type skipped struct {
	name  string
	count int
}

// read splits the input, has jobs workers parse the pieces and commits them
// in the order of the input, so that the result does not depend on jobs.
func read(ctx context.Context, src *format.Source, jobs int, commit func(*chunk) error) ([]skipped, error) {
	sp := &splitter{scan: newScanner(src)}
	sp.take = sp.cut
	if jobs == 1 {
		return readAlone(ctx, sp, commit)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := make(chan *chunk, jobs)
	order := make(chan *chunk, 2*jobs)
	free := sync.Pool{New: func() any { return &chunk{} }}
	sp.get = func() *chunk {
		c := free.Get().(*chunk)
		c.reset()
		c.done = make(chan struct{})
		return c
	}
	sp.put = func(c *chunk) error {
		for _, to := range []chan *chunk{work, order} {
			select {
			case to <- c:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	var splitErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		splitErr = sp.file()
		close(work)
		close(order)
	})
	for range jobs {
		wg.Go(func() {
			var w worker
			for c := range work {
				w.parse(c)
				close(c.done)
			}
		})
	}
	err := func() error {
		for {
			select {
			case c, ok := <-order:
				if !ok {
					return nil
				}
				<-c.done
				if c.err != nil {
					return c.err
				}
				if err := commit(c); err != nil {
					return err
				}
				free.Put(c)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}()
	cancel()
	wg.Wait()
	if err == nil {
		err = splitErr
	}
	return sp.skipped, err
}

// readAlone is read for one job: one chunk at a time, no goroutines.
func readAlone(ctx context.Context, sp *splitter, commit func(*chunk) error) ([]skipped, error) {
	var w worker
	var c chunk
	sp.get = func() *chunk {
		c.reset()
		w.begin(&c)
		return &c
	}
	sp.take = func(c *chunk, at int64) error {
		w.index = c.first + c.count
		if v, ok := sp.scan.Try(&w.tape, ""); ok {
			c.err = w.element(c, v, at)
			return c.err
		}
		text, err := sp.scan.Value("an element")
		if err == nil {
			c.err = w.text(c, text, at)
			err = c.err
		}
		return err
	}
	sp.put = func(c *chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.err != nil {
			return c.err
		}
		return commit(c)
	}
	err := sp.file()
	return sp.skipped, err
}

func (c *chunk) reset() {
	c.count, c.size, c.err = 0, 0, nil
	c.buf, c.ends, c.offs = c.buf[:0], c.ends[:0], c.offs[:0]
}

// splitter cuts the input into chunks.
type splitter struct {
	scan    *jsonscan.Scanner
	get     func() *chunk
	put     func(*chunk) error
	take    func(c *chunk, at int64) error // the next element, which begins at byte at
	skipped []skipped
	// sections of the same name may occur more than once
	counts map[string]int
}

// maxSections bounds the distinct keys remembered of the top level.
const maxSections = 1000

// file walks the top-level object.
func (sp *splitter) file() error {
	s := sp.scan
	sp.counts = map[string]int{}
	if err := s.Members("the file", sp.section); err != nil {
		return err
	}
	if c := s.Peek(); !s.Ended() {
		return s.Fail("%q after the end of the object", c)
	}
	if s.Err() != nil {
		return s.Cut("the file")
	}
	return nil
}

// section takes the value of one top-level key.
func (sp *splitter) section(key string) error {
	s := sp.scan
	if len(key) > maxKey {
		return s.Fail("behind a key of %d bytes", len(key))
	}
	about := sections[key]
	list := s.Peek() == '['
	if about.sec == secNone {
		n := 1
		skip := func() error { n++; return s.Skip("an element") }
		var err error
		if list {
			n = 0
			err = s.Elements("section "+cut(key, 100), skip)
		} else {
			err = s.Skip("section " + cut(key, 100))
		}
		if err == nil && len(sp.skipped) < maxSections {
			sp.skipped = append(sp.skipped, skipped{cut(key, 100), n})
		}
		return err
	}
	if !list && !s.Ended() {
		return s.Fail("section %s is not a list", key)
	}
	var c *chunk
	err := s.Elements("section "+key, func() error {
		if c == nil {
			c = sp.get()
			c.sec, c.name, c.prefix, c.first = about.sec, key, about.prefix, sp.counts[key]
		}
		s.Peek()
		at := s.Offset()
		if err := sp.take(c, at); err != nil {
			return err
		}
		c.count++
		c.size += s.Offset() - at
		sp.counts[key]++
		if c.size < chunkBytes {
			return nil
		}
		full := c
		c = nil
		return sp.put(full)
	})
	if c == nil || c.count == 0 && c.err == nil {
		return err
	}
	// What was complete is parsed where cutting failed too: an error in it comes
	// earlier in the file.
	if perr := sp.put(c); perr != nil {
		return perr
	}
	return err
}

// cut keeps the text of an element for a worker.
func (sp *splitter) cut(c *chunk, at int64) error {
	text, err := sp.scan.Value("an element")
	if err == nil {
		c.buf = append(c.buf, text...)
		c.offs, c.ends = append(c.offs, at), append(c.ends, len(c.buf))
	}
	return err
}

// wrap names the file in an error, and the place where it has one.
func wrap(src *format.Source, err error) error {
	if at, ok := errors.AsType[*jsonscan.Error](err); ok {
		return at.In(src.Name)
	}
	return fmt.Errorf("%s: %w", src.Name, err)
}
