package profilelog

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"

	"perfsim/components/zonelog"
)

// chunk is one block of whole lines and what a worker made of it. Ids are
// the worker's own; the committer maps them.
type chunk struct {
	buf  []byte
	lay  *layout
	last bool // the file ends here

	time           []uint64
	def, lane, run []uint32
	data           []uint64 // empty while no row of the chunk has data
	metaRow        []uint32
	metaEnd        []uint32 // ends in metaBuf
	metaBuf        []byte

	newDefs  []protoDef
	newLanes []zonelog.ZoneLane
	newRuns  []zonelog.LogRun
	reset    bool // the worker started new dictionaries with this chunk

	skips []zonelog.LineSkip // rows of the chunk, lines skipped so far
	lines uint64             // lines consumed
	stop  int                // offset of a line that is not a row, -1 for none
	diags zonelog.Diagnostics

	by   *worker
	done chan struct{}
	tail uint64 // lines the reader dropped behind this block (too long)
}

// protoDef is a kind of marker before keys are shared.
type protoDef struct {
	key   zonelog.ZoneKey
	timer uint32
	typ   zonelog.MarkerType
	phase string
	first uint32 // row of the chunk where it appeared
	odd   bool   // unknown phase text
	noID  bool   // start or end without a name
}

func (c *chunk) clear() {
	c.time, c.def, c.lane, c.run, c.data = c.time[:0], c.def[:0], c.lane[:0], c.run[:0], c.data[:0]
	c.metaRow, c.metaEnd, c.metaBuf = c.metaRow[:0], c.metaEnd[:0], c.metaBuf[:0]
	c.newDefs, c.newLanes, c.newRuns = c.newDefs[:0], c.newLanes[:0], c.newRuns[:0]
	c.skips, c.lines, c.stop, c.tail = c.skips[:0], 0, -1, 0
	c.reset, c.last = false, false
	c.diags = zonelog.Diagnostics{}
}

// worker parses chunks. It keeps what it has seen, so that a row needs a
// comparison with a cached text instead of parsing its names again.
type worker struct {
	gen              int
	lanes, runs      map[string]uint32
	defs             map[string]uint32
	lastLane         []byte
	lastRun          []byte
	lastLaneID       uint32
	lastRunID        uint32
	cache            [512]defCache
	start            [maxColumns + 2]int32
	scratch, quoted  []byte
	mapLane, mapRun  []uint32 // own id -> id of the log, kept by the committer
	mapDef           []uint32
	numLanes, numRun uint32
	numDef           uint32
}

type defCache struct {
	key []byte
	id  uint32
}

func (w *worker) restart(gen int) {
	w.gen = gen
	w.lanes, w.runs, w.defs = map[string]uint32{}, map[string]uint32{}, map[string]uint32{}
	w.lastLane, w.lastRun = nil, nil
	w.cache = [512]defCache{}
	w.numLanes, w.numRun, w.numDef = 0, 0, 0
}

// parse reads the rows of c from its first line on. It stops before a line
// that starts with a letter: a clock line or header of a later session.
func (w *worker) parse(c *chunk) {
	c.by = w
	if w.lanes == nil || w.gen != c.lay.gen {
		w.restart(c.lay.gen)
		c.reset = true
	}
	lay := c.lay
	buf := c.buf
	skipped := uint64(0)
	for pos := 0; pos < len(buf); {
		end := bytes.IndexByte(buf[pos:], '\n')
		next := pos + end + 1
		complete := end >= 0
		if !complete {
			end, next = len(buf)-pos, len(buf)
		}
		line := buf[pos : pos+end]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(line) > 0 && (line[0]|0x20 >= 'a' && line[0]|0x20 <= 'z' || line[0] == 0xEF) {
			c.stop = pos
			break
		}
		c.lines++
		if !w.row(c, lay, line, complete) {
			skipped++
			c.skips = append(c.skips, zonelog.LineSkip{Row: uint32(len(c.time)), Add: skipped})
		}
		pos = next
	}
	if len(c.data) > 0 {
		c.data = padTo(c.data, len(c.time))
	}
}

