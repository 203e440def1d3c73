package kineto

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/readtest"
	"perfsim/io/internal/timeline"
)

// plainEvent is an event as encoding/json sees it.
type plainEvent struct {
	Ph, Cat, Name string
	Pid, Tid      any
	Ts, Dur       *json.Number
	Args          map[string]any
}

// events reads a trace without the package.
func events(t *testing.T, path string) []plainEvent {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var list []plainEvent
	if bytes.TrimSpace(b)[0] == '{' {
		var o struct{ TraceEvents []plainEvent }
		err = json.Unmarshal(b, &o)
		list = o.TraceEvents
	} else {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// ns is a time in µs as ns; the real files have at most three decimals.
func ns(n *json.Number) int64 {
	whole, frac, _ := strings.Cut(n.String(), ".")
	v, _ := json.Number(whole + (frac + "000")[:3]).Int64()
	return v
}

func readFile(t *testing.T, path string) (*components.Module, error) {
	t.Helper()
	src, err := format.Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if !sniff(src.Head()) {
		t.Error("not recognised")
	}
	return read(context.Background(), src, format.Options{Jobs: 1})
}

func noteCount(m *components.Module, code string) int {
	for _, n := range m.Notes {
		if n.Code == code {
			return n.Count
		}
	}
	return 0
}

// Every device event is an instruction with its duration, every launch a
// dependency, and the replay gives every recorded start back.
func TestKinetoFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(datadir.Path(t, "kineto"), "*"))
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := readFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			device := map[string]int{}
			var busy int64
			launches := map[float64]bool{}
			all := events(t, path)
			for _, e := range all {
				if e.Ph == "X" && (strings.HasSuffix(e.Cat, "_runtime") || strings.HasSuffix(e.Cat, "_driver")) {
					if c, ok := e.Args["correlation"].(float64); ok && c != 0 {
						launches[c] = true
					}
				}
			}
			launched := 0
			for _, e := range all {
				if e.Ph == "X" && (e.Cat == "kernel" || e.Cat == "gpu_memcpy" || e.Cat == "gpu_memset") {
					device[e.Name]++
					busy += ns(e.Dur)
					if c, ok := e.Args["correlation"].(float64); ok && launches[c] {
						launched++
					}
				}
			}
			var gotBusy int64
			gotLaunched := 0
			for i := range m.Instr.Len() {
				if m.Instr.Engine.At(i) == components.Unassigned {
					continue
				}
				device[m.InstrName(components.InstrID(i))]--
				gotBusy += int64(m.Instr.MeasuredDur.At(i))
				for _, w := range m.Edges.Preds.Row(i) {
					p := int(w & ecs.TargetMask)
					if strings.Contains(m.LaneName(m.Instr.Lane.At(p)), " host") && m.OpcodeName(m.Instr.Opcode.At(p)) != timeline.OpWait {
						gotLaunched++
					}
				}
			}
			for name, n := range device {
				if n != 0 {
					t.Errorf("%s: %+d", name, n)
				}
			}
			if trimmed := noteCount(m, "trimmed"); gotBusy > busy || busy-gotBusy > int64(trimmed)*1000 {
				t.Errorf("busy %d ns, want %d less at most 1 µs for each of %d", gotBusy, busy, trimmed)
			}
			if lost := noteCount(m, "contradicted-dependency"); gotLaunched > launched || gotLaunched+lost < launched {
				t.Errorf("%d launches, want %d (%d against time)", gotLaunched, launched, lost)
			}
			if n := noteCount(m, "late-replay"); n > 0 {
				t.Errorf("%d late", n)
			}
			checkReplay(t, m)
			t.Logf("%d instructions, %d device events, %d launches, notes %s", m.Instr.Len(), launched, gotLaunched, readtest.Codes(m))
		})
	}
}

// Of plain traces: slices that are found and nested ones make all there are,
// and every thread is busy for the union of its slices.
func TestPlainFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(datadir.Path(t, "chrome_variety"), "*"))
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := readFile(t, path)
			if err != nil {
				t.Fatal(err)
			}
			type span struct{ lo, hi int64 }
			threads := map[[2]any][]span{}
			open := map[[2]any][]int64{}
			all := events(t, path)
			slices.SortStableFunc(all, func(a, b plainEvent) int {
				if a.Ts == nil || b.Ts == nil {
					return 0
				}
				return cmp.Compare(ns(a.Ts), ns(b.Ts))
			})
			total := 0
			for _, e := range all {
				k := [2]any{e.Pid, e.Tid}
				switch {
				case e.Ph == "X" && e.Dur != nil:
					threads[k] = append(threads[k], span{ns(e.Ts), ns(e.Ts) + ns(e.Dur)})
					total++
				case e.Ph == "B":
					open[k] = append(open[k], ns(e.Ts))
				case e.Ph == "E" && len(open[k]) > 0:
					last := len(open[k]) - 1
					threads[k] = append(threads[k], span{open[k][last], ns(e.Ts)})
					open[k] = open[k][:last]
					total++
				}
			}
			var busy int64
			for _, l := range threads {
				slices.SortFunc(l, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
				at := int64(math.MinInt64)
				for _, s := range l {
					if lo := max(s.lo, at); s.hi > lo {
						busy += s.hi - lo
						at = s.hi
					}
				}
			}
			unclosed := 0
			for _, l := range open {
				unclosed += len(l)
			}
			if got := noteCount(m, "unclosed-slice"); got != unclosed {
				t.Errorf("%d begins without an end, want %d", got, unclosed)
			}
			var got int64
			rows := 0
			for i := range m.Instr.Len() {
				if m.OpcodeName(m.Instr.Opcode.At(i)) != timeline.OpWait {
					got += int64(m.Instr.MeasuredDur.At(i))
					rows++
				}
			}
			if got != busy {
				t.Errorf("busy %d ns, want %d", got, busy)
			}
			waits := m.Instr.Len() - rows
			pieces := noteCount(m, "cut-slice") + noteCount(m, "long-event") - (waits - noteCount(m, "unexplained-wait"))
			if slices := rows - pieces + noteCount(m, "nested-slice"); slices != total {
				t.Errorf("%d slices, want %d", slices, total)
			}
			checkReplay(t, m)
			t.Logf("%d instructions of %d slices, notes %s", m.Instr.Len(), total, readtest.Codes(m))
		})
	}
}

// Damaged traces degrade with notes that name what is lost.
func TestNegativeFiles(t *testing.T) {
	datadir.Path(t, "chrome_negative")
	const base = "facebookresearch__HolisticTraceAnalysis__DERIVED_alexnet_"
	for name, want := range map[string]string{
		"string_ts_abs.json.gz":  "string-time=2236",
		"truncated.json":         "truncated=1",
		"truncated.json.gz":      "truncated=1",
		"ts0_negdur_nan.json.gz": "bad-time=2 no-duration=9 negative-duration=8 lost-time=170",
	} {
		m, err := readFile(t, datadir.Path(t, "chrome_negative", base+name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := readtest.Codes(m); !strings.Contains(got, want) {
			t.Errorf("%s: notes %s, want %s", name, got, want)
		}
		checkReplay(t, m)
	}
	// Absolute times as strings are the same trace as the original.
	a, err := readFile(t, datadir.Path(t, "chrome_negative", base+"string_ts_abs.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := readFile(t, datadir.Path(t, "kineto", "facebookresearch__HolisticTraceAnalysis__alexnet_trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	if list(a) != list(b) {
		t.Error("the trace with times as strings differs from the original")
	}
}
