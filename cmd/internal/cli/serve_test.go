package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve listens where it says, answers, and ends with its context.
func TestServeListens(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	for _, args := range [][]string{{"serve"}, {"serve", "--unix", socket}, {"serve", "--unix", socket}} {
		ctx, cancel := context.WithCancel(context.Background())
		root := newRoot(args)
		root.SetArgs(args)
		r, w := io.Pipe()
		root.SetErr(w)
		done := make(chan error, 1)
		go func() { done <- root.ExecuteContext(ctx) }()
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
		if !ok {
			t.Fatalf("%v: printed %q", args, line)
		}
		client := http.DefaultClient
		if len(args) > 1 {
			if url != "unix:"+socket {
				t.Errorf("%v: listening on %s", args, url)
			}
			url = "http://perfsim"
			client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", socket)
			}}}
		}
		res, err := client.Get(url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(b), `"status":"ok"`) {
			t.Errorf("%v: %s, %v", args, b, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// The service answers what the commands print with --json: every field with
// its value, but for the time that the work took, and beside them the ids of
// modules and the causes.
func TestServeAnswersAsCommands(t *testing.T) {
	t.Parallel()
	layer := filepath.Join(t.TempDir(), "layer.hlo")
	if err := os.WriteFile(layer, []byte("HloModule layer\n\nENTRY main {\n  x = bf16[256,1024] parameter(0)\n  w = bf16[1024,512] parameter(1)\n"+
		"  d = bf16[256,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT t = bf16[256,512] tanh(d)\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := []string{"../../../examples/attention.bir.json", "../../../examples/loop.bir.json", "../../../examples/collective.bir.json", layer}
	for _, real := range []string{"neuron-profiles/*.json*", "hlo_neuron/*.hlo*", "nki/records/*.jsonl*"} {
		found, err := filepath.Glob("../../../../shared/data/" + real)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.Size() < 200_000 && len(inputs) < 9 {
				inputs = append(inputs, f)
				break
			}
		}
	}
	calls := []struct {
		call  string
		flags []string
		keys  map[string]any
	}{
		{"run", nil, nil},
		{"run", []string{"--loops", "trips", "--machine", "trn3"}, map[string]any{"loops": "trips", "machine": "trn3"}},
		{"explain", []string{"--top", "3"}, map[string]any{"top": 3}},
		{"whatif", []string{"pe.clock=1.5x", "dma.rate=0.5x,2x"}, map[string]any{"set": []string{"pe.clock=1.5x", "dma.rate=0.5x,2x"}}},
		{"diff", []string{"--a", "predicted", "--b", "predicted", "--machine-b", "trn1"}, map[string]any{"a": "predicted", "b": "predicted", "machine_b": "trn1"}},
	}
	var lines bytes.Buffer
	var want []map[string]any
	var what []string
	for _, input := range inputs {
		path, err := filepath.Abs(input)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			args := append([]string{c.call, "--json"}, c.flags...)
			if c.call == "whatif" {
				args = append([]string{c.call, "--json", path}, c.flags...)
			} else {
				args = append(args, path)
			}
			var v map[string]any
			decode(t, perfsim(t, args...), &v)
			want = append(want, v)
			what = append(what, fmt.Sprint(args))
			q := map[string]any{"call": strings.Replace(c.call, "run", "predict", 1), "path": path}
			for k, v := range c.keys {
				q[k] = v
			}
			b, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(b, '\n'))
		}
	}
	var out, diag bytes.Buffer
	if status := Main([]string{"serve", "--stdio", "--root", "/"}, &lines, &out, &diag); status != exitOK {
		t.Fatalf("status %d: %s", status, &diag)
	}
	d := json.NewDecoder(&out)
	for n := range want {
		var a struct {
			Status int            `json:"status"`
			Error  string         `json:"error"`
			Result map[string]any `json:"result"`
		}
		if err := d.Decode(&a); err != nil || a.Status != 200 {
			t.Fatalf("%s: %v, status %d: %s", what[n], err, a.Status, a.Error)
		}
		for _, own := range []string{"module_id", "module_id_a", "module_id_b"} {
			delete(a.Result, own)
		}
		if _, ok := want[n]["causes"]; !ok {
			delete(a.Result, "causes")
		}
		for _, time := range []string{"seconds", "read_seconds", "instructions_per_second"} {
			_, here := a.Result[time]
			if _, there := want[n][time]; here != there {
				t.Errorf("%s: %s is in one answer alone", what[n], time)
			}
			delete(a.Result, time)
			delete(want[n], time)
		}
		if diff := cmp.Diff(want[n], a.Result); diff != "" {
			t.Errorf("%s: (-command +service)\n%s", what[n], diff)
		}
	}
}

// clientCode asks through the Python client, over HTTP and over JSON lines of a
// process of its own.
const clientCode = `
import os, sys
sys.path.insert(0, sys.argv[1])
import perfsim_client as p
module = open(os.path.join(sys.argv[1], "tiled_matmul.bir.json"), "rb").read()
for client in [p.Client("unix:" + sys.argv[2]), p.Client.start(sys.argv[3], root=sys.argv[1])]:
    with client as c:
        held = c.predict(module, machine="trn2", model="reference")
        again = c.predict(module_id=held["module_id"], machine="trn2", model="reference", causes=0)
        assert again["latency_ns"] == held["latency_ns"] and again["causes"] == [] and held["causes"]
        slow = [{"instruction": "#0", "latency_ns": 10**6}]
        for given in [dict(module_id=held["module_id"]), dict(module=module)]:
            assert c.predict(changes=slow, model="reference", **given)["latency_ns"] > 10**6
        assert c.whatif(module_id=held["module_id"], set=["pe.clock=2x"])["points"][0]["latency_ns"] > 0
        assert c.explain(module, top=1)["bound"]
        assert c.diff(module, machine_b="trn1")["kernel"]["a_ns"] > 0
        assert p.reward(c, module, 2 * held["latency_ns"], machine="trn2", model="reference") == 0.5
        assert p.reward(c, b"no module", 1) == -1
        try:
            c.predict(module_id="none")
        except p.PerfsimError as e:
            assert e.status == 404
        else:
            raise AssertionError("a module that is not held")
        answers = c.batch([dict(call="predict", body=module), dict(call="nothing")] * 20)
        assert [isinstance(a, p.PerfsimError) for a in answers] == [False, True] * 20
sys.modules["pandas"] = None
try:
    p.table("x.parquet")
except ImportError as e:
    assert "pip install pandas pyarrow" in str(e)
else:
    raise AssertionError("a table without pandas")
print("passed")
`

// The Python client speaks both protocols, and says what its tables need.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not on the path")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "perfsim")
	if out, err := exec.Command("go", "build", "-o", program, "../../perfsim").CombinedOutput(); err != nil {
		t.Skipf("the program cannot be built here: %v: %s", err, out)
	}
	socket := filepath.Join(dir, "s")
	server := exec.Command(program, "serve", "--unix", socket)
	diag, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	if _, err := bufio.NewReader(diag).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command(python, "-B", "-c", clientCode, examples, socket, program)
	client.Env = append(os.Environ(), "PERFSIM_TOKEN=")
	if out, err := client.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "passed" {
		t.Errorf("%v: %s", err, out)
	}
}
