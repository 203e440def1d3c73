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

func core(y profilelog.Layout) *Core { return newCore(config{Layout: y, Sums: true}, 1, 1, 9) }

// The article's two zones on one core: words, ids and cycles, literally.
func TestSeedZones(t *testing.T) {
	c := core(profilelog.LayoutSeed)
	br, nc := c.Riscs[0], c.Riscs[1]
	br.BeginFW(1, 16403633600000)
	nc.BeginFW(1, 16403633600001)
	s := nc.Open(65230, 16403633602836)
	s.Close(16403633604827)
	nc.EndFW(1, 16403633605500)
	s = br.Open(6001, 16403633605079)
	s.Close(16403633605422)
	w := br.L1()
	if len(w) != 16 || w[12] != 0x80000000|6001<<12|0xEEB || w[13] != 1153501655 || w[14] != 0x80000000|71537<<12|0xEEB || w[15] != 1153501998 {
		t.Errorf("words %x", w[12:])
	}
	if w[0]|w[1] != 0 {
		t.Error("a launch is announced by two zero words")
	}
	br.EndFW(1, 16403633605600)
	for i, want := range []struct{ start, end, cycles uint32 }{{6001, 71537, 343}, {65230, 130766, 1991}} {
		runs, bad := profilelog.DecodeRaw(c.Riscs[i].DRAM(), profilelog.LayoutSeed)
		if len(bad) != 0 || len(runs) != 1 {
			t.Fatalf("%v %v", runs, bad)
		}
		m := runs[0].Markers
		a, b := m[len(m)-2], m[len(m)-1]
		if a.Timer != want.start || b.Timer != want.end || b.Time-a.Time != uint64(want.cycles) || runs[0].Flat != 9 || runs[0].Risc != i {
			t.Errorf("%+v %+v", a, b)
		}
	}
}

