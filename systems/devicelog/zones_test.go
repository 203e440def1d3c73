package devicelog

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/zonelog"
	"perfsim/ecs/proptest"
	"perfsim/io/tenstorrent/profilelog"
)

func TestSummarize(t *testing.T) {
	for _, tc := range []struct {
		v    []uint64
		want Summary
	}{
		{nil, Summary{}},
		{[]uint64{7}, Summary{1, 7, 7, 7, 7, 7, 0, 7}},
		{[]uint64{4, 1}, Summary{2, 5, 1, 4, 2.5, 2.5, 1.5, 4}},
		{[]uint64{3, 1, 2, 10}, Summary{4, 16, 1, 10, 4, 2.5, math.Sqrt(12.5), 10}},
		{[]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 100}, Summary{20, 290, 1, 100, 14.5, 10.5, math.Sqrt(413.25), 19}},
		{[]uint64{math.MaxUint64, math.MaxUint64}, Summary{2, math.MaxUint64, math.MaxUint64, math.MaxUint64, 1 << 64, 1 << 64, 0, math.MaxUint64}},
	} {
		if got := summarize(slices.Clone(tc.v)); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.v, got, tc.want)
		}
	}
}

func generated(t testing.TB, o profilelog.GenOptions) (*zonelog.DeviceLog, map[string]profilelog.GenTotal) {
	t.Helper()
	var buf bytes.Buffer
	_, totals, err := profilelog.Generate(&buf, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := profilelog.Read(context.Background(), &buf, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l, totals
}

// Statistics of every grouping against a plain recomputation over a map of
// lists, and totals against what the generator counted.
func TestZonesAgainstPlain(t *testing.T) {
	l, totals := generated(t, profilelog.GenOptions{Rows: 4000, Seed: 3, Devices: 2, Width: 2, Height: 2, LoseEnds: 41})
	type val struct {
		v    []uint64
		self uint64
		bad  uint64
	}
	for by := By(0); by < 32; by++ {
		want := map[string]*val{}
		name := func(lane, row int) string {
			ln := l.Lanes[lane]
			s := ""
			if by&ByZone != 0 {
				k := l.Defs[l.Def[row]].Key
				s += fmt.Sprint(l.ZoneName(k), ":", l.Keys[k].Line)
			}
			if by&ByRisc != 0 {
				s += " " + ln.Risc
			}
			if by&(ByDevice|ByCore) != 0 {
				s += fmt.Sprint(" d", ln.Device)
			}
			if by&ByCore != 0 {
				s += fmt.Sprint(" c", ln.X, ",", ln.Y)
			}
			if by&ByLaunchID != 0 {
				s += fmt.Sprint(" r", l.Run[row])
			}
			return s
		}
		get := func(n string) *val {
			if want[n] == nil {
				want[n] = &val{}
			}
			return want[n]
		}
		for z := range l.Zones.Len() {
			lane := l.LaneOfZone(z)
			v := get(name(lane, int(l.Zones.Begin[z])))
			v.v = append(v.v, l.Dur(z))
			self := l.Dur(z)
			for c := range l.Zones.Len() {
				if c > z && c < z+20 && l.Zones.Parent[c] == uint32(z) {
					self -= l.Dur(c)
				}
			}
			v.self += self
		}
		for _, u := range append(slices.Clone(l.UnmatchedStart), l.UnmatchedEnd...) {
			get(name(l.LaneOfMarker(int(u)), int(u))).bad++
		}
		rows, err := Zones(context.Background(), l, by)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != len(want) {
			t.Fatalf("by %d: %d groups, want %d", by, len(rows), len(want))
		}
		for _, r := range rows {
			s := ""
			if by&ByZone != 0 {
				s = fmt.Sprint(r.Name, ":", r.Line)
			}
			if by&ByRisc != 0 {
				s += " " + r.Risc
			}
			if by&(ByDevice|ByCore) != 0 {
				s += fmt.Sprint(" d", r.Device)
			}
			if by&ByCore != 0 {
				s += fmt.Sprint(" c", r.X, ",", r.Y)
			}
			if by&ByLaunchID != 0 {
				s += fmt.Sprint(" r", r.Run)
			}
			w := want[s]
			if w == nil {
				t.Fatalf("by %d: group %q", by, s)
			}
			sort.Slice(w.v, func(i, j int) bool { return w.v[i] < w.v[j] })
			sum := uint64(0)
			for _, x := range w.v {
				sum += x
			}
			n := len(w.v)
			med := 0.0
			if n > 0 {
				med = (float64(w.v[(n-1)/2]) + float64(w.v[n/2])) / 2
			}
			if r.Count != uint64(n) || r.Sum != sum || r.Self != w.self || r.Unmatched != w.bad ||
				n > 0 && (r.Min != w.v[0] || r.Max != w.v[n-1] || r.Median != med || r.P95 != w.v[int(math.Ceil(0.95*float64(n)))-1]) {
				t.Errorf("by %d, %q: %+v, self %d, unmatched %d; want %d values, sum %d, self %d, bad %d", by, s, r.Summary, r.Self, r.Unmatched, n, sum, w.self, w.bad)
			}
			if by == ByZone && !strings.HasPrefix(r.Name, "TRISC") { // three places share those names
				if g := totals[r.Name]; g.Count != r.Count || g.Cycles != r.Sum || g.Lost != r.Unmatched {
					t.Errorf("%s: generator says %+v", r.Name, g)
				}
			}
		}
	}
}

func TestSlowest(t *testing.T) {
	l, _ := generated(t, profilelog.GenOptions{Rows: 3000, Seed: 5, Width: 2, Height: 2})
	type zd struct {
		d uint64
		z int
	}
	var all []zd
	for z := range l.Zones.Len() {
		all = append(all, zd{l.Dur(z), z})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].d > all[j].d || all[i].d == all[j].d && all[i].z < all[j].z })
	for _, n := range []int{0, 1, 7, 50, len(all), len(all) + 5} {
		got := Slowest(l, n, "")
		if len(got) != min(n, len(all)) {
			t.Fatalf("%d of %d", len(got), n)
		}
		for i, g := range got {
			if g.Start != l.Start(all[i].z) || g.Cycles != all[i].d {
				t.Fatalf("place %d of %d: start %d, want zone %d", i, n, g.Start, all[i].z)
			}
		}
	}
	for _, g := range Slowest(l, 5, "read_tile_0") {
		if g.Name != "read_tile_0" || g.NS != float64(g.Cycles)*1000/1350 || g.Line < 3 {
			t.Errorf("%+v", g)
		}
	}
}