func padTo(s []uint64, n int) []uint64 {
	for len(s) < n {
		s = append(s, 0)
	}
	return s
}

// split finds the fields of line; field i is line[start[i]:start[i+1]-1].
func (w *worker) split(line []byte) int {
	n := 0
	w.start[0] = 0
	for p := 0; ; {
		i := bytes.IndexByte(line[p:], ',')
		if i < 0 {
			break
		}
		p += i + 1
		n++
		w.start[n] = int32(p)
		if n == maxColumns {
			break
		}
	}
	n++
	w.start[n] = int32(len(line) + 1)
	return n
}

// row parses one line; false where it gives no row.
func (w *worker) row(c *chunk, lay *layout, line []byte, complete bool) bool {
	n := w.split(line)
	if n != lay.n {
		var ok bool
		if line, n, ok = w.irregular(c, lay, line, n, complete); !ok {
			return false
		}
	}
	start := &w.start
	field := func(col int8) []byte {
		if col < 0 || int(col) >= n {
			return nil
		}
		return trim(line[start[col] : start[col+1]-1])
	}

	// Numbers first: a bad one drops the row before anything is interned.
	timeCol := lay.col[rTime]
	t, ok := parseUint(field(timeCol))
	if !ok {
		return w.badNumber(c, rTime, field(timeCol), complete)
	}
	if !complete && int(timeCol) == lay.n-1 && len(c.time) > 0 && digits(t) < digits(c.time[len(c.time)-1]) {
		c.diags.Add(diagTruncated, 1, c.lines, "the last line is cut inside its time")
		return false
	}
	var data uint64
	if col := lay.col[rData]; col >= 0 {
		if f := field(col); len(f) != 1 || f[0] != '0' {
			if len(f) > 0 {
				if data, ok = parseUint(f); !ok {
					return w.badNumber(c, rData, f, complete)
				}
			}
		}
	}

	lane, ok := w.laneOf(c, lay, line, n)
	if !ok {
		return false
	}
	def, ok := w.defOf(c, lay, line, n, lane)
	if !ok {
		return false
	}
	run, ok := w.runOf(c, lay, line, n)
	if !ok {
		return false
	}

	if data != 0 && len(c.data) == 0 || len(c.data) > 0 {
		c.data = append(padTo(c.data, len(c.time)), data)
	}
	if col := lay.col[rMeta]; col >= 0 {
		if f := field(col); len(f) > 0 {
			if f[0] == '"' {
				f = unquote(f)
			}
			c.metaRow = append(c.metaRow, uint32(len(c.time)))
			c.metaBuf = append(c.metaBuf, f...)
			c.metaEnd = append(c.metaEnd, uint32(len(c.metaBuf)))
		}
	}
	c.time = append(c.time, t)
	c.lane = append(c.lane, lane)
	c.def = append(c.def, def)
	c.run = append(c.run, run)
	return true
}

func (w *worker) badNumber(c *chunk, r role, f []byte, complete bool) bool {
	if !complete {
		c.diags.Add(diagTruncated, 1, c.lines, "the last line ends in the middle of a row")
		return false
	}
	c.diags.Add(diagBadNumber, 1, c.lines, fmt.Sprintf("%s holds %s", roleNames[r], quoteShort(f)))
	return false
}

