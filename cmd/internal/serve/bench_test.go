package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perfsim/bench/self/gen"
	"perfsim/io/format"
	"perfsim/io/formats"
)

// BenchmarkPredict asks for predictions of a kernel of 500 instructions
// through HTTP connections that stay open, client and server in one process.
// Every request is another: in "changes" one instruction of the held module has
// another cost, in "body" the module itself is sent and read anew.
func BenchmarkPredict(b *testing.B) {
	ctx := context.Background()
	e, err := formats.FindExporter("", "psim")
	if err != nil {
		b.Fatal(err)
	}
	modules := make([]bytes.Buffer, 32)
	for n := range modules {
		o := gen.Default(500)
		o.Seed = uint64(n)
		m, err := gen.Module(ctx, o)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Module(ctx, &modules[n], m, format.Options{Jobs: 1}); err != nil {
			b.Fatal(err)
		}
	}
	for _, causes := range []int{0, defaultCauses} {
		b.Run(fmt.Sprintf("changes/causes=%d", causes), func(b *testing.B) {
			s := server(b, nil)
			url := start(b, s)
			status, first := post(b, s, "/v1/predict?model=reference", modules[0].String())
			if status != 200 {
				b.Fatal(first)
			}
			url += fmt.Sprintf("/v1/predict?model=reference&causes=%d&module_id=%s", causes, first["module_id"])
			load(b, url, func(n int64) []byte {
				return fmt.Appendf(nil, `{"changes":[{"instruction":"#%d","latency_ns":%d}]}`, n%500, 100+n)
			})
		})
		b.Run(fmt.Sprintf("body/causes=%d", causes), func(b *testing.B) {
			s := server(b, func(o *Options) { o.Held = 1 })
			load(b, start(b, s)+fmt.Sprintf("/v1/predict?model=reference&causes=%d", causes), func(n int64) []byte { return modules[n%32].Bytes() })
		})
	}
}

// load sends b.N requests over a few connections and reports their rate and
// the time below which 99 of 100 took.
func load(b *testing.B, url string, body func(n int64) []byte) {
	const connections = 4
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	var next atomic.Int64
	times := make([][]time.Duration, connections)
	b.ResetTimer()
	began := time.Now()
	var wg sync.WaitGroup
	for c := range times {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				sent := time.Now()
				res, err := client.Post(url, "application/json", bytes.NewReader(body(n)))
				if err != nil {
					b.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK {
					b.Errorf("status %d, %v", res.StatusCode, err)
					return
				}
				times[c] = append(times[c], time.Since(sent))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	b.StopTimer()
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	b.ReportMetric(float64(len(all))/took.Seconds(), "requests/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1e3, "p99-ms")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1e3, "median-ms")
}
