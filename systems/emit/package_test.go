package emit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"perfsim/components"
	"perfsim/io/neuron/pttf"
)

// placed is a module of two blocks with times by hand.
func placed() *components.World {
	const n = 6000
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(n)
	m.Instr.Issue.Resize(n)
	m.Instr.Latency.Resize(n)
	w := &components.World{Module: m, Events: components.NewEvents(), Config: components.Config{Jobs: 2}, Placement: 1}
	w.Events.Arrive.Resize(n)
	for i := range n {
		m.Instr.Lane.Set(i, uint16(1+i%5))
		m.Instr.Latency.Set(i, uint32(i%700))
		w.Events.Arrive.Set(i, [2]uint64{uint64(100*i) + 700, uint64(90*i) + 700})
		if i%2 == 1 {
			m.Edges.Preds.AppendRow([]uint32{uint32(i - 1)})
		} else {
			m.Edges.Preds.AppendRow(nil)
		}
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	for b := range 2 {
		m.Blocks.Add(m.Symbols.InternString(fmt.Sprint("block", b)), uint32(f), uint32(b*n/2), 0, 1)
		m.Blocks.End.Set(b, uint32((b+1)*n/2))
	}
	m.Functions.EndBlock.Set(f, 2)
	return w
}

// The package is the same, to the byte and the log line, whether its traces
// were read from their files, rendered once more because the files are large,
// or never were files.
func TestPackageIsTheSame(t *testing.T) {
	ctx := context.Background()
	pack := func(o Output) ([]byte, []string) {
		t.Helper()
		w := placed()
		o.Dir = t.TempDir()
		defer o.Abort()
		if err := Traces(ctx, w, &o, familyRunA); err != nil {
			t.Fatal(err)
		}
		for _, a := range o.Artifacts {
			st, err := os.Stat(filepath.Join(o.set.Staging(), filepath.Base(a.Path)))
			if err != nil || a.Size == 0 || st.Size() != a.Size {
				t.Errorf("%s: size %d is told, not that of the file (%v)", a.Path, a.Size, err)
			}
		}
		if o.cached == 1 { // would be seen if it were read
			for name := range o.traces {
				spoil(t, filepath.Join(o.set.Staging(), name))
			}
		}
		var lines []string
		if err := Package(ctx, w, &o, func(s string) {
			lines = append(lines, string(bytes.ReplaceAll([]byte(s), []byte(o.Dir), []byte("DIR"))))
		}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(o.set.Staging(), pttf.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return b, lines
	}
	read, said := pack(Output{})
	again, saidAgain := pack(Output{cached: 1})
	streamed, _ := pack(Output{PackageOnly: true})
	if !bytes.Equal(read, again) || fmt.Sprint(said) != fmt.Sprint(saidAgain) {
		t.Errorf("rendered once more: %d bytes instead of %d, lines\n%q\n%q", len(again), len(read), saidAgain, said)
	}
	if !bytes.Equal(read, streamed) {
		t.Errorf("streamed: %d bytes instead of %d", len(streamed), len(read))
	}
}

// spoil overwrites the start of a file and keeps its size.
func spoil(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("spoilt")); err != nil {
		t.Fatal(err)
	}
}
