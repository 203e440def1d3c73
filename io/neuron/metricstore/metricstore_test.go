package metricstore

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"perfsim/ecs/golden"
	"perfsim/ecs/proptest"
)

// TestTypes pins the documented numbers and names, and that exactly the
// eighteen whose names are not public are marked as ours.
func TestTypes(t *testing.T) {
	for n, name := range map[MetricType]string{
		0: "PostUnrollInstructionCount", 1: "FullUnrollInstructionCount", 2: "TotalSplitSbNodesCount",
		3: "CanSplitSbNodesCount", 4: "VNSplitterDeadNodesCount", 5: "ShrunkNodesCount", 6: "ShrinkDnSavings",
		7: "mlBPCGSize", 8: "agRGCGSize", 27: "PreGcaDMAAccesses", 28: "PostGcaDMAAccesses",
		29: "PsumRenumberLocationsCount", 30: "DramRenumberLocationsCount", 31: "DramSpillSpace",
		32: "DramAlignedSpillSpace", 33: "DramLocalHWM", 34: "DramLocalTotalSize", 35: "DramSharedHWM",
		36: "DramSharedTotalSize", 37: "SbRenumberLocationsCount", 38: "SplitSelectCount", 39: "TSPtoACTCount",
		40: "COPYtoACTCount", 41: "RECIPROCALtoACTCount", 42: "PostSchedEstLatency", 43: "TotalAllocatedDramSize",
		44: "TotalRuntimeDramSize", 45: "TotalCodeSize", 46: "TotalDescriptorSize", 47: "NumUnassignedInstructions",
		48: "NumPoolInstructions", 49: "NumActivationInstructions", 50: "NumPEInstructions", 51: "NumDMAInstructions",
		52: "NumDVEInstructions", 53: "NumSPInstructions",
	} {
		if n.Name() != name || n.Ours() || n.String() != "backend::"+name {
			t.Errorf("%d: %s %v", n, n, n.Ours())
		}
	}
	if NumTypes != 54 || PostSchedEstLatency != 42 || NumSPInstructions != 53 {
		t.Error(NumTypes, PostSchedEstLatency)
	}
	seen := map[string]bool{}
	for n := range MetricType(NumTypes) {
		if got, ok := ParseMetricType(n.String()); !ok || got != n {
			t.Errorf("%v parses as %v", n, got)
		}
		if seen[n.Name()] {
			t.Errorf("%v twice", n)
		}
		seen[n.Name()] = true
		if n >= 9 && n <= 26 && !(n.Ours() && strings.HasSuffix(n.Name(), "DMASize")) {
			t.Errorf("%d: %v", n, n)
		}
	}
	if MetricType(54).Name() != "Unknown" {
		t.Error(MetricType(54))
	}
	if _, ok := ParseMetricType("x"); ok {
		t.Error("x is a metric")
	}
	for i, name := range []string{"Sum", "Average", "Custom", "None"} {
		if a, ok := parseAggregation(name); !ok || int(a) != i || a.String() != name {
			t.Error(name, a)
		}
	}
}

func TestValueText(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{float(0), "0.0"}, {float(5), "5.0"}, {float(-2.5), "-2.5"}, {float(0.1), "0.10000000149011612"},
		{float(16777216), "16777216.0"}, {double(1e14), "100000000000000.0"}, {double(1e15), "1e+15"}, {double(1e-4), "0.0001"},
		{double(9e-5), "9e-05"}, {double(1.5e300), "1.5e+300"}, {Value{}, "0.0"},
		{Uint32(math.MaxUint32), "4294967295"}, {Int64(math.MinInt64), "-9223372036854775808"},
		{Uint64(math.MaxUint64), "18446744073709551615"},
		{double(math.NaN()), "null"}, {double(math.Inf(-1)), "null"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.v.Kind(), got, c.want)
		}
	}
	for _, c := range []struct {
		v    Value
		want uint64
		ok   bool
	}{
		{float(3), 3, true}, {float(3.5), 0, false}, {float(-1), 0, false}, {double(math.NaN()), 0, false}, {double(1 << 63 * 2.0), 0, false},
		{Int64(7), 7, true}, {Int64(-7), 0, false}, {Uint64(math.MaxUint64), math.MaxUint64, true}, {Uint32(9), 9, true},
	} {
		if got, ok := c.v.Uint64(); ok != c.ok || ok && got != c.want {
			t.Errorf("%v: %d %v", c.v, got, ok)
		}
	}
}

