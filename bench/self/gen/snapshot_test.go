package gen

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"perfsim/io/format"
	"perfsim/io/psim"
)

// A snapshot made a window at a time has the bytes of the module's.
func TestSnapshotInWindows(t *testing.T) {
	for n, o := range []Options{Default(10_000), Default(1), {Seed: 3, Instructions: 5000, FanIn: 5, Locality: 9, Far: 0.3, Anti: 0.5,
		Mix: Mix{PE: 1, DMA: 1, Collective: 1, DVE: 1}, PSUM: 1, Blocks: 4, Loops: 3, Body: 20, Trips: 5, Nested: true}} {
		var want bytes.Buffer
		m := module(t, o)
		if err := psim.Write(context.Background(), &want, m, format.Options{Jobs: 1}); err != nil {
			t.Fatal(err)
		}
		for _, window := range []uint32{1, 97, 4096, 1 << 20} {
			if window == 1 && n > 1 {
				continue
			}
			path := filepath.Join(t.TempDir(), "x.psim")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			size, edges, err := snapshot(context.Background(), f, o, window, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) || size != int64(len(got)) || edges != uint64(m.Edges.Preds.Len()) {
				t.Errorf("options %d, windows of %d rows: %d bytes (%d said) and %d edges; the module has %d and %d, or they differ", n, window, len(got), size,
					edges, want.Len(), m.Edges.Preds.Len())
			}
		}
	}
}
