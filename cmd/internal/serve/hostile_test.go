package serve

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"perfsim/ecs/proptest"
)

// attack sends one hostile request, drawn from r.
type attack func(r *rand.Rand, address string, modules []string)

// attacks are what a server must survive.
var attacks = []attack{
	noise, nested, damaged, damaged, bomb, claims, slow, aborted, leaves, strangeURL, wrongHTTP, hugeBody, badLines, badDelta,
}

// send posts a body and takes the whole answer.
func send(address, path string, body io.Reader) {
	res, err := http.Post("http://"+address+path, "application/octet-stream", body)
	if err != nil {
		return // the server closed the connection, as it may
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

var paths = []string{"/v1/predict", "/v1/explain", "/v1/whatif?set=pe.clock=2x", "/v1/whatif?elasticity=true", "/v1/diff?machine_b=trn1", "/v1/batch"}

func anyPath(r *rand.Rand) string { return paths[r.IntN(len(paths))] }

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func noise(r *rand.Rand, address string, _ []string) {
	send(address, anyPath(r), bytes.NewReader(randomBytes(r, r.IntN(1<<12))))
}

func nested(r *rand.Rand, address string, _ []string) {
	open := []string{"[", `{"a":`, `{"functions":[`, "((", "tuple(", `{"call":[`}[r.IntN(6)]
	send(address, anyPath(r), strings.NewReader(strings.Repeat(open, 1<<r.IntN(17))))
}

// damaged changes, cuts and doubles pieces of a good module.
func damaged(r *rand.Rand, address string, modules []string) {
	b := []byte(modules[r.IntN(len(modules))])
	for range 1 + r.IntN(8) {
		at := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[at] = byte(r.Uint32())
		case 1:
			b = b[:at+1]
		case 2:
			b = append(b[:at:at], append([]byte("99999999999999999999"), b[at:]...)...)
		case 3:
			to := min(at+r.IntN(64), len(b))
			b = append(b[:at:at], b[to:]...)
		case 4:
			to := min(at+r.IntN(256), len(b))
			b = append(b[:to:to], b[at:]...)
		}
		if len(b) == 0 {
			return
		}
	}
	send(address, anyPath(r), bytes.NewReader(b))
}

// bomb unwraps to a thousand times its size.
func bomb(r *rand.Rand, address string, _ []string) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	text := []byte(strings.Repeat([]string{" ", "[", "0", `{"traceEvents":[`}[r.IntN(4)], 1<<16))
	for range 1 << r.IntN(7) {
		_, _ = z.Write(text)
	}
	z.Close()
	send(address, anyPath(r), &b)
}

// claims is a snapshot and a profile that claim more than they hold.
func claims(r *rand.Rand, address string, _ []string) {
	b := append([]byte("PSIM"), randomBytes(r, 256)...)
	for i := 4; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64()>>r.IntN(64))
	}
	send(address, anyPath(r), bytes.NewReader(b))
}

func raw(address string, text string, wait time.Duration) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, text)
	if wait > 0 {
		_ = c.SetReadDeadline(time.Now().Add(wait))
		_, _ = io.Copy(io.Discard, c)
	}
}

