package devicelog

import (
	"context"
	"testing"

	"perfsim/io/tenstorrent/profilelog"
)

// BenchmarkProfile is everything but reading, for a log of 300,000 rows.
func BenchmarkProfile(b *testing.B) {
	l, _ := generated(b, profilelog.GenOptions{Rows: 300_000, Seed: 1})
	b.ResetTimer()
	for b.Loop() {
		if _, err := New(context.Background(), "x", l, Options{By: ByZone | ByRisc, Slowest: 5, Gaps: 3}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(l.Rows()), "ns/row")
}
