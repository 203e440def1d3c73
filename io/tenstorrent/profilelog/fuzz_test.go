package profilelog

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte(seedLog))
	f.Add([]byte(strings.ReplaceAll(seedLog, "\n", "\r\n")))
	f.Add([]byte("Chip clock is at 1.2 GHz\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\n0, 0, 0, NCRISC, 1, 5\n0, 0, 0, NCRISC, 4, 9"))
	f.Add([]byte(seedLog + seedLog + `0,"a"",,,` + "\n"))
	for _, v := range []string{"V6", "V9", "V11"} {
		var b bytes.Buffer
		Generate(&b, GenOptions{Rows: 40, Version: v, Width: 1, Height: 1, LoseEnds: 5})
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		a, errA := Read(context.Background(), bytes.NewReader(in), Options{Workers: 1, MaxRows: 10_000})
		b, errB := Read(context.Background(), bytes.NewReader(in), Options{Workers: 3, MaxRows: 10_000})
		if (errA == nil) != (errB == nil) {
			t.Fatalf("errors differ by workers: %v, %v", errA, errB)
		}
		if errA != nil {
			return
		}
		checkLog(t, a)
		if a.Rows() != b.Rows() || a.Zones.Len() != b.Zones.Len() || diagText(a) != diagText(b) {
			t.Fatal("results differ by workers")
		}
		if m, err := Module(context.Background(), "fuzz", a); err == nil && m.Check() != nil {
			t.Fatal(m.Check())
		}
	})
}

func FuzzDecodeRaw(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(make([]byte, 96), true)
	f.Fuzz(func(t *testing.T, in []byte, seed bool) {
		w, err := Words(in[:len(in)/4*4])
		if err != nil {
			t.Fatal(err)
		}
		y := LayoutClassic
		if seed {
			y = LayoutSeed
		}
		runs, bad := DecodeRaw(w, y)
		total := 0
		for _, r := range runs {
			total += len(r.Markers)
		}
		if total+len(bad) > len(w)+1 {
			t.Fatalf("%d markers and %d problems from %d words", total, len(bad), len(w))
		}
	})
}

func FuzzSources(f *testing.F) {
	f.Add("k.hpp:1:1: note: '#pragma message: a,b,1,KERNEL_PROFILER'\n")
	f.Add("#pragma message: a,,b,4294967295,KERNEL_PROFILER\n#pragma message: a,b,01,KERNEL_PROFILER’\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ReadSources(strings.NewReader(in))
		if err != nil {
			return
		}
		for i, z := range s.list {
			again, err := NewSources(z.Text)
			if err != nil || again.list[0] != z {
				t.Fatalf("%+v by itself is %+v, %v", z, again, err)
			}
			if i > 0 && s.list[i-1].Text >= z.Text {
				t.Fatalf("%q is not behind %q", z.Text, s.list[i-1].Text)
			}
			if _, ok := s.Lookup(uint32(z.ID)); !ok {
				t.Fatalf("no zone has the id %d of %q", z.ID, z.Text)
			}
		}
	})
}
