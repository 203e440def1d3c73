package birjson

import (
	"sync"
	"sync/atomic"
)

// pipeline parses batches on several goroutines and merges them in the order
// in which they were sent. With one job everything happens on the caller's.
type pipeline struct {
	m    *merger
	jobs int

	view  *locationView // for new batches
	spare *batch        // the one batch of one job
	work  chan *batch
	order chan *batch
	free  chan *batch
	made  int
	stop  atomic.Bool
	err   error // of the merge
	all   sync.WaitGroup
}

func newPipeline(m *merger, jobs int) *pipeline {
	p := &pipeline{m: m, jobs: jobs}
	if jobs <= 1 {
		return p
	}
	most := p.most()
	p.work = make(chan *batch, most)
	p.order = make(chan *batch, most+1)
	p.free = make(chan *batch, most)
	for range jobs {
		p.all.Go(func() {
			w := newWorker(m.known)
			for b := range p.work {
				w.parse(b)
				close(b.done)
			}
		})
	}
	p.all.Go(func() {
		for b := range p.order {
			if b.settled != nil {
				close(b.settled)
				continue
			}
			<-b.done
			if p.err == nil {
				if p.err = m.merge(b); p.err != nil {
					p.stop.Store(true)
				}
			}
			p.free <- b
		}
	})
	return p
}

// most bounds the batches in flight.
func (p *pipeline) most() int { return 2*p.jobs + 2 }

// fresh returns an empty batch.
func (p *pipeline) fresh() *batch {
	b := p.spare
	p.spare = nil
	if b == nil && p.jobs > 1 {
		if p.made < p.most() {
			p.made++
		} else {
			b = <-p.free
		}
	}
	if b == nil {
		b = &batch{items: make([]item, 0, 64)}
	}
	b.reset()
	b.view = p.view
	return b
}

// send hands a batch over. It fails with errStopped once a merge has failed.
func (p *pipeline) send(b *batch) error {
	if p.jobs <= 1 {
		p.err = p.m.merge(b) // worker has parsed it
		p.spare = b
		if p.err != nil {
			return errStopped
		}
		return nil
	}
	b.done = make(chan struct{})
	p.order <- b
	p.work <- b
	if p.stop.Load() {
		return errStopped
	}
	return nil
}

// alone returns the worker that parses items where they are cut, nil where
// there are several.
func (p *pipeline) alone() *worker {
	if p.jobs <= 1 && p.m.w == nil {
		p.m.w = newWorker(p.m.known)
	}
	if p.jobs > 1 {
		return nil
	}
	return p.m.w
}

// settle waits until everything sent is merged and takes the locations known
// by then for the batches that follow.
func (p *pipeline) settle(s *splitter) error {
	if err := s.flush(); err != nil {
		return err
	}
	if p.jobs > 1 {
		all := &batch{settled: make(chan struct{})}
		p.order <- all
		<-all.settled
	}
	p.view = p.m.view()
	return nil
}

// finish waits for everything and returns the first error of the merge.
func (p *pipeline) finish() error {
	if p.jobs > 1 {
		close(p.work)
		close(p.order)
		p.all.Wait()
	}
	return p.err
}
