package profilelog

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/zonelog"
)

// TestModuleOfLog checks by hand what becomes of nested zones on two
// processors at 500 MHz, where a cycle is two nanoseconds.
func TestModuleOfLog(t *testing.T) {
	l := readText(t, `ARCH: wormhole_b0, CHIP_FREQ[MHz]: 500
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, Run ID,  zone name, zone phase, source line, source file
0,1,2,BRISC,1,1000,0,7,BRISC-FW,begin,1,a.cc
0,1,2,BRISC,2,1010,0,7,READ,begin,2,a.cc
0,1,2,BRISC,65538,1030,0,7,READ,end,2,a.cc
0,1,2,BRISC,2,1030,0,7,READ,begin,2,a.cc
0,1,2,BRISC,65538,1030,0,7,READ,end,2,a.cc
0,1,2,BRISC,65537,1100,0,7,BRISC-FW,end,1,a.cc
0,1,2,BRISC,1,1150,0,8,BRISC-FW,begin,1,a.cc
0,1,2,BRISC,65537,1160,0,8,BRISC-FW,end,1,a.cc
0,1,2,TRISC_1,3,1020,0,7,MATH,begin,2,a.cc
0,1,2,TRISC_1,65539,1021,0,7,MATH,end,2,a.cc
`, Options{})
	m, err := Module(context.Background(), "log", l)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		name, lane, op string
		start          uint64
		dur            uint32
		engine         components.Engine
	}
	var got []row
	for i := range m.Instr.Len() {
		if m.OpcodeName(m.Instr.Opcode.At(i)) == "Wait" {
			continue
		}
		got = append(got, row{m.InstrName(components.InstrID(i)), m.LaneName(m.Instr.Lane.At(i)), m.Symbols.String(m.Instr.HLO.Get(i)),
			m.Instr.MeasuredStart.Get(i), m.Instr.MeasuredDur.Get(i), m.Instr.Engine.At(i)})
	}
	want := []row{
		{"BRISC-FW", "1,2 BRISC", "run 7", 0, 20, components.DMA},
		{"READ", "1,2 BRISC", "run 7", 20, 40, components.DMA},
		{"MATH", "1,2 TRISC_1", "run 7", 40, 2, components.PE},
		{"READ", "1,2 BRISC", "run 7", 60, 0, components.DMA},
		{"BRISC-FW", "1,2 BRISC", "run 7", 60, 140, components.DMA},
		{"BRISC-FW", "1,2 BRISC", "run 8", 300, 20, components.DMA},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d instructions: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("instruction %d is %+v, not %+v", i, got[i], want[i])
		}
	}
}

// TestModulesOfRealLogs: the instructions of a zone last as long as the zone
// had for itself, worked out here from the nesting, and no processor does two
// things at once.
func TestModulesOfRealLogs(t *testing.T) {
	n := 0
	for _, path := range deviceLogs(t) {
		l, err := ReadFile(context.Background(), path, Options{})
		if err != nil {
			continue // told by other tests
		}
		m, err := Module(context.Background(), "log", l)
		if err != nil {
			if l.Zones.Len() > 0 {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		n++
		want, got, pieces := map[string]float64{}, map[string]float64{}, map[string]int{}
		for z := range l.Zones.Len() {
			f := l.Freq(l.Run[l.Zones.Begin[z]])
			if f <= 0 {
				f = 1000
			}
			ns := float64(l.Dur(z)) * 1000 / f
			want[l.ZoneName(l.Key(z))] += ns
			if p := l.Zones.Parent[z]; p != zonelog.NoZone {
				want[l.ZoneName(l.Key(int(p)))] -= ns
			}
		}
		last := map[uint16]uint64{}
		for i := range m.Instr.Len() {
			op := m.OpcodeName(m.Instr.Opcode.At(i))
			lane, start, dur := m.Instr.Lane.At(i), m.Instr.MeasuredStart.Get(i), m.Instr.MeasuredDur.Get(i)
			if start < last[lane] {
				t.Fatalf("%s: instruction %d starts at %d, before %d", path, i, start, last[lane])
			}
			last[lane] = start + uint64(dur)
			if op != "Wait" {
				got[op] += float64(dur)
				pieces[op]++
			}
		}
		for k, v := range want {
			if math.Abs(got[k]-v) > float64(pieces[k]) { // each piece is rounded at both ends
				t.Errorf("%s: zone %s has %.0f ns for itself, its instructions take %.0f", path, k, v, got[k])
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d logs became modules", n)
	}
}

// deviceLogs lists the real device logs.
func deviceLogs(t testing.TB) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(datadir.Path(t, "tenstorrent"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		r, _, done, err := Unwrap(f)
		if err != nil {
			return nil
		}
		defer done()
		head := make([]byte, 4096)
		k, _ := io.ReadFull(r, head)
		if Sniff(head[:k]) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSniff(t *testing.T) {
	for text, want := range map[string]bool{
		"ARCH: grayskull, CHIP_FREQ[MHz]: 1202\nPCIe slot, core_x, core_y":                           true,
		"Chip clock is at 1.2 GHz\n":                                                                 true,
		"\n\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\r\n": true,
		"":                     false,
		"ARCH\n":               false,
		"ARCHIVE of things\n":  false,
		"HloModule x\n":        false,
		"{\"traceEvents\":[]}": false,
		"a,b,c\n1,2,3\n":       false,
	} {
		if Sniff([]byte(text)) != want {
			t.Errorf("Sniff(%q) is not %v", text, want)
		}
	}
}

func TestModuleWithoutZones(t *testing.T) {
	l, err := Read(context.Background(), strings.NewReader(""), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Module(context.Background(), "log", l); err == nil || !strings.Contains(err.Error(), DiagEmptyFile) {
		t.Errorf("an empty log gives %v", err)
	}
	l, err = Read(context.Background(), bytes.NewReader([]byte("ARCH: x, CHIP_FREQ[MHz]: 5\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\n0,1,1,BRISC,1,5\n")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Module(context.Background(), "log", l); err == nil {
		t.Error("a log without a whole zone becomes a module")
	}
	l = readText(t, "ARCH: x, CHIP_FREQ[MHz]: 0.001\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, Run ID,  zone name, zone phase, source line, source file\n"+
		"0,1,2,BRISC,1,0,0,7,A,begin,1,a.cc\n0,1,2,BRISC,65537,5000000000000,0,7,A,end,1,a.cc\n", Options{})
	if _, err := Module(context.Background(), "log", l); err == nil || !strings.Contains(err.Error(), "more than a day") {
		t.Errorf("a log of 150 years gives %v", err)
	}
	text := "ARCH: x, CHIP_FREQ[MHz]: 0.001\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, Run ID,  zone name, zone phase, source line, source file\n"
	for d := range 9 { // 8 to 0
		text += strings.ReplaceAll("#,1,2,BRISC,1,0,0,7,A,begin,1,a.cc\n#,1,2,BRISC,65537,5000000000000,0,7,A,end,1,a.cc\n", "#", strconv.Itoa(8-d))
	}
	for range 20 {
		if _, err := Module(context.Background(), "log", readText(t, text, Options{})); err == nil || !strings.HasPrefix(err.Error(), "device 0:") {
			t.Fatalf("the error is not that of the first device: %v", err)
		}
	}
}