// Idle time and skew of three launches, by hand.
func TestBusy(t *testing.T) {
	l := logOf(t,
		"0/BRISC/1/BRISC-FW/s/100/1", "0/BRISC/1/BRISC-FW/e/300/1", "0/NCRISC/1/NCRISC-FW/s/105/1", "0/NCRISC/1/NCRISC-FW/e/320/1",
		"0/BRISC/2/BRISC-FW/s/1500/1", "0/BRISC/2/BRISC-FW/e/1600/1",
		"0/BRISC/1/BRISC-FW/s/2000/2", "0/BRISC/1/BRISC-FW/e/2100/2",
		"0/BRISC/1/BRISC-FW/s/2400/3", "0/BRISC/1/BRISC-FW/e/2450/3",
		"1/BRISC/1/BRISC-FW/s/5/1", "1/BRISC/1/BRISC-FW/e/25/1")
	topo := newTopology(l)
	var diags zonelog.Diagnostics
	var ls []*Launches
	for d := range topo.Devices {
		ls = append(ls, findLaunches(l, topo, d, ByRun, &diags))
	}
	b := Busy(l, topo, ls)
	if len(b) != 2 || b[1].Union != 20 || b[1].Device != 1 {
		t.Fatalf("%+v", b)
	}
	a := b[0]
	if a.Launches != 3 || a.Start != 100 || a.End != 2450 || a.Span != 2350 || a.Union != 1500+100+50 || a.Sum != 1650 || a.MaxSkew != 1400 || a.SkewAt != 0 {
		t.Errorf("%+v", a)
	}
	want := []Gap{{0, 1, 1600, 400}, {1, 2, 2100, 300}}
	if !slices.Equal(a.Gaps, want) {
		t.Errorf("gaps %+v, want %+v", a.Gaps, want)
	}
}

// Skew of cores in a log without firmware zones, by hand: in the first launch
// core 0 begins at 105 (NCRISC, before BRISC), core 1 at 1500; in the second
// both begin 20 apart.
func TestMarkerSkew(t *testing.T) {
	l := logOf(t,
		"0/BRISC/1/read/s/200/1", "0/BRISC/1/read/e/300/1", "0/NCRISC/1/write/s/105/1", "0/NCRISC/1/write/e/320/1",
		"0/BRISC/2/read/s/1500/1", "0/BRISC/2/read/e/1600/1",
		"0/BRISC/1/read/s/2000/2", "0/BRISC/1/read/e/2100/2", "0/BRISC/2/read/s/2020/2", "0/BRISC/2/read/e/2100/2")
	k := markerSkew(l, newTopology(l), 0)
	if k.cycles != 1395 || k.cores != 2 || l.Time[k.row] != 1500 {
		t.Errorf("%+v", k)
	}
	p, err := New(t.Context(), "log", l, Options{By: ByZone})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Diags, func(d DiagInfo) bool {
		return d.Code == diagCoreSkew && strings.Contains(d.Detail, "lie 1395 cycles apart")
	}) {
		t.Errorf("%+v", p.Diags)
	}
}

