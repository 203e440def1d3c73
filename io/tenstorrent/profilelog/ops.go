package profilelog

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Op is one row of an ops table: an operator as the host saw it and as the
// device ran it. Absent numbers are -1 (whole numbers) or NaN.
type Op struct {
	Line      int
	Code      string // OP CODE, or OP NAME of the C++ report
	Type      string // tt_dnn_device, tt_dnn_cpu, python_fallback, signpost; empty in the C++ report
	CallCount int64  // GLOBAL CALL COUNT; base program id << 10 | device in the C++ report
	Device    int64
	Arch      string
	Cores     int64 // CORE COUNT
	Available int64 // AVAILABLE WORKER CORE COUNT of this row
	TraceID   int64
	Session   int64 // METAL TRACE REPLAY SESSION ID

	HostStart, HostEnd int64 // ns of the host clock
	FWStart, FWEnd     int64 // device cycles
	FW, Kernel         float64
	FirstToLast        float64
	OpToOp             float64
	// PerRisc holds the kernel durations of BRISC, NCRISC, TRISC0..2, ERISC.
	PerRisc [6]float64
	Values  []string // every cell, by column of the table
}

// OpsTable is an ops_perf_results*.csv, a cpp_device_perf_report.csv or the
// older model-analyzer table.
type OpsTable struct {
	Name    string
	Family  string // "V1", "V2", "V2_1", "C++", "analyzer"
	Columns []string
	Ops     []Op
	Ragged  int // rows with more or fewer cells than the header
	BadNum  int // cells of number columns that hold something else
	col     map[string]int
}

// riscDurations are the columns behind Op.PerRisc.
var riscDurations = [6]string{
	"DEVICE BRISC KERNEL DURATION [ns]", "DEVICE NCRISC KERNEL DURATION [ns]", "DEVICE TRISC0 KERNEL DURATION [ns]",
	"DEVICE TRISC1 KERNEL DURATION [ns]", "DEVICE TRISC2 KERNEL DURATION [ns]", "DEVICE ERISC KERNEL DURATION [ns]",
}

const (
	maxOpsColumns = 4096
	maxOps        = 5_000_000
)

// ReadOpsFile reads an ops table, compressed or not.
func ReadOpsFile(path string) (*OpsTable, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := ReadOps(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.Name = path
	return t, nil
}

// ReadOps reads an ops table by column name. It needs OP CODE (or OP_CODE,
// or GLOBAL CALL COUNT of the C++ report); every other column may be absent,
// as the versions differ.
func ReadOps(r io.Reader) (*OpsTable, error) {
	src, _, done, err := Unwrap(r)
	if err != nil {
		return nil, err
	}
	defer done()
	in := bufio.NewReader(src)
	cr := csv.NewReader(in)
	cr.Comma = separator(in)
	cr.FieldsPerRecord = -1
	cr.LazyQuotes = true
	head, err := cr.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the ops table is empty")
		}
		return nil, err
	}
	if len(head) > maxOpsColumns {
		return nil, fmt.Errorf("line 1: %d columns, more than %d", len(head), maxOpsColumns)
	}
	t := &OpsTable{col: map[string]int{}}
	for i, h := range head {
		h = strings.TrimSpace(strings.TrimPrefix(h, "\ufeff"))
		t.Columns = append(t.Columns, h)
		if _, dup := t.col[h]; !dup && h != "" {
			t.col[h] = i
		}
	}
	has := func(n string) bool { _, ok := t.col[n]; return ok }
	switch {
	case has("OP_CODE") && has("MEASURED_NANO_SEC"):
		t.Family = "analyzer"
	case has("OP NAME") && has("DEVICE FW START CYCLE") && !has("OP CODE"):
		t.Family = "C++"
	case !has("OP CODE"):
		return nil, fmt.Errorf("line 1: not an ops table: no column OP CODE, OP_CODE or OP NAME")
	case has("DEVICE ARCH") || has("AVAILABLE WORKER CORE COUNT"):
		t.Family = "V2_1"
	case has("INPUT_0_W_PAD[LOGICAL]"):
		t.Family = "V2"
	default:
		t.Family = "V1"
	}
	for {
		rec, err := cr.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if len(t.Ops) >= maxOps {
			return nil, fmt.Errorf("more than %d ops", maxOps)
		}
		if len(rec) != len(head) {
			t.Ragged++
		}
		line, _ := cr.FieldPos(0)
		t.Ops = append(t.Ops, t.op(rec, line))
	}
}

// separator returns what parts the columns of the first line: a comma, or the
// semicolon or tab of a spreadsheet where there are more of those.
func separator(in *bufio.Reader) rune {
	head, _ := in.Peek(4096)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	best := ','
	for _, c := range ";\t" {
		if bytes.Count(line, []byte(string(c))) > bytes.Count(line, []byte(string(best))) {
			best = c
		}
	}
	return best
}

func (t *OpsTable) op(rec []string, line int) Op {
	text := func(names ...string) string {
		for _, n := range names {
			if c, ok := t.col[n]; ok && c < len(rec) {
				return strings.TrimSpace(rec[c])
			}
		}
		return ""
	}
	integer := func(names ...string) int64 {
		s := text(names...)
		if s == "" {
			return -1
		}
		if v, err := strconv.ParseInt(s, 10, 64); err == nil {
			return v
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f) // a spreadsheet writes 1024.0
		}
		t.BadNum++
		return -1
	}
	num := func(names ...string) float64 {
		s := text(names...)
		if s == "" {
			return math.NaN()
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(f, 0) {
			t.BadNum++
			return math.NaN()
		}
		return f
	}
	o := Op{
		Line: line, Values: rec,
		Code: text("OP CODE", "OP NAME", "OP_CODE"), Type: text("OP TYPE"), Arch: text("DEVICE ARCH"),
		CallCount: integer("GLOBAL CALL COUNT", "GL_CNT"), Device: integer("DEVICE ID"),
		Cores: integer("CORE COUNT"), Available: integer("AVAILABLE WORKER CORE COUNT"),
		TraceID: integer("METAL TRACE ID"), Session: integer("METAL TRACE REPLAY SESSION ID"),
		HostStart: integer("HOST START TS"), HostEnd: integer("HOST END TS"),
		FWStart: integer("DEVICE FW START CYCLE"), FWEnd: integer("DEVICE FW END CYCLE"),
		FW: num("DEVICE FW DURATION [ns]"), Kernel: num("DEVICE KERNEL DURATION [ns]", "MEASURED_NANO_SEC"),
		FirstToLast: num("DEVICE KERNEL FIRST TO LAST START [ns]"), OpToOp: num("OP TO OP LATENCY [ns]"),
	}
	for i, c := range riscDurations {
		o.PerRisc[i] = num(c)
	}
	return o
}

// Cell returns the text of a column of row i, empty where there is none.
func (t *OpsTable) Cell(i int, column string) string {
	if c, ok := t.col[column]; ok && c < len(t.Ops[i].Values) {
		return strings.TrimSpace(t.Ops[i].Values[c])
	}
	return ""
}
