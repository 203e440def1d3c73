package kineto

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonarray"
	"perfsim/io/internal/timeline"
)

// category is what the importer does with an event.
type category uint8

const (
	catOther  category = iota
	catDevice          // work of a device: kernel, copy, fill
	catCall            // a call of the runtime or driver
	catSync            // CUPTI's record of a synchronisation
	catOp              // an operator of the framework
	catPython          // a Python function
	catRange           // an annotation: a range that says what work belongs to
)

// categoryOf sorts the cat of an event.
func categoryOf(cat []byte) category {
	switch string(cat) {
	case "kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "memcpy", "memset": // Kernel, Memcpy, Memset: PyTorch 1.8 to 1.11
		return catDevice
	case "runtime", "cuda_runtime", "cuda_driver", "mtia_runtime", "glow_runtime", "xpu_runtime", "xpu_driver", "privateuse1_runtime", "privateuse1_driver", "hip_api", "hip_runtime":
		return catCall
	case "cuda_sync":
		return catSync
	case "cpu_op", "operator":
		return catOp
	case "python_function":
		return catPython
	}
	if low := bytes.ToLower(cat); !bytes.Equal(low, cat) {
		return categoryOf(low) // as some tools write them
	}
	return catOther
}

// event is one slice. Times are ns on the trace's clock.
type event struct {
	start, end int64
	corr       uint64 // correlation, 0 for none
	record     uint64 // correlation of the cudaEventRecord that a cuda_sync event waits for
	bytes      uint64
	name       ecs.Symbol
	op         ecs.Symbol // the operator it belongs to, where the input says
	scope      ecs.Symbol // its path in the program, where the input says
	thread     uint32
	stream     int32
	waitStream int32
	cat        category
	memory     bool // a copy or fill
	collective bool
}

// mark is a begin or an end of a slice, or a point of a flow.
type mark struct {
	at     int64
	seq    uint32 // order in the file
	name   ecs.Symbol
	thread uint32
	flow   uint32 // row of flow ids
	ph     byte   // B, E; s, t, f; o and i for flow_out and flow_in of a slice
	inside bool   // an end that belongs to the slice around it
}

type thread struct {
	pid, tid string
	name     string
}

// trace is what is taken from the events.
type trace struct {
	b       *timeline.Builder
	parser  fastjson.Parser
	buf     []byte
	key     []byte
	events  []event
	begins  []mark
	flows   []mark
	threads []thread
	byKey   map[string]uint32
	flowID  map[string]uint32
	flowCat []string // by flow id
	process map[string]string
	seq     uint32
	devices int
	decimal bool // some time has decimals of a µs

	stringTimes, badTimes, noDur, negative, zeroTimes, skipped, noPhase, noObject int
	zero                                                                          []int // events with time and duration 0
}

func newTrace(b *timeline.Builder) *trace {
	return &trace{b: b, byKey: map[string]uint32{}, flowID: map[string]uint32{}, process: map[string]string{}}
}

// maxAttribute bounds what is kept of the members that are not events.
const maxAttribute = 256

// header keeps the small members that are not events as attributes.
func (t *trace) header(key string, text []byte) error {
	if len(text) <= maxAttribute && len(t.b.M.Attributes) < 32 {
		t.b.M.Attributes = append(t.b.M.Attributes, components.Attribute{Key: "trace." + key, Value: string(bytes.Trim(text, `"`))})
	}
	return nil
}

// text returns a string or number as it is written, without quotes.
func (t *trace) text(v *fastjson.Value) []byte {
	if v == nil {
		return nil
	}
	if v.Type() == fastjson.TypeString {
		return v.GetStringBytes()
	}
	t.buf = v.MarshalTo(t.buf[:0])
	return t.buf
}

// element takes one element of the array, which begins at byte off.
func (t *trace) element(text []byte, off int64) error {
	v, err := jsonarray.Parse(&t.parser, text, off)
	if err != nil {
		return err
	}
	if v.Type() != fastjson.TypeObject {
		if t.seq == 0 {
			return fmt.Errorf("an event is an object, not %s", v.Type())
		}
		t.noObject++
		return nil
	}
	t.seq++
	ph := v.GetStringBytes("ph")
	if len(ph) != 1 {
		t.noPhase++
		return nil
	}
	switch ph[0] {
	case 'M':
		t.metadata(v)
	case 'X':
		t.complete(v)
	case 'B', 'E', 's', 't', 'f':
		t.point(v, ph[0])
	default:
		t.skipped++
	}
	return nil
}

func (t *trace) metadata(v *fastjson.Value) {
	switch string(v.GetStringBytes("name")) {
	case "thread_name":
		if n := v.GetStringBytes("args", "name"); len(n) > 0 {
			t.threads[t.threadOf(v)].name = string(bytes.TrimSpace(n))
		}
	case "process_name":
		if n := v.GetStringBytes("args", "name"); len(n) > 0 {
			t.process[string(t.text(v.Get("pid")))] = string(bytes.TrimSpace(n))
		}
	}
}

