// Package zonelog holds the log of a device profiler: lanes, markers and the
// zones that they make, as tables.
package zonelog

import (
	"sort"
	"strings"
)

// MarkerType is the kind of one profiler marker. The values are the packet
// types of the device encoding (bits 16..18 of the timer id).
type MarkerType uint8

// Packet types; ZONE_START and ZONE_END are the begin and end of older logs,
// ZONE_TOTAL their sum. A custom marker of a log without phases is an event.
const (
	MarkerStart  MarkerType = 0
	MarkerEnd    MarkerType = 1
	MarkerTotal  MarkerType = 2
	MarkerData   MarkerType = 3
	MarkerEvent  MarkerType = 4
	MarkerData16 MarkerType = 5
	NumMarkers              = 6
)

var markerNames = [NumMarkers]string{"ZONE_START", "ZONE_END", "ZONE_TOTAL", "TS_DATA", "TS_EVENT", "TS_DATA_16B"}

// String returns the name that device logs use from 2024-12 on.
func (m MarkerType) String() string {
	if int(m) < len(markerNames) {
		return markerNames[m]
	}
	return "unknown"
}

// MarkerTimeBits is the width of a device time stamp: the counter wraps
// after 2^44 cycles, 4.9 hours at 1 GHz.
const MarkerTimeBits = 44

// ZoneEndBit is added to a zone's timer id at its end.
const ZoneEndBit = 1 << 16

