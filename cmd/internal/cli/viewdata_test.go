package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The page shows a run without anti-dependencies only where there is one:
// semaphores cannot be told apart. The profile's second copy starts 400 ns
// after the first in the measurement.
func TestViewSections(t *testing.T) {
	const profile = `{"instruction":[
{"id":1,"timestamp":100,"duration":300,"label":"Vector","opcode":"COPY","operands":"src=fp32@0x2000800[1,1,1,1][256,1,1,1] dst=fp32@0x100[1,1,1,1][256,1,1,1]SEM","pc":1,"subgraph":"sg00"},
{"id":2,"timestamp":500,"duration":300,"label":"Vector","opcode":"COPY","operands":"src=fp32@0x2000800[1,1,1,1][256,1,1,1] dst=fp32@0x100[1,1,1,1][256,1,1,1]","pc":2,"subgraph":"sg00"}]}`
	for _, c := range []struct {
		semaphore string
		want      []string
	}{
		{" S[5] (Vector)++@complete", []string{"predicted", "without anti-dependencies", "measured"}},
		{"", []string{"predicted", "without anti-dependencies", "measured"}},
	} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "p.json"), filepath.Join(dir, "p.html")
		if err := os.WriteFile(in, []byte(strings.Replace(profile, "SEM", c.semaphore, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		perfsim(t, "view", "-o", out, in)
		var got pageOf
		pageData(t, out, &got)
		var names, facts []string
		for _, s := range got.Pages[0].Meta.Sections {
			names = append(names, s.Name)
		}
		for _, f := range got.Program.Facts {
			facts = append(facts, f.Name)
		}
		if !slices.Equal(names, c.want) || slices.Contains(facts, "without anti-dependencies") != (len(c.want) == 3) {
			t.Errorf("semaphore %q: sections %q, facts %q", c.semaphore, names, facts)
		}
		last := got.Pages[0].Sections[len(got.Pages[0].Sections)-1].Rows
		if len(last) != 1 || !slices.Equal(last[0].S, []uint64{0, 400}) {
			t.Errorf("measured rows %v", last)
		}
	}
}
