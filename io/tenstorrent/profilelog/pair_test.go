package profilelog

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/zonelog"
	"perfsim/ecs/proptest"
)

// genZone is a zone of a generated nest.
type genZone struct {
	name       string
	start, end uint64
}

// drawNest draws properly nested zones of one processor, times strictly
// rising, and the markers in order.
func drawNest(t *rapid.T) (zones []genZone, rows []Row) {
	time := uint64(rapid.IntRange(0, 1<<20).Draw(t, "t0"))
	var open []int
	marker := func(z int, typ zonelog.MarkerType) {
		rows = append(rows, Row{
			Lane: zonelog.ZoneLane{X: 1, Y: 1, Risc: "BRISC"}, Timer: uint32(100 + len(zones[z].name)), Time: time,
			Run: zonelog.LogRun{RunID: 3, HostID: 1027, TraceID: -1, TraceCounter: -1}, Name: zones[z].name, Type: typ, Line: 9, File: "k.cc",
		})
	}
	for range rapid.IntRange(1, 60).Draw(t, "n") {
		time += uint64(rapid.IntRange(1, 50).Draw(t, "dt"))
		if len(open) > 0 && rapid.Bool().Draw(t, "close") {
			z := open[len(open)-1]
			open = open[:len(open)-1]
			zones[z].end = time
			marker(z, zonelog.MarkerEnd)
			continue
		}
		name := "zzzzzz"[:rapid.IntRange(1, 6).Draw(t, "name")]
		zones = append(zones, genZone{name: name, start: time})
		open = append(open, len(zones)-1)
		marker(len(zones)-1, zonelog.MarkerStart)
	}
	for len(open) > 0 {
		time += 3
		z := open[len(open)-1]
		open = open[:len(open)-1]
		zones[z].end = time
		marker(z, zonelog.MarkerEnd)
	}
	return zones, rows
}

func writeRows(t testing.TB, version string, rows []Row) []byte {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, version, "wormhole_b0", 1000, 64)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// A complete nest comes back zone by zone, whatever the recursion.
func TestPairCompleteNest(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		zones, rows := drawNest(rt)
		l, err := Read(context.Background(), bytes.NewReader(writeRows(t, "V9", rows)), Options{})
		if err != nil {
			rt.Fatal(err)
		}
		if l.Zones.Len() != len(zones) || len(l.UnmatchedStart)+len(l.UnmatchedEnd) != 0 {
			rt.Fatalf("%d zones of %d, unmatched %d and %d", l.Zones.Len(), len(zones), len(l.UnmatchedStart), len(l.UnmatchedEnd))
		}
		for i, z := range zones {
			if l.Start(i) != z.start || l.Dur(i) != z.end-z.start || l.ZoneName(l.Key(i)) != z.name {
				rt.Fatalf("zone %d is %s %d+%d, want %+v", i, l.ZoneName(l.Key(i)), l.Start(i), l.Dur(i), z)
			}
		}
	})
}

// With markers lost, what is paired is still well formed (checkLog), and a
// nest without recursion never gets a duration that is not there.
func TestPairWithLosses(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		zones, rows := drawNest(rt)
		for i := range rows {
			rows[i].Name = fmt.Sprintf("%s-%d", rows[i].Name, nthZone(rows, i))
		}
		truth := map[string]uint64{}
		for i, z := range zones {
			truth[fmt.Sprintf("%s-%d", z.name, i)] = z.end - z.start
		}
		kept := rows[:0:0]
		for _, r := range rows {
			if rapid.IntRange(0, 4).Draw(rt, "keep") != 0 {
				kept = append(kept, r)
			}
		}
		l, err := Read(context.Background(), bytes.NewReader(writeRows(t, "V9", kept)), Options{})
		if err != nil {
			rt.Fatal(err)
		}
		checkLog(t, l)
		for z := range l.Zones.Len() {
			n := l.ZoneName(l.Key(z))
			if want, ok := truth[n]; !ok || want != l.Dur(z) {
				rt.Fatalf("%s lasts %d, truly %d", n, l.Dur(z), want)
			}
		}
	})
}