// irregular handles a line whose number of fields is not that of the header.
func (w *worker) irregular(c *chunk, lay *layout, line []byte, n int, complete bool) ([]byte, int, bool) {
	if len(trim(line)) == 0 {
		return line, n, false // a blank line is nothing
	}
	if bytes.IndexByte(line, '"') >= 0 {
		if q, m := w.splitQuoted(line); m == lay.n {
			return q, m, true
		}
		n = w.split(line)
	}
	if n < lay.n {
		switch {
		case !complete:
			c.diags.Add(diagTruncated, 1, c.lines, fmt.Sprintf("the last line has %d of %d fields", n, lay.n))
		case n >= lay.n-lay.optional:
			return line, n, true
		default:
			c.diags.Add(diagRowShort, 1, c.lines, fmt.Sprintf("%d fields, the header has %d", n, lay.n))
		}
		return line, n, false
	}
	// Too many. Empty fields at the end mean nothing, as long as the phase is
	// where it should be.
	m := n
	for m > lay.n && len(trim(line[w.start[m-1]:w.start[m]-1])) == 0 {
		m--
	}
	if m == lay.n {
		c := lay.col[rPhase]
		if c < 0 {
			return line, m, true
		}
		if _, ok := phaseType(string(trim(line[w.start[c] : w.start[c+1]-1]))); ok {
			return line, m, true
		}
	}
	// A zone name may hold commas: join its pieces when the fields behind it
	// then make sense.
	nameCol, phaseCol, lineCol := int(lay.col[rName]), int(lay.col[rPhase]), int(lay.col[rLine])
	if extra := n - lay.n; nameCol >= 0 && phaseCol > nameCol && n < maxColumns {
		at := func(col int) string {
			col += extra
			return string(trim(line[w.start[col] : w.start[col+1]-1]))
		}
		_, phaseOK := phaseType(at(phaseCol))
		lineOK := lineCol < nameCol
		if !lineOK {
			_, ok := parseUint([]byte(at(lineCol)))
			lineOK = ok
		}
		if phaseOK && lineOK {
			copy(w.start[nameCol+1:], w.start[nameCol+1+extra:n+1])
			c.diags.Add(diagCommaInName, 1, c.lines, fmt.Sprintf("zone name %s", quoteShort(line[w.start[nameCol]:w.start[nameCol+1]-1])))
			return line, lay.n, true
		}
	}
	c.diags.Add(diagRowLong, 1, c.lines, fmt.Sprintf("%d fields, the header has %d", n, lay.n))
	return line, n, false
}

// splitQuoted splits a line with fields in quotation marks (a log saved
// again by another program) into a buffer of its own.
func (w *worker) splitQuoted(line []byte) ([]byte, int) {
	out := w.quoted[:0]
	n := 0
	w.start[0] = 0
	for i := 0; ; {
		if i < len(line) && line[i] == '"' {
			for i++; i < len(line); i++ {
				if line[i] == '"' {
					if i+1 < len(line) && line[i+1] == '"' {
						i++
					} else {
						i++
						break
					}
				}
				out = append(out, line[i])
			}
		}
		for i < len(line) && line[i] != ',' {
			out = append(out, line[i])
			i++
		}
		out = append(out, ',')
		n++
		w.start[n] = int32(len(out))
		if i >= len(line) || n > maxColumns {
			break
		}
		i++
	}
	w.quoted = out
	return out, n
}

func (w *worker) laneOf(c *chunk, lay *layout, line []byte, n int) (uint32, bool) {
	var key []byte
	if lay.lane4 {
		key = line[:w.start[4]-1]
	} else {
		key = w.key(lay, line, n, laneRoles)
	}
	if w.lastLane != nil && bytes.Equal(key, w.lastLane) {
		return w.lastLaneID, true
	}
	id, ok := w.lanes[string(key)]
	if !ok {
		get := func(r role) (int32, bool) {
			col := lay.col[r]
			if col < 0 || int(col) >= n {
				return -1, true
			}
			f := trim(line[w.start[col] : w.start[col+1]-1])
			if len(f) == 0 && (r == rLogicalX || r == rLogicalY) {
				return -1, true
			}
			v, ok := parseUint(f)
			if !ok || v > 1<<30 {
				c.diags.Add(diagBadNumber, 1, c.lines, fmt.Sprintf("%s holds %s", roleNames[r], quoteShort(f)))
				return 0, false
			}
			return int32(v), true
		}
		var ln zonelog.ZoneLane
		for _, p := range []struct {
			r   role
			dst *int32
		}{{rDevice, &ln.Device}, {rX, &ln.X}, {rY, &ln.Y}, {rLogicalX, &ln.LogicalX}, {rLogicalY, &ln.LogicalY}} {
			v, ok := get(p.r)
			if !ok {
				return 0, false
			}
			*p.dst = v
		}
		col := lay.col[rRisc]
		ln.Risc = string(trim(line[w.start[col] : w.start[col+1]-1]))
		if ln.Risc == "" {
			c.diags.Add(diagBadNumber, 1, c.lines, "the RISC processor type is empty")
			return 0, false
		}
		id = w.numLanes
		w.numLanes++
		c.newLanes = append(c.newLanes, ln)
		w.lanes[string(key)] = id
	}
	w.lastLane = append(w.lastLane[:0], key...)
	w.lastLaneID = id
	return id, true
}

