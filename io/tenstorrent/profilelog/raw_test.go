package profilelog

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/zonelog"
	"perfsim/ecs/proptest"
)

// The arithmetic of the article, literally: 0x80000000 | (id & 0x7FFFF) << 12
// | (time_H & 0xFFF), then time_L; the end id is the start id + 65536.
func TestSeedMarker(t *testing.T) {
	const start, end = 16403633605079, 16403633605422
	hi, lo := LayoutSeed.Encode(6001, start)
	if want := uint32(0x80000000 | 6001<<12 | start>>32&0xFFF); hi != want || lo != uint32(start&0xFFFFFFFF) {
		t.Errorf("start is 0x%08x 0x%08x", hi, lo)
	}
	// By hand: 16403633605079 = 3819*2^32 + 1153501655; 3819 = 0xEEB,
	// 6001 = 0x1771, so the first word is 0x81771EEB.
	if hi != 0x81771EEB || lo != 1153501655 {
		t.Errorf("start is 0x%08x %d", hi, lo)
	}
	hi, lo = LayoutSeed.Encode(6001+zonelog.ZoneEndBit, end)
	if hi != 0x91771EEB || lo != 1153501998 {
		t.Errorf("end is 0x%08x %d", hi, lo)
	}
	timer, time, ok := LayoutSeed.Decode(hi, lo)
	if timer != 71537 || time != end || !ok {
		t.Errorf("end decodes to %d, %d, %v", timer, time, ok)
	}
	if typ, id := LayoutSeed.Packet(130766); typ != zonelog.MarkerEnd || id != 65230 {
		t.Errorf("130766 is %v of %d", typ, id)
	}
	if uint64(end-start) != 343 || 16403633604827-16403633602836 != 1991 {
		t.Error("the article's zones last 343 and 1991 cycles")
	}
}

// Every id of every packet type, and times over the whole range and beyond.
func TestMarkerRoundTrip(t *testing.T) {
	for _, y := range []Layout{LayoutSeed, LayoutClassic, LayoutWideID} {
		for timer := uint32(0); timer < 1<<y.IDBits; timer++ {
			time := uint64(timer) * 0x9E3779B97F4A7C15 >> (64 - 32 - y.TimeHigh)
			hi, lo := y.Encode(timer, time)
			gt, tt, ok := y.Decode(hi, lo)
			if gt != timer || tt != time || !ok {
				t.Fatalf("%+v: %d at %d decodes to %d at %d, %v", y, timer, time, gt, tt, ok)
			}
		}
		width := 32 + y.TimeHigh
		hi, lo := y.Encode(5, 1<<width+17)
		if _, tt, _ := y.Decode(hi, lo); tt != 17 {
			t.Errorf("%+v: a time above the range decodes to %d, want the wrapped 17", y, tt)
		}
	}
}

// encodeRuns is the reference encoder: word by word as the device lays a
// launch out.
func encodeRuns(runs []RawRun, y Layout) []uint32 {
	var w []uint32
	for i := range runs {
		r := &runs[i]
		r.Word = len(w)
		w = append(w, 0, 0, uint32(r.Risc)|uint32(r.Flat)<<3|r.Trace<<11)
		if y.HostCounter {
			w = append(w, uint32(r.HostID)<<16|uint32(r.RunID))
		} else {
			w = append(w, uint32(r.HostID))
		}
		fixed := [8]uint32{}
		for k := range 4 {
			fixed[2*k], fixed[2*k+1] = ValidBit, ValidBit
		}
		w = append(w, fixed[:]...)
		for k := range r.Markers {
			m := &r.Markers[k]
			m.Timer = uint32(m.Type)<<y.PacketShift() | m.ID
			hi, lo := y.Encode(m.Timer, m.Time)
			if m.Slot != SlotCustom {
				m.Word = r.Word + slotWords[m.Slot]
				w[m.Word], w[m.Word+1] = hi, lo
				continue
			}
			m.Word = len(w)
			if m.Type == zonelog.MarkerTotal {
				hi, _ = y.Encode(m.Timer, 0)
				lo = m.Sum
			}
			w = append(w, hi, lo)
			for d := range int(m.Type) - 2 {
				if m.Type == zonelog.MarkerData && d < 1 || m.Type == zonelog.MarkerData16 && d < 2 {
					w = append(w, uint32(m.Data[d]>>32), uint32(m.Data[d]))
				}
			}
		}
		if len(w)%4 != 0 { // padding
			w = append(w, ValidBit, 0)
		}
	}
	return w
}