func TestOccupancy(t *testing.T) {
	l := logOf(t,
		"0/BRISC/1/BRISC-KERNEL/s/0/1", "0/BRISC/1/BRISC-KERNEL/e/50/1", "0/TRISC_0/1/TRISC-KERNEL/s/40/1", "0/TRISC_0/1/TRISC-KERNEL/e/75/1",
		"0/BRISC/3/BRISC-KERNEL/s/50/1", "0/BRISC/3/BRISC-KERNEL/e/100/1")
	topo := newTopology(l)
	m := Occupancy(l, topo)
	if len(m) != 1 || len(m[0].Cores) != 2 || m[0].Start != 0 || m[0].End != 100 || m[0].Cores[0].Kernel != 75 || m[0].Cores[1].Kernel != 50 || m[0].Mean() != 0.625 {
		t.Fatalf("%+v", m)
	}
	if got, want := m[0].Text(topo), "  y\\x    1    2    3\n    1   75    .   50\n"; got != want {
		t.Errorf("map\n%s", got)
	}
	svg := m[0].SVG(topo)
	d := xml.NewDecoder(bytes.NewReader(svg))
	rects := 0
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 1+3+2 || !strings.Contains(string(svg), "75%") {
		t.Errorf("%d rectangles", rects)
	}
	// Coordinates that make no sense are not drawn.
	l = logOf(t, "0/BRISC/1/BRISC-KERNEL/s/0/1", "0/BRISC/1/BRISC-KERNEL/e/50/1", "0/BRISC/900000/BRISC-KERNEL/s/0/1", "0/BRISC/900000/BRISC-KERNEL/e/50/1")
	topo = newTopology(l)
	m = Occupancy(l, topo)
	if s := m[0].Text(topo); len(s) > 200 || len(m[0].SVG(topo)) > 2000 {
		t.Errorf("map of %d bytes", len(s))
	}
}

// Brute force over all arrangements.
func bruteP(a, b []uint64) float64 {
	all := append(slices.Clone(a), b...)
	u := func(mask uint) float64 {
		x := 0.0
		for i, p := range all {
			for j, q := range all {
				if mask>>i&1 == 1 && mask>>j&1 == 0 {
					if q > p {
						x++
					} else if q == p {
						x += 0.5
					}
				}
			}
		}
		return x
	}
	mid := float64(len(a)*len(b)) / 2
	obs := math.Abs(u(1<<len(a)-1) - mid)
	hit, n := 0.0, 0.0
	for mask := uint(0); mask < 1<<len(all); mask++ {
		c := 0
		for m := mask; m != 0; m &= m - 1 {
			c++
		}
		if c != len(a) {
			continue
		}
		n++
		if math.Abs(u(mask)-mid) >= obs-1e-9 {
			hit++
		}
	}
	return hit / n
}

func TestMannWhitney(t *testing.T) {
	// Without ties the exact table: 1/10 for 3 against 3 apart, 2/252 for 5
	// against 5.
	if p, s := mannWhitney([]uint64{1, 2, 3}, []uint64{4, 5, 6}, 1, 1); math.Abs(p-0.1) > 1e-12 || s != 1 {
		t.Errorf("%g, %g", p, s)
	}
	if p, _ := mannWhitney([]uint64{1, 2, 3, 4, 5}, []uint64{6, 7, 8, 9, 10}, 1, 1); math.Abs(p-2.0/252) > 1e-12 {
		t.Errorf("%g", p)
	}
	proptest.Check(t, func(rt *rapid.T) {
		n, m := rapid.IntRange(1, 5).Draw(rt, "n"), rapid.IntRange(1, 5).Draw(rt, "m")
		vals := rapid.Permutation([]uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).Draw(rt, "v")
		a, b := slices.Clone(vals[:n]), slices.Clone(vals[n:n+m])
		slices.Sort(a)
		slices.Sort(b)
		p, _ := mannWhitney(a, b, 1, 1)
		if w := bruteP(a, b); math.Abs(p-w) > 1e-9 {
			rt.Fatalf("%v %v: %g, want %g", a, b, p, w)
		}
	})
	// With ties the normal approximation, near the truth.
	a, b := []uint64{1, 1, 2, 2, 3, 4, 4, 5}, []uint64{2, 3, 4, 5, 5, 6, 6, 7}
	if p, _ := mannWhitney(a, b, 1, 1); math.Abs(p-bruteP(a, b)) > 0.02 {
		t.Errorf("%g, brute force %g", p, bruteP(a, b))
	}
	if p, s := mannWhitney([]uint64{4, 4, 4}, []uint64{4, 4}, 1, 1); p != 1 || s != 0.5 {
		t.Errorf("equal values: %g, %g", p, s)
	}
	// Clocks: 100 cycles at 1000 MHz are 100 ns, 135 at 1350 MHz as well.
	if _, s := mannWhitney([]uint64{100}, []uint64{135}, 1, 1000/1350.0); s != 0.5 {
		t.Errorf("different clocks: %g", s)
	}
}

