package serve

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A request of any bytes is an error or one that is the same when it is
// written and read again.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":1,"call":"predict","body":"x","machine":"trn2","causes":2,"changes":[{"instruction":"#1","latency_ns":4}]}`), "machine=trn2&causes=0&set=a%3D1", "predict")
	f.Add([]byte(`{"call":"diff","a":"measured","threshold_ns":1e3}`), "threshold_ns=1e400&a=x&worst=3", "diff")
	f.Add([]byte(`{"changes":[]}`), "set=a&set=b&elasticity=true&top=-1", "whatif")
	f.Add([]byte(`[`), "%zz", "explain")
	f.Fuzz(func(t *testing.T, line []byte, query, call string) {
		if q, err := fromLine(line); err == nil {
			b, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			again, err := fromLine(b)
			if err != nil {
				t.Fatalf("%s: %v", b, err)
			}
			c, err := json.Marshal(again)
			if err != nil || !bytes.Equal(b, c) {
				t.Fatalf("%s became %s: %v", b, c, err)
			}
		}
		if q, err := fromURL(call, query); err == nil {
			if err := q.takes(); err != nil {
				t.Fatalf("a URL gave %s what it does not take: %v", call, err)
			}
			_ = q.takeBody(line) // an error or not: no crash
		}
	})
}