// threadOf returns the thread of an event; pid and tid may be numbers or
// strings.
func (t *trace) threadOf(v *fastjson.Value) uint32 {
	t.key = append(t.key[:0], t.text(v.Get("pid"))...)
	pid := len(t.key)
	t.key = append(append(t.key, 0), t.text(v.Get("tid"))...)
	if n, ok := t.byKey[string(t.key)]; ok {
		return n
	}
	n := uint32(len(t.threads))
	t.threads = append(t.threads, thread{pid: string(t.key[:pid]), tid: string(t.key[pid+1:])})
	t.byKey[string(t.key)] = n
	return n
}

// time reads a member that is a time in µs.
func (t *trace) time(v *fastjson.Value, key string) (int64, bool) {
	x := v.Get(key)
	if x == nil {
		return 0, false
	}
	if x.Type() == fastjson.TypeString {
		t.stringTimes++
	} else if x.Type() != fastjson.TypeNumber {
		return 0, false
	}
	text := t.text(x)
	ns, ok := nanoseconds(text)
	t.decimal = t.decimal || ok && ns%1000 != 0
	return ns, ok
}

func (t *trace) complete(v *fastjson.Value) {
	start, ok := t.time(v, "ts")
	if !ok {
		t.badTimes++
		return
	}
	dur, ok := t.time(v, "dur")
	if !ok && v.Get("dur") == nil {
		t.noDur++
		return
	}
	if !ok || dur > math.MaxInt64/4 {
		t.badTimes++
		return
	}
	if dur < 0 {
		t.negative++
		return
	}
	e := event{start: start, end: start + dur, stream: -1, waitStream: -1}
	cat := v.GetStringBytes("cat")
	if e.cat = categoryOf(cat); string(cat) == "Trace" {
		return // Kineto's own span over the whole recording
	}
	name := v.GetStringBytes("name")
	if isAnnotation(cat, name) {
		e.cat = catRange
	}
	e.name = t.b.M.Symbols.Intern(name)
	e.thread = t.threadOf(v)
	a := v.Get("args")
	e.corr = whole(a.Get("correlation"))
	switch e.cat {
	case catDevice:
		t.devices++
		e.memory = !bytes.EqualFold(cat, []byte("kernel")) && string(cat) != "mtia_ccp_events"
		e.stream = int32(a.GetInt("stream"))
		e.collective = a.Exists("Collective name") || isCollective(name)
		if e.collective {
			e.bytes = whole(a.Get("In msg nelems")) * sizeOf(a.GetStringBytes("dtype"))
		} else if e.memory {
			e.bytes = whole(a.Get("bytes"))
		}
	case catSync:
		e.stream = int32(intOr(a.Get("stream"), -1))
		e.waitStream = int32(intOr(a.Get("wait_on_stream"), -1))
		e.record = whole(a.Get("wait_on_cuda_event_record_corr_id"))
	}
	if start == 0 && dur == 0 {
		t.zero = append(t.zero, len(t.events))
	}
	t.events = append(t.events, e)
	// Flows of the second version are members of the slice.
	if id := v.Get("bind_id"); id != nil {
		f := t.flowOf("", t.text(id))
		if v.GetBool("flow_out") {
			t.flows = append(t.flows, mark{at: e.start, seq: t.seq, thread: e.thread, flow: f, ph: 'o'})
		}
		if v.GetBool("flow_in") {
			t.flows = append(t.flows, mark{at: e.start, seq: t.seq, thread: e.thread, flow: f, ph: 'i'})
		}
	}
}

// point takes a begin, an end, or a point of a flow.
func (t *trace) point(v *fastjson.Value, ph byte) {
	at, ok := t.time(v, "ts")
	if !ok {
		t.badTimes++
		return
	}
	m := mark{at: at, seq: t.seq, thread: t.threadOf(v), ph: ph}
	if ph == 'B' || ph == 'E' {
		m.name = t.b.M.Symbols.Intern(v.GetStringBytes("name"))
		t.begins = append(t.begins, m)
		return
	}
	m.inside = string(v.GetStringBytes("bp")) == "e" || ph != 'f'
	m.flow = t.flowOf(string(v.GetStringBytes("cat")), t.text(v.Get("id")))
	t.flows = append(t.flows, m)
}

// flowOf numbers the flows, which are distinguished by category and id.
func (t *trace) flowOf(cat string, id []byte) uint32 {
	key := cat + "\x00" + string(id)
	n, ok := t.flowID[key]
	if !ok {
		n = uint32(len(t.flowID))
		t.flowID[key] = n
		t.flowCat = append(t.flowCat, cat)
	}
	return n
}

// whole returns a number from 0 on that may be written as a string, else 0.
func whole(v *fastjson.Value) uint64 {
	if v == nil {
		return 0
	}
	if v.Type() == fastjson.TypeString {
		n, err := strconv.ParseUint(string(v.GetStringBytes()), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	n, err := v.Uint64()
	if err != nil {
		return 0
	}
	return n
}

func intOr(v *fastjson.Value, other int) int {
	if v == nil {
		return other
	}
	n, err := v.Int()
	if err != nil {
		return other
	}
	return n
}

// sizeOf returns the bytes of an element of a collective, as PyTorch names
// its types; 1 where the name says nothing.
func sizeOf(dtype []byte) uint64 {
	switch string(dtype) {
	case "Float", "Int", "UInt32":
		return 4
	case "BFloat16", "Half", "Short", "UInt16":
		return 2
	case "Double", "Long", "UInt64", "ComplexFloat":
		return 8
	case "ComplexDouble":
		return 16
	}
	return 1
}