func TestCompare(t *testing.T) {
	a, _ := generated(t, profilelog.GenOptions{Rows: 20000, Seed: 1, Width: 2, Height: 2})
	same, _ := generated(t, profilelog.GenOptions{Rows: 20000, Seed: 2, Width: 2, Height: 2})
	slow, _ := generated(t, profilelog.GenOptions{Rows: 20000, Seed: 3, Width: 2, Height: 2})
	for z := range slow.Zones.Len() { // read_tile_0 takes half again as long
		if slow.ZoneName(slow.Key(z)) == "read_tile_0" {
			slow.Time[slow.Zones.End[z]] += slow.Dur(z) / 2
		}
	}
	d, err := Compare(context.Background(), a, same, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range d {
		if x.Significant(0.01) {
			t.Errorf("%s differs between two runs of one thing: p %g", x.Name, x.Holm)
		}
	}
	d, err = Compare(context.Background(), a, slow, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range d {
		if x.Significant(0.01) != (x.Name == "read_tile_0") {
			t.Errorf("%s: p %g, change %g", x.Name, x.Holm, x.Change)
		}
		if x.Name == "read_tile_0" && (x.Change < 0.3 || x.Change > 0.7 || x.Superior < 0.6) {
			t.Errorf("read_tile_0: %+v", x)
		}
	}
	if d[0].Name != "read_tile_0" {
		t.Errorf("the largest change comes first, got %s", d[0].Name)
	}
	// A zone on one side only.
	x := logOf(t, "0/BRISC/1/A/s/0/1", "0/BRISC/1/A/e/50/1")
	y := logOf(t, "0/BRISC/1/B/s/0/1", "0/BRISC/1/B/e/70/1")
	d, _ = Compare(context.Background(), x, y, true)
	if len(d) != 2 || !d[0].OnlyB || d[0].Name != "B" || !d[1].OnlyA || !math.IsNaN(d[0].P) || d[0].Significant(0.05) {
		t.Errorf("%+v", d)
	}
}

// The public ops tables: sums by awk, and the union below the sum where
// operators overlap.
func TestSummarizeOps(t *testing.T) {
	tab, err := profilelog.ReadOps(strings.NewReader("OP CODE,OP TYPE,DEVICE ID,CORE COUNT,AVAILABLE WORKER CORE COUNT,DEVICE FW START CYCLE,DEVICE FW END CYCLE,DEVICE FW DURATION [ns],DEVICE KERNEL DURATION [ns]\n" +
		"A,tt_dnn_device,0,32,64,1000,101000,100000,90000\n" +
		"B,tt_dnn_device,0,32,128,1000,101000,100000,80000\n" +
		"A,tt_dnn_device,0,64,64,101000,102000,1000,900\n" +
		"A,tt_dnn_device,0,64,64,,,,\n" +
		"x,python_fallback,,,,,,,\nstart,signpost,,,,,,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := SummarizeOps(tab)
	if s.Device != 4 || s.Host != 1 || s.Signposts != 1 || s.Missing != 1 || s.Kernel != 170900 {
		t.Errorf("%+v", s)
	}
	// Two operators side by side for 100 us are 100 us, not 200.
	if s.FWUnion != 101000 || s.FWSum != 201000 || s.Overlaps != 1 {
		t.Errorf("union %g, sum %g, overlaps %d", s.FWUnion, s.FWSum, s.Overlaps)
	}
	// Shares use the core count of each row, not of the first.
	for _, r := range s.ByCode {
		if r.Code == "A" && (math.Abs(r.PerCore-(0.5+1+1)/3) > 1e-12 || r.NoTime != 1 || r.Kernel != 90900 || r.Min != 900) || r.Code == "B" && r.PerCore != 0.25 {
			t.Errorf("%+v", r)
		}
	}
}
