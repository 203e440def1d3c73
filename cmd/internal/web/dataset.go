// Package web serves a timeline as a local page, and writes the same page as
// one file to mail around. It knows timelines of rows with events, not
// modules: package cli fills one from a simulation or a device log.
package web

import "sort"

// Dataset is what a page shows.
type Dataset struct {
	Title    string
	Facts    []Fact // shown in the head: name and value
	Blocks   []Fact // all blocks of the input with their times, of which one is shown; may be nil
	Sections []Section
	// Kinds are the names of the event kinds (opcodes, zones); an event's
	// colour follows from its kind.
	Kinds []string
	// Quiet marks, by kind, what is drawn pale: waiting and bookkeeping rather
	// than work. Optional.
	Quiet []bool
	// Causes are the names of why a row was idle before an event.
	Causes []string
	// Detail describes one event; Search finds events whose name holds the
	// text, at most limit of them. Both are called by several goroutines.
	Detail func(section int, id uint32) (Detail, bool)
	Search func(text string, limit int) []Hit
}

// Fact is a named value for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Section is one run: rows that share a time axis.
type Section struct {
	Name string
	Span uint64 // ns
	Rows []Row
	// Folded sections are not shown until asked for.
	Folded bool
}

// Row is one lane: events that ascend and do not overlap.
type Row struct {
	Name  string
	Start []uint64 // ns
	End   []uint64
	ID    []uint32
	Kind  []uint16
	// Cause is why the row was idle before the event, plus one; 0 for not
	// known. Optional.
	Cause []uint8
	// Critical marks the events on the critical path. Optional.
	Critical []bool

	busy []uint64 // busy[i] is the busy time of the events before i
}

// Link is a dependency of the event shown.
type Link struct {
	ID    uint32 `json:"id"`
	Row   int    `json:"row"`
	Name  string `json:"name"`
	Start uint64 `json:"start"`
	End   uint64 `json:"end"`
	Kind  string `json:"kind"`
	Gap   int64  `json:"gap"` // ns between the end of the one and the start of the other
	Binds bool   `json:"binds"`
}

// Other is an event in another section.
type Other struct {
	Section int    `json:"section"`
	Start   uint64 `json:"start"`
	End     uint64 `json:"end"`
}

// Detail is what the page tells about an event.
type Detail struct {
	ID     uint32 `json:"id"`
	Row    int    `json:"row"`
	Name   string `json:"name"`
	Start  uint64 `json:"start"`
	End    uint64 `json:"end"`
	Facts  []Fact `json:"facts"`
	Source string `json:"source,omitempty"` // file:line
	Preds  []Link `json:"preds"`
	Succs  []Link `json:"succs"`
	// Others are the same event in the other sections.
	Others []Other `json:"others,omitempty"`
}

// Hit is an event that a search found.
type Hit struct {
	Section int    `json:"section"`
	Row     int    `json:"row"`
	ID      uint32 `json:"id"`
	Name    string `json:"name"`
	Start   uint64 `json:"start"`
	End     uint64 `json:"end"`
}

// prepare sums up what tiles need.
func (d *Dataset) prepare() {
	for s := range d.Sections {
		for r := range d.Sections[s].Rows {
			row := &d.Sections[s].Rows[r]
			row.busy = make([]uint64, len(row.Start)+1)
			for i := range row.Start {
				row.busy[i+1] = row.busy[i] + row.End[i] - row.Start[i]
			}
		}
	}
}

// events returns how many events the dataset has.
func (d *Dataset) events() int {
	n := 0
	for _, s := range d.Sections {
		for _, r := range s.Rows {
			n += len(r.Start)
		}
	}
	return n
}

// Box is what is drawn: one event, or several that are too small to tell
// apart.
type Box struct {
	Start, End uint64
	ID         uint32 // noID for several
	Kind       uint16
	Cause      uint8
	Critical   bool
	Share      uint8 // of the box that is busy, 255 for all
}

const noID = 1<<32 - 1

// Boxes appends the boxes of a row between t0 and t1 where events shorter
// than grain ns are drawn together. It looks at no more than a few events per
// box, however many there are.
func (r *Row) Boxes(dst []Box, t0, t1, grain uint64) []Box {
	grain = max(grain, 1)
	n := len(r.Start)
	i := sort.Search(n, func(i int) bool { return r.End[i] > t0 })
	if i > 0 && r.End[i-1] == t0 {
		i-- // an event of no length at the edge
	}
	for i < n && r.Start[i] <= t1 {
		if r.End[i]-r.Start[i] >= grain {
			dst = append(dst, r.box(i))
			i++
			continue
		}
		// All that starts within one grain, up to the next event that is large
		// enough to stand alone, is one box.
		edge := r.Start[i] + grain
		j := i + sort.Search(n-i, func(k int) bool { return r.Start[i+k] >= edge })
		if r.End[j-1]-r.Start[j-1] >= grain {
			j-- // the last one reaches far beyond: it stands alone
		}
		if j == i+1 {
			dst = append(dst, r.box(i))
			i++
			continue
		}
		b := r.box(i)
		b.End, b.ID = r.End[j-1], noID
		if length := max(b.End-b.Start, 1); true {
			b.Share = uint8(min(255, (r.busy[j]-r.busy[i])*255/length))
		}
		for k := i; k < j && r.Critical != nil && !b.Critical; k++ {
			b.Critical = r.Critical[k]
			if k-i > 64 {
				break // enough looked at: a box of thousands is not told apart anyway
			}
		}
		dst = append(dst, b)
		i = j
	}
	return dst
}

func (r *Row) box(i int) Box {
	b := Box{Start: r.Start[i], End: r.End[i], ID: r.ID[i], Kind: r.Kind[i], Share: 255}
	if r.Cause != nil {
		b.Cause = r.Cause[i]
	}
	if r.Critical != nil {
		b.Critical = r.Critical[i]
	}
	return b
}

// Busy returns the busy time of a row between t0 and t1.
func (r *Row) Busy(t0, t1 uint64) uint64 {
	i := sort.Search(len(r.Start), func(i int) bool { return r.End[i] > t0 })
	j := sort.Search(len(r.Start), func(i int) bool { return r.Start[i] >= t1 })
	if j <= i {
		return 0
	}
	sum := r.busy[j] - r.busy[i]
	if r.Start[i] < t0 {
		sum -= t0 - r.Start[i]
	}
	if r.End[j-1] > t1 {
		sum -= r.End[j-1] - t1
	}
	return sum
}
