package kineto

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/readtest"
)

func readText(name, text string) (*components.Module, error) {
	return readtest.Text(read, name, text)
}

// list writes the instructions of a module, a line each: lane, opcode, start
// and duration in ns, producers.
func list(m *components.Module) string {
	var b strings.Builder
	for i := range m.Instr.Len() {
		fmt.Fprintf(&b, "%s | %s %s | %d+%d |", m.LaneName(m.Instr.Lane.At(i)), m.OpcodeName(m.Instr.Opcode.At(i)), m.InstrName(components.InstrID(i)),
			m.Instr.MeasuredStart.At(i), m.Instr.MeasuredDur.At(i))
		if m.Edges.Preds.Len() > 0 {
			for _, w := range m.Edges.Preds.Row(i) {
				fmt.Fprintf(&b, " %d", w&ecs.TargetMask)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const launchTrace = `{"schemaVersion":1,"traceEvents":[
 {"ph":"M","name":"thread_name","pid":7,"tid":70,"args":{"name":"thread 70 (python)"}},
 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":70,"ts":100,"dur":50},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":70,"ts":110,"dur":10,"args":{"correlation":1}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":70,"ts":130,"dur":10.5,"args":{"correlation":2}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaDeviceSynchronize","pid":7,"tid":70,"ts":160,"dur":100,"args":{"correlation":3}},
 {"ph":"X","cat":"kernel","name":"void ns::gemm_k<float>(int)","pid":0,"tid":3,"ts":118,"dur":60.25,"args":{"correlation":1,"stream":3}},
 {"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","pid":0,"tid":3,"ts":178.25,"dur":70,"args":{"correlation":2,"stream":3,"Collective name":"allreduce","In msg nelems":8,"dtype":"Float"}}
],"traceName":"x.json"}`

// By hand: the host's lane is cut where the first kernel begins inside its
// launch, the synchronisation is the part after the last kernel's end, and
// the second kernel waits for the first by its stream.
func TestLaunchAndSync(t *testing.T) {
	m, err := readText("t.json", launchTrace)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 70 (python) host | Host aten::mm | 0+10000 |
thread 70 (python) host | cudaLaunchKernel cudaLaunchKernel | 10000+8000 |
thread 70 (python) host | cudaLaunchKernel cudaLaunchKernel | 18000+2000 |
stream 3 | gemm_k void ns::gemm_k<float>(int) | 18000+60250 | 1
thread 70 (python) host | Host aten::mm | 20000+10000 |
thread 70 (python) host | cudaLaunchKernel cudaLaunchKernel | 30000+10500 |
stream 3 | CollectiveCompute ncclKernel_AllReduce | 78250+70000 | 5
thread 70 (python) host | cudaDeviceSynchronize cudaDeviceSynchronize | 148250+11750 | 6
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if e := m.Instr.Engine.At(3); e != components.PE {
		t.Errorf("the gemm is on %s", e)
	}
	if b, f := m.Instr.DMABytes.At(6), m.Instr.Flags.At(6); b != 32 || !f.Has(components.FlagCollective|components.FlagMeasured) {
		t.Errorf("the collective has %d bytes, flags %x", b, f)
	}
	if readtest.Codes(m) != "" || m.Attribute("trace.traceName") != "x.json" || m.Attribute("trace.schemaVersion") != "1" {
		t.Errorf("notes %s, attributes %v", readtest.Codes(m), m.Attributes)
	}
}

// A stream that waits for an event of another depends on what that stream had
// been given when the event was recorded.
func TestStreamWaitEvent(t *testing.T) {
	call := func(name string, ts, corr int) string {
		return fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":%q,"pid":7,"tid":70,"ts":%d,"dur":1,"args":{"correlation":%d}},`, name, ts, corr)
	}
	kernel := func(ts, dur, stream, corr int) string {
		return fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":%d,"ts":%d,"dur":%d,"args":{"correlation":%d,"stream":%d}},`, corr, stream, ts, dur, corr, stream)
	}
	m, err := readText("t", `[`+call("cudaLaunchKernel", 0, 1)+call("cudaEventRecord", 2, 2)+call("cudaLaunchKernel", 4, 3)+call("cudaStreamWaitEvent", 6, 4)+
		call("cudaLaunchKernel", 8, 5)+kernel(10, 20, 1, 1)+kernel(30, 20, 1, 3)+kernel(31, 5, 2, 5)+
		`{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":2,"ts":6,"dur":1,"args":{"stream":2,"wait_on_stream":1,"wait_on_cuda_event_record_corr_id":2,"correlation":4}}]`)
	if err != nil {
		t.Fatal(err)
	}
	got := list(m)
	// k5 depends on k1, given before the record, not on k3; 1 µs is not explained.
	var k1, wait int
	lines := strings.Split(got, "\n")
	for i, l := range lines {
		if strings.Contains(l, "k1 k1") {
			k1 = i
		}
		if strings.HasPrefix(l, "stream 2 (waits)") {
			wait = i
			if !strings.HasSuffix(l, fmt.Sprintf("| 30000+1000 | %d", k1)) {
				t.Errorf("the wait is %q, want 1 µs after row %d", l, k1)
			}
		}
	}
	for _, l := range lines {
		if strings.Contains(l, "k5 k5") && (!strings.Contains(l, fmt.Sprintf(" %d", k1)) || !strings.Contains(l, fmt.Sprintf(" %d", wait))) {
			t.Errorf("k5 is %q, want it to depend on rows %d and %d\n%s", l, k1, wait, got)
		}
	}
}

// One launch of a graph has many kernels; a copy that is over when its call
// returns holds the host.
func TestGraphLaunchAndBlockingCopy(t *testing.T) {
	m, err := readText("t", `[
{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":7,"tid":70,"ts":0,"dur":4,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":7,"tid":70,"ts":5,"dur":20,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":4,"dur":4,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":1,"ts":8,"dur":4,"args":{"correlation":1}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":1,"ts":12,"dur":6,"args":{"correlation":2,"bytes":4096}}]`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 70 host | cudaGraphLaunch cudaGraphLaunch | 0+4000 |
stream 1 | a a | 4000+4000 | 0
thread 70 host (waits) | Wait wait | 4000+1000 | 0
thread 70 host | cudaMemcpyAsync cudaMemcpyAsync | 5000+7000 | 2
stream 1 | b b | 8000+4000 | 0
stream 1 | Memcpy DtoH Memcpy DtoH (Device -> Pageable) | 12000+6000 | 3
thread 70 host | cudaMemcpyAsync cudaMemcpyAsync | 18000+7000 | 5
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if m.Instr.Engine.At(5) != components.DMA || m.Instr.DMABytes.At(5) != 4096 {
		t.Errorf("the copy is on %s with %d bytes", m.Instr.Engine.At(5), m.Instr.DMABytes.At(5))
	}
}

// Where correlations are missing the flows of launches tell the same.
func TestLaunchByFlow(t *testing.T) {
	m, err := readText("t", `[
{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":7,"tid":70,"ts":0,"dur":4},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":1,"ts":4,"dur":4},
{"ph":"s","cat":"ac2g","name":"ac2g","id":5,"pid":7,"tid":70,"ts":0},
{"ph":"f","cat":"ac2g","name":"ac2g","id":5,"pid":0,"tid":1,"ts":4,"bp":"e"}]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := list(m); !strings.Contains(got, "stream 1 | a a | 4000+4000 | 0\n") {
		t.Error(got)
	}
}

// Plain traces: begins and ends, nesting, overlap, flows of both kinds, cuts.
func TestPlain(t *testing.T) {
	m, err := readText("t", `{"traceEvents":[
{"ph":"E","name":"lost","pid":1,"tid":1,"ts":1},
{"ph":"B","name":"outer","pid":1,"tid":1,"ts":10},
{"ph":"B","name":"inner","pid":1,"tid":1,"ts":12},
{"ph":"E","pid":1,"tid":1,"ts":13},
{"ph":"E","pid":1,"tid":1,"ts":30},
{"ph":"B","name":"open","pid":1,"tid":1,"ts":40},
{"ph":"X","name":"over","pid":1,"tid":1,"ts":25,"dur":10},
{"ph":"X","name":"far","pid":1,"tid":2,"ts":21,"dur":4},
{"ph":"X","name":"v2","pid":1,"tid":3,"ts":26,"dur":2,"bind_id":"0x1","flow_in":true},
{"ph":"X","name":"src","pid":1,"tid":4,"ts":10,"dur":1,"bind_id":"0x1","flow_out":true},
{"ph":"s","cat":"c","id":"1","pid":1,"tid":1,"ts":20},
{"ph":"f","bp":"e","cat":"c","id":"1","pid":1,"tid":2,"ts":21},
{"ph":"s","cat":"c","id":"2","pid":1,"tid":9,"ts":20},
{"ph":"f","bp":"e","cat":"c","id":"2","pid":1,"tid":2,"ts":21},
{"ph":"C","name":"counter","pid":1,"ts":1,"args":{"a":1}},{}]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 4 | src src | 0+1000 |
thread 1 | outer outer | 0+10000 |
thread 1 | outer outer | 10000+10000 |
thread 2 (waits) | Wait wait | 10000+1000 | 1
thread 2 | far far | 11000+4000 | 1 3
thread 3 (waits) | Wait wait | 1000+15000 | 0
thread 3 | v2 v2 | 16000+2000 | 0 5
thread 1 | over over | 20000+5000 |
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const notes = "unclosed-slice=1 unopened-slice=1 nested-slice=1 overlap=1 unbound-flow=1 unmatched-flow=1 cut-slice=1 no-phase=1 skipped-events=1 unexplained-wait=2"
	if readtest.Codes(m) != notes {
		t.Errorf("notes %s, want %s", readtest.Codes(m), notes)
	}
}

func TestNanoseconds(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"12", 12000, true}, {"1712867402348289.123", 1712867402348289123, true}, {"1.5", 1500, true}, {"0.0004", 0, true},
		{"0.0005", 1, true}, {"0.9999", 1000, true}, {"-2.25", -2250, true}, {".5", 500, true}, {"1e3", 1000000, true}, {"1.5E-3", 2, true},
		{"", 0, false}, {"-", 0, false}, {"nan", 0, false}, {"NaN", 0, false}, {"Infinity", 0, false}, {"1e400", 0, false}, {"12x", 0, false},
		{"4611686018427386", 4611686018427386000, true}, {"4611686018427387", 0, false}, {"4.7e15", 0, false}, {"-4.7e15", 0, false}, {"99999999999999999999", 0, false},
	} {
		if got, ok := nanoseconds([]byte(c.in)); ok != c.ok || ok && got != c.want {
			t.Errorf("%q: %d %v, want %d %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

// Bad input ends in one error with a position, or in notes that name what was
// left out.
func TestBad(t *testing.T) {
	slice := `{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}`
	for _, c := range []struct{ in, err, notes string }{
		{``, "x: byte 0: the input ends inside the file", ""},
		{`[`, "x: byte 1: the input ends inside the array", ""},
		{`[` + slice, "", "truncated=1"},
		{`[` + slice + `,{"ph":"X","na`, "", "truncated=1"},
		{`{"traceEvents":[` + slice + `,`, "", "truncated=1"},
		{"\xef\xbb\xbf[" + slice + "]", "", ""},
		{`[` + slice + `]]`, "x: byte 54: ']' after the end of the value", ""},
		{`[` + slice + `,]`, "", ""},
		{`[1]`, "x: byte 1: an event is an object, not number", ""},
		{`[` + slice + `,[1],"x",5,null]`, "", "no-object=4"},
		{`[{"ph":"X","name":"a"b"}]`, "x: byte 25: the input ends inside an element", ""},
		{`[{"ph":"X","name":"a" "b"}]`, "x: byte 1: ", ""},
		{`[` + slice + `,{"ph":"X","name":"a"b"},` + strings.Repeat(" ", 1<<17) + `]`, "x: byte 53: what begins here does not end", ""},
		{`[]`, "x: the trace has no slices", ""},
		{`{"displayTimeUnit":"ns"}`, "x: the trace has no slices", ""},
		{`[{"ph":"B","name":"a","pid":1,"tid":1,"ts":1}]`, "x: the trace has no slices", ""},
		{`[` + slice + `,{"ph":"X","name":"a","ts":NaN,"dur":1},{"ph":"X","name":"a","ts":null,"dur":1},{"ph":"X","name":"a","dur":1}]`, "", "bad-time=3"},
		{`[` + slice + `,{"ph":"X","name":"a","ts":2},{"ph":"X","name":"a","ts":2,"dur":-1}]`, "", "no-duration=1 negative-duration=1"},
		{`[{"ph":"X","name":"a","pid":1,"tid":1,"ts":"1.5","dur":"2"}]`, "", "string-time=2"},
		{`[{"ph":"X","name":"a","ts":3600000001,"dur":2},{"ph":"X","name":"b","ts":0,"dur":0}]`, "", "lost-time=1"},
		{`[{"ph":"X","name":"a","ts":5,"dur":2},{"ph":"X","name":"b","ts":0,"dur":0}]`, "", "unexplained-wait=1"},
		{`[{"ph":"X","name":"a","ts":-5,"dur":2},{"ph":"X","name":"b","ts":0,"dur":0}]`, "", "unexplained-wait=1"},
		{`[{"ph":"X","name":"a","ts":0,"dur":10000000}]`, "", "long-event=2"},
		{`[{"ph":"X","name":"a","ts":0,"dur":1e14}]`, "x: \"a\" lasts 100000000000000000 ns", ""},
	} {
		m, err := readText("x", c.in)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%.60s: %v", c.in, err)
		case c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)):
			t.Errorf("%.60s: error %v, want %s", c.in, err, c.err)
		case c.err == "" && readtest.Codes(m) != c.notes:
			t.Errorf("%.60s: notes %q, want %q", c.in, readtest.Codes(m), c.notes)
		}
	}
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]bool{
		`[{"ph":"X"}]`: true, "\xef\xbb\xbf [\n{\"name\":\"a\",\"ph\":\"M\"": true, `{"schemaVersion": 1, "deviceProperties": [`: true,
		`{"traceEvents":[]}`: true, `{"displayTimeUnit":"ns","traceEvents"`: true, `[]`: false, `[1]`: false, `{"nodes":[]}`: false, ``: false, `HloModule`: false,
	} {
		if sniff([]byte(in)) != want {
			t.Errorf("%s: %v", in, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(launchTrace)
	f.Add(`[{"ph":"B","cat":"user_annotation","name":"s","ts":0},{"ph":"B","cat":"cpu_op","name":"a","ts":1},{"ph":"E","ts":2,"args":{"x":-Infinity,"y":[1,],},},{"ph":"E","ts":3},]`)
	f.Add(`[{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"Stream #1"}},{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"XLA Ops"}},{"ph":"X","name":"k","pid":1,"tid":1,"ts":1,"dur":5},{"ph":"X","name":"d","pid":1,"tid":2,"ts":1,"dur":5}]`)
	f.Add(`[{"ph":"B","name":"a","pid":1,"tid":"x","ts":1},{"ph":"E","pid":1,"tid":"x","ts":2.5},{"ph":"s","id":1,"ts":1},{"ph":"f","id":1,"ts":2,"bp":"e"}]`)
	f.Add(`[{"ph":"X","name":"a","ts":1,"dur":5,"bind_id":1,"flow_out":true},{"ph":"X","name":"b","tid":2,"ts":3,"dur":5,"bind_id":1,"flow_in":true}`)
	f.Add(`{"traceEvents":[{"ph":"X","cat":"kernel","ts":0,"dur":9e9,"args":{"stream":-5}},{"ph":"X","cat":"kernel","ts":1,"dur":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := readText("x", text)
		if err != nil {
			return
		}
		checkReplay(t, m)
	})
}

// checkReplay reports whether replaying by the plain rule gives the recorded
// starts, unless the reader says that it will not.
func checkReplay(t *testing.T, m *components.Module) {
	t.Helper()
	for _, n := range m.Notes {
		if n.Code == "late-replay" {
			return
		}
	}
	free := make([]uint64, m.Lanes.Len())
	for i := range m.Instr.Len() {
		l := m.Instr.Lane.At(i)
		start := free[l]
		for _, w := range m.Edges.Preds.Row(i) {
			p := int(w & ecs.TargetMask)
			start = max(start, m.Instr.MeasuredStart.At(p)+uint64(m.Instr.MeasuredDur.At(p)))
		}
		if start != m.Instr.MeasuredStart.At(i) {
			t.Fatalf("%s starts at %d, recorded %d", m.InstrName(components.InstrID(i)), start, m.Instr.MeasuredStart.At(i))
		}
		free[l] = start + uint64(m.Instr.MeasuredDur.At(i))
	}
}
