package profile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// section is a top-level array that is read.
type section uint8

const (
	secNone section = iota
	secInstruction
	secDMA
	secSemaphore
	secHam
	secQueues
	secWarnings
	secMetadata // from here on: remarks about the module, kept as attributes
	secSummary
	secProfile
	secNEFF
)

// sections are those read, by key; prefix is that of their attributes.
var sections = map[string]struct {
	sec    section
	prefix string
}{
	"instruction": {sec: secInstruction}, "dma": {sec: secDMA}, "semaphore_update": {sec: secSemaphore}, "ham": {sec: secHam},
	"dma_queues_info": {sec: secQueues}, "warnings": {sec: secWarnings},
	"metadata": {secMetadata, "metadata"}, "summary": {secSummary, "summary"}, "profile_info": {secProfile, "profile"},
	"neff_header": {secNEFF, "neff"},
}

// derived are the sections that the profiler computes from those we read, or
// that explain names; they are left out without a remark about each.
var derived = map[string]bool{
	"active_time": true, "dma_throughput": true, "pending_dma": true, "instruction_usage": true, "layer_summary": true,
	"model_info": true, "nc_mem_usage": true, "neff_node": true, "summary_groups": true, "summary_group_order": true, "terminology": true,
}

// Bounds on numbers. Times are ns: 2^62 ns are 146 years.
const (
	maxTime     = 1e15 // ns, eleven days: more is not a time of one run
	maxDuration = 1<<32 - 1
)

// span is a piece of a chunk's text.
type span struct{ lo, hi uint32 }

// instr is one instruction of a chunk. Words are indexes into the chunk's
// dictionary.
type instr struct {
	shape
	offset                          int64
	id, start                       uint64
	dur, wait                       uint32
	pc, compilerPC                  uint32 // plus one, 0 for none
	hasID                           bool
	engine                          components.Engine
	strict                          bool // SET_ORDERING_MODE strict: closes the program
	opcode, core                    uint32
	name, text, hlo, source         span
	fn                              uint32 // word plus one
	apEnd, dimEnd, syncEnd, predEnd uint32 // in the chunk
	branch                          int32  // target of a branch relative to pc, 0 for none
	always                          bool   // the branch is always taken
}

type pred struct {
	id   uint64
	kind components.EdgeKind
}

// syncRow is a semaphore operation; owner is a word plus one.
type syncRow struct {
	op    components.SyncOp
	space uint8
	id    uint32
	value int64
	owner uint32
}

type packet struct {
	start, id           uint64
	dur                 uint32
	bytes, read, write  uint32
	sem                 int32
	engine, queue, core uint32 // queue: the number in the file
}

type window struct {
	start, dur uint64
	k, n       uint16
	core       uint32
}

type semUpdate struct {
	time  uint64
	id    uint32
	value int64
	core  uint32
}

type queueInfo struct {
	core, engine, index, name uint32 // core and name are words
}

// result is a worker's result of a chunk.
type result struct {
	instrs  []instr
	texts   []byte
	words   []string
	preds   []pred
	aps     []ap
	dims    []dim
	syncs   []syncRow
	packets []packet
	windows []window
	updates []semUpdate
	queues  []queueInfo
	attrs   []components.Attribute
	notes   []components.Note
	// function is the subgraph of the compiler that the first instruction
	// with a BIR id names ("sg0000" in "sg0000:431").
	function string
}

func (r *result) reset() {
	*r = result{instrs: r.instrs[:0], texts: r.texts[:0], words: r.words[:0], preds: r.preds[:0], aps: r.aps[:0], dims: r.dims[:0],
		syncs: r.syncs[:0], packets: r.packets[:0], windows: r.windows[:0], updates: r.updates[:0], queues: r.queues[:0]}
}

// worker parses chunks. One goroutine uses it.
type worker struct {
	tape  jsonscan.Tape
	shape shaper
	words map[string]uint32
	out   *result
	err   error // the first in the current element
	in    instr
	use   traffic
	core  uint32 // of the current element
	ops   []byte // the operand text
	fn    []byte
	trans bool
	preds jsonscan.Value
	index int // of the element in its section
}

// parse fills c.out from c.buf. It stops at the first bad element.
func (w *worker) parse(c *chunk) {
	w.begin(c)
	lo := 0
	for i, hi := range c.ends {
		w.index = c.first + i
		if c.err = w.text(c, c.buf[lo:hi], c.offs[i]); c.err != nil {
			return
		}
		lo = hi
	}
}

// begin has the elements that follow go to c.out.
func (w *worker) begin(c *chunk) {
	if w.words == nil {
		w.words = map[string]uint32{}
	}
	clear(w.words)
	c.out.reset()
	w.out = &c.out
}

// text reads element w.index of its section from its text.
func (w *worker) text(c *chunk, text []byte, offset int64) error {
	v, ok := w.tape.Parse(text)
	if !ok {
		var p fastjson.Parser
		_, err := p.ParseBytes(text) // it says what is wrong
		return errorAt(offset, "%s %d: %w", c.name, w.index, shorten(err))
	}
	return w.element(c, v, offset)
}

