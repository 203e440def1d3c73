package profilelog

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// Row is one line of a device log, as a writer takes it. Absent numbers are
// -1.
type Row struct {
	Lane  zonelog.ZoneLane
	Timer uint32
	Time  uint64
	Data  uint64
	Run   zonelog.LogRun
	Name  string
	Type  zonelog.MarkerType
	Line  uint32
	File  string
	Meta  string
}

// Writer writes a device log in one of the versions V0 to V11.
type Writer struct {
	w       *bufio.Writer
	buf     []byte
	version int
	err     error
}

var writeHeaders = [...]string{
	"chip_id, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]",
	"Program ID, PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], Run ID, zone name, zone phase, source line, source file",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, Run ID, zone name, zone phase, source line, source file",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, run ID, run host ID,  zone name, zone phase, source line, source file",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run ID, run host ID,  zone name, type, source line, source file",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run ID, run host ID,  zone name, type, source line, source file, meta data",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID,  zone name, type, source line, source file, meta data",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data",
	"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data",
}

// NewWriter writes the clock line and the header of a version ("V5").
func NewWriter(w io.Writer, version, arch string, freqMHz float64, maxCores int) (*Writer, error) {
	v, err := strconv.Atoi(strings.TrimPrefix(version, "V"))
	if err != nil || v < 0 || v >= len(writeHeaders) || !strings.HasPrefix(version, "V") {
		return nil, fmt.Errorf("device log version %q cannot be written; V0 to V%d can", version, len(writeHeaders)-1)
	}
	out := &Writer{w: bufio.NewWriterSize(w, 256<<10), version: v}
	clock := strconv.FormatFloat(freqMHz, 'f', -1, 64)
	switch {
	case v <= 1:
		fmt.Fprintf(out.w, "Chip clock is at %s GHz\n", strconv.FormatFloat(freqMHz/1000, 'f', -1, 64))
	case v >= 11:
		fmt.Fprintf(out.w, "ARCH: %s, CHIP_FREQ[MHz]: %s, Max Compute Cores: %d\n", arch, clock, maxCores)
	default:
		fmt.Fprintf(out.w, "ARCH: %s, CHIP_FREQ[MHz]: %s\n", arch, clock)
	}
	out.w.WriteString(writeHeaders[v])
	return out, out.w.WriteByte('\n')
}

// Write writes one row. What the version has no column for is left out; a
// comma in meta data becomes a semicolon and one in a name stays, as the
// vendor's writer does.
func (o *Writer) Write(r *Row) error {
	if o.err != nil {
		return o.err
	}
	b := o.buf[:0]
	sep := func() { b = append(b, ',') }
	num := func(v int64) {
		sep()
		if v >= 0 {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	run := func(v int64) int64 { return max(v, 0) }
	v := o.version
	spaced := v <= 3
	if v == 3 {
		b = strconv.AppendInt(b, run(r.Run.RunID), 10)
		sep()
	}
	b = strconv.AppendInt(b, int64(r.Lane.Device), 10)
	num(int64(r.Lane.X))
	num(int64(r.Lane.Y))
	sep()
	b = append(b, r.Lane.Risc...)
	num(int64(r.Timer))
	sep()
	b = strconv.AppendUint(b, r.Time, 10)
	if v >= 5 {
		sep()
		b = strconv.AppendUint(b, r.Data, 10)
	}
	switch {
	case v == 4 || v == 5:
		num(run(r.Run.RunID))
	case v >= 6 && v <= 8:
		num(run(r.Run.RunID))
		num(run(r.Run.HostID))
	case v == 9:
		num(run(r.Run.HostID))
	case v >= 10:
		num(run(r.Run.HostID))
		num(r.Run.TraceID)
		num(r.Run.TraceCounter)
	}
	if v >= 4 {
		sep()
		b = append(b, r.Name...)
		sep()
		if v <= 6 {
			switch r.Type {
			case zonelog.MarkerStart:
				b = append(b, "begin"...)
			case zonelog.MarkerEnd:
				b = append(b, "end"...)
			case zonelog.MarkerTotal:
				b = append(b, "sum"...)
			}
		} else {
			b = append(b, r.Type.String()...)
		}
		num(int64(r.Line))
		sep()
		b = append(b, r.File...)
	}
	if v >= 8 {
		sep()
		b = append(b, strings.ReplaceAll(r.Meta, ",", ";")...)
	}
	if spaced {
		b = spaceOut(b)
	}
	b = append(b, '\n')
	o.buf = b
	_, o.err = o.w.Write(b)
	return o.err
}

// spaceOut puts a blank behind each comma, as the rows of V0..V3 have it.
func spaceOut(b []byte) []byte {
	out := make([]byte, 0, len(b)+8)
	for _, c := range b {
		out = append(out, c)
		if c == ',' {
			out = append(out, ' ')
		}
	}
	return out
}

// Flush writes out what is buffered.
func (o *Writer) Flush() error {
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}