// slow sends a few bytes of a body and then nothing.
func slow(r *rand.Rand, address string, _ []string) {
	raw(address, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{", "/v1/predict", 1+r.IntN(1<<19)), time.Duration(r.IntN(20))*time.Millisecond)
}

// aborted closes the connection in the head or behind it.
func aborted(r *rand.Rand, address string, modules []string) {
	text := "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + modules[0]
	raw(address, text[:r.IntN(len(text))], 0)
}

// leaves sends a whole request and does not wait for the answer.
func leaves(r *rand.Rand, address string, modules []string) {
	m := modules[r.IntN(len(modules))]
	raw(address, fmt.Sprintf("POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(m), m), 0)
}

func strangeURL(r *rand.Rand, address string, _ []string) {
	name := []string{"causes", "top", "machine", "model", "path", "module_id", "worst", "threshold_ns", "nobody", "set", "buffers", "trip_count"}[r.IntN(12)]
	value := []string{"-1", "9e99", "NaN", "../../etc/passwd", strings.Repeat("x", 1<<r.IntN(14)), "\x00", "%", "2147483648", "a=-1"}[r.IntN(9)]
	send(address, []string{"/v1/predict", "/v1/explain", "/v1/whatif", "/v1/diff"}[r.IntN(4)]+"?"+name+"="+url.QueryEscape(value), strings.NewReader("x"))
}

func wrongHTTP(r *rand.Rand, address string, _ []string) {
	raw(address, []string{"GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00", "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", "DELETE /v1/predict HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /" + strings.Repeat("a", 1<<17) + " HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}[r.IntN(7)], 5*time.Millisecond)
}

func hugeBody(r *rand.Rand, address string, _ []string) {
	send(address, anyPath(r), io.LimitReader(zeroes{}, int64(1<<20+r.IntN(1<<20))))
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func badLines(r *rand.Rand, address string, modules []string) {
	line := []string{`{"call":"predict","body":` + quote(modules[0]), `{"call":1}`, `[]`, `{"id":{"a":[[[[]]]]},"call":"diff"}`, `null`, `{"call":"predict","changes":[{}]}`}
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(line[r.IntN(len(line))] + "\n")
	}
	send(address, "/v1/batch", strings.NewReader(b.String()))
}

func badDelta(r *rand.Rand, address string, modules []string) {
	id := digest([]byte(modules[0]))
	send(address, "/v1/predict?module_id="+id, strings.NewReader([]string{`{"changes":[{"instruction":"#4294967295"}]}`, `{"changes":[{"instruction":"#0","opcode":"Loop"}]}`,
		`{"changes":[{"instruction":"#1","elements":4294967295,"partitions":65535}]}`, `{"changes":[{"instruction":"#1","latency_ns":4294967295,"issue_ns":0}]}`,
		`{"changes":[{"instruction":"#1","engine":"ALL"}]}`, `{"changes":[{"instruction":"#1","engine":"DMA","opcode":"Matmult"}]}`}[r.IntN(6)]))
}

// Hostile requests of all kinds, many at a time: the server lives, has had no
// fault of its own, answers good requests in between, gives everything back
// and its memory stays within its limits. PERFSIM_LONG=1 sends 10,000.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	total := proptest.Cases(10_000)
	s := server(t, func(o *Options) { o.Timeout, o.MaxUnwrapped, o.Held = 2*time.Second, 8<<20, 16<<20 })
	modules := []string{example(t, "tiled_matmul.bir.json"), example(t, "attention.bir.json"), example(t, "loop.bir.json"), layerHLO, replayTrace}
	address := strings.TrimPrefix(start(t, s), "http://")
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(proptest.SeedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", seed)
	most := uint64(0)
	var mu sync.Mutex
	var wg sync.WaitGroup
	const clients = 8
	for c := range uint64(clients) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, c))
			for n := range total / clients {
				attacks[r.IntN(len(attacks))](r, address, modules)
				if n%50 != 0 {
					continue
				}
				res, err := http.Post("http://"+address+"/v1/predict?causes=0", "", strings.NewReader(modules[n/50%len(modules)]))
				if err != nil {
					t.Errorf("a good request: %v", err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != 200 && res.StatusCode != 503 {
					t.Errorf("a good request: status %d", res.StatusCode)
				}
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				mu.Lock()
				most = max(most, m.HeapAlloc)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := s.metrics.panics; n != 0 {
		t.Errorf("%v requests ended in a fault of the server", n)
	}
	// What is in memory at most: bodies, what two requests unwrap and make of it,
	// held modules, and as much again that is not collected yet.
	const limit = 2 * (bodiesAtOnce<<20 + 2*16*8<<20 + 16<<20)
	if most > limit {
		t.Errorf("%d MiB of heap, more than %d", most>>20, limit>>20)
	}
	t.Logf("%d requests, at most %d MiB of heap", total, most>>20)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		free := s.bodies.TryAcquire(bodiesAtOnce * s.opt.MaxBody)
		if free {
			s.bodies.Release(bodiesAtOnce * s.opt.MaxBody)
		}
		if free && len(s.slots) == 0 && len(s.waiting) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("bodies given back: %v; %d places and %d in the queue are not", free, len(s.slots), len(s.waiting))
		}
	}
}

// A client that leaves ends its request.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	s := server(t, func(o *Options) { o.Jobs = 1 })
	s.slots <- struct{}{} // requests wait
	address := strings.TrimPrefix(start(t, s), "http://")
	text := example(t, "loop.bir.json")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	left := func() int {
		s.metrics.mu.Lock()
		defer s.metrics.mu.Unlock()
		return s.metrics.requests[answered{"predict", 499}]
	}
	gone := func(want int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); left() != want || len(s.waiting) != 1-want; {
			if time.Now().After(end) {
				t.Fatalf("%d requests wait, want %v that left", len(s.waiting), want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	gone(0)
	c.Close()
	gone(1)
	<-s.slots
}