// 250 optional markers are 125 scopes; the 126th vanishes as a whole.
func TestBufferHolds125Scopes(t *testing.T) {
	c := core(profilelog.LayoutClassic)
	r := c.Riscs[0]
	r.BeginFW(1, 1)
	if r.Room() != 125 {
		t.Errorf("room for %d scopes", r.Room())
	}
	for i := range 130 {
		s := r.Open(uint16(100+i), uint64(10+2*i))
		s.Close(uint64(11 + 2*i))
	}
	if r.LostScopes != 5 || len(r.L1()) != 512 || r.Overruns != 0 || r.Room() != 0 {
		t.Errorf("lost %d, %d words, %d overruns, room %d", r.LostScopes, len(r.L1()), r.Overruns, r.Room())
	}
	r.EndFW(1, 1000)
	runs, bad := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutClassic)
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
	c := core(profilelog.LayoutClassic)
	r := c.Riscs[0]
	r.BeginFW(1, 1)
	var open []scope
	for i := range 200 {
		open = append(open, r.Open(7, uint64(i)))
	}
	if r.LostScopes != 75 {
		t.Errorf("lost %d of 200 nested scopes, 125 fit", r.LostScopes)
	}
	for i := len(open) - 1; i >= 0; i-- {
		open[i].Close(uint64(1000 - i))
	}
	if r.Overruns != 0 || r.open != 0 || len(r.L1()) != 512 {
		t.Errorf("%d overruns, %d words kept, %d words", r.Overruns, r.open, len(r.L1()))
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

// Random scopes, events and data against the model, through DRAM, the host
// decoder, the CSV and the reader.
func TestAgainstModel(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		typed := rapid.Bool().Draw(rt, "typed")
		c := core(profilelog.LayoutClassic)
		r := c.Riscs[0]
		c.SetHostID(1027)
		time := uint64(rapid.IntRange(1, 1<<40).Draw(rt, "t0"))
		r.BeginFW(1, time)
		m := model{free: 250}
		var scopes []scope
		add := func(s string) { m.markers = append(m.markers, s) }
		step := func() {
			time += uint64(rapid.IntRange(1, 1000).Draw(rt, "dt"))
			switch k := rapid.IntRange(0, 5).Draw(rt, "op"); {
			case k <= 2:
				id := uint16(rapid.IntRange(5, 60000).Draw(rt, "id"))
				scopes = append(scopes, r.Open(id, time))
				// The device compares words with < and not with what the
				// zone needs; two free places are always enough here, one
				// is when an event has shifted the buffer.
				ok := m.free-m.kept >= 1
				m.open = append(m.open, ok)
				if ok {
					m.free--
					m.kept++
					add(fmt.Sprint("ZONE_START ", id, " ", time))
				}
			case k <= 4 && len(scopes) > 0:
				n := len(scopes) - 1
				if m.open[n] {
					m.kept--
					if m.free > 0 {
						add(fmt.Sprint("ZONE_END ", scopes[n].id, " ", time))
					}
					m.free = max(0, m.free-1)
				}
				scopes[n].Close(time)
				scopes, m.open = scopes[:n], m.open[:n]
			case k == 5:
				v := rapid.Uint64().Draw(rt, "data")
				ok := r.Data(9999, time, v)
				if want := m.free-m.kept >= 2; ok != want {
					rt.Fatalf("data written: %v, want %v", ok, want)
				}
				if ok {
					m.free -= 2
					add(fmt.Sprint("TS_DATA 9999 ", time, " ", v))
				}
			}
		}
		for range rapid.IntRange(0, 400).Draw(rt, "n") {
			step()
		}
		r.EndFW(1, time+1)
		runs, bad := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutClassic)
		if len(bad) != 0 || len(runs) != 1 {
			rt.Fatalf("%d launches, problems %v", len(runs), bad)
		}
		var buf bytes.Buffer
		w, err := profilelog.NewWriter(&buf, map[bool]string{true: "V9", false: "V6"}[typed], "wormhole_b0", 1000, 64)
		if err != nil {
			rt.Fatal(err)
		}
		if err := profilelog.RawRows(runs, profilelog.LayoutClassic, nil, typed, profilelog.RawLane(0), w.Write); err != nil {
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
			if d.Type > zonelog.MarkerEnd {
				// V6 has no text for data markers; the id tells.
				v := uint64(0)
				if l.Data != nil {
					v = l.Data[row]
				}
				s = fmt.Sprint("TS_DATA 9999 ", l.Time[row], " ", v)
			}
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

// The DRAM buffer holds 1000 launches with no zones; then launches are lost,
// the bit of the processor says so, and the host's read makes room again.
func TestDRAMFull(t *testing.T) {
	c := newCore(config{Layout: profilelog.LayoutClassic}, 1, 2, 3) // 48,000 bytes
	if n := c.cfg.DRAMWords() * 4; n != 48000 {
		t.Errorf("%d bytes a processor", n)
	}
	if n := (config{Sums: true}).DRAMWords() * 4; n != 64000 {
		t.Errorf("%d bytes with sums", n)
	}
	launch := func(host uint32) {
		c.SetHostID(host)
		for _, r := range c.Riscs[1:] {
			r.BeginFW(1, 10)
			r.EndFW(1, 20)
		}
		c.Riscs[0].BeginFW(1, 10)
		c.Riscs[0].EndFW(1, 20)
	}
	for i := range 1000 {
		launch(uint32(i + 1))
	}
	if c.Dropped() {
		t.Error("1000 launches fit")
	}
	launch(1001)
	if !c.Dropped() || c.Control[droppedZones] != 31 {
		t.Errorf("dropped zones %b", c.Control[droppedZones])
	}
	runs, bad := profilelog.DecodeRaw(c.HostRead()[0], profilelog.LayoutClassic)
	if len(runs) != 1000 || len(bad) != 0 || runs[999].HostID != 1000 {
		t.Fatalf("%d launches, %v", len(runs), bad)
	}
	launch(1002)
	runs, _ = profilelog.DecodeRaw(c.HostRead()[4], profilelog.LayoutClassic)
	if len(runs) != 1 || runs[0].HostID != 1002 || runs[0].Risc != 4 {
		t.Errorf("after the read: %+v", runs)
	}
}

// A first launch that does not fit at all still sends its guaranteed markers.
func TestFirstLaunchTooLarge(t *testing.T) {
	c := newCore(config{Layout: profilelog.LayoutClassic, Programs: 1}, 1, 2, 3)
	r := c.Riscs[0]
	r.BeginFW(1, 10)
	for i := range 10 {
		s := r.Open(5, uint64(20+2*i))
		s.Close(uint64(21 + 2*i))
	}
	r.EndFW(1, 90)
	runs, bad := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutClassic)
	if len(runs) != 1 || len(bad) != 0 || len(runs[0].Markers) != 2 || !c.Dropped() {
		t.Errorf("%+v %v dropped %v", runs, bad, c.Dropped())
	}
}

// Dispatch cores push before the buffer is full and lose nothing.
func TestQuickPush(t *testing.T) {
	c := core(profilelog.LayoutSeed)
	r := c.Riscs[1]
	c.Riscs[0].BeginFW(1, 0) // the first processor prepares all buffers
	r.BeginFW(1, 1)
	const n = 1000
	for i := range n {
		s := r.OpenDispatch(300, uint64(10+2*i))
		s.Close(uint64(11 + 2*i))
	}
	r.EndFW(1, 99999)
	c.Riscs[0].EndFW(1, 100000) // the first processor pushes for all
	runs, bad := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutSeed)
	if len(bad) != 0 {
		t.Fatal(bad)
	}
	zones, pushes := 0, 0
	for _, run := range runs {
		for _, m := range run.Markers {
			if m.ID == 300 && m.Type == zonelog.MarkerEnd {
				zones++
			}
			if m.ID == uint32(quickPushID) && m.Type == zonelog.MarkerEnd {
				pushes++
			}
		}
	}
	// 124 scopes leave 4 words: 12 + 4*124 = 508. So a push every 124 scopes.
	if zones != n || r.LostScopes != 0 || pushes != n/124 || r.Overruns != 0 {
		t.Errorf("%d zones, %d lost, %d pushes, %d overruns", zones, r.LostScopes, pushes, r.Overruns)
	}
}