func drawRuns(t *rapid.T, y Layout) []RawRun {
	runs := make([]RawRun, rapid.IntRange(1, 4).Draw(t, "runs"))
	for i := range runs {
		r := &runs[i]
		r.Risc, r.Flat = rapid.IntRange(0, 7).Draw(t, "risc"), rapid.IntRange(0, 255).Draw(t, "flat")
		r.Trace = uint32(rapid.IntRange(0, 1<<16-1).Draw(t, "trace"))
		r.RunID = -1
		if y.HostCounter {
			r.RunID, r.HostID = int64(rapid.IntRange(0, 1<<16-1).Draw(t, "run")), int64(rapid.IntRange(0, 1<<16-1).Draw(t, "host"))
		} else {
			r.HostID = int64(rapid.Uint32().Draw(t, "host"))
		}
		limit := uint64(1)<<(32+y.TimeHigh) - 1
		for s := SlotFWStart; s < SlotCustom; s++ {
			if rapid.IntRange(0, 5).Draw(t, "slot") > 0 {
				r.Markers = append(r.Markers, RawMarker{Type: zonelog.MarkerType(s & 1), ID: uint32(rapid.IntRange(1, 65535).Draw(t, "id")), Time: rapid.Uint64Range(0, limit).Draw(t, "time"), Slot: s})
			}
		}
		for range rapid.IntRange(0, 12).Draw(t, "custom") {
			m := RawMarker{Type: zonelog.MarkerType(rapid.IntRange(0, 5).Draw(t, "type")), ID: uint32(rapid.IntRange(1, 65535).Draw(t, "id")), Time: rapid.Uint64Range(1, limit).Draw(t, "time"), Slot: SlotCustom}
			switch m.Type {
			case zonelog.MarkerTotal:
				m.Sum, m.Time = rapid.Uint32().Draw(t, "sum"), 0
				if len(r.Markers) > 0 {
					m.Time = r.Markers[0].Time
				}
			case zonelog.MarkerData16:
				m.Data[1] = rapid.Uint64().Draw(t, "data")
				m.Data[0] = rapid.Uint64().Draw(t, "data")
			case zonelog.MarkerData:
				m.Data[0] = rapid.Uint64().Draw(t, "data")
			}
			r.Markers = append(r.Markers, m)
		}
	}
	return runs
}

func TestRawRoundTrip(t *testing.T) {
	for _, y := range []Layout{LayoutSeed, LayoutClassic, LayoutWideID} {
		proptest.Check(t, func(rt *rapid.T) {
			want := drawRuns(rt, y)
			words := encodeRuns(want, y)
			// Memory behind the end index is zero.
			words = append(words, make([]uint32, rapid.IntRange(0, 20).Draw(rt, "rest"))...)
			got, bad := DecodeRaw(words, y)
			if len(bad) != 0 {
				rt.Fatalf("problems %+v", bad)
			}
			if !reflect.DeepEqual(got, want) {
				rt.Fatalf("\n got %+v\nwant %+v", got, want)
			}
		})
	}
}

// A damaged launch does not take the others along.
func TestRawDamage(t *testing.T) {
	mk := func(host int64) RawRun {
		return RawRun{Risc: 1, Flat: 9, RunID: -1, HostID: host, Markers: []RawMarker{
			{Type: zonelog.MarkerStart, ID: 5, Time: 100, Slot: SlotFWStart}, {Type: zonelog.MarkerEnd, ID: 5, Time: 900, Slot: SlotFWEnd},
			{Type: zonelog.MarkerStart, ID: 77, Time: 200, Slot: SlotCustom}, {Type: zonelog.MarkerEnd, ID: 77, Time: 300, Slot: SlotCustom}}}
	}
	build := func() []uint32 { return encodeRuns([]RawRun{mk(1), mk(2), mk(3)}, LayoutClassic) }
	n := len(build()) / 3
	for _, tc := range []struct {
		name          string
		hurt          func(w []uint32) []uint32
		runs, markers int
		word          int
	}{
		{"none", func(w []uint32) []uint32 { return w }, 3, 12, -1},
		{"valid bit lost", func(w []uint32) []uint32 { w[n+CustomWord] &^= ValidBit; return w }, 3, 11, n + CustomWord},
		{"guaranteed slot of the wrong kind", func(w []uint32) []uint32 { w[n+WordFWStart] = w[n+WordFWEnd]; return w }, 3, 11, n + WordFWStart},
		{"unknown packet", func(w []uint32) []uint32 { w[n+CustomWord] |= 7 << 28; return w }, 3, 11, n + CustomWord},
		{"identity out of range", func(w []uint32) []uint32 { w[n+WordIDLH] |= 1 << 30; return w }, 3, 12, n + WordIDLH},
		{"cut in the head", func(w []uint32) []uint32 { return w[:2*n+6] }, 2, 8, 2 * n},
		{"cut in a marker", func(w []uint32) []uint32 { return w[:3*n-1] }, 3, 11, 3*n - 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			runs, bad := DecodeRaw(tc.hurt(build()), LayoutClassic)
			markers := 0
			for _, r := range runs {
				markers += len(r.Markers)
			}
			if len(runs) != tc.runs || markers != tc.markers {
				t.Errorf("%d launches with %d markers, want %d with %d", len(runs), markers, tc.runs, tc.markers)
			}
			if tc.word < 0 && len(bad) > 0 || tc.word >= 0 && (len(bad) == 0 || bad[0].Word != tc.word) {
				t.Errorf("problems %+v, want one at word %d", bad, tc.word)
			}
		})
	}
	if _, err := Words([]byte{1, 2, 3}); err == nil {
		t.Error("three bytes are not words")
	}
}

func TestPerfCounter(t *testing.T) {
	got := DecodePerfCounter(7<<56 | 1000<<32 | 600)
	if (got != PerfCounter{Value: 600, Ref: 1000, Type: 7}) {
		t.Errorf("%+v", got)
	}
}