// ZoneHash16 is the identity of a zone: FNV-1a over the text
// "NAME,FILE,LINE,KERNEL_PROFILER", both halves of the 32-bit hash folded
// together by exclusive or.
func ZoneHash16(text string) uint16 {
	h := uint32(2166136261)
	for i := 0; i < len(text); i++ {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return uint16(h) ^ uint16(h>>16)
}

// NoZone marks the absence of a row number (no parent zone, no key).
const NoZone = ^uint32(0)

// ZoneLane is one processor of one core: markers of a lane share a counter
// and nest.
type ZoneLane struct {
	Device int32  // PCIe slot; times of two devices cannot be compared
	X, Y   int32  // logical in logs up to V4, physical NoC 0 later
	Risc   string // BRISC, NCRISC, TRISC_0..2, ERISC, TENSIX_RISC_AGG, ...
	// LogicalX and LogicalY are set where the log has them (V12), else -1.
	LogicalX, LogicalY int32
}

// ZoneKey is common to a start and its end.
type ZoneKey struct {
	ID   uint32 // timer id of the start, without packet type
	Name string // empty where the id was not resolved
	File string
	Line uint32
}

// ZoneDef is one distinct kind of marker in a log.
type ZoneDef struct {
	Timer uint32 // timer id as written in the log
	Type  MarkerType
	Key   uint32 // row of DeviceLog.Keys
	Phase string // text of the phase or type column, as written
}

// LogRun is the identity of a launch as the log gives it. Absent columns
// hold -1.
type LogRun struct {
	RunID        int64 // Program ID or Run ID: counter of launches on a device
	HostID       int64 // run host ID: base program id << 10 | device
	TraceID      int64
	TraceCounter int64
	Session      uint32 // row of DeviceLog.Sessions
}

// LogSession is one profiling session; a file holds several where a later
// session appended to it.
type LogSession struct {
	Line     uint64  // line of the column header, from 1
	Version  string  // V0..V12
	Arch     string  // empty where the log does not say
	FreqMHz  float64 // 0 where the log does not say
	MaxCores int     // Max Compute Cores, 0 where absent
	FromRow  uint32  // first row of the file order that belongs to it
}

// Diagnostic is one kind of trouble found in a log, with the first place and
// the number of places. Trouble never discards the rest of a log.
type Diagnostic struct {
	Code   string // stable name, listed in docs/tenstorrent.md
	Count  uint64
	Line   uint64 // first place, 1-based line of the file; 0 where no line applies
	Detail string // first place in words
}

// Diagnostics collects kinds of trouble.
type Diagnostics struct{ list []Diagnostic }

// Add counts n places of a kind; the text of the place with the lowest line
// is kept.
func (d *Diagnostics) Add(code string, n, line uint64, detail string) {
	if n == 0 {
		return
	}
	for i := range d.list {
		e := &d.list[i]
		if e.Code == code {
			e.Count += n
			if line != 0 && (e.Line == 0 || line < e.Line) {
				e.Line, e.Detail = line, detail
			}
			return
		}
	}
	d.list = append(d.list, Diagnostic{Code: code, Count: n, Line: line, Detail: detail})
}

// Merge adds every place of other, its lines moved down by lines.
func (d *Diagnostics) Merge(other *Diagnostics, lines uint64) {
	for _, e := range other.list {
		if e.Line != 0 {
			e.Line += lines
		}
		d.Add(e.Code, e.Count, e.Line, e.Detail)
	}
}

// All returns the kinds in order of their code.
func (d *Diagnostics) All() []Diagnostic {
	out := append([]Diagnostic(nil), d.list...)
	sort.Slice(out, func(i, j int) bool { return out[i].Code < out[j].Code })
	return out
}

// Find returns the kind with the given code.
func (d *Diagnostics) Find(code string) (Diagnostic, bool) {
	for _, e := range d.list {
		if e.Code == code {
			return e, true
		}
	}
	return Diagnostic{}, false
}

// DeviceLog is a device profiler log: markers and the zones they form.
//
// Marker rows are ordered by lane and, within a lane, by time (ties in file
// order); LaneOff gives the range of each lane. A row costs 20 bytes, 28
// with attached data; a zone costs 13. A log that is nothing but zones with
// data needs 34.5 bytes a row.
type DeviceLog struct {
	Sessions []LogSession
	Lanes    []ZoneLane
	Keys     []ZoneKey
	Defs     []ZoneDef
	Runs     []LogRun

	// Markers.
	LaneOff []uint32 // len(Lanes)+1 offsets into the marker columns
	Time    []uint64 // cycles since reset, wraps undone
	Def     []uint32
	Run     []uint32
	Src     SourceRows // row number in the file, from 0
	Data    []uint64   // attached data; nil where the log has none

	// Meta data texts of the few rows that have one, by ascending row.
	MetaRow  []uint32
	MetaText []uint32 // index into Metas
	Metas    []string

	Zones Zones

	// UnmatchedStart and UnmatchedEnd are marker rows without a partner.
	UnmatchedStart, UnmatchedEnd []uint32

	// Skips maps file rows to lines: Src value Skips[i].Row and later lie at
	// line row + Skips[i].Add.
	Skips []LineSkip

	Diags Diagnostics
}

// LineSkip is one step of the map from file rows to lines.
type LineSkip struct {
	Row uint32
	Add uint64
}

// Zones holds matched pairs of markers, ordered by lane and by start.
type Zones struct {
	LaneOff []uint32 // len(Lanes)+1 offsets
	Begin   []uint32 // marker row of the start
	End     []uint32 // marker row of the end
	Parent  []uint32 // zone that encloses it on the lane, NoZone at the top
	Depth   []uint8  // 0 at the top, 255 for 255 and deeper
}

// Len returns the number of zones.
func (z *Zones) Len() int { return len(z.Begin) }

// Rows returns the number of markers.
func (l *DeviceLog) Rows() int { return len(l.Time) }

// Start returns the start of zone z in cycles.
func (l *DeviceLog) Start(z int) uint64 { return l.Time[l.Zones.Begin[z]] }

// Dur returns the length of zone z in cycles.
func (l *DeviceLog) Dur(z int) uint64 { return l.Time[l.Zones.End[z]] - l.Time[l.Zones.Begin[z]] }

// Key returns the key of zone z.
func (l *DeviceLog) Key(z int) uint32 { return l.Defs[l.Def[l.Zones.Begin[z]]].Key }

// Type returns the type of marker row m.
func (l *DeviceLog) Type(m int) MarkerType { return l.Defs[l.Def[m]].Type }

// Line returns the line of the file that marker row m came from, from 1.
func (l *DeviceLog) Line(m int) uint64 {
	if m >= l.Src.Len() {
		return 0
	}
	return l.LineOfRow(l.Src.At(m))
}

// LineOfRow returns the line of a row in file order.
func (l *DeviceLog) LineOfRow(row uint32) uint64 {
	i := sort.Search(len(l.Skips), func(i int) bool { return l.Skips[i].Row > row })
	if i == 0 {
		return uint64(row) + 1
	}
	return uint64(row) + l.Skips[i-1].Add
}

// LaneOfMarker returns the lane of marker row m.
func (l *DeviceLog) LaneOfMarker(m int) int {
	return sort.Search(len(l.Lanes), func(i int) bool { return int(l.LaneOff[i+1]) > m })
}

// LaneOfZone returns the lane of zone z.
func (l *DeviceLog) LaneOfZone(z int) int {
	return sort.Search(len(l.Lanes), func(i int) bool { return int(l.Zones.LaneOff[i+1]) > z })
}

// Meta returns the meta data of marker row m, empty where it has none.
func (l *DeviceLog) Meta(m int) string {
	i := sort.Search(len(l.MetaRow), func(i int) bool { return int(l.MetaRow[i]) >= m })
	if i < len(l.MetaRow) && int(l.MetaRow[i]) == m {
		return l.Metas[l.MetaText[i]]
	}
	return ""
}

// Freq returns the clock of the session of run r in MHz, 0 where unknown.
func (l *DeviceLog) Freq(r uint32) float64 {
	if int(r) < len(l.Runs) {
		if s := l.Runs[r].Session; int(s) < len(l.Sessions) {
			return l.Sessions[s].FreqMHz
		}
	}
	return 0
}

// Bytes returns the memory held by marker and zone columns.
func (l *DeviceLog) Bytes() int {
	n := 8 * (cap(l.Time) + cap(l.Data))
	n += 4 * (cap(l.Def) + cap(l.Run) + cap(l.Src.all) + 2*cap(l.Src.runs) + cap(l.MetaRow) + cap(l.MetaText))
	z := &l.Zones
	n += 4*(cap(z.Begin)+cap(z.End)+cap(z.Parent)) + cap(z.Depth)
	n += 4 * (cap(l.UnmatchedStart) + cap(l.UnmatchedEnd) + cap(l.LaneOff) + cap(z.LaneOff))
	for _, m := range l.Metas {
		n += len(m) + 16
	}
	return n
}

// ZoneName returns the name of key k, or its id in angle brackets where the
// log does not resolve it.
func (l *DeviceLog) ZoneName(k uint32) string {
	key := &l.Keys[k]
	if key.Name != "" {
		return key.Name
	}
	var b strings.Builder
	b.WriteByte('<')
	writeUint(&b, uint64(key.ID))
	b.WriteByte('>')
	return b.String()
}

func writeUint(b *strings.Builder, v uint64) {
	var tmp [20]byte
	i := len(tmp)
	for {
		i--
		tmp[i] = byte('0' + v%10)
		v /= 10
		if v == 0 {
			break
		}
	}
	b.Write(tmp[i:])
}
