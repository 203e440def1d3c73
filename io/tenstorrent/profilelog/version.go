package profilelog

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// role is the meaning of a column, whatever its place.
type role uint8

const (
	rDevice role = iota
	rX
	rY
	rRisc
	rTimer
	rTime
	rData
	rRun
	rHost
	rTrace
	rTraceCount
	rName
	rPhase
	rLine
	rFile
	rMeta
	rLogicalX
	rLogicalY
	numRoles
	rIgnored
)

// columnRoles holds every column name that any version has used, in lower
// case. The first name is the current one.
var columnRoles = map[string]role{
	"pcie slot": rDevice, "chip_id": rDevice, "chip id": rDevice,
	"core_x": rX, "core_y": rY,
	"risc processor type":      rRisc,
	"timer_id":                 rTimer,
	"time[cycles since reset]": rTime,
	"data":                     rData, "stat value": rData,
	"run id": rRun, "program id": rRun,
	"run host id":      rHost,
	"trace id":         rTrace,
	"trace id counter": rTraceCount,
	"zone name":        rName,
	"type":             rPhase, "zone phase": rPhase,
	"source line": rLine,
	"source file": rFile,
	"meta data":   rMeta,
	"logical_x":   rLogicalX, "logical_y": rLogicalY,
	// The debug variant of 2024-01.
	"core_flat": rIgnored, "core_flat_read": rIgnored, "core_flat_read_ts": rIgnored,
	"risc read": rIgnored, "risc read ts": rIgnored,
}

var roleNames = [numRoles]string{
	"PCIe slot", "core_x", "core_y", "RISC processor type", "timer_id", "time[cycles since reset]", "data",
	"run ID", "run host ID", "trace id", "trace id counter", "zone name", "type", "source line", "source file",
	"meta data", "logical_x", "logical_y",
}

// required are the columns without which a row has no meaning.
var required = []role{rDevice, rX, rY, rRisc, rTimer, rTime}

// maxColumns bounds the header of a log.
const maxColumns = 64

// layout is where a session keeps its columns.
type layout struct {
	gen     int // differs for each session
	n       int // number of columns
	col     [numRoles]int8
	session zonelog.LogSession

	tailLo, tailHi int  // first and last of the columns name, phase, line, file where they lie together, else -1
	runLo, runHi   int  // the same for the run identity
	hasRun         bool // some column identifies the run
	hasTail        bool // some column of name, phase, line, file is there
	lane4          bool // device, x, y and RISC are the first four columns
	optional       int  // number of trailing columns a row may lack
	typed          bool // column "type" (V7 on): both phases carry one id
	old            bool // no phase column: ids 1..4 mean the firmware and kernel markers
}

// isHeader reports whether a line is a column header: its first name is a known
// column and it names a time column.
func isHeader(line []byte) bool {
	first, rest, ok := bytes.Cut(line, []byte{','})
	if !ok {
		return false
	}
	_, known := columnRoles[normName(string(first))]
	return known && bytes.Contains(bytes.ToLower(rest), []byte("timer_id"))
}

func normName(s string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(strings.TrimPrefix(s, "\ufeff")), `"`))
}

// isInfo reports whether a line is the clock line.
func isInfo(line []byte) bool {
	line = bytes.TrimLeft(line, "\ufeff \"")
	return bytes.HasPrefix(line, []byte("ARCH")) || bytes.HasPrefix(line, []byte("Chip clock is at"))
}

// info is the content of a clock line.
type info struct {
	seen     bool
	fixed    bool // the "Chip clock is at" text
	arch     string
	freq     float64
	maxCores int
	bad      string // why the clock is unusable
}

// parseInfo reads "Chip clock is at 1.2 GHz" or
// "ARCH: a, CHIP_FREQ[MHz]: n, Max Compute Cores: m".
func parseInfo(line string) info {
	line = strings.Trim(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), `",`)
	in := info{seen: true}
	if rest, ok := strings.CutPrefix(line, "Chip clock is at"); ok {
		// The text was a constant of the grayskull era.
		in.fixed, in.arch = true, "grayskull"
		num, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(num, 64)
		switch {
		case err != nil || !(v > 0):
			in.bad = fmt.Sprintf("%q is not a clock", strings.TrimSpace(rest))
		case strings.EqualFold(unit, "GHz"):
			in.freq = v * 1000
		case strings.EqualFold(unit, "MHz"):
			in.freq = v
		default:
			in.bad = fmt.Sprintf("unit %q of the clock is unknown", unit)
		}
		return in
	}
	for _, part := range strings.Split(line, ",") {
		k, v, _ := strings.Cut(part, ":")
		v = strings.TrimSpace(v)
		switch k = strings.ToLower(strings.TrimSpace(k)); {
		case k == "arch":
			in.arch = strings.ToLower(v)
		case strings.HasPrefix(k, "chip_freq"):
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || !(f > 0) || f > 1e6 {
				in.bad = fmt.Sprintf("CHIP_FREQ %q is not a clock", v)
				break
			}
			in.freq = f
		case strings.HasPrefix(k, "max compute cores"):
			if n, err := strconv.Atoi(v); err == nil && n >= 0 {
				in.maxCores = n
			} else {
				in.maxCores = -1
			}
		}
	}
	if strings.Contains(strings.ToLower(line), "max compute cores") && in.maxCores == 0 {
		in.maxCores = -1 // present, but 0: the streaming profiler
	}
	if in.freq == 0 && in.bad == "" {
		in.bad = "the clock line names no CHIP_FREQ"
	}
	return in
}

// nominalMHz are the clocks at which a chip is expected to run.
var nominalMHz = map[string]float64{"grayskull": 1200, "wormhole_b0": 1000, "wormhole": 1000, "blackhole": 1350}

