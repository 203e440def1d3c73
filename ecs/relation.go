package ecs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A relation word packs the class of an edge into its top two bits and the
// target row into the other thirty, so that sorting the words of a row
// partitions it by class and one load brings both.
const (
	ClassShift = 30
	TargetMask = 1<<ClassShift - 1
	// MaxRows is the largest number of rows a relation can point to.
	MaxRows = 1 << ClassShift
)

// Word packs a class (0 to 3) and a target row below MaxRows.
func Word(class uint8, target uint32) uint32 { return uint32(class)<<ClassShift | target }

// Relation is a one-to-many relation in compressed sparse row form. The
// edges of row i are Words[Offsets[i]:Offsets[i+1]], in ascending order of
// the word: class by class, so that a walk that leaves the last class out
// takes a prefix.
type Relation struct {
	offsets Column[uint32] // rows+1
	words   Column[uint32]
}

// NewRelation returns an empty relation whose columns are named after it.
func NewRelation(name string) Relation {
	return Relation{offsets: NewColumn[uint32](name + ".offsets"), words: NewColumn[uint32](name + ".words")}
}

// Rows returns the number of rows that have edges (possibly none).
func (r *Relation) Rows() int { return max(r.offsets.Len()-1, 0) }

// Len returns the number of edges.
func (r *Relation) Len() int { return r.words.Len() }

// Offsets returns the row offsets, Rows()+1 of them (or none).
func (r *Relation) Offsets() []uint32 { return r.offsets.Slice() }

// Words returns all edges; an edge's id is its index here.
func (r *Relation) Words() []uint32 { return r.words.Slice() }

// Row returns the words of row i.
func (r *Relation) Row(i int) []uint32 {
	off := r.offsets.Slice()
	if i+1 >= len(off) {
		return nil
	}
	return r.words.View(int(off[i]), int(off[i+1]))
}

// Columns lists what has to be saved.
func (r *Relation) Columns() []AnyColumn { return []AnyColumn{&r.offsets, &r.words} }

// Reset drops all rows and keeps the capacity.
func (r *Relation) Reset() { r.offsets.Reset(); r.words.Reset() }

// SetEmpty makes r a relation over rows rows without edges.
func (r *Relation) SetEmpty(rows int) {
	clear(r.offsets.Scratch(rows + 1))
	r.words.Reset()
}

// Reserve makes room for rows and edges.
func (r *Relation) Reserve(rows, edges int) { r.offsets.Reserve(rows + 1); r.words.Reserve(edges) }

// AppendRow adds the next row. The words are sorted in place and must not
// repeat; see Builder for input that is unsorted or repeats itself.
func (r *Relation) AppendRow(words []uint32) {
	if r.offsets.Len() == 0 {
		r.offsets.Append(0)
	}
	slices.Sort(words)
	r.words.AppendSlice(words)
	r.offsets.Append(uint32(r.words.Len()))
}

// Filter drops the edges that keep says no to, in place.
func (r *Relation) Filter(keep func(row int, word uint32) bool) {
	off, words := r.offsets.Slice(), r.words.Slice()
	at, lo := uint32(0), uint32(0)
	for i := range r.Rows() {
		hi := off[i+1]
		for _, w := range words[lo:hi] {
			if keep(i, w) {
				words[at] = w
				at++
			}
		}
		lo, off[i+1] = hi, at
	}
	r.words.Resize(int(at))
}

// Check reports whether columns read from a file form a relation over rows
// entities whose targets are below targets.
func (r *Relation) Check(rows, targets int) error {
	off, words := r.offsets.Slice(), r.words.Slice()
	if len(off) == 0 && len(words) == 0 {
		return nil
	}
	if len(off) != rows+1 || off[0] != 0 || int(off[rows]) != len(words) {
		return fmt.Errorf("%s: offsets do not cover %d rows and %d edges", r.offsets.name, rows, len(words))
	}
	for i := range rows {
		if off[i] > off[i+1] {
			return fmt.Errorf("%s: row %d ends before it starts", r.offsets.name, i)
		}
	}
	for i, w := range words {
		if int(w&TargetMask) >= targets {
			return fmt.Errorf("%s: edge %d points to row %d of %d", r.words.name, i, w&TargetMask, targets)
		}
	}
	return nil
}

// Builder collects edges in any order and makes a Relation of them in two
// linear passes (a counting sort by row).
type Builder struct {
	from, word []uint32
}

// Add records an edge from row from to row target.
func (b *Builder) Add(from, target uint32, class uint8) {
	b.from = append(b.from, from)
	b.word = append(b.word, Word(class, target))
}

// Take adds many edges at once: edge i is from row from[i] and has the word
// words[i]. The builder owns both slices from then on.
func (b *Builder) Take(from, words []uint32) {
	if len(b.from) == 0 {
		b.from, b.word = from, words
		return
	}
	b.from, b.word = append(b.from, from...), append(b.word, words...)
}

// Len returns the number of edges recorded.
func (b *Builder) Len() int { return len(b.from) }

// Reserve makes room for n edges.
func (b *Builder) Reserve(n int) {
	b.from = slices.Grow(b.from, max(0, n-len(b.from)))
	b.word = slices.Grow(b.word, max(0, n-len(b.word)))
}

// Build fills r with rows rows and empties the builder. Edges of one row to one
// target become one: stronger(a, b) reports whether class a wins over b.
func (b *Builder) Build(r *Relation, rows int, stronger func(a, b uint8) bool) {
	off := r.offsets.Resize(rows + 1)
	clear(off)
	for _, f := range b.from {
		off[f+1]++
	}
	for i := range rows {
		off[i+1] += off[i]
	}
	words := r.words.Scratch(len(b.word))
	next := make([]uint32, rows)
	copy(next, off)
	for i, f := range b.from {
		words[next[f]] = b.word[i]
		next[f]++
	}
	b.from, b.word = nil, nil
	// Rows are short: sort each by target, merge equal targets, then sort by
	// word. Writing goes behind reading because merging only shrinks.
	at := uint32(0)
	lo := uint32(0)
	for i := range rows {
		hi := off[i+1]
		row := words[lo:hi]
		lo = hi
		if len(row) > 1 {
			sortBy(row, TargetMask)
			n := 0
			for _, w := range row {
				if n > 0 && row[n-1]&TargetMask == w&TargetMask {
					if stronger(uint8(w>>ClassShift), uint8(row[n-1]>>ClassShift)) {
						row[n-1] = w
					}
					continue
				}
				row[n] = w
				n++
			}
			row = row[:n]
			sortBy(row, math.MaxUint32)
		}
		copy(words[at:], row)
		off[i] = at
		at += uint32(len(row))
	}
	off[rows] = at
	r.words.Scratch(int(at))
}

// sortBy sorts words by their bits in mask. Most rows are short.
func sortBy(row []uint32, mask uint32) {
	if len(row) > 16 {
		slices.SortFunc(row, func(x, y uint32) int { return cmp.Compare(x&mask, y&mask) })
		return
	}
	for i := 1; i < len(row); i++ {
		w := row[i]
		j := i
		for ; j > 0 && row[j-1]&mask > w&mask; j-- {
			row[j] = row[j-1]
		}
		row[j] = w
	}
}
