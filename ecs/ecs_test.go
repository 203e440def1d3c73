package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func TestColumnKeepsCapacity(t *testing.T) {
	c := NewColumn[uint32]("c")
	c.Resize(100)
	c.Set(7, 9)
	p := &c.Slice()[0]
	c.Reset()
	if c.Len() != 0 {
		t.Fatalf("reset column has %d rows", c.Len())
	}
	if got := c.Resize(50); &got[0] != p || got[7] != 0 {
		t.Errorf("resize after reset: memory reused %v, row 7 is %d, want true and 0", &got[0] == p, got[7])
	}
	c.Set(7, 9)
	if got := c.Scratch(60); &got[0] != p {
		t.Error("scratch took fresh memory though the old was large enough")
	}
}

func TestColumnRawRoundTrip(t *testing.T) {
	a := NewColumn[[2]uint64]("a")
	a.Append([2]uint64{1, 2})
	a.Append([2]uint64{3, 1 << 60})
	b := NewColumn[[2]uint64]("b")
	if err := b.AdoptRaw(a.Raw()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Slice(), b.Slice()) {
		t.Errorf("got %v, want %v", b.Slice(), a.Slice())
	}
	if err := b.AdoptRaw(a.Raw()[:15]); err == nil {
		t.Error("15 bytes were taken as rows of 16")
	}
	if err := b.AdoptRaw(a.Raw()[1:17]); err == nil {
		t.Error("bytes that are not aligned were taken")
	}
}

func TestSymbols(t *testing.T) {
	s := NewSymbols()
	proptest.Check(t, func(t *rapid.T) {
		str := rapid.SliceOf(rapid.Byte()).Draw(t, "name")
		sym := s.Intern(str)
		if got := s.Bytes(sym); string(got) != string(str) {
			t.Fatalf("symbol %d is %q, want %q", sym, got, str)
		}
		if again := s.Intern(str); again != sym {
			t.Fatalf("%q has symbols %d and %d", str, sym, again)
		}
		if found, ok := s.Find(str); !ok || found != sym {
			t.Fatalf("find of %q gives %d, %v", str, found, ok)
		}
	})
	if _, ok := s.Find([]byte("never interned \x00")); ok {
		t.Error("a string that was never interned was found")
	}
	if got := s.Bytes(Symbol(1 << 30)); got != nil {
		t.Errorf("an unknown symbol gives %q", got)
	}
}

func TestSymbolsCheckFindsDamage(t *testing.T) {
	s := NewSymbols()
	s.InternString("abc")
	s.InternString("de")
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	s.ends.Set(1, 99)
	if err := s.Check(); err == nil {
		t.Error("a symbol that ends outside the arena was taken")
	}
}

// A relation built from unsorted edges equals a map of sets.
func TestBuilderEqualsMap(t *testing.T) {
	stronger := func(a, b uint8) bool { return a < b }
	proptest.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 20).Draw(t, "rows")
		n := rapid.IntRange(0, 100).Draw(t, "edges")
		var b Builder
		want := make([]map[uint32]uint8, rows)
		for i := range want {
			want[i] = map[uint32]uint8{}
		}
		for range n {
			from := rapid.IntRange(0, rows-1).Draw(t, "from")
			to := uint32(rapid.IntRange(0, rows-1).Draw(t, "to"))
			class := uint8(rapid.IntRange(0, 3).Draw(t, "class"))
			b.Add(uint32(from), to, class)
			if old, ok := want[from][to]; !ok || stronger(class, old) {
				want[from][to] = class
			}
		}
		r := NewRelation("r")
		b.Build(&r, rows, stronger)
		if err := r.Check(rows, rows); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			row := r.Row(i)
			if !slices.IsSorted(row) {
				t.Fatalf("row %d is not partitioned by class: %x", i, row)
			}
			if len(row) != len(want[i]) {
				t.Fatalf("row %d has %d edges, want %d", i, len(row), len(want[i]))
			}
			for _, w := range row {
				if class, ok := want[i][w&TargetMask]; !ok || class != uint8(w>>ClassShift) {
					t.Fatalf("row %d has edge %x, want class %d", i, w, class)
				}
			}
		}
	})
}

func TestRelationCheckFindsDamage(t *testing.T) {
	r := NewRelation("r")
	r.AppendRow(nil)
	r.AppendRow([]uint32{Word(0, 0)})
	if err := r.Check(2, 2); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(3, 2); err == nil {
		t.Error("a relation over two rows was taken for three")
	}
	if err := r.Check(2, 0); err == nil {
		t.Error("an edge to a row that does not exist was taken")
	}
}

