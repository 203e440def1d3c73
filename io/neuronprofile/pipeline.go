package neuronprofile

import (
	"context"
	"fmt"
	"sync"

	"perfsim/io/format"
)

// chunkBytes is about how much text a worker gets at once.
const chunkBytes = 256 << 10

// chunk is a run of elements of one section: their text, and what a worker
// made of it.
type chunk struct {
	sec    section
	name   string // of the section
	prefix string // of its attributes
	first  int    // index of the first element in the section
	buf    []byte
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
	sp := &splitter{scan: newScanner(src, src.Name)}
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
		return &c
	}
	sp.put = func(c *chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.parse(c); c.err != nil {
			return c.err
		}
		return commit(c)
	}
	err := sp.file()
	return sp.skipped, err
}

func (c *chunk) reset() {
	c.buf, c.ends, c.offs, c.err = c.buf[:0], c.ends[:0], c.offs[:0], nil
}

// splitter cuts the input into chunks.
type splitter struct {
	scan    *scanner
	get     func() *chunk
	put     func(*chunk) error
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
	if err := s.expect('{', "the file, which is one JSON object"); err != nil {
		return err
	}
	if s.next() == '}' {
		s.pos++
		return sp.tail()
	}
	for more := true; more; {
		key, err := s.key()
		if err != nil {
			return err
		}
		if err := sp.section(key); err != nil {
			return err
		}
		if more, err = s.separator('}', "the top-level object"); err != nil {
			return err
		}
	}
	return sp.tail()
}

// tail checks that nothing but white space follows.
func (sp *splitter) tail() error {
	s := sp.scan
	if c := s.next(); c != 0 || s.pos < len(s.buf) {
		return errorAt(s.offset(), "%q after the end of the object", c)
	}
	return s.err
}

// section takes the value of one top-level key.
func (sp *splitter) section(key string) error {
	s := sp.scan
	about := sections[key]
	if s.next() != '[' || about.sec == secNone {
		if about.sec != secNone {
			return errorAt(s.offset(), "section %s is not a list", key)
		}
		n := 1
		if s.next() == '[' {
			var err error
			if n, err = sp.skipList(); err != nil {
				return err
			}
		} else if _, err := s.value(nil, false); err != nil {
			return err
		}
		if len(sp.skipped) < maxSections {
			sp.skipped = append(sp.skipped, skipped{cut(key, 100), n})
		}
		return nil
	}
	s.pos++
	if s.next() == ']' {
		s.pos++
		return nil
	}
	where := "section " + key
	var c *chunk
	for more := true; more; {
		if c == nil {
			c = sp.get()
			c.sec, c.name, c.prefix, c.first = about.sec, key, about.prefix, sp.counts[key]
		}
		s.next()
		c.offs = append(c.offs, s.offset())
		var err error
		if c.buf, err = s.value(c.buf, true); err == nil {
			c.ends = append(c.ends, len(c.buf))
			sp.counts[key]++
			more, err = s.separator(']', where)
		}
		if err != nil {
			// What was complete is parsed first: an error in it comes earlier
			// in the file.
			c.offs = c.offs[:len(c.ends)]
			if perr := sp.put(c); perr != nil {
				return perr
			}
			return err
		}
		if len(c.buf) >= chunkBytes || !more {
			if err := sp.put(c); err != nil {
				return err
			}
			c = nil
		}
	}
	return nil
}

// skipList skips a list and returns the number of its elements.
func (sp *splitter) skipList() (int, error) {
	s := sp.scan
	s.pos++
	if s.next() == ']' {
		s.pos++
		return 0, nil
	}
	for n := 1; ; n++ {
		if _, err := s.value(nil, false); err != nil {
			return n, err
		}
		more, err := s.separator(']', "a list")
		if err != nil || !more {
			return n, err
		}
	}
}

// wrap names the file in an error.
func wrap(src *format.Source, err error) error { return fmt.Errorf("%s: %w", src.Name, err) }
