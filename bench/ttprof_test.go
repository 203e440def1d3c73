package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"perfsim/io/tenstorrent/profilelog"
	"perfsim/systems/devicelog"
)

// logRows is the size of the log; PERFSIM_BENCH_ROWS=10000000 gives the one
// of the published figures (1.2 GB on disk).
func logRows() int64 {
	if n, err := strconv.ParseInt(os.Getenv("PERFSIM_BENCH_ROWS"), 10, 64); err == nil && n > 0 {
		return n
	}
	return 300_000
}

func writeLog(tb testing.TB) (path string, size, rows int64, totals map[string]profilelog.GenTotal) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), "log.csv")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	rows, totals, err = profilelog.Generate(w, profilelog.GenOptions{Rows: logRows(), Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	st, err := f.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path, st.Size(), rows, totals
}

// BenchmarkDeviceLog reads a log and makes its zone statistics, on one
// processor and on all. MB/s, the bytes that a row holds, and the ratio to the
// plain Python script on the same file in the same run.
func BenchmarkDeviceLog(b *testing.B) {
	path, size, rows, totals := writeLog(b)
	python := pythonSeconds(b, path, rows, totals)
	for _, procs := range []int{1, runtime.GOMAXPROCS(0)} {
		b.Run(fmt.Sprintf("procs=%d", procs), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			b.SetBytes(size)
			perRow := 0.0
			began := time.Now()
			for b.Loop() {
				l, err := profilelog.ReadFile(context.Background(), path, profilelog.Options{Workers: procs})
				if err != nil {
					b.Fatal(err)
				}
				z, err := devicelog.Zones(context.Background(), l, devicelog.ByZone|devicelog.ByRisc)
				if err != nil {
					b.Fatal(err)
				}
				if int64(l.Rows()) != rows || len(z) == 0 {
					b.Fatalf("%d rows of %d", l.Rows(), rows)
				}
				perRow = float64(l.Bytes()) / float64(rows)
			}
			each := time.Since(began).Seconds() / float64(b.N)
			b.ReportMetric(perRow, "B/row")
			if python > 0 {
				b.ReportMetric(python/each, "x-python")
			}
		})
	}
}

// pythonSeconds runs the plain script and checks that it found the same.
func pythonSeconds(b *testing.B, path string, rows int64, totals map[string]profilelog.GenTotal) float64 {
	py, err := exec.LookPath("python3")
	if err != nil {
		return 0
	}
	out, err := exec.Command(py, "ttprof_csv.py", path).CombinedOutput()
	if err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var zones, cycles uint64
	for _, t := range totals {
		zones += t.Count
		cycles += t.Cycles
	}
	want := fmt.Sprintf("rows=%d zones=%d cycles=%d unmatched=0 seconds=", rows, zones, cycles)
	text := strings.TrimSpace(string(out))
	s, err := strconv.ParseFloat(strings.TrimPrefix(text, want), 64)
	if err != nil || !strings.HasPrefix(text, want) {
		b.Fatalf("the script found %q, the generator %q", text, want)
	}
	return s
}

// TestDeviceLogMemory holds what a log keeps in memory to 40 bytes a row,
// data in every row or in none.
func TestDeviceLogMemory(t *testing.T) {
	path, _, rows, _ := writeLog(t)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := profilelog.ReadFile(context.Background(), path, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := float64(after.HeapAlloc-before.HeapAlloc) / float64(rows)
	if held > 40 || float64(l.Bytes())/float64(rows) > 40 {
		t.Errorf("%.1f bytes a row on the heap, %.1f in columns; 40 are allowed", held, float64(l.Bytes())/float64(rows))
	}
	runtime.KeepAlive(l)
}
