package campaign

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/psim"
	"perfsim/systems"
	"perfsim/systems/explain"
)

var (
	snapshots = flag.Int("campaign.snapshots", 0, "how many mutated snapshots to read and simulate; 0 is the short form")
	lapse     = flag.Duration("campaign.snapshots.time", 0, "stop the mutated snapshots after this time; 0 is never")
)

// smallSnapshots returns the snapshots that are mutated: few rows, so that a
// change meets what the systems index by, and every table in use.
func smallSnapshots(t *testing.T) [][]byte {
	t.Helper()
	dir := t.TempDir()
	var out [][]byte
	add := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	for i, args := range [][]string{{}, {"--loops", "2", "--nested", "--body", "4"}, {"--operands", "--blocks", "3"}, {"--operands", "--loops", "1", "--body", "8"}} {
		path := filepath.Join(dir, fmt.Sprintf("g%d.psim", i))
		perfsim(t, append([]string{"gen", "-q", "-n", "24", path}, args...)...)
		add(path)
	}
	examples, _ := filepath.Glob("../../../examples/*.json")
	for _, e := range examples {
		path := filepath.Join(dir, filepath.Base(e)+".psim")
		perfsim(t, "convert", "-q", e, path)
		if st, err := os.Stat(path); err == nil && st.Size() <= 64<<10 {
			add(path)
		}
	}
	return out
}

// TestSnapshots changes tables of snapshots, renews the checksums, and
// simulates what the check lets pass: no system may fail on it. The long form
// is -campaign.snapshots 10000000.
func TestSnapshots(t *testing.T) {
	n := *snapshots
	if n == 0 {
		n = 2000
		if os.Getenv("PERFSIM_LONG") != "" {
			n = 50_000
		}
	}
	list := smallSnapshots(t)
	began := time.Now()
	passed, done, findings := 0, 0, 0
	for i := range n {
		ok, err := trySnapshot(list, uint64(i))
		if done++; ok {
			passed++
		}
		if err != nil {
			t.Errorf("snapshot %d (-campaign.seed %d): %v", i, *firstSeed, err)
			if findings++; findings == 10 {
				break
			}
		}
		if *lapse > 0 && i%1000 == 0 && time.Since(began) > *lapse {
			break
		}
		if i%100_000 == 0 && i > 0 {
			t.Logf("%d in %v, %d passed the check", i, time.Since(began).Round(time.Second), passed)
		}
	}
	result := fmt.Sprintf("%d with checksums renewed, %d passed the check and were simulated, %d findings; seed %d", done, passed, findings, *firstSeed)
	t.Log(result, time.Since(began))
	record(t, "mutated snapshots", result)
}

// trySnapshot reads and simulates mutation i; ok says that the check let it
// pass. A panic is an error.
func trySnapshot(list [][]byte, i uint64) (ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v\n%.3000s", p, debug.Stack())
		}
	}()
	r := rand.New(rand.NewPCG(*firstSeed, i))
	b := snapshot(r, list[r.IntN(len(list))])
	for r.IntN(3) == 0 {
		b = snapshot(r, b)
	}
	ctx := context.Background()
	src, err := format.FromBytes("mutated.psim", b)
	if err != nil {
		return false, err
	}
	m, err := psim.Importer.Module(ctx, src, format.Options{Jobs: 1})
	if err != nil {
		if strings.Contains(err.Error(), "snapshot is damaged: column") && strings.Contains(err.Error(), "checksum") {
			return false, fmt.Errorf("its checksums are not right: %w", err)
		}
		return false, nil
	}
	model := components.Reference
	if r.IntN(8) == 0 {
		model = components.Calibrated
	}
	res, err := systems.Simulate(ctx, systems.Request{Reading: systems.Reading{Module: m}, Settings: systems.Settings{Machine: "trn2", Model: model}})
	if err != nil {
		return true, nil // too long a latency and the like
	}
	switch r.IntN(16) {
	case 0:
		res.Explain(ctx, explain.Options{Top: 3, Block: -1})
	case 1:
		psim.Write(ctx, io.Discard, res.World.Module, format.Options{Jobs: 1})
	case 2:
		var out bytes.Buffer
		fmt.Fprint(&out, res.Report().Summary)
	}
	return true, nil
}
