package calibrated

import (
	"bytes"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/neuron/profile"
)

// profiles are the real profiles as JSON text, by name.
func profiles(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(datadir.Path(t, "neuron-profiles"), "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no profiles", err)
	}
	out := make(map[string][]byte)
	for _, path := range files {
		src, err := format.Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := src.ReadAll(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = text
	}
	return out
}

func read(t *testing.T, name string, text []byte) *components.Module {
	t.Helper()
	src, err := format.FromBytes(name, text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := profile.Importer.Module(ctx, src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var number = regexp.MustCompile(`"(timestamp|duration|evt_wait_time)":\s*\d+`)

// forgetTimes replaces every time in a profile's text: all by zero, or by
// numbers that have nothing to do with the run.
func forgetTimes(text []byte, zero bool) []byte {
	n := uint64(1)
	return number.ReplaceAllFunc(text, func(b []byte) []byte {
		v := uint64(0)
		if !zero {
			n = n*6364136223846793005 + 1442695040888963407
			v = n >> 44
		}
		return strconv.AppendUint(append([]byte{}, b[:bytes.IndexByte(b, ':')+1]...), v, 10)
	})
}

// without empties a list of the profile.
func without(t *testing.T, text []byte, list string) []byte {
	t.Helper()
	at := bytes.Index(text, []byte(`"`+list+`":[`))
	if at < 0 {
		t.Fatalf("no list %q", list)
	}
	from := at + len(list) + 4
	depth, quoted := 1, false
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return append(append([]byte{}, text[:from]...), text[i:]...)
			}
		}
	}
	t.Fatalf("list %q has no end", list)
	return nil
}

// TestNothingMeasuredIsRead predicts every profile, then the same profile
// without its measurements: all timestamps, durations and wait times zero or
// random, no DMA packets, no clock windows, no semaphore changes. The
// predictions have to agree to the last bit.
func TestNothingMeasuredIsRead(t *testing.T) {
	mach, _ := trn2(t)
	for name, text := range profiles(t) {
		whole := read(t, name, text)
		want, err := Predict(ctx, whole, mach, Options{Phase: math.NaN()})
		if err != nil {
			t.Fatal(err)
		}
		byID := make(map[uint64]int)
		for i, id := range whole.Instr.Ref.Slice() {
			byID[id] = i
		}
		if len(byID) != whole.Instr.Len() || want.Total < 20_000 {
			t.Fatalf("%s: %d ids of %d instructions, %v ns", name, len(byID), whole.Instr.Len(), want.Total)
		}
		bare := text
		for _, list := range []string{"dma", "ham", "semaphore_update", "pending_dma", "dma_throughput", "active_time", "instruction_usage"} {
			bare = without(t, bare, list)
		}
		for _, zero := range []bool{true, false} {
			m := read(t, name, forgetTimes(bare, zero))
			if n := m.Packets.Start.Len() + m.Windows.Start.Len() + m.SemUpdates.Time.Len(); n > 0 {
				t.Fatalf("%s still has %d measurements", name, n)
			}
			if span, _ := m.MeasuredSpan(); zero && span != 0 {
				t.Fatalf("%s still has times: a span of %d ns", name, span)
			}
			same(t, name, m, byID, want)
		}
		// The same, with the columns cleared behind the reader.
		m := whole
		m.Instr.MeasuredStart, m.Instr.MeasuredDur = ecs.NewColumn[uint64]("instr.measured_start"), ecs.NewColumn[uint32]("instr.measured_dur")
		m.Instr.MeasuredWait = ecs.NewColumn[uint32]("instr.measured_wait")
		m.Packets, m.Windows, m.SemUpdates = components.Packets{}, components.Windows{}, components.SemUpdates{}
		same(t, name, m, byID, want)
	}
}

func same(t *testing.T, name string, m *components.Module, byID map[uint64]int, want *Prediction) {
	t.Helper()
	mach, _ := trn2(t)
	got, err := Predict(ctx, m, mach, Options{Phase: math.NaN()})
	if err != nil {
		t.Fatal(err)
	}
	if got.Total != want.Total || got.Spread != want.Spread {
		t.Errorf("%s: without measurements %v ns and %+v, with them %v ns and %+v", name, got.Total, got.Spread, want.Total, want.Spread)
	}
	wrong := 0
	for i, id := range m.Instr.Ref.Slice() {
		k, ok := byID[id]
		if !ok || got.Start[i] != want.Start[k] || got.Dur[i] != want.Dur[k] || got.Complete[i] != want.Complete[k] {
			if wrong++; wrong < 4 {
				t.Errorf("%s: instruction %d starts at %v and takes %v, with measurements %v and %v", name, id, got.Start[i], got.Dur[i], want.Start[k], want.Dur[k])
			}
		}
	}
}