func TestPlus(t *testing.T) {
	for _, c := range []struct{ a, b, want Value }{
		{Uint32(1), Uint32(2), Uint32(3)},
		{Uint32(math.MaxUint32), Uint32(1), Uint64(1 << 32)},
		{Uint64(math.MaxUint64), Uint64(1), double(1 << 63 * 2.0)},
		{Int64(-1), Uint64(5), Int64(4)},
		{Int64(math.MaxInt64), Int64(1), double(1 << 63)},
		{Int64(1), Uint64(math.MaxUint64), double(1 << 63 * 2.0)},
		{Int64(5), Int64(0), Int64(5)},
		{Int64(-5), Int64(-6), Int64(-11)},
		{float(0.5), Uint32(1), float(1.5)},
	} {
		if got := c.a.plus(c.b); got != c.want {
			t.Errorf("%v %v + %v %v = %v %v, want %v %v", c.a.Kind(), c.a, c.b.Kind(), c.b, got.Kind(), got, c.want.Kind(), c.want)
		}
	}
}

func text(t testing.TB, s *Store, l Layout) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLastWinsUnderOneKey(t *testing.T) {
	s := New()
	s.Add(PostSchedEstLatency, "sg0000", Uint64(900), Custom) // before allocation
	s.Add(PostSchedEstLatency, "sg0000", Uint64(1000), Custom)
	if v, ok := s.Get(PostSchedEstLatency, "sg0000", Custom); !ok || v != Uint64(1000) || s.Len() != 1 {
		t.Error(v, ok, s.Len())
	}
	// The aggregation, the name and the type are all in the key. A Sum is
	// not summed by adding.
	s.Add(PostSchedEstLatency, "sg0000", Uint64(1), Sum)
	s.Add(PostSchedEstLatency, "sg0000", Uint64(2), Sum)
	s.Add(PostSchedEstLatency, "sg0001", Uint64(3), Custom)
	s.Add(45, "sg0000", Uint32(4), Custom)
	if v, _ := s.Get(PostSchedEstLatency, "sg0000", Sum); v != Uint64(2) || s.Len() != 4 {
		t.Error(v, s.Len())
	}
	if _, ok := s.Get(PostSchedEstLatency, "sg0002", Custom); ok {
		t.Error("found what was not added")
	}
}

// TestLayouts compares the documented layouts literally.
func TestLayouts(t *testing.T) {
	s := New()
	s.Add(PostSchedEstLatency, "sg0000", Uint64(1<<60+1), Custom)
	s.Add(NumPEInstructions, "sg0000", Uint32(7), None)
	s.Set(Key{"compiletime::full::Unroll", "sg0000", Sum}, float(1.5))
	s.Set(Key{"plain", "a\"b", None}, Int64(-1))
	const flat = `{
  "a\"b": {
    "plain": -1
  },
  "sg0000": {
    "backend::NumPEInstructions": 7,
    "backend::PostSchedEstLatency": 1152921504606846977,
    "compiletime::full::Unroll": 1.5
  }
}
`
	const nested = `{
  "a\"b": {
    "plain": -1
  },
  "sg0000": {
    "backend": {
      "NumPEInstructions": 7,
      "PostSchedEstLatency": 1152921504606846977
    },
    "compiletime": {
      "full::Unroll": 1.5
    }
  }
}
`
	const lossless = `{"perfsim_metric_store": 1, "entries": [
  {"name": "a\"b", "type": "plain", "aggregation": "None", "kind": "int64", "value": -1},
  {"name": "sg0000", "type": "backend::NumPEInstructions", "aggregation": "None", "kind": "uint32", "value": 7},
  {"name": "sg0000", "type": "backend::PostSchedEstLatency", "aggregation": "Custom", "kind": "uint64", "value": 1152921504606846977},
  {"name": "sg0000", "type": "compiletime::full::Unroll", "aggregation": "Sum", "kind": "float", "value": 1.5}
]}
`
	for l, want := range map[Layout]string{Flat: flat, Nested: nested, Lossless: lossless} {
		if d := cmp.Diff(want, text(t, s, l)); d != "" {
			t.Errorf("layout %d: %s", l, d)
		}
	}
	var b bytes.Buffer
	s.WriteJSON(&b, true)
	if b.String() != nested {
		t.Error("WriteJSON nested")
	}
	b.Reset()
	s.WriteJSON(&b, false)
	if b.String() != flat {
		t.Error("WriteJSON flat")
	}
	if got := text(t, New(), Nested); got != "{}\n" {
		t.Errorf("empty: %q", got)
	}
	if err := s.Write(&b, 9); err == nil {
		t.Error("layout 9")
	}
}

