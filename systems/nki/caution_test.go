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
