package web

import (
	"errors"
	"sync"
)

// pages are the blocks of a program that were opened.
type pages struct {
	p  *Program
	mu sync.Mutex
	at map[int]*page
}

func newPages(p *Program) *pages { return &pages{p: p, at: map[int]*page{}} }

var errNoBlock = errors.New("no such block")

// open returns a block, made where it was not opened before.
func (p *pages) open(block int) (*page, error) {
	if block < 0 || block >= len(p.p.Blocks) {
		return nil, errNoBlock
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.at[block]; x != nil {
		return x, nil
	}
	d, err := p.p.Open(block)
	if err != nil {
		return nil, err
	}
	x := newPage(d)
	p.at[block] = x
	return x, nil
}

// page is an open block. Its rows are filled and attributed when that is first
// asked for; mu guards them.
type page struct {
	d      *Dataset
	mu     sync.RWMutex
	filled []sync.Once
	why    sync.Once
	known  bool // causes and the critical path
	err    error
	whole  *meta // before its rows were sampled, where they were

	groups   func() []Group
	counters func() ([]Counter, string)
}

func newPage(d *Dataset) *page {
	x := &page{d: d, filled: make([]sync.Once, len(d.Sections))}
	x.groups = sync.OnceValue(func() []Group {
		if d.Groups == nil {
			return nil
		}
		return d.Groups()
	})
	x.counters = sync.OnceValues(func() ([]Counter, string) {
		if d.Counters == nil {
			return nil, ""
		}
		return d.Counters()
	})
	return x
}

// fill makes the rows of a section ready to be drawn.
func (x *page) fill(section int) *Section {
	s := &x.d.Sections[section]
	x.filled[section].Do(func() {
		rows := s.Rows
		if s.Fill != nil {
			rows = s.Fill()
		}
		for r := range rows {
			rows[r].prepare()
		}
		x.mu.Lock()
		s.Rows = rows
		x.mu.Unlock()
	})
	return s
}

// fillAll makes all sections ready.
func (x *page) fillAll() {
	for s := range x.d.Sections {
		x.fill(s)
	}
}

// attribute works out causes and the critical path.
func (x *page) attribute() error {
	x.why.Do(func() {
		if x.d.Attribute == nil {
			x.known = true
			return
		}
		if len(x.d.Sections) > 0 {
			x.fill(0)
		}
		set, err := x.d.Attribute()
		x.mu.Lock()
		defer x.mu.Unlock()
		if err != nil {
			x.err = err
			return
		}
		set()
		x.known = true
	})
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.err
}