// nthZone gives the index of the zone that row i starts or ends, by walking
// the nest.
func nthZone(rows []Row, i int) int {
	var open []int
	n := 0
	for j := 0; ; j++ {
		z := 0
		if rows[j].Type == zonelog.MarkerStart {
			z = n
			open = append(open, n)
			n++
		} else {
			z = open[len(open)-1]
			open = open[:len(open)-1]
		}
		if j == i {
			return z
		}
	}
}

// The faults that upstream had, one by one.
func TestPairFaults(t *testing.T) {
	mk := func(name string, typ zonelog.MarkerType, time uint64, run int64) Row {
		return Row{Lane: zonelog.ZoneLane{X: 1, Y: 1, Risc: "BRISC"}, Timer: 7, Time: time, Name: name, Type: typ, Line: 1, File: "a",
			Run: zonelog.LogRun{HostID: run, TraceID: -1, TraceCounter: -1}}
	}
	const s, e = zonelog.MarkerStart, zonelog.MarkerEnd
	for _, tc := range []struct {
		name string
		rows []Row
		want []string // name start+dur depth
		bad  [2]int
	}{
		{"no end markers give no duration", []Row{mk("BRISC-FW", s, 1, 1), mk("BRISC-KERNEL", s, 2, 1), mk("a", s, 3, 1)}, nil, [2]int{3, 0}},
		{"orphan firmware end", []Row{mk("BRISC-FW", e, 1, 1), mk("BRISC-FW", s, 2, 2), mk("BRISC-FW", e, 9, 2)}, []string{"BRISC-FW 2+7 0"}, [2]int{0, 1}},
		{"lost inner end", []Row{mk("a", s, 1, 1), mk("b", s, 2, 1), mk("a", e, 9, 1), mk("b", s, 11, 1), mk("b", e, 12, 1)}, []string{"a 1+8 0", "b 11+1 0"}, [2]int{1, 0}},
		{"lost end is not taken from the next launch", []Row{mk("BRISC-FW", s, 1, 1), mk("a", s, 2, 1), mk("BRISC-FW", s, 20, 2), mk("a", e, 22, 2), mk("BRISC-FW", e, 23, 2)}, []string{"BRISC-FW 20+3 0"}, [2]int{2, 1}},
		{"dispatch kernel through launches", []Row{mk("NCRISC-FW", s, 1, 1), mk("CQ", s, 2, 1), mk("CQ", e, 5, 2), mk("CQ", s, 6, 2), mk("CQ", e, 9, 3), mk("NCRISC-FW", e, 10, 3)}, []string{"CQ 2+3 0", "CQ 6+3 0"}, [2]int{1, 1}},
		{"recursion", []Row{mk("a", s, 1, 1), mk("a", s, 2, 1), mk("a", e, 3, 1), mk("a", e, 5, 1)}, []string{"a 1+4 0", "a 2+1 1"}, [2]int{0, 0}},
		{"zero length", []Row{mk("a", s, 4, 1), mk("a", e, 4, 1)}, []string{"a 4+0 0"}, [2]int{0, 0}},
		{"outer end first at one time", []Row{mk("o", s, 1, 1), mk("i", s, 2, 1), mk("o", e, 9, 1), mk("i", e, 9, 1)}, []string{"o 1+8 0", "i 2+7 1"}, [2]int{0, 0}},
		// Paired as if in their order; which of zones of one extent is inside
		// the other is the order of the rows.
		{"firmware and kernel first at one time", []Row{mk("a", s, 1, 1), mk("BRISC-KERNEL", s, 1, 1), mk("BRISC-FW", s, 1, 1), mk("BRISC-FW", e, 9, 1), mk("a", e, 9, 1), mk("BRISC-KERNEL", e, 9, 1)},
			[]string{"a 1+8 0", "BRISC-KERNEL 1+8 1", "BRISC-FW 1+8 2"}, [2]int{0, 0}},
		{"back to back at one time", []Row{mk("a", s, 1, 1), mk("a", s, 4, 1), mk("a", e, 4, 1), mk("a", e, 8, 1)}, []string{"a 1+3 0", "a 4+4 0"}, [2]int{0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := readText(t, string(writeRows(t, "V9", tc.rows)), Options{})
			var got []string
			for z := range l.Zones.Len() {
				got = append(got, fmt.Sprintf("%s %d+%d %d", l.ZoneName(l.Key(z)), l.Start(z), l.Dur(z), l.Zones.Depth[z]))
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("zones %q, want %q", got, tc.want)
			}
			if b := [2]int{len(l.UnmatchedStart), len(l.UnmatchedEnd)}; b != tc.bad {
				t.Errorf("unmatched %v, want %v", b, tc.bad)
			}
		})
	}
}

