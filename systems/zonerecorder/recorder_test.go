package zonerecorder

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/zonelog"
	"perfsim/ecs/proptest"
	"perfsim/io/tenstorrent/profilelog"
)

// 250 optional markers are 125 scopes; the 126th vanishes as a whole.
func TestBufferHolds125Scopes(t *testing.T) {
	r := &processor{flat: 9}
	r.BeginFW(1, 1)
	for i := range 130 {
		s := r.Open(uint16(100+i), uint64(10+2*i), false)
		r.Close(s, uint64(11+2*i))
	}
	if r.lostScopes != 5 || r.w != 512 {
		t.Errorf("lost %d, %d words", r.lostScopes, r.w)
	}
	r.EndFW(1, 1000)
	runs, bad := profilelog.DecodeRaw(r.dram, layout)
	if len(bad) != 0 || len(runs) != 1 || len(runs[0].Markers) != 252 {
		t.Fatalf("%d launches, %v", len(runs), bad)
	}
	last := runs[0].Markers[251]
	if last.ID != 224 || last.Type != zonelog.MarkerEnd {
		t.Errorf("last marker %+v", last)
	}
}

// Room is kept for the ends of open scopes: with n scopes open, every one of
// them gets its end.
func TestRoomForOpenEnds(t *testing.T) {
	r := &processor{flat: 9}
	r.BeginFW(1, 1)
	var open []scope
	for i := range 200 {
		open = append(open, r.Open(7, uint64(i), false))
	}
	if r.lostScopes != 75 {
		t.Errorf("lost %d of 200 nested scopes, 125 fit", r.lostScopes)
	}
	for i := len(open) - 1; i >= 0; i-- {
		r.Close(open[i], uint64(1000-i))
	}
	if r.open != 0 || r.w != 512 {
		t.Errorf("%d words kept, %d words", r.open, r.w)
	}
}

// model is the slow reference of one processor: a list of markers and a
// count of free places.
type model struct {
	free    int
	open    []bool // of each open scope: was it written
	kept    int    // places kept for ends
	markers []string
}

// Random scopes against the model, through DRAM, the host
// decoder, the CSV and the reader.
func TestAgainstModel(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		typed := rapid.Bool().Draw(rt, "typed")
		r := &processor{flat: 9, hostID: 1027}
		time := uint64(rapid.IntRange(1, 1<<40).Draw(rt, "t0"))
		r.BeginFW(1, time)
		m := model{free: 250}
		var scopes []scope
		add := func(s string) { m.markers = append(m.markers, s) }
		step := func() {
			time += uint64(rapid.IntRange(1, 1000).Draw(rt, "dt"))
			switch k := rapid.IntRange(0, 4).Draw(rt, "op"); {
			case k <= 2:
				id := uint16(rapid.IntRange(5, 60000).Draw(rt, "id"))
				scopes = append(scopes, r.Open(id, time, false))
				// The device compares words with < and not with what the
				// zone needs: two free places are always enough here.
				ok := m.free-m.kept >= 1
				m.open = append(m.open, ok)
				if ok {
					m.free--
					m.kept++
					add(fmt.Sprint("ZONE_START ", id, " ", time))
				}
			case len(scopes) > 0:
				n := len(scopes) - 1
				if m.open[n] {
					m.kept--
					if m.free > 0 {
						add(fmt.Sprint("ZONE_END ", scopes[n].id, " ", time))
					}
					m.free = max(0, m.free-1)
				}
				r.Close(scopes[n], time)
				scopes, m.open = scopes[:n], m.open[:n]
			}
		}
		for range rapid.IntRange(0, 400).Draw(rt, "n") {
			step()
		}
		r.EndFW(1, time+1)
		runs, bad := profilelog.DecodeRaw(r.dram, layout)
		if len(bad) != 0 || len(runs) != 1 {
			rt.Fatalf("%d launches, problems %v", len(runs), bad)
		}
		var buf bytes.Buffer
		w, err := profilelog.NewWriter(&buf, map[bool]string{true: "V9", false: "V6"}[typed], "wormhole_b0", 1000, 64)
		if err != nil {
			rt.Fatal(err)
		}
		if err := profilelog.RawRows(runs, layout, nil, typed, profilelog.RawLane(0), w.Write); err != nil {
			rt.Fatal(err)
		}
		w.Flush()
		l, err := profilelog.Read(context.Background(), &buf, profilelog.Options{})
		if err != nil {
			rt.Fatal(err)
		}
		var got []string
		for row := range l.Time {
			d := l.Defs[l.Def[row]]
			k := l.Keys[d.Key]
			if k.ID == 1 {
				continue // the firmware zone
			}
			s := fmt.Sprint(d.Type, " ", k.ID, " ", l.Time[row])
			got = append(got, s)
		}
		if fmt.Sprint(got) != fmt.Sprint(m.markers) {
			rt.Fatalf("\n got %q\nwant %q", got, m.markers)
		}
		if l.Lanes[0].X != 9 || l.Runs[0].HostID != 1027 {
			rt.Fatalf("lane %+v run %+v", l.Lanes[0], l.Runs[0])
		}
	})
}