// key joins the trimmed fields of the roles.
func (w *worker) key(lay *layout, line []byte, n int, roles []role) []byte {
	k := w.scratch[:0]
	for _, r := range roles {
		if col := lay.col[r]; col >= 0 && int(col) < n {
			k = append(k, trim(line[w.start[col]:w.start[col+1]-1])...)
		}
		k = append(k, 0)
	}
	w.scratch = k
	return k
}

func (w *worker) runOf(c *chunk, lay *layout, line []byte, n int) (uint32, bool) {
	var key []byte
	switch {
	case !lay.hasRun:
		key = nil
	case lay.runLo >= 0 && lay.runHi < n:
		key = line[w.start[lay.runLo] : w.start[lay.runHi+1]-1]
	default:
		key = w.key(lay, line, n, runRoles)
	}
	if w.lastRun != nil && bytes.Equal(key, w.lastRun) {
		return w.lastRunID, true
	}
	id, ok := w.runs[string(key)]
	if !ok {
		r := zonelog.LogRun{RunID: -1, HostID: -1, TraceID: -1, TraceCounter: -1}
		for _, p := range []struct {
			r   role
			dst *int64
		}{{rRun, &r.RunID}, {rHost, &r.HostID}, {rTrace, &r.TraceID}, {rTraceCount, &r.TraceCounter}} {
			col := lay.col[p.r]
			if col < 0 || int(col) >= n {
				continue
			}
			f := trim(line[w.start[col] : w.start[col+1]-1])
			if len(f) == 0 {
				continue // a launch that was not replayed has no trace id
			}
			v, ok := parseUint(f)
			if !ok || v > 1<<62 {
				c.diags.Add(diagBadNumber, 1, c.lines, fmt.Sprintf("%s holds %s", roleNames[p.r], quoteShort(f)))
				return 0, false
			}
			*p.dst = int64(v)
		}
		id = w.numRun
		w.numRun++
		c.newRuns = append(c.newRuns, r)
		w.runs[string(key)] = id
	}
	w.lastRun = append(w.lastRun[:0], key...)
	w.lastRunID = id
	return id, true
}

func (w *worker) defOf(c *chunk, lay *layout, line []byte, n int, lane uint32) (uint32, bool) {
	tc := lay.col[rTimer]
	timer := line[w.start[tc] : w.start[tc+1]-1]
	k := append(w.scratch[:0], timer...)
	k = append(k, 0)
	switch {
	case lay.tailLo >= 0 && lay.tailHi < n:
		k = append(k, line[w.start[lay.tailLo]:w.start[lay.tailHi+1]-1]...)
	case lay.hasTail:
		w.scratch = k
		for _, r := range tailRoles {
			if col := lay.col[r]; col >= 0 && int(col) < n {
				k = append(k, trim(line[w.start[col]:w.start[col+1]-1])...)
			}
			k = append(k, 0)
		}
	}
	if lay.old {
		// The names of the firmware and kernel markers hold the RISC.
		rc := lay.col[rRisc]
		k = append(k, line[w.start[rc]:w.start[rc+1]-1]...)
	}
	w.scratch = k
	h := uint(len(k)) * 31
	for _, b := range timer {
		h = h*33 + uint(b)
	}
	if lay.old {
		h += uint(lane) * 7
	}
	e := &w.cache[h%uint(len(w.cache))]
	if bytes.Equal(e.key, k) && e.key != nil {
		return e.id, true
	}
	id, ok := w.defs[string(k)]
	if !ok {
		d, ok := w.protoDef(c, lay, line, n)
		if !ok {
			return 0, false
		}
		id = w.numDef
		w.numDef++
		c.newDefs = append(c.newDefs, d)
		w.defs[string(k)] = id
	}
	e.key = append(e.key[:0], k...)
	e.id = id
	return id, true
}