// TestNestedAggregation works the documented rules by hand: entries of one
// metric meet in the order Sum, Average, Custom, None.
func TestNestedAggregation(t *testing.T) {
	type add struct {
		t   MetricType
		agg Aggregation
		v   Value
	}
	const X, Y MetricType = 31, 33
	for _, c := range []struct {
		name string
		adds []add
		want string
	}{
		{"one average", []add{{X, Average, Uint64(10)}}, `{"Count":1,"DramSpillSpace":10}`},
		// Y sorts before X. The Count is shared by all averages.
		{"two averages", []add{{X, Average, Uint64(10)}, {Y, Average, Uint64(20)}}, `{"Count":2,"DramLocalHWM":20,"DramSpillSpace":10}`},
		// A sum of 4, then an average of 10 with a count of 0: (4*0+10)/1.
		{"sum then average", []add{{X, Sum, Uint64(4)}, {X, Average, Uint64(10)}}, `{"Count":1,"DramSpillSpace":10.0}`},
		// Y's average makes the count 1, then X: (4*1+10)/2 = 7.
		{"shared count", []add{{Y, Average, Uint64(1)}, {X, Sum, Uint64(4)}, {X, Average, Uint64(10)}}, `{"Count":2,"DramLocalHWM":1,"DramSpillSpace":7.0}`},
		{"custom over sum", []add{{X, Sum, Uint64(4)}, {X, Custom, Uint64(5)}}, `{"DramSpillSpace":5}`},
		{"none over custom", []add{{X, None, Uint64(6)}, {X, Custom, Uint64(5)}}, `{"DramSpillSpace":6}`},
	} {
		s := New()
		for _, a := range c.adds {
			s.Add(a.t, "m", a.v, a.agg)
		}
		got := strings.NewReplacer(" ", "", "\n", "").Replace(text(t, s, Nested))
		if want := `{"m":{"backend":` + c.want + `}}`; got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
	// A sum is added to what is there, which may be the Count of an average.
	s := New()
	s.Set(Key{"a::A", "m", Average}, Int64(2))
	s.Set(Key{"a::Count", "m", Sum}, Int64(3))
	if got := text(t, s, Nested); !strings.Contains(got, `"Count": 4`) {
		t.Error(got)
	}
}

// TestKeysAreUTF8: what a file cannot hold no key holds.
func TestKeysAreUTF8(t *testing.T) {
	s := New()
	s.Set(Key{"a::b", "m\xff", Sum}, Int64(3))
	s.Set(Key{"a::b", "m\xfe\xff", Sum}, Int64(4)) // the same key: m\uFFFD
	s.Set(Key{"a::\xc3\xa9\xc3", "m", Sum}, Int64(5))
	want := []Entry{{Key{"a::é\uFFFD", "m", Sum}, Int64(5)}, {Key{"a::b", "m\uFFFD", Sum}, Int64(4)}}
	if d := cmp.Diff(want, s.Entries(), cmp.AllowUnexported(Value{})); d != "" {
		t.Error(d)
	}
	if v, ok := s.Lookup(Key{"a::b", "m\xff", Sum}); !ok || v != Int64(4) {
		t.Errorf("looked up by what was set: %v, %v", v, ok)
	}
}

func TestConflict(t *testing.T) {
	for _, types := range [][2]string{{"a", "a::b"}, {"a::b", "a"}} {
		s := New()
		for _, ty := range types {
			s.Set(Key{ty, "m", None}, Int64(1))
		}
		var b bytes.Buffer
		if err := s.Write(&b, Nested); err == nil || b.Len() > 0 {
			t.Errorf("%v: %q", types, b.String())
		}
		if err := s.Write(&b, Flat); err != nil {
			t.Error(err)
		}
	}
}

func TestReadLayouts(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Entry
		skipped    []string
	}{
		{"flat", `{"m":{"backend::X":1,"backend::Y":-2,"c::d::e":0.5}}`, []Entry{
			{Key{"backend::X", "m", None}, Uint64(1)}, {Key{"backend::Y", "m", None}, Int64(-2)}, {Key{"c::d::e", "m", None}, double(0.5)}}, nil},
		{"nested", `{"m":{"backend":{"X":18446744073709551615}}}`, []Entry{{Key{"backend::X", "m", None}, Uint64(math.MaxUint64)}}, nil},
		{"nested deep", `{"m":{"a":{"b":{"c":1}}}}`, []Entry{{Key{"a::b::c", "m", None}, Uint64(1)}}, nil},
		{"nested with ::", `{"m":{"a":{"b::c":1}}}`, []Entry{{Key{"a::b::c", "m", None}, Uint64(1)}}, nil},
		// The real tensorizer file.
		{"tensorizer", `{"Sum":{"compiletime":{"ParAxesAnnotation":1.25}},"None":{"compiletime":{"N":3}}}`, []Entry{
			{Key{"compiletime::N", "dflt", None}, Uint64(3)}, {Key{"compiletime::ParAxesAnnotation", "dflt", Sum}, double(1.25)}}, nil},
		{"aggregation, name, type", `{"Average":{"m":{"backend::X":1}}}`, []Entry{{Key{"backend::X", "m", Average}, Uint64(1)}}, nil},
		{"aggregation, name, group, metric", `{"Custom":{"m":{"backend":{"X":1}}}}`, []Entry{{Key{"backend::X", "m", Custom}, Uint64(1)}}, nil},
		{"module called Sum", `{"Sum":{"backend::X":1}}`, []Entry{{Key{"backend::X", "Sum", None}, Uint64(1)}}, nil},
		{"time stamp", `{"timestamp":"2026-01-01","v":2,"m":{"a::b":1,"s":null,"l":[1]}}`, []Entry{
			{Key{"v", "dflt", None}, Uint64(2)}, {Key{"a::b", "m", None}, Uint64(1)}}, []string{"timestamp", "m/s", "m/l"}},
		{"last of equal keys wins", `{"m":{"a::b":1,"a::b":2}}`, []Entry{{Key{"a::b", "m", None}, Uint64(2)}}, nil},
		{"exponent", `{"m":{"a::b":1e3,"a::c":1E400,"a::d":-0}}`, []Entry{
			{Key{"a::b", "m", None}, double(1000)}, {Key{"a::d", "m", None}, Int64(0)}}, []string{"m/a::c"}},
		{"beyond 64 bits", `{"m":{"a::b":18446744073709551616}}`, []Entry{{Key{"a::b", "m", None}, double(1 << 63 * 2.0)}}, nil},
		{"not UTF-8", "{\"m\xff\":{\"a::b\":1},\"m\xfe\":{\"a::b\":2,\"a::\xff\":3}}", []Entry{
			{Key{"a::b", "m\uFFFD", None}, Uint64(2)}, {Key{"a::\uFFFD", "m\uFFFD", None}, Uint64(3)}}, nil},
		{"escapes", `{"m\u0041\"":{"a::\n":1}}`, []Entry{{Key{"a::\n", `mA"`, None}, Uint64(1)}}, nil},
		{"empty", `{}`, []Entry{}, nil},
	} {
		s := New()
		rep, err := s.Read(strings.NewReader(c.text), ReadOptions{DefaultName: "dflt"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, s.Entries(), cmp.AllowUnexported(Value{})); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if d := cmp.Diff(c.skipped, rep.Skipped); d != "" || rep.Entries != len(c.want) {
			t.Errorf("%s: %s, %d", c.name, d, rep.Entries)
		}
	}
}

// TestDocumentedReadBackLoses shows what the documented reader does to a file.
func TestDocumentedReadBackLoses(t *testing.T) {
	s := New()
	rep, err := s.Read(strings.NewReader(`{"m":{"backend":{"X":16777217,"Y":0.1,"Z":1e300},"compiletime":{"A":1}},"when":"now"}`), ReadOptions{Documented: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Key{"backend::X", "m", None}, float(16777216)}, // 2^24+1 is gone
		{Key{"backend::Y", "m", None}, float(0.1)},
		{Key{"backend::Z", "m", None}, double(math.Inf(1))},
	}
	if d := cmp.Diff(want, s.Entries(), cmp.AllowUnexported(Value{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"m/compiletime", "when"}, rep.Skipped); d != "" {
		t.Error(d)
	}
	for v, name := range map[string]string{`"x"`: "string", "null": "null", "true": "boolean", "[]": "array", "{}": "object"} {
		_, err := s.Read(strings.NewReader(`{"m":{"backend":{"X":`+v+`}}}`), ReadOptions{Documented: true})
		if err == nil || !strings.Contains(err.Error(), "type must be number, but is "+name) {
			t.Error(v, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "line 1, column 1",
		"{\n \"a\": 01}":            "line 2, column 8",
		"{\"a\": nan}":              "line 1",
		"[1]":                       "no object but array",
		"7":                         "no object but number",
		"{} x":                      "line 1, column 4",
		"{\"a\":{\"b\":1}":          "line 1",
		"\xef\xbb\xbf{}":            "line 1, column 1",
		strings.Repeat("[", 100000): "metric store",
		strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400): "levels deep",
		`{"perfsim_metric_store": 2, "entries": []}`:                  "version 2",
		`{"perfsim_metric_store": 1}`:                                 `no list "entries"`,
		`{"perfsim_metric_store": 1, "entries": [1]}`:                 "entry 0",
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Max","kind":"int64","value":1}]}`:    "unknown aggregation",
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Sum","kind":"int8","value":1}]}`:     "1 is no int8",
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Sum","kind":"uint32","value":-1}]}`:  "is no uint32",
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Sum","kind":"uint64","value":1.0}]}`: "is no uint64",
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Sum","kind":"float","value":"1"}]}`:  "no number",
		strings.Repeat(" ", maxFile+1): "larger than",
	} {
		s := New()
		_, err := s.Read(strings.NewReader(in), ReadOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %.200v, want %q", in, err, want)
		}
		if s.Len() != 0 {
			t.Errorf("%.40q: %d entries", in, s.Len())
		}
	}
	two := `{"name":"m","type":"t","aggregation":"Sum","kind":"int64","value":1}`
	if _, err := New().Read(strings.NewReader(`{"perfsim_metric_store":1,"entries":[`+two+`,`+two+`]}`), ReadOptions{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	s := New()
	if _, found, err := s.MergeTensorizer(dir, ReadOptions{}); found || err != nil {
		t.Error(found, err)
	}
	path := filepath.Join(dir, TensorizerFile)
	os.WriteFile(path, []byte(`{"Sum":{"compiletime":{"A":1}}}`), 0o644)
	s.Add(PostSchedEstLatency, "m", Uint64(5), Custom)
	rep, found, err := s.MergeTensorizer(dir, ReadOptions{})
	if !found || err != nil || rep.Entries != 1 || s.Len() != 2 {
		t.Error(rep, found, err)
	}
	os.WriteFile(path, []byte(`{`), 0o644)
	if _, _, err := s.MergeTensorizer(dir, ReadOptions{}); err == nil || !strings.Contains(err.Error(), path) || s.Len() != 2 {
		t.Error(err)
	}
	out := filepath.Join(dir, GlobalFile)
	if err := s.WriteFile(out, Nested); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(out); string(b) != text(t, s, Nested) {
		t.Error(string(b))
	}
	if err := s.WriteFile(filepath.Join(dir, "no", "x"), Nested); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// TestGolden keeps one whole store in the three layouts.
func TestGolden(t *testing.T) {
	s := New()
	for i := range MetricType(NumTypes) {
		v := []Value{Uint64(uint64(i) * 1_000_003), float(float32(i) / 8), Uint32(uint32(i)), Int64(-int64(i))}[i%4]
		s.Add(i, "sg0000", v, Aggregation(i/4%4))
	}
	s.Add(PostSchedEstLatency, "sg0001", Uint64(123456), Custom)
	for l, name := range map[Layout]string{Flat: "flat.json", Nested: "nested.json", Lossless: "lossless.json"} {
		golden.Check(t, filepath.Join("testdata", name), []byte(text(t, s, l)))
	}
}

func TestConcurrent(t *testing.T) {
	s := New()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				s.Add(PostSchedEstLatency, fmt.Sprint("m", i%50), Uint64(uint64(g)), Custom)
				s.Get(PostSchedEstLatency, "m0", Custom)
				if i%100 == 0 {
					s.Write(&bytes.Buffer{}, Nested)
					s.Merge(s)
				}
			}
		})
	}
	wg.Wait()
	if s.Len() != 50 {
		t.Error(s.Len())
	}
}

func draw(rt *rapid.T) *Store {
	s := New()
	for range rapid.IntRange(0, 12).Draw(rt, "n") {
		k := Key{
			Type:        rapid.SampledFrom([]string{"backend::", "compiletime::", "a::b::"}).Draw(rt, "group") + rapid.StringN(1, 5, 20).Draw(rt, "type"),
			Name:        "m" + rapid.String().Draw(rt, "name"),
			Aggregation: Aggregation(rapid.IntRange(0, 3).Draw(rt, "agg")),
		}
		v := rapid.OneOf(
			rapid.Map(rapid.Float32().Filter(func(f float32) bool { return f == f && !math.IsInf(float64(f), 0) }), float),
			rapid.Map(rapid.Uint32(), Uint32), rapid.Map(rapid.Int64(), Int64), rapid.Map(rapid.Uint64(), Uint64),
		).Draw(rt, "value")
		s.Set(k, v)
	}
	return s
}

// TestRoundTripRandom: write, read, write gives the same bytes in every
// layout, and the lossless one the same store.
func TestRoundTripRandom(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		s := draw(rt)
		for _, l := range []Layout{Flat, Nested, Lossless} {
			first := text(t, s, l)
			back := New()
			rep, err := back.Read(strings.NewReader(first), ReadOptions{})
			if err != nil || len(rep.Skipped) > 0 {
				rt.Fatal(l, rep, err, first)
			}
			if again := text(t, back, l); again != first {
				rt.Fatalf("layout %d: %s", l, cmp.Diff(first, again))
			}
			if d := cmp.Diff(s.Entries(), back.Entries(), cmp.AllowUnexported(Value{})); l == Lossless && d != "" {
				rt.Fatal(d)
			}
		}
	})
}

// FuzzRead: no file makes the reader panic, and what it takes is written and
// read back the same.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"m":{"backend::X":1}}`, `{"m":{"backend":{"X":1.5,"Count":2}}}`, `{"Sum":{"compiletime":{"A":1e3}}}`,
		`{"perfsim_metric_store": 1, "entries": [{"name":"m","type":"t","aggregation":"Sum","kind":"float","value":null}]}`,
		`{"t":"now","v":-1}`, `{"a":{"b":01}}`, `{"\ud800":{"a::b":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		New().Read(bytes.NewReader(data), ReadOptions{Documented: true})
		s := New()
		if _, err := s.Read(bytes.NewReader(data), ReadOptions{}); err != nil {
			if s.Len() > 0 {
				t.Fatal("an error, and entries")
			}
			return
		}
		first := text(t, s, Lossless)
		back := New()
		if _, err := back.Read(strings.NewReader(first), ReadOptions{}); err != nil {
			t.Fatal(err, first)
		}
		if again := text(t, back, Lossless); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
	})
}