// element reads element w.index of its section.
func (w *worker) element(c *chunk, obj jsonscan.Value, offset int64) error {
	if err := w.object(c, obj, offset); err != nil {
		return errorAt(offset, "%s %d: %w", c.name, w.index, err)
	}
	return nil
}

func (w *worker) object(c *chunk, obj jsonscan.Value, offset int64) error {
	if obj.Kind() != jsonscan.Object {
		return fmt.Errorf("a %s where an object should be", obj.Kind())
	}
	w.err = nil
	w.core = w.word(nil)
	switch c.sec {
	case secInstruction:
		w.instruction(obj, offset)
	case secDMA:
		w.packet(obj)
	case secSemaphore:
		w.semaphore(obj)
	case secHam:
		w.window(obj)
	case secQueues:
		w.queue(obj)
	case secWarnings:
		w.out.notes = append(w.out.notes, components.Note{Code: noteWarning, Text: "the profiler says: " + cut(string(valid(obj.Get("message").Bytes())), 300), Count: 1})
	default:
		w.attributes(c, obj)
	}
	return w.err
}

// shorten cuts the input text out of a parser error that may quote all of it.
func shorten(err error) error {
	s := err.Error()
	if i := bytes.IndexByte([]byte(s), ';'); i > 0 && len(s) > 200 {
		s = s[:i]
	}
	return errors.New(cut(s, 200))
}

// cut bounds a text for messages to about n bytes of one line in UTF-8.
func cut(s string, n int) string {
	var b strings.Builder
	for _, r := range s { // U+FFFD for what is not UTF-8
		if b.Len() >= n {
			b.WriteString("…")
			break
		}
		b.WriteRune(max(r, ' '))
	}
	return b.String()
}

// maxComplaint bounds the text of an error: it may quote a key or a name of
// any length.
const maxComplaint = 300

// word returns the index of b in the chunk's dictionary.
func (w *worker) word(b []byte) uint32 {
	if i, ok := w.words[string(b)]; ok {
		return i
	}
	i := uint32(len(w.out.words))
	s := string(b)
	w.out.words = append(w.out.words, s)
	w.words[s] = i
	return i
}

func (w *worker) keep(b []byte) span {
	lo := uint32(len(w.out.texts))
	w.out.texts = append(w.out.texts, valid(b)...)
	return span{lo, uint32(len(w.out.texts))}
}

// valid returns b with invalid UTF-8 replaced; b itself where there is none.
func valid(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

func (w *worker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = errors.New(cut(fmt.Sprintf(format, args...), maxComplaint))
	}
}

// uint reads a whole number from 0 to most, written as a number or as a
// string; null is 0.
func (w *worker) uint(key string, v jsonscan.Value, most uint64) uint64 {
	n, neg := w.integer(key, v)
	if neg {
		w.fail("%s is negative (-%d)", key, n)
	} else if n > most {
		w.fail("%s is %d, more than %d", key, n, most)
	}
	return n
}

// int reads a whole number of 64 bits.
func (w *worker) int(key string, v jsonscan.Value) int64 {
	n, neg := w.integer(key, v)
	if n > math.MaxInt64 {
		w.fail("%s is outside 64 bits", key)
		return 0
	}
	if neg {
		return -int64(n)
	}
	return int64(n)
}

func (w *worker) integer(key string, v jsonscan.Value) (n uint64, negative bool) {
	var text []byte
	switch v.Kind() {
	case jsonscan.Null:
		return 0, false
	case jsonscan.String:
		text = v.Bytes()
	case jsonscan.Number:
		text = v.Text()
	default:
		w.fail("%s is of type %s, not a number", key, v.Kind())
		return 0, false
	}
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	n, ok := wholeNumber(digits)
	if !ok {
		w.fail("%s is %s, not a whole number of 64 bits", key, cut(strconv.Quote(string(text)), 60))
		return 0, false
	}
	return n, negative && n > 0
}

// wholeNumber reads decimal digits.
func wholeNumber(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > 18 {
		n, err := strconv.ParseUint(string(digits), 10, 64)
		return n, err == nil
	}
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	return n, true
}

// str reads a string; numbers and null count as none.
func (w *worker) str(v jsonscan.Value) []byte { return v.Bytes() }

// clamped reads a duration. More than 4.29 s does not fit the columns: such
// an instruction (one that waits for another process) is cut, with a note.
func (w *worker) clamped(key string, v jsonscan.Value) uint32 {
	n := w.uint(key, v, maxTime)
	if n > maxDuration {
		w.note("long-duration", key+" of more than 4.29 s, stored as 4.29 s")
		n = maxDuration
	}
	return uint32(n)
}

// maxNotes bounds the distinct remarks of a file.
const maxNotes = 64