func TestSums(t *testing.T) {
	c := core(profilelog.LayoutSeed)
	r := c.Riscs[0]
	r.BeginFW(1, 50)
	r.Sum(0, 3001, 10)
	r.Sum(0, 3001, 20)
	r.Sum(1, 3002, 0) // a sum of 0 is not written
	r.EndFW(1, 90)
	runs, _ := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutSeed)
	m := runs[0].Markers[2:]
	if len(m) != 1 || m[0].Type != zonelog.MarkerTotal || m[0].ID != 3001 || m[0].Timer != 3001|1<<17 || m[0].Sum != 30 || m[0].Time != 50 {
		t.Errorf("%+v", m)
	}
	if len(r.DRAM())%4 != 0 {
		t.Errorf("%d words are not aligned for the network", len(r.DRAM()))
	}
}

// The timer wraps at 44 bits and the reader puts it right.
func TestTimerWrap(t *testing.T) {
	c := core(profilelog.LayoutClassic)
	r := c.Riscs[0]
	r.BeginFW(1, 1<<44-500)
	s := r.Open(40, 1<<44-100)
	s.Close(1<<44 + 50)
	r.EndFW(1, 1<<44+80)
	runs, _ := profilelog.DecodeRaw(r.DRAM(), profilelog.LayoutClassic)
	var buf bytes.Buffer
	w, _ := profilelog.NewWriter(&buf, "V9", "wormhole_b0", 1000, 64)
	profilelog.RawRows(runs, profilelog.LayoutClassic, nil, true, profilelog.RawLane(0), w.Write)
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
		r := newCore(config{Layout: profilelog.LayoutClassic}, 1, 1, 1).Riscs[0]
		r.BeginFW(1, 0)
		t := uint64(0)
		for b.Loop() {
			t += 2
			if r.Room() == 0 {
				r.w = profilelog.CustomWord
			}
			s := r.Open(7, t)
			s.Close(t + 1)
		}
	})
}