// The DRAM buffer holds 1000 launches with no zones; further ones are lost.
func TestDRAMFull(t *testing.T) {
	p := &processor{flat: 3}
	for i := range 1001 {
		if p.dropped {
			t.Fatalf("launch %d does not fit", i-1)
		}
		p.hostID = uint32(i + 1)
		p.BeginFW(1, 10)
		p.EndFW(1, 20)
	}
	if !p.dropped || len(p.dram)*4 != 48000 {
		t.Errorf("dropped %v, %d bytes", p.dropped, len(p.dram)*4)
	}
	runs, bad := profilelog.DecodeRaw(p.dram, layout)
	if len(runs) != 1000 || len(bad) != 0 || runs[999].HostID != 1000 || runs[999].Flat != 3 {
		t.Fatalf("%d launches, %v", len(runs), bad)
	}
}

// Dispatch cores push before the buffer is full and lose nothing.
func TestQuickPush(t *testing.T) {
	r := &processor{}
	r.BeginFW(1, 1)
	const n = 1000
	for i := range n {
		s := r.Open(300, uint64(10+2*i), true)
		r.Close(s, uint64(11+2*i))
	}
	r.EndFW(1, 99999)
	runs, bad := profilelog.DecodeRaw(r.dram, layout)
	if len(bad) != 0 {
		t.Fatal(bad)
	}
	zones, pushes := 0, 0
	for _, run := range runs {
		for _, m := range run.Markers {
			if m.ID == 300 && m.Type == zonelog.MarkerEnd {
				zones++
			}
			if m.ID == uint32(zonelog.ZoneHash16(quickPushText)) && m.Type == zonelog.MarkerEnd {
				pushes++
			}
		}
	}
	// 124 scopes leave 4 words: 12 + 4*124 = 508. So a push every 124 scopes.
	if zones != n || r.lostScopes != 0 || pushes != n/124 {
		t.Errorf("%d zones, %d lost, %d pushes", zones, r.lostScopes, pushes)
	}
}

// The timer wraps at 44 bits and the reader puts it right.
func TestTimerWrap(t *testing.T) {
	r := &processor{flat: 9}
	r.BeginFW(1, 1<<44-500)
	s := r.Open(40, 1<<44-100, false)
	r.Close(s, 1<<44+50)
	r.EndFW(1, 1<<44+80)
	runs, _ := profilelog.DecodeRaw(r.dram, layout)
	var buf bytes.Buffer
	w, _ := profilelog.NewWriter(&buf, "V9", "wormhole_b0", 1000, 64)
	profilelog.RawRows(runs, layout, nil, true, profilelog.RawLane(0), w.Write)
	w.Flush()
	l, err := profilelog.Read(context.Background(), &buf, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Zones.Len() != 2 || l.Dur(0) != 580 || l.Dur(1) != 150 {
		t.Errorf("%d zones, %v", l.Zones.Len(), l.Diags.All())
	}
	if _, ok := l.Diags.Find(profilelog.DiagTimerWrap); !ok {
		t.Error("the wrap is not reported")
	}
}

// BenchmarkZone is the cost of recording one zone.
func BenchmarkZone(b *testing.B) {
	b.Run("recorder", func(b *testing.B) {
		r := &processor{}
		r.BeginFW(1, 0)
		t := uint64(0)
		for b.Loop() {
			t += 2
			if r.w > profilelog.L1Words-4 {
				r.w = profilelog.CustomWord
			}
			s := r.Open(7, t, false)
			r.Close(s, t+1)
		}
	})
}