func (w *worker) note(code, text string) {
	for i := range w.out.notes {
		if w.out.notes[i].Code == code && w.out.notes[i].Text == text {
			w.out.notes[i].Count++
			return
		}
	}
	if len(w.out.notes) < maxNotes {
		w.out.notes = append(w.out.notes, components.Note{Code: code, Text: text, Count: 1})
	}
}

func (w *worker) packet(obj jsonscan.Value) {
	p := packet{sem: -1}
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		switch string(key) {
		case "timestamp":
			p.start = w.uint("timestamp", v, maxTime)
		case "duration":
			p.dur = w.clamped("duration", v)
		case "dma_engine":
			p.engine = uint32(w.uint("dma_engine", v, math.MaxUint16))
		case "dma_queue":
			p.queue = uint32(w.uint("dma_queue", v, math.MaxUint16))
		case "transfer_size":
			p.bytes = uint32(w.uint("transfer_size", v, math.MaxUint32))
		case "read_size":
			p.read = uint32(w.uint("read_size", v, math.MaxUint32))
		case "write_size":
			p.write = uint32(w.uint("write_size", v, math.MaxUint32))
		case "semaphore_id":
			s := w.int("semaphore_id", v)
			if s < -1 || s > math.MaxInt32 {
				w.fail("semaphore_id is %d", s)
			}
			p.sem = int32(s)
		case "id":
			p.id = w.uint("id", v, math.MaxUint64)
		case "subgraph":
			w.core = w.word(w.str(v))
		}
	}
	p.core = w.core
	w.out.packets = append(w.out.packets, p)
}

func (w *worker) semaphore(obj jsonscan.Value) {
	var u semUpdate
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		switch string(key) {
		case "timestamp":
			u.time = w.uint("timestamp", v, maxTime)
		case "id":
			u.id = w.semaphoreID("id", v)
		case "value":
			u.value = w.int("value", v)
		case "subgraph":
			w.core = w.word(w.str(v))
		}
	}
	u.core = w.core
	w.out.updates = append(w.out.updates, u)
}

// semaphoreID reads a semaphore: a number, or as in operands "S[24] (owner)".
func (w *worker) semaphoreID(key string, v jsonscan.Value) uint32 {
	if b := w.str(v); bytes.HasPrefix(b, []byte("S[")) || bytes.HasPrefix(b, []byte("$S[")) {
		b = b[bytes.IndexByte(b, '[')+1:]
		if end := bytes.IndexByte(b, ']'); end > 0 {
			if n, ok := number(b[:end]); ok && n <= math.MaxUint32 {
				return uint32(n)
			}
		}
	}
	return uint32(w.uint(key, v, math.MaxUint32))
}

func (w *worker) window(obj jsonscan.Value) {
	var h window
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		switch string(key) {
		case "timestamp":
			h.start = w.uint("timestamp", v, maxTime)
		case "duration":
			h.dur = w.uint("duration", v, maxTime)
		case "k":
			h.k = uint16(w.uint("k", v, math.MaxUint16))
		case "n":
			h.n = uint16(w.uint("n", v, math.MaxUint16))
		case "subgraph":
			w.core = w.word(w.str(v))
		}
	}
	if h.n == 0 || h.k > h.n {
		w.fail("a clock rate of %d/%d", h.k, h.n)
	}
	h.core = w.core
	w.out.windows = append(w.out.windows, h)
}

func (w *worker) queue(obj jsonscan.Value) {
	var q queueInfo
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		switch string(key) {
		case "q_name":
			q.name = w.word(w.str(v))
		case "q_eng_idx":
			q.engine = uint32(w.uint("q_eng_idx", v, math.MaxUint16))
		case "q_idx":
			q.index = uint32(w.uint("q_idx", v, math.MaxUint16))
		case "subgraph":
			w.core = w.word(w.str(v))
		}
	}
	q.core = w.core
	w.out.queues = append(w.out.queues, q)
}

// attributes keeps the scalars of a section that describes the module, in
// the order of the file. Those of a second element carry its index.
func (w *worker) attributes(c *chunk, obj jsonscan.Value) {
	prefix := c.prefix + "."
	if w.index > 0 {
		prefix += strconv.Itoa(w.index) + "."
	}
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		var value string
		switch v.Kind() {
		case jsonscan.String:
			value = string(valid(v.Bytes()))
		case jsonscan.Number:
			value = string(v.Text())
			if _, err := strconv.ParseFloat(value, 64); err != nil || !plainNumber(v.Text()) {
				w.fail("%s is %s, not a number", key, cut(strconv.Quote(value), 60))
			}
		case jsonscan.True:
			value = "true"
		case jsonscan.False:
			value = "false"
		default:
			continue // lists and null
		}
		w.out.attrs = append(w.out.attrs, components.Attribute{Key: prefix + string(valid(key)), Value: value})
	}
}

// plainNumber refuses what the JSON library takes for numbers but JSON does
// not: nan, inf, hexadecimal.
func plainNumber(b []byte) bool {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return true
}
