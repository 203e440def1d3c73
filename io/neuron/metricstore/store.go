package metricstore

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Key names an entry.
type Key struct {
	Type        string // "backend::PostSchedEstLatency"
	Name        string // the module
	Aggregation Aggregation
}

// Entry is a key with its value.
type Entry struct {
	Key
	Value Value
}

// compare orders entries by name, type and aggregation: the order of the
// files, with aggregations of one metric in the order of their numbers.
func (k Key) compare(l Key) int {
	return cmp.Or(
		strings.Compare(k.Name, l.Name),
		strings.Compare(k.Type, l.Type),
		cmp.Compare(k.Aggregation, l.Aggregation),
	)
}

// valid makes the texts of a key UTF-8: a run of bytes that are none becomes
// one U+FFFD, as files can hold nothing else.
func (k Key) valid() Key {
	k.Type, k.Name = strings.ToValidUTF8(k.Type, "\uFFFD"), strings.ToValidUTF8(k.Name, "\uFFFD")
	return k
}

// Store holds entries, whose types and names are UTF-8: see Set. Make one with
// New; it must not be copied.
type Store struct {
	mu sync.RWMutex
	m  map[Key]Value
}

// New returns an empty store.
func New() *Store { return &Store{m: make(map[Key]Value)} }

// Add sets the value of (t, name, agg), replacing an earlier one: the last
// wins, whatever the aggregation.
func (s *Store) Add(t MetricType, name string, v Value, agg Aggregation) {
	s.Set(Key{t.String(), name, agg}, v)
}

// Set is Add for a metric of any type string, such as a front end's
// "compiletime::…". In types and names a run of bytes that are not UTF-8
// becomes one U+FFFD, so keys that differ only in such bytes are one.
func (s *Store) Set(k Key, v Value) {
	k = k.valid()
	s.mu.Lock()
	s.m[k] = v
	s.mu.Unlock()
}

// Get returns the value of (t, name, agg).
func (s *Store) Get(t MetricType, name string, agg Aggregation) (Value, bool) {
	return s.Lookup(Key{t.String(), name, agg})
}

// Lookup returns the value of a key.
func (s *Store) Lookup(k Key) (Value, bool) {
	k = k.valid()
	s.mu.RLock()
	v, ok := s.m[k]
	s.mu.RUnlock()
	return v, ok
}

// Len returns the number of entries.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.m)
}

// Entries returns all entries sorted by name, type and aggregation: a copy of
// one moment.
func (s *Store) Entries() []Entry {
	s.mu.RLock()
	out := make([]Entry, 0, len(s.m))
	for k, v := range s.m {
		out = append(out, Entry{k, v})
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b Entry) int { return a.compare(b.Key) })
	return out
}

// Merge adds all entries of other, which replace those under equal keys.
func (s *Store) Merge(other *Store) {
	for _, e := range other.Entries() { // a copy, so that merging with itself is harmless
		s.Set(e.Key, e.Value)
	}
}