// protoDef reads the names of a row and gives the marker its type.
func (w *worker) protoDef(c *chunk, lay *layout, line []byte, n int) (protoDef, bool) {
	get := func(r role) []byte {
		col := lay.col[r]
		if col < 0 || int(col) >= n {
			return nil
		}
		return trim(line[w.start[col] : w.start[col+1]-1])
	}
	d := protoDef{first: uint32(len(c.time))}
	timer, ok := parseUint(get(rTimer))
	if !ok || timer > 1<<32-1 {
		c.diags.Add(diagBadNumber, 1, c.lines, fmt.Sprintf("timer_id holds %s", quoteShort(get(rTimer))))
		return d, false
	}
	d.timer = uint32(timer)
	if lay.old {
		risc := string(get(rRisc))
		d.key.ID = d.timer
		switch d.timer {
		case 1, 4:
			d.key.ID, d.key.Name = 1, risc+"-FW"
		case 2, 3:
			d.key.ID, d.key.Name = 2, risc+"-KERNEL"
		default:
			d.typ = zonelog.MarkerEvent
			return d, true
		}
		if d.timer >= 3 {
			d.typ = zonelog.MarkerEnd
		}
		return d, true
	}
	d.key.Name = string(get(rName))
	d.key.File = string(get(rFile))
	if f := get(rLine); len(f) > 0 {
		v, ok := parseUint(f)
		if !ok || v > 1<<32-1 {
			c.diags.Add(diagBadNumber, 1, c.lines, fmt.Sprintf("source line holds %s", quoteShort(f)))
			return d, false
		}
		d.key.Line = uint32(v)
	}
	d.phase = string(get(rPhase))
	d.typ, ok = phaseType(d.phase)
	d.odd = !ok && d.phase != ""
	if d.phase == "" && d.timer>>16 > 0 && d.timer>>16 < zonelog.NumMarkers && !lay.typed {
		d.typ = zonelog.MarkerType(d.timer >> 16)
	}
	d.key.ID = d.timer
	zone := d.typ == zonelog.MarkerStart || d.typ == zonelog.MarkerEnd
	switch {
	case zone && d.timer >= 1 && d.timer <= 4 && d.key.Line == 0:
		// Logs up to V5 that carry the fixed ids 1..4 pair 1 with 4, 2 with 3.
		if d.timer == 4 {
			d.key.ID = 1
		} else if d.timer == 3 {
			d.key.ID = 2
		}
	case !lay.typed && d.timer>>16 == uint32(d.typ):
		d.key.ID = d.timer & 0xFFFF
	}
	d.noID = zone && d.key.Name == ""
	return d, true
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// parseUint reads a decimal number without sign that fits 64 bits.
func parseUint(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, ch := range b {
		d := uint64(ch - '0')
		if d > 9 {
			return 0, false
		}
		hi, lo := bits.Mul64(v, 10)
		if hi != 0 || lo+d < lo {
			return 0, false
		}
		v = lo + d
	}
	return v, true
}

func digits(v uint64) int {
	n := 1
	for v >= 10 {
		v /= 10
		n++
	}
	return n
}

func quoteShort(b []byte) string {
	const limit = 40
	if len(b) > limit {
		return fmt.Sprintf("%q...", b[:limit])
	}
	return fmt.Sprintf("%q", b)
}

func unquote(b []byte) []byte {
	s := strings.TrimSuffix(strings.TrimPrefix(string(b), `"`), `"`)
	return []byte(strings.ReplaceAll(s, `""`, `"`))
}
