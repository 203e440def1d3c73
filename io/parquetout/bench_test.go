package parquetout

import (
	"context"
	"io"
	"testing"
)

func BenchmarkWriteSlices(b *testing.B) {
	const n = 200_000
	tl := timeline(n)
	files, err := Files(tl, Perfetto, "1")
	if err != nil {
		b.Fatal(err)
	}
	f, err := find(files, "slice")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Write(context.Background(), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}
