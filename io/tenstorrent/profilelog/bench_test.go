package profilelog

import (
	"bytes"
	"context"
	"runtime"
	"testing"
)

// BenchmarkRead gives MB/s of one parser and of all, and the memory a row
// costs once the log is read.
func BenchmarkRead(b *testing.B) {
	var buf bytes.Buffer
	rows, _, err := Generate(&buf, GenOptions{Rows: 400_000, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 0} {
		name := "all"
		if workers == 1 {
			name = "one"
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(buf.Len()))
			if workers == 1 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			}
			var perRow float64
			for b.Loop() {
				l, err := Read(context.Background(), bytes.NewReader(buf.Bytes()), Options{Workers: workers, Size: int64(buf.Len())})
				if err != nil {
					b.Fatal(err)
				}
				if int64(l.Rows()) != rows {
					b.Fatalf("%d rows, %d written", l.Rows(), rows)
				}
				perRow = float64(l.Bytes()) / float64(rows)
			}
			b.ReportMetric(perRow, "B/row")
		})
	}
}
