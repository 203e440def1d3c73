package nki

import (
	"strings"
	"testing"

	"perfsim/components"
)

// Eight loads of 32 KiB: of rows of 256 bytes from 256 KiB, of single elements
// of 4 bytes, and of the same 32 KiB again and again.
func TestCautions(t *testing.T) {
	t.Parallel()
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(copyLoop) }
	const load, fixed = "[0,1,0,0,0,0,[0,0,8192]]", "[0,1,0,0,0,0,0]"
	for _, c := range []struct {
		name, text, code, says string
		busy                   uint64
	}{
		{"rows", copyLoop, "", "", 100},
		{"elements", change("[[64,128],[1,64]],0]]]\n[\"f\",1", "[[1,128],[128,64]],0]]]\n[\"f\",1", load, fixed), components.NoteTinyRows, "98 % of the DMA descriptors", 100},
		{"again", change(`"hbm",[1024,64],0,"ExternalInput"`, `"hbm",[128,64],0,"ExternalInput"`, load, fixed), components.NoteRepeatedLoads, "read 8.0 times over", 100},
		{"again, not limiting", change(`"hbm",[1024,64],0,"ExternalInput"`, `"hbm",[128,64],0,"ExternalInput"`, load, fixed), "", "", 49},
	} {
		m := lower(t, c.text)
		busy := make([]uint64, m.Lanes.Len())
		busy[components.LaneDMA] = c.busy
		n := len(m.Notes)
		Caution(m, busy, 100)
		got := m.Notes[n:]
		if c.code == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Code != c.code || !got[0].Headline() || !strings.Contains(got[0].Text, c.says) {
			t.Errorf("%s: %v, want %s", c.name, got, c.code)
		}
	}
}

// Matmuls on 64 of 128 rows leave the PE's clock at the rate that it has, those
// on 32 or 128 do not.
func TestClockUndecided(t *testing.T) {
	t.Parallel()
	const operands = `["bfloat16",128,1,[[1,512]],0],["bfloat16",128,1,[[1,128]],0]`
	for rows, want := range map[string]int{"32": 0, "64": 1, "95": 1, "96": 0, "128": 0} {
		text := strings.Replace(strings.Replace(product, "%s", "new", 1), "ATTR", "", 1)
		m := lower(t, strings.Replace(text, operands, strings.ReplaceAll(operands, "16\",128", "16\","+rows), 1))
		busy := make([]uint64, m.Lanes.Len())
		busy[components.PE] = 100
		n := len(m.Notes)
		Caution(m, busy, 100)
		got := 0
		for _, note := range m.Notes[n:] {
			if note.Code == components.NoteClockUndecided && note.Headline() && note.OfPrediction() {
				got++
			}
		}
		if got != want {
			t.Errorf("%s rows: %d notes, want %d", rows, got, want)
		}
	}
}
