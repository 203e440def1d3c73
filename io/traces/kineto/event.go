package kineto

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonscan"
	"perfsim/io/internal/timeline"
)

// category is the importer's treatment of an event.
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

// category is categoryOf, looked up: a trace has few.
func (t *trace) category(cat []byte) category {
	c, ok := t.cats[string(cat)]
	if !ok {
		c = categoryOf(cat)
		t.cats[string(cat)] = c
	}
	return c
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
	cat    category // of B
	flow   uint32   // row of flow ids
	ph     byte     // B, E; s, t, f; o and i for flow_out and flow_in of a slice
	inside bool     // an end that belongs to the slice around it
}

type thread struct {
	pid, tid string
	name     string
}

// trace is the content of the events.
type trace struct {
	b       *timeline.Builder
	key     []byte
	lastKey []byte // of lastThread
	events  []event
	begins  []mark
	flows   []mark
	threads []thread
	byKey   map[string]uint32
	flowID  map[string]uint32
	flowCat []string // by flow id
	process map[string]string
	cats    map[string]category
	library map[ecs.Symbol]bool // isCollective by name
	seq     uint32
	devices int

	lastThread uint32 // the thread met last, which is often the next one too
	decimal    bool   // some time has decimals of a µs

	stringTimes, badTimes, noDur, negative, zeroTimes, skipped, noPhase, noObject int
	zero                                                                          []int // events with time and duration 0
}