// Rows come back as written in every version that has the columns.
func TestWriteReadRoundTrip(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		v := rapid.IntRange(0, 11).Draw(rt, "version")
		text := rapid.StringMatching(`[A-Za-z][A-Za-z0-9_ ./:-]{0,12}[a-z]`)
		n := rapid.IntRange(1, 20).Draw(rt, "rows")
		rows := make([]Row, n)
		time := uint64(1)
		for i := range rows {
			r := &rows[i]
			time += rapid.Uint64Range(1, 1<<30).Draw(rt, "dt")
			r.Time = time
			r.Lane = zonelog.ZoneLane{Device: int32(rapid.IntRange(0, 31).Draw(rt, "dev")), X: int32(rapid.IntRange(0, 20).Draw(rt, "x")), Y: 3,
				Risc: rapid.SampledFrom(genRiscs).Draw(rt, "risc")}
			r.Run = zonelog.LogRun{RunID: int64(rapid.IntRange(0, 3).Draw(rt, "run")), HostID: 1 << 50, TraceID: int64(rapid.IntRange(-1, 5).Draw(rt, "trace")), TraceCounter: 2}
			r.Timer = uint32(rapid.IntRange(5, 65535).Draw(rt, "timer"))
			r.Name, r.File, r.Line = text.Draw(rt, "name"), text.Draw(rt, "file"), rapid.Uint32().Draw(rt, "line")
			r.Type = zonelog.MarkerType(rapid.IntRange(0, 5).Draw(rt, "type"))
			r.Data = rapid.Uint64().Draw(rt, "data")
			if rapid.Bool().Draw(rt, "meta") {
				r.Meta = `{"a":1,"b":2}`
			}
		}
		l, err := Read(context.Background(), bytes.NewReader(writeRows(t, fmt.Sprintf("V%d", v), rows)), Options{})
		if err != nil {
			rt.Fatal(err)
		}
		checkLog(t, l)
		if got := l.Sessions[0].Version; got != fmt.Sprintf("V%d", v) {
			rt.Fatalf("version %s of a V%d file", got, v)
		}
		if l.Rows() != n {
			rt.Fatalf("%d rows of %d", l.Rows(), n)
		}
		for m := range l.Time {
			w := rows[l.Src.At(m)]
			d := l.Defs[l.Def[m]]
			k := l.Keys[d.Key]
			ln, run := l.Lanes[l.LaneOfMarker(m)], l.Runs[l.Run[m]]
			ok := l.Time[m] == w.Time && ln.Device == w.Lane.Device && ln.X == w.Lane.X && ln.Risc == w.Lane.Risc && d.Timer == w.Timer
			if v >= 4 {
				ok = ok && k.Name == w.Name && k.Line == w.Line && k.File == w.File
			}
			if v >= 7 {
				ok = ok && d.Type == w.Type
			}
			if v >= 5 {
				ok = ok && dataOf(l, m) == w.Data
			}
			if v >= 3 && v <= 8 {
				ok = ok && run.RunID == w.Run.RunID
			}
			if v >= 6 {
				ok = ok && run.HostID == w.Run.HostID
			}
			if v >= 10 {
				ok = ok && run.TraceID == w.Run.TraceID && run.TraceCounter == w.Run.TraceCounter
			}
			if v >= 8 && w.Meta != "" {
				ok = ok && l.Meta(m) == `{"a":1;"b":2}`
			}
			if !ok {
				rt.Fatalf("row %d: lane %+v def %+v key %+v run %+v time %d\nwant %+v", m, ln, d, k, run, l.Time[m], w)
			}
		}
	})
}

func dataOf(l *zonelog.DeviceLog, m int) uint64 {
	if l.Data == nil {
		return 0
	}
	return l.Data[m]
}