// newLayout reads a column header. in is the clock line before it, if any.
func newLayout(line string, lineNo uint64, in info, gen int, diags *zonelog.Diagnostics) (*layout, error) {
	names := strings.Split(strings.TrimRight(line, "\r\n"), ",")
	if len(names) > maxColumns {
		return nil, fmt.Errorf("line %d: the header has %d columns, more than %d", lineNo, len(names), maxColumns)
	}
	l := &layout{gen: gen, n: len(names), tailLo: -1, tailHi: -1, runLo: -1, runHi: -1}
	for i := range l.col {
		l.col[i] = -1
	}
	dataName, phaseName, runName, devName := "", "", "", ""
	for i, raw := range names {
		name := normName(raw)
		r, ok := columnRoles[name]
		if !ok {
			if name == "" && i == len(names)-1 {
				l.n-- // header written with a trailing comma
				break
			}
			diags.Add(diagUnknownColumn, 1, lineNo, fmt.Sprintf("column %d is named %q", i+1, strings.TrimSpace(raw)))
			continue
		}
		if r == rIgnored {
			continue
		}
		if l.col[r] >= 0 {
			return nil, fmt.Errorf("line %d: columns %d and %d are both named %q", lineNo, l.col[r]+1, i+1, roleNames[r])
		}
		l.col[r] = int8(i)
		switch r {
		case rData:
			dataName = name
		case rPhase:
			phaseName = name
		case rRun:
			runName = name
		case rDevice:
			devName = name
		}
	}
	for _, r := range required {
		if l.col[r] < 0 {
			return nil, fmt.Errorf("line %d: the header has no column %q", lineNo, roleNames[r])
		}
	}
	has := func(r role) bool { return l.col[r] >= 0 }
	v := ""
	switch {
	case has(rTrace) && has(rLogicalX):
		v = "V12"
	case has(rTrace) && in.maxCores < 0:
		v = "V12"
	case has(rTrace) && in.maxCores > 0:
		v = "V11"
	case has(rTrace):
		v = "V10"
	case has(rHost) && !has(rRun):
		v = "V9"
	case has(rHost) && has(rMeta):
		v = "V8"
	case has(rHost) && (phaseName == "type" || dataName == "data"):
		v = "V7"
	case has(rHost):
		v = "V6"
	case has(rData):
		v = "V5"
	case has(rRun) && has(rName):
		v = "V4"
	case runName == "program id":
		v = "V3"
	case devName == "chip_id":
		v = "V0"
	case in.seen && !in.fixed:
		v = "V2"
	default:
		v = "V1"
	}
	l.typed = phaseName == "type"
	l.old = !has(rPhase)
	l.session = zonelog.LogSession{Line: lineNo, Version: v, Arch: in.arch, FreqMHz: in.freq, MaxCores: max(in.maxCores, 0)}
	l.lane4 = l.col[rDevice] == 0 && l.col[rX] == 1 && l.col[rY] == 2 && l.col[rRisc] == 3 && !has(rLogicalX) && !has(rLogicalY)
	l.tailLo, l.tailHi, l.hasTail = span(l, tailRoles)
	l.runLo, l.runHi, l.hasRun = span(l, runRoles)
	// A row may end early as long as nothing needed is missing.
	need := 0
	for _, r := range append([]role{rName, rPhase}, required...) {
		need = max(need, int(l.col[r])+1)
	}
	l.optional = l.n - need
	switch {
	case !in.seen:
		diags.Add(diagClockMissing, 1, lineNo, "no clock line before the header; give the clock to see nanoseconds")
	case in.bad != "":
		diags.Add(diagClockMissing, 1, lineNo, in.bad)
	case in.fixed:
		diags.Add(diagClockAssumed, 1, lineNo, fmt.Sprintf("the log prints a constant text; %g MHz may not be the real clock", in.freq))
	default:
		if nom := nominalMHz[in.arch]; nom != 0 && (in.freq < nom*0.9 || in.freq > nom*1.1) {
			diags.Add(diagClockUnlikely, 1, lineNo,
				fmt.Sprintf("%g MHz, but %s runs at %g MHz: nanoseconds are only as right as the clock line", in.freq, in.arch, nom))
		}
	}
	return l, nil
}

var (
	laneRoles = []role{rDevice, rX, rY, rRisc, rLogicalX, rLogicalY}
	runRoles  = []role{rRun, rHost, rTrace, rTraceCount}
	tailRoles = []role{rName, rPhase, rLine, rFile}
)

// span gives the first and last column of the roles present, or -1 where
// other columns lie between them, and whether there is one at all.
func span(l *layout, roles []role) (lo, hi int, any bool) {
	lo, hi = -1, -1
	n := 0
	for _, r := range roles {
		if c := int(l.col[r]); c >= 0 {
			n++
			if lo < 0 || c < lo {
				lo = c
			}
			hi = max(hi, c)
		}
	}
	if n == 0 || hi-lo+1 != n {
		return -1, -1, n > 0
	}
	return lo, hi, true
}

// phaseType gives the marker type of a phase text.
func phaseType(s string) (zonelog.MarkerType, bool) {
	switch s {
	case "begin", "ZONE_START":
		return zonelog.MarkerStart, true
	case "end", "ZONE_END":
		return zonelog.MarkerEnd, true
	case "sum", "ZONE_TOTAL":
		return zonelog.MarkerTotal, true
	case "TS_DATA":
		return zonelog.MarkerData, true
	case "TS_EVENT":
		return zonelog.MarkerEvent, true
	case "TS_DATA_16B":
		return zonelog.MarkerData16, true
	}
	return zonelog.MarkerEvent, false
}