func newTrace(b *timeline.Builder) *trace {
	return &trace{b: b, byKey: map[string]uint32{}, flowID: map[string]uint32{}, process: map[string]string{},
		cats: map[string]category{}, library: map[ecs.Symbol]bool{}}
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

// members are those of an event that mean something; of equal keys the first.
type members struct {
	ph, name, cat, pid, tid, ts, dur, args, id, bp, bind, flowOut, flowIn jsonscan.Value
}

// of returns where a member is kept, nil for one that means nothing.
func (m *members) of(key []byte) *jsonscan.Value {
	switch string(key) {
	case "ph":
		return &m.ph
	case "name":
		return &m.name
	case "cat":
		return &m.cat
	case "pid":
		return &m.pid
	case "tid":
		return &m.tid
	case "ts":
		return &m.ts
	case "dur":
		return &m.dur
	case "args":
		return &m.args
	case "id":
		return &m.id
	case "bp":
		return &m.bp
	case "bind_id":
		return &m.bind
	case "flow_out":
		return &m.flowOut
	case "flow_in":
		return &m.flowIn
	}
	return nil
}

// text returns a string or number as it is written, without quotes.
func text(v jsonscan.Value) []byte {
	switch v.Kind() {
	case jsonscan.String:
		return v.Bytes()
	case jsonscan.Object, jsonscan.Array:
		return v.AppendTo(nil)
	}
	return v.Text()
}

// element takes one element of the array.
func (t *trace) element(v jsonscan.Value) error {
	if v.Kind() != jsonscan.Object {
		if t.seq == 0 {
			return fmt.Errorf("an event is an object, not %s", v.Kind())
		}
		t.noObject++
		return nil
	}
	t.seq++
	var e members
	for m := v.Members(); m.Ok(); m = m.Next() {
		if to := e.of(m.Key()); to != nil && to.Kind() == jsonscan.Absent {
			*to = m.Value()
		}
	}
	ph := e.ph.Bytes()
	if len(ph) != 1 {
		t.noPhase++
		return nil
	}
	switch ph[0] {
	case 'M':
		t.metadata(&e)
	case 'X':
		t.complete(&e)
	case 'B', 'E', 's', 't', 'f':
		t.point(&e, ph[0])
	default:
		t.skipped++
	}
	return nil
}

func (t *trace) metadata(e *members) {
	switch string(e.name.Bytes()) {
	case "thread_name":
		if n := e.args.Get("name").Bytes(); len(n) > 0 {
			t.threads[t.threadOf(e)].name = string(bytes.TrimSpace(n))
		}
	case "process_name":
		if n := e.args.Get("name").Bytes(); len(n) > 0 {
			t.process[string(text(e.pid))] = string(bytes.TrimSpace(n))
		}
	}
}

// threadOf returns the thread of an event; pid and tid may be numbers or
// strings.
func (t *trace) threadOf(e *members) uint32 {
	t.key = append(t.key[:0], text(e.pid)...)
	pid := len(t.key)
	t.key = append(append(t.key, 0), text(e.tid)...)
	if len(t.threads) > 0 && bytes.Equal(t.key, t.lastKey) {
		return t.lastThread
	}
	n, ok := t.byKey[string(t.key)]
	if !ok {
		n = uint32(len(t.threads))
		t.threads = append(t.threads, thread{pid: string(t.key[:pid]), tid: string(t.key[pid+1:])})
		t.byKey[string(t.key)] = n
	}
	t.lastKey, t.lastThread = append(t.lastKey[:0], t.key...), n
	return n
}

// time reads a time in µs.
func (t *trace) time(v jsonscan.Value) (int64, bool) {
	switch v.Kind() {
	case jsonscan.String:
		t.stringTimes++
	case jsonscan.Number:
	default:
		return 0, false
	}
	ns, ok := nanoseconds(text(v))
	t.decimal = t.decimal || ok && ns%1000 != 0
	return ns, ok
}

func (t *trace) complete(v *members) {
	start, ok := t.time(v.ts)
	if !ok {
		t.badTimes++
		return
	}
	dur, ok := t.time(v.dur)
	if !ok && v.dur.Kind() == jsonscan.Absent {
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
	cat := v.cat.Bytes()
	if e.cat = t.category(cat); string(cat) == "Trace" {
		return // Kineto's own span over the whole recording
	}
	name := v.name.Bytes()
	if isAnnotation(cat, name) {
		e.cat = catRange
	}
	e.name = t.b.M.Symbols.Intern(name)
	e.thread = t.threadOf(v)
	t.arguments(&e, v.args, cat)
	if start == 0 && dur == 0 {
		t.zero = append(t.zero, len(t.events))
	}
	if len(t.events) == cap(t.events) { // a trace is large: copy it less often
		t.events = slices.Grow(t.events, max(len(t.events), 1024))
	}
	t.events = append(t.events, e)
	// Flows of the second version are members of the slice.
	if id := v.bind; id.Kind() != jsonscan.Absent {
		f := t.flowOf(nil, text(id))
		if v.flowOut.Kind() == jsonscan.True {
			t.flows = append(t.flows, mark{at: e.start, seq: t.seq, thread: e.thread, flow: f, ph: 'o'})
		}
		if v.flowIn.Kind() == jsonscan.True {
			t.flows = append(t.flows, mark{at: e.start, seq: t.seq, thread: e.thread, flow: f, ph: 'i'})
		}
	}
}

// arguments takes what the arguments of a slice say.
func (t *trace) arguments(e *event, a jsonscan.Value, cat []byte) {
	e.corr = whole(a.Get("correlation"))
	switch e.cat {
	case catDevice:
		t.devices++
		e.memory = !bytes.EqualFold(cat, []byte("kernel")) && string(cat) != "mtia_ccp_events"
		e.stream = int32(intOr(a.Get("stream"), 0))
		e.collective = a.Get("Collective name").Kind() != jsonscan.Absent || t.collective(e.name)
		if e.collective {
			e.bytes = whole(a.Get("In msg nelems")) * sizeOf(a.Get("dtype").Bytes())
		} else if e.memory {
			e.bytes = whole(a.Get("bytes"))
		}
	case catSync:
		e.stream = int32(intOr(a.Get("stream"), -1))
		e.waitStream = int32(intOr(a.Get("wait_on_stream"), -1))
		e.record = whole(a.Get("wait_on_cuda_event_record_corr_id"))
	}
}

// point takes a begin, an end, or a point of a flow.
func (t *trace) point(v *members, ph byte) {
	at, ok := t.time(v.ts)
	if !ok {
		t.badTimes++
		return
	}
	m := mark{at: at, seq: t.seq, thread: t.threadOf(v), ph: ph}
	if ph == 'B' || ph == 'E' {
		m.name = t.b.M.Symbols.Intern(v.name.Bytes())
		if m.cat = categoryOf(v.cat.Bytes()); isAnnotation(v.cat.Bytes(), v.name.Bytes()) {
			m.cat = catRange
		}
		t.begins = append(t.begins, m)
		return
	}
	m.inside = string(v.bp.Bytes()) == "e" || ph != 'f'
	m.flow = t.flowOf(v.cat.Bytes(), text(v.id))
	t.flows = append(t.flows, m)
}

// flowOf numbers the flows, which are distinguished by category and id.
func (t *trace) flowOf(cat, id []byte) uint32 {
	t.key = append(append(append(t.key[:0], cat...), 0), id...)
	n, ok := t.flowID[string(t.key)]
	if !ok {
		n = uint32(len(t.flowID))
		t.flowID[string(t.key)] = n
		t.flowCat = append(t.flowCat, string(cat))
	}
	return n
}

// whole returns a number from 0 on that may be written as a string, else 0.
func whole(v jsonscan.Value) uint64 {
	if v.Kind() == jsonscan.String {
		n, err := strconv.ParseUint(string(v.Bytes()), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	if v.Kind() != jsonscan.Number {
		return 0
	}
	n, _ := v.Uint64()
	return n
}

func intOr(v jsonscan.Value, other int) int {
	if v.Kind() != jsonscan.Number {
		return other
	}
	n, err := v.Int64()
	if err != nil {
		return other
	}
	return int(n)
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
