package zonelog

import "sort"

// SourceRows maps the markers of a log to their rows in the file. Markers of a
// launch follow one another in most files, so it holds where runs of rows begin
// where that is less than a number a marker.
type SourceRows struct {
	n    int
	all  []uint32    // one a marker, or none
	runs [][2]uint32 // first marker of a run and its row
}

// NewSourceRows returns the map of the rows by marker, and whether it keeps
// them: if not, the caller may use their memory again.
func NewSourceRows(rows []uint32) (s SourceRows, keeps bool) {
	s.n = len(rows)
	count := 0
	for m := range rows {
		if m == 0 || rows[m] != rows[m-1]+1 {
			count++
		}
	}
	if 2*count >= len(rows) {
		s.all = rows
		return s, true
	}
	s.runs = make([][2]uint32, 0, count)
	for m, row := range rows {
		if m == 0 || row != rows[m-1]+1 {
			s.runs = append(s.runs, [2]uint32{uint32(m), row})
		}
	}
	return s, false
}

// Len returns the number of markers.
func (s *SourceRows) Len() int { return s.n }

// At returns the row of marker m.
func (s *SourceRows) At(m int) uint32 {
	if s.all != nil {
		return s.all[m]
	}
	k := sort.Search(len(s.runs), func(k int) bool { return int(s.runs[k][0]) > m }) - 1
	return s.runs[k][1] + uint32(m) - s.runs[k][0]
}
