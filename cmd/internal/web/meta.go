package web

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
)

// metaProgram is the first message to the page.
type metaProgram struct {
	Title  string  `json:"title"`
	Facts  []Fact  `json:"facts"`
	Blocks []Block `json:"blocks"`
	First  int     `json:"first"`
	// Held are the blocks that a page as one file holds; nil for all.
	Held []int `json:"held,omitempty"`
	// Sampled says what a page as one file left out; "" for nothing.
	Sampled string `json:"sampled,omitempty"`
}

// meta describes a block to the page.
type meta struct {
	Facts    []Fact        `json:"facts"`
	Kinds    []string      `json:"kinds"`
	Quiet    []bool        `json:"quiet"`
	Colors   []int         `json:"colors"` // rank of each kind, see colors
	Causes   []string      `json:"causes"`
	Loops    []LoopInfo    `json:"loops"`
	Classes  []string      `json:"classes"`
	Sections []metaSection `json:"sections"`
	// Work is the content of the first section, by kind: the key to the colours.
	Work []Work `json:"work"`
}

type metaSection struct {
	Name   string    `json:"name"`
	Span   uint64    `json:"span"`
	Rows   []metaRow `json:"rows"`
	Folded bool      `json:"folded"`
}

type metaRow struct {
	Name   string `json:"name"`
	Events int    `json:"events"`
	Busy   uint64 `json:"busy"`
	Parent int    `json:"parent"`
	// Load is the share of each of mapCells cells of the span that is busy, 0 to
	// 255: the overview.
	Load  []int      `json:"load"`
	Loops []metaLoop `json:"loops,omitempty"`
}

// metaLoop is a Loop as [loop, start, last, end, busy, kind, depth].
type metaLoop Loop

// MarshalJSON writes the numbers only: there may be thousands.
func (l metaLoop) MarshalJSON() ([]byte, error) {
	return json.Marshal([]uint64{uint64(l.Loop), l.Start, l.Last, l.End, l.Busy, uint64(l.Kind), uint64(l.Depth)})
}

// mapCells is the resolution of the overview.
const mapCells = 512

// meta describes an open block; sections that are folded are described without
// their events.
func (x *page) meta() meta {
	d := x.d
	m := meta{Facts: d.Facts, Kinds: d.Kinds, Quiet: d.Quiet, Causes: d.Causes, Loops: d.Loops, Classes: d.Classes}
	for s := range d.Sections {
		if !d.Sections[s].Folded || d.Sections[s].Fill == nil {
			x.fill(s)
		}
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	for s := range d.Sections {
		m.Sections = append(m.Sections, metaOf(&d.Sections[s]))
	}
	all := count(d)
	m.Colors, m.Work = colors(d, all), work(d, all)
	if d.Work != nil {
		m.Work = work(d, d.Work)
	}
	return m
}

func metaOf(s *Section) metaSection {
	ms := metaSection{Name: s.Name, Span: s.Span, Folded: s.Folded, Rows: []metaRow{}}
	for i := range s.Rows {
		r := &s.Rows[i]
		row := metaRow{Name: r.Name, Events: len(r.Start), Busy: r.Busy, Parent: r.Parent, Load: []int{}}
		if r.Parent == 0 && r.busy != nil {
			row.Load = make([]int, mapCells)
			for c := range row.Load {
				t0 := uint64(float64(s.Span) * float64(c) / mapCells)
				t1 := uint64(float64(s.Span) * float64(c+1) / mapCells)
				if t1 > t0 {
					row.Load[c] = int(float64(r.load(t0, t1)) * 255 / float64(t1-t0))
				}
			}
		}
		for _, l := range r.Loops {
			row.Loops = append(row.Loops, metaLoop(l))
		}
		ms.Rows = append(ms.Rows, row)
	}
	return ms
}

// count adds up the events of the first section by kind.
func count(d *Dataset) []Work {
	all := make([]Work, len(d.Kinds))
	for k := range all {
		all[k].Kind = k
	}
	if len(d.Sections) > 0 {
		for _, r := range d.Sections[0].Rows {
			if r.Parent != 0 {
				continue
			}
			for i, k := range r.Kind {
				all[k].Events++
				all[k].Time += r.End[i] - r.Start[i]
			}
		}
	}
	return all
}

// mostWork bounds the key to the colours.
const mostWork = 40

func quiet(d *Dataset, k int) bool { return k < len(d.Quiet) && d.Quiet[k] }

// work returns the kinds that occur, work before what is drawn pale, the
// longest first.
func work(d *Dataset, all []Work) []Work {
	all = slices.DeleteFunc(slices.Clone(all), func(w Work) bool { return w.Events == 0 })
	slices.SortStableFunc(all, func(a, b Work) int {
		switch x, y := quiet(d, a.Kind), quiet(d, b.Kind); {
		case x && !y:
			return 1
		case y && !x:
			return -1
		}
		return cmp.Compare(b.Time, a.Time)
	})
	return all[:min(len(all), mostWork)]
}

// occurring returns the causes that some event of the block has: what a legend
// explains.
func occurring(d *Dataset) []string {
	var has [256]bool
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			for _, c := range r.Cause {
				has[c] = true
			}
		}
	}
	out := []string{}
	for k, name := range d.Causes {
		if k+1 < len(has) && has[k+1] {
			out = append(out, name)
		}
	}
	return out
}

// colors ranks the kinds, those with most events in the first section first and
// kinds that no engine computes last: the page has few colours, and the most
// frequent kinds must not share one.
func colors(d *Dataset, all []Work) []int {
	count := make([]int, len(all))
	order := make([]int, len(all))
	for k := range order {
		count[k], order[k] = all[k].Events, k
		if quiet(d, k) {
			count[k] -= math.MaxInt / 2
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(count[b], count[a]) })
	rank := make([]int, len(order))
	for r, k := range order {
		rank[k] = r
	}
	return rank
}
