package zonerecorder

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
	"perfsim/systems/place"
)

// world is two lanes: A takes 10 ns for each of n instructions, B 20 ns and
// waits for A's.
func world(t *testing.T, n int) *components.World {
	t.Helper()
	m := components.NewModule("two,lanes", "test")
	a := m.Lanes.Add(m.Symbols.InternString("A"), components.PE, components.LaneEngine, 0)
	b := m.Lanes.Add(m.Symbols.InternString("B"), components.DVE, components.LaneEngine, 1)
	mul, add := m.Opcode("Mul"), m.Opcode("Add")
	m.Instr.Grow(2 * n)
	issue, latency := m.Instr.Issue.Resize(2*n), m.Instr.Latency.Resize(2*n)
	var e components.EdgeSet
	for i := range n {
		m.Instr.Lane.Set(2*i, a)
		m.Instr.Lane.Set(2*i+1, b)
		m.Instr.Opcode.Set(2*i, mul)
		m.Instr.Opcode.Set(2*i+1, add)
		issue[2*i], latency[2*i] = 10, 15 // the result is visible after the lane is free
		issue[2*i+1], latency[2*i+1] = 20, 20
		e.Add(components.InstrID(2*i+1), components.InstrID(2*i), components.Flow)
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(2*n))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&e); err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: &machine.Machine{Name: "test"}, Events: components.NewEvents()}
	w.Config = components.Config{Model: components.Replay, Jobs: 1, Loops: components.Once}
	if err := place.RunRules(context.Background(), w, place.Rules{}); err != nil {
		t.Fatal(err)
	}
	return w
}

func readLog(t *testing.T, w *components.World, o LogOptions) (*zonelog.DeviceLog, LogReport) {
	t.Helper()
	var b bytes.Buffer
	rep, err := WriteLog(context.Background(), w, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := profilelog.Read(context.Background(), &b, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l, rep
}

// A simulation comes back as zones with its times, clipped to the lane.
func TestWriteLog(t *testing.T) {
	l, rep := readLog(t, world(t, 3), LogOptions{})
	if rep.Launches != 1 || rep.Zones != 6 || rep.Kept != 6 || rep.Lost != 0 || rep.DRAMFull != 0 {
		t.Errorf("%+v", rep)
	}
	var got []string
	for z := range l.Zones.Len() {
		ln := l.Lanes[l.LaneOfZone(z)]
		got = append(got, fmt.Sprintf("%s/%d %s %d+%d", ln.Risc, ln.X, l.ZoneName(l.Key(z)), l.Start(z)-1_000_000, l.Dur(z)))
	}
	// A: 0-15 clipped to 0-10, 10-20, 20-35. B: 15-35, 35-55, 55-75.
	want := "A/0 A-FW 0+35, A/0 A-KERNEL 0+35, A/0 Mul 0+10, A/0 Mul 10+10, A/0 Mul 20+15, B/1 B-FW 15+60, B/1 B-KERNEL 15+60, B/1 Add 15+20, B/1 Add 35+20, B/1 Add 55+20"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("zones\n%s\nwant\n%s", s, want)
	}
	if len(l.UnmatchedStart)+len(l.UnmatchedEnd) > 0 || l.Runs[0].HostID != 1024 {
		t.Errorf("%v %+v", l.Diags.All(), l.Runs)
	}
	if l, _ := readLog(t, world(t, 3), LogOptions{ClockMHz: 1400}); l.Dur(0) != 49 { // 35 ns
		t.Errorf("%d cycles at 1400 MHz", l.Dur(0))
	}
}

// A launch of 300 instructions a lane loses what 125 scopes do not hold, and
// the log says so; pushing keeps all.
func TestWriteLogLimits(t *testing.T) {
	l, rep := readLog(t, world(t, 300), LogOptions{})
	if rep.Zones != 600 || rep.Kept != 250 || rep.Lost != 350 {
		t.Errorf("%+v", rep)
	}
	if d, ok := l.Diags.Find(profilelog.DiagBufferFull); !ok || d.Count != 2 {
		t.Errorf("%v", l.Diags.All())
	}
	l, rep = readLog(t, world(t, 300), LogOptions{Push: true})
	n := 0
	for z := range l.Zones.Len() {
		if name := l.ZoneName(l.Key(z)); name == "Mul" || name == "Add" {
			n++
		}
	}
	if rep.Kept != 600 || n != 600 || len(l.UnmatchedStart)+len(l.UnmatchedEnd) != 0 {
		t.Errorf("%+v, %d zones, %v", rep, n, l.Diags.All())
	}
}

func TestPrintTrace(t *testing.T) {
	var b bytes.Buffer
	if _, err := PrintTrace(context.Background(), world(t, 2), &b); err != nil {
		t.Fatal(err)
	}
	want := "0:(0, 0):A: Mul I-0 0..15 ns\n0:(0, 0):A: Mul I-2 10..25 ns\n0:(1, 0):B: Add I-1 15..35 ns\n0:(1, 0):B: Add I-3 35..55 ns\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
