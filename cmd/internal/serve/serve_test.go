package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const examples = "../../../examples"

const layerHLO = `HloModule layer

ENTRY main {
  x = bf16[256,1024] parameter(0)
  w = bf16[1024,512] parameter(1)
  d = bf16[256,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = bf16[256,512] tanh(d)
}
`

// replayTrace is a trace of two events on one thread.
const replayTrace = `{"traceEvents":[
{"ph":"X","pid":1,"tid":1,"name":"first","ts":0,"dur":2},
{"ph":"X","pid":1,"tid":1,"name":"second","ts":2,"dur":3}]}`

// server returns a server with small limits.
func server(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	o := DefaultOptions()
	o.Jobs, o.Timeout, o.MaxBody, o.Version = 2, 20*time.Second, 1<<20, "test"
	o.Log = func(line string) { t.Log(line) }
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func example(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// post asks a server in this process and decodes its answer.
func post(t testing.TB, s *Server, url, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest("POST", "http://localhost"+url, strings.NewReader(body))
	w := httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, r)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v: %s", url, err, w.Body)
	}
	return w.Code, v
}

// start serves on a port of this machine until the test ends.
func start(t testing.TB, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// A module is held under the digest of its bytes; a change of one instruction
// answers as the module with that instruction would, and leaves it as it is.
func TestHeldModules(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	status, first := post(t, s, "/v1/predict?model=reference", example(t, "loop.bir.json"))
	if status != 200 {
		t.Fatal(status, first)
	}
	id := first["module_id"].(string)
	if want := digest([]byte(example(t, "loop.bir.json"))); id != want {
		t.Errorf("id %s, want %s", id, want)
	}
	status, second := post(t, s, "/v1/predict?model=reference&module_id="+id, "")
	if status != 200 || second["latency_ns"] != first["latency_ns"] {
		t.Errorf("asked again: %d %v, first %v", status, second["latency_ns"], first["latency_ns"])
	}
	// The last row of the module takes a millisecond: so does the module at least.
	status, changed := post(t, s, "/v1/predict?model=reference&module_id="+id, `{"changes":[{"instruction":"#0","latency_ns":1000000,"issue_ns":1000000}]}`)
	if status != 200 || changed["latency_ns"].(float64) < 1e6 || changed["latency_ns"].(float64) > 1e6+first["latency_ns"].(float64) {
		t.Errorf("changed: %d %v", status, changed["latency_ns"])
	}
	_, again := post(t, s, "/v1/predict?model=reference&module_id="+id, "{}")
	if again["latency_ns"] != first["latency_ns"] {
		t.Errorf("after a change: %v, first %v", again["latency_ns"], first["latency_ns"])
	}
	status, _ = post(t, s, "/v1/predict?model=reference&module_id="+id, `{"changes":[{"instruction":"#0","speed":1}]}`)
	if status != 400 {
		t.Errorf("an unknown field of a change: status %d", status)
	}
	status, _ = post(t, s, "/v1/predict?module_id="+id, `{"changes":[{"instruction":"nobody"}]}`)
	if status != 400 {
		t.Errorf("an unknown instruction: status %d", status)
	}
}

// Modules that were not asked for make room, and never is more held than
// allowed.
func TestHeldLimit(t *testing.T) {
	t.Parallel()
	const limit = 200_000
	s := server(t, func(o *Options) { o.Held = limit })
	var ids []string
	text := example(t, "tiled_matmul.bir.json")
	for n := range 40 {
		status, v := post(t, s, "/v1/predict?causes=0", text+strings.Repeat(" ", n))
		if status != 200 {
			t.Fatal(v)
		}
		ids = append(ids, v["module_id"].(string))
		if _, bytes, _ := s.held.count(); bytes > limit || bytes < 0 {
			t.Fatalf("%d bytes are held, more than %d", bytes, limit)
		}
	}
	if status, _ := post(t, s, "/v1/predict?module_id="+ids[0], ""); status != 404 {
		t.Errorf("the first module is still held: status %d", status)
	}
	if status, _ := post(t, s, "/v1/predict?module_id="+ids[39], ""); status != 200 {
		t.Errorf("the last module is not held: status %d", status)
	}
	modules, _, dropped := s.held.count()
	if modules+int(dropped) != 40 {
		t.Errorf("%d held and %d dropped of 40", modules, dropped)
	}
	s.held.clear()
	if n, bytes, _ := s.held.count(); n != 0 || bytes != 0 {
		t.Errorf("%d modules, %d bytes after clear", n, bytes)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.bir.json")
	for path, text := range map[string]string{outside: example(t, "loop.bir.json"), filepath.Join(dir, "k.py"): "import nki\nraise SystemExit(9)\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.bir.json")); err != nil {
		t.Fatal(err)
	}
	s := server(t, func(o *Options) { o.Roots = []string{dir} })
	for _, c := range []struct {
		url, body string
		status    int
	}{
		{"/v1/predict?path=link.bir.json", "", 403},
		{"/v1/predict?path=" + outside, "", 403},
		{"/v1/predict?path=.", "", 403},
		{"/v1/predict?path=none.json", "", 404},
		{"/v1/predict?path=k.py", "", 403},
		{"/v1/predict?path=k.py:f", "", 403},
		{"/v1/predict", "import nki\n", 400},
		{"/v1/predict?format=nki-source", "import nki\n", 400},
		{"/v1/predict?name=k.py", "import nki\n", 400},
		{"/v1/predict?machine=" + outside, example(t, "loop.bir.json"), 400},
		{"/v1/diff?machine_b=" + outside, example(t, "loop.bir.json"), 400},
	} {
		if status, v := post(t, s, c.url, c.body); status != c.status {
			t.Errorf("%s: status %d, want %d: %v", c.url, status, c.status, v)
		}
	}

	ask := func(s *Server, host string, header ...string) int {
		r := httptest.NewRequest("GET", "http://"+host+"/healthz", nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.handler(false).ServeHTTP(w, r)
		return w.Code
	}
	closed := server(t, func(o *Options) { o.Token = "0123456789abcdef" })
	for _, c := range []struct{ got, want int }{
		{ask(s, "127.0.0.1:99"), 200}, {ask(s, "[::1]:99"), 200}, {ask(s, "localhost"), 200}, {ask(s, "evil.example"), 403},
		{ask(s, "localhost", "Origin", "http://evil.example"), 403}, {ask(s, "localhost", "Origin", "null"), 403},
		{ask(s, "localhost", "Origin", "http://localhost:8000"), 200},
		{ask(closed, "far.example"), 401}, {ask(closed, "localhost", "Authorization", "Bearer no"), 401},
		{ask(closed, "far.example", "Authorization", "Bearer 0123456789abcdef"), 200},
	} {
		if c.got != c.want {
			t.Errorf("status %d, want %d", c.got, c.want)
		}
	}
}

// A fault of the server is an answer and a count, and the next request is
// answered.
func TestPanic(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	s := server(t, func(o *Options) { o.Log = func(line string) { logged.WriteString(line) } })
	s.held = nil // what asks for held modules fails
	status, answer := s.do(context.Background(), &request{Call: "predict", ModuleID: "x"})
	if status != 500 || !strings.Contains(string(answer), "error of the server") || !strings.Contains(logged.String(), "panic") {
		t.Errorf("status %d, %s, log %q", status, answer, logged.String())
	}
	if status, _ := s.do(context.Background(), &request{Call: "none"}); status != 400 {
		t.Errorf("afterwards status %d", status)
	}
	if len(s.slots) != 0 || len(s.waiting) != 0 {
		t.Errorf("%d places and %d in the queue are not given back", len(s.slots), len(s.waiting))
	}
}

// Requests end with their time, with their client, and when the queue is full
// they are refused.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := server(t, func(o *Options) { o.Jobs, o.Queue, o.Timeout = 1, 1, 200*time.Millisecond })
	s.slots <- struct{}{} // the only place is taken
	s.waiting <- struct{}{}
	q := &request{Call: "predict", body: []byte(example(t, "loop.bir.json"))}
	if status, answer := s.do(context.Background(), q); status != 504 {
		t.Errorf("status %d, want 504: %s", status, answer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if status, _ := s.do(ctx, q); status != statusGone {
		t.Errorf("status %d of a client that left", status)
	}
	s.waiting <- struct{}{}
	if status, _ := s.do(context.Background(), q); status != 503 {
		t.Errorf("status %d of a full queue", status)
	}
	<-s.waiting
	<-s.waiting
	<-s.slots
	if status, answer := s.do(context.Background(), q); status != 200 {
		t.Errorf("status %d with a free place: %s", status, answer)
	}
	if status, v := post(t, s, "/v1/predict", strings.Repeat("x", 1<<20+1)); status != 413 {
		t.Errorf("status %d of a large body: %v", status, v)
	}
	// A body that unwraps to more than is allowed.
	small := server(t, func(o *Options) { o.MaxUnwrapped = 100 })
	if status, v := post(t, small, "/v1/predict", example(t, "loop.bir.json")); status != 422 || !strings.Contains(fmt.Sprint(v), "more than 100 bytes") {
		t.Errorf("status %d: %v", status, v)
	}
}

// Lines are answered in their order, whatever they hold.
func TestLines(t *testing.T) {
	t.Parallel()
	s := server(t, func(o *Options) { o.Roots = []string{examples}; o.MaxBody = 1 << 16 })
	in := strings.Join([]string{
		`{"id":1,"call":"predict","path":"attention.bir.json"}`,
		`{"id":"two","call":"predict","body":` + quote(example(t, "loop.bir.json")) + `}`,
		``,
		`{"id":[3],"call":"predict"}`,
		`{"id":4,"call":"explain","causes":3,"path":"loop.bir.json"}`,
		`{"id":5,"call":"predict","speed":3}`,
		`not JSON`,
		`"` + strings.Repeat("x", 1<<18) + `"`,
		`{"id":8,"call":"whatif","path":"loop.bir.json","set":["pe.clock=2x"]} `,
		`{"id":9,"call":"predict","body":"x","body_base64":"eA=="}`,
		`{"id":10,"call":"predict","body_base64":"` + "H4sIAAAAAAAA/w==" + `"}`,
		`{"id":11,"call":"predict","path":"loop.bir.json","causes":0}`,
	}, "\n")
	var out bytes.Buffer
	if err := s.Lines(context.Background(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for d := json.NewDecoder(&out); ; {
		var a lineAnswer
		if err := d.Decode(&a); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if (a.Status == 200) != (a.Error == "") || (a.Status == 200) != (a.Result != nil) {
			t.Errorf("status %d with error %q", a.Status, a.Error)
		}
		got = append(got, fmt.Sprintf("%s %d", a.ID, a.Status))
	}
	want := []string{"1 200", `"two" 200`, "[3] 400", "4 400", "5 400", " 400", " 413", "8 200", "9 400", "10 422", "11 200"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Answers of a batch come before the last request is sent.
func TestBatchStreams(t *testing.T) {
	t.Parallel()
	url := start(t, server(t, func(o *Options) { o.Roots = []string{examples} }))
	r, w := io.Pipe()
	defer w.Close()
	req, err := http.NewRequest("POST", url+"/v1/batch", r)
	if err != nil {
		t.Fatal(err)
	}
	go fmt.Fprintln(w, `{"id":1,"call":"predict","path":"loop.bir.json"}`)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	d := json.NewDecoder(res.Body)
	for id := 1; id <= 3; id++ {
		var a lineAnswer
		if err := d.Decode(&a); err != nil || a.Status != 200 || string(a.ID) != fmt.Sprint(id) {
			t.Fatalf("answer %d: %v %v", id, a.Status, err)
		}
		go fmt.Fprintf(w, "{\"id\":%d,\"call\":\"predict\",\"path\":\"loop.bir.json\"}\n", id+1)
	}
}

// Lines take their memory from what there is for bodies, and give it back.
func TestLinesShareMemory(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	all := bodiesAtOnce * s.opt.MaxBody
	status := func() int {
		var out bytes.Buffer
		if err := s.Lines(context.Background(), strings.NewReader(`{"call":"predict"}`+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		var a lineAnswer
		if err := json.Unmarshal(out.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		return a.Status
	}
	if !s.bodies.TryAcquire(all) {
		t.Fatal("memory is in use")
	}
	if got := status(); got != 503 {
		t.Errorf("status %d without memory", got)
	}
	s.bodies.Release(all)
	if got := status(); got != 400 {
		t.Errorf("status %d with memory", got)
	}
	for end := time.Now().Add(10 * time.Second); !s.bodies.TryAcquire(all); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("lines keep memory")
		}
	}
}

// A module that was dropped and comes back with its variants is counted whole.
func TestHeldCount(t *testing.T) {
	t.Parallel()
	s := server(t, nil)
	q := &request{Call: "predict", body: []byte(example(t, "loop.bir.json"))}
	if status, answer := s.do(context.Background(), q); status != 200 {
		t.Fatalf("%s", answer)
	}
	_, want, _ := s.held.count()
	m := s.held.get(digest(q.body))
	s.held.clear()
	s.held.put(m)
	s.held.put(m)
	if _, got, _ := s.held.count(); got != want || got <= int64(len(q.body)) {
		t.Errorf("%d bytes are counted, %d before", got, want)
	}
}