// An index equals a scan, whatever the share of each key.
func TestIndexEqualsScan(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		keys := rapid.IntRange(1, 200).Draw(t, "keys")
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) uint16 {
			return uint16(min(rapid.IntRange(0, keys-1).Draw(t, "k"), rapid.IntRange(0, keys-1).Draw(t, "k2")))
		}), 1, 3000).Draw(t, "rows")
		x := BuildIndex(rows, keys, 0)
		total := 0
		for k := range keys {
			var want, got []uint32
			for i, r := range rows {
				if int(r) == k {
					want = append(want, uint32(i))
				}
			}
			for b := range x.Set(k).Batches() {
				got = append(got, b...)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("key %d: %v, want %v", k, got, want)
			}
			total += x.Set(k).Len()
		}
		if total != len(rows) {
			t.Fatalf("sets have %d rows in all, want %d", total, len(rows))
		}
	})
}

func TestSetAlgebra(t *testing.T) {
	a, b := setOf([]uint32{1, 2, 3, 70000}), SetOfRange(2, 5)
	list := func(s Set) (out []uint32) {
		for x := range s.Batches() {
			out = append(out, x...)
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  Set
		want []uint32
	}{
		{"and", a.And(b), []uint32{2, 3}}, {"or", a.Or(b), []uint32{1, 2, 3, 4, 70000}}, {"and not", a.AndNot(b), []uint32{1, 70000}},
		{"and with empty", a.And(Set{}), nil}, {"empty or", Set{}.Or(b), []uint32{2, 3, 4}}, {"and not empty", b.AndNot(Set{}), []uint32{2, 3, 4}},
	} {
		if got := list(c.got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSchedule(t *testing.T) {
	type world struct{ trail []string }
	step := func(name string, err error) func(context.Context, *world) error {
		return func(_ context.Context, w *world) error { w.trail = append(w.trail, name); return err }
	}
	good := Schedule[world]{Given: []Component{"in"}, Systems: []System[world]{
		{Name: "a", Run: step("a", nil), Reads: []Component{"in"}, Writes: []Component{"x"}},
		{Name: "b", Run: step("b", nil), Reads: []Component{"x"}},
	}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	var w world
	times, err := good.Run(context.Background(), &w, nil)
	if err != nil || fmt.Sprint(w.trail) != "[a b]" || len(times) != 2 {
		t.Errorf("trail %v, %d timings, error %v", w.trail, len(times), err)
	}
	swapped := Schedule[world]{Given: good.Given, Systems: []System[world]{good.Systems[1], good.Systems[0]}}
	if err := swapped.Check(); err == nil || !strings.Contains(err.Error(), "reads x before") {
		t.Errorf("swapped systems: error %v", err)
	}
	twice := Schedule[world]{Systems: []System[world]{{Name: "a"}, {Name: "a"}}}
	if err := twice.Check(); err == nil {
		t.Error("a system scheduled twice was taken")
	}
	boom := errors.New("boom")
	failing := Schedule[world]{Systems: []System[world]{{Name: "a", Run: step("a", boom)}, {Name: "b", Run: step("b", nil)}}}
	w = world{}
	if _, err := failing.Run(context.Background(), &w, nil); !errors.Is(err, boom) || len(w.trail) != 1 {
		t.Errorf("error %v after %v", err, w.trail)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := good.Run(ctx, &w, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled run gives %v", err)
	}
}

// Names that were added as unique do not count as entries of the hash table,
// and interning goes on to find the others.
func TestSymbolsUniqueAndInterned(t *testing.T) {
	s := NewSymbols()
	a := s.InternString("a")
	for i := range 5000 {
		s.AddUnique(fmt.Appendf(nil, "u%d", i))
	}
	s.Reserve(20_000, 100_000)
	for i := range 3000 {
		first := s.InternString(fmt.Sprint("n", i))
		if again := s.InternString(fmt.Sprint("n", i)); again != first || s.String(first) != fmt.Sprint("n", i) {
			t.Fatalf("n%d is symbol %d, then %d (%s)", i, first, again, s.String(again))
		}
	}
	if got := s.InternString("a"); got != a {
		t.Errorf("a is symbol %d, was %d", got, a)
	}
}

// Filter keeps what it is told to, and the order.
func TestFilter(t *testing.T) {
	r := NewRelation("r")
	for _, row := range [][]uint32{{1, 2}, {}, {3, 4, 5}, {6}} {
		r.AppendRow(row)
	}
	r.Filter(func(row int, word uint32) bool { return word%2 == 0 && row < 3 })
	if got := fmt.Sprint(r.Row(0), r.Row(1), r.Row(2), r.Row(3), r.Len()); got != "[2] [] [4] [] 2" {
		t.Errorf("got %s", got)
	}
}
