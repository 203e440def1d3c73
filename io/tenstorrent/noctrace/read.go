package noctrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"perfsim/io/tenstorrent/profilelog"
)

// Point is a place on the grid of a chip.
type Point struct{ X, Y int16 }

// Segment is one way of a transfer over a network of one device: unicast where
// To and End are one place, else to the rectangle between them.
type Segment struct {
	Device  int32
	NoC     uint8 // 0 or 1
	From    Point
	To, End Point
}

// Transfer is data that a processor moved.
type Transfer struct {
	Kind   uint16 // row of Trace.Kinds
	Op     uint32 // row of Trace.Ops
	Device int32
	Bytes  uint64
	// First and Segments are its ways in Trace.Segments. A transfer whose way
	// the trace does not have has none.
	First    uint32
	Segments uint16
	Fabric   bool // over Ethernet to another device
}

// Op is a launch of an operator.
type Op struct {
	Name string
	Run  int64 // run_host_id
}

// Wait sums the time between the start and the end of barriers of one kind.
type Wait struct {
	Kind   string // READ_BARRIER, WRITE_BARRIER
	Count  int
	Cycles uint64
}

// Device is the extent of a device's events.
type Device struct {
	ID         int32
	First, End uint64 // cycles of the earliest and the latest event
	Events     int
}

// Trace is a NoC trace.
type Trace struct {
	Events    int
	Kinds     []string // of events, in the order of their appearance
	Counts    []int    // by kind
	Ops       []Op
	Devices   []Device // in the order of their appearance
	Transfers []Transfer
	Segments  []Segment
	Waits     []Wait
	// Open counts barriers that begin and do not end, or the reverse.
	Open int
	Max  Point // largest coordinates seen
}

// event is an element of the file.
type event struct {
	Type    string  `json:"type"`
	Proc    string  `json:"proc"`
	NoC     string  `json:"noc"`
	Op      string  `json:"op_name"`
	Run     *int64  `json:"run_host_id"`
	Source  *int64  `json:"src_device_id"`
	SX      int64   `json:"sx"`
	SY      int64   `json:"sy"`
	DX      *int64  `json:"dx"`
	DY      *int64  `json:"dy"`
	Bytes   uint64  `json:"num_bytes"`
	Time    *uint64 `json:"timestamp"`
	Zone    string  `json:"zone"`
	StartX  *int64  `json:"mcast_start_x"`
	StartY  *int64  `json:"mcast_start_y"`
	EndX    *int64  `json:"mcast_end_x"`
	EndY    *int64  `json:"mcast_end_y"`
	Targets []struct {
		DX    int64  `json:"dx"`
		DY    int64  `json:"dy"`
		NoC   string `json:"noc"`
		Bytes uint64 `json:"num_bytes"`
	} `json:"dst"`
	Fabric *struct {
		Path []struct {
			Device int64  `json:"device"`
			NoC    string `json:"noc"`
			FromX  int64  `json:"segment_start_x"`
			FromY  int64  `json:"segment_start_y"`
			ToX    int64  `json:"segment_end_x"`
			ToY    int64  `json:"segment_end_y"`
		} `json:"path"`
	} `json:"fabric_send"`
}

// Bounds of what a trace may hold.
const (
	maxCoordinate = 255
	maxKinds      = 1000
	maxSegments   = 1000
	maxBytes      = 1 << 40 // of one transfer
)

// ReadFile reads a NoC trace, compressed or not.
func ReadFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Is reports whether a file begins as a NoC trace does: an array of objects,
// the first of which has the place of a processor.
func Is(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	rest, ok := bytes.CutPrefix(head, []byte("["))
	first, _, _ := bytes.Cut(rest, []byte("}"))
	return ok && bytes.Contains(first, []byte(`"sx"`)) && bytes.Contains(first, []byte(`"proc"`))
}

// reader builds a trace.
type reader struct {
	t       *Trace
	kinds   map[string]uint16
	ops     map[Op]uint32
	devices map[int32]int
	waits   map[string]int
	open    map[waiting]uint64
	err     error // the first fault
}

// waiting is a barrier that a processor waits in.
type waiting struct {
	device, run int64
	sx, sy      int64
	proc, kind  string
}

// Read reads a NoC trace. Errors name the byte behind which they lie.
func Read(in io.Reader) (*Trace, error) {
	src, _, done, err := profilelog.Unwrap(in)
	if err != nil {
		return nil, err
	}
	defer done()
	d := json.NewDecoder(src)
	r := &reader{t: &Trace{}, kinds: map[string]uint16{}, ops: map[Op]uint32{}, devices: map[int32]int{}, waits: map[string]int{}, open: map[waiting]uint64{}}
	at := func(err error) error {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("NoC trace: byte %d: %w", d.InputOffset(), err)
	}
	if tok, err := d.Token(); err != nil || tok != json.Delim('[') {
		if err == nil {
			err = errors.New("not an array of events")
		}
		return nil, at(err)
	}
	for d.More() {
		var e event
		if err := d.Decode(&e); err != nil {
			return nil, at(err)
		}
		if err := r.add(&e); err != nil {
			return nil, at(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, at(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("something follows the array of events")
		}
		return nil, at(err)
	}
	if r.t.Events == 0 {
		return nil, errors.New("NoC trace: there are no events")
	}
	r.t.Open += len(r.open)
	return r.t, nil
}

// add takes an event. Where something in it is wrong the first fault is the
// error, and the trace is given up.
func (r *reader) add(e *event) error {
	if e.Time == nil {
		return errors.New("an event without timestamp")
	}
	t := r.t
	t.Events++
	from := r.point(e.SX, e.SY)
	device, run := int32(0), int64(-1)
	if e.Source != nil {
		device = r.device(*e.Source)
	}
	if e.Zone != "" {
		return r.err // kernels' zones, which the device log has too; their clock may not be that of the transfers' device
	}
	r.extend(device, *e.Time)
	kind := r.kind(e.Type)
	t.Counts[kind]++
	if e.Run != nil {
		run = *e.Run
	}
	if r.barrier(e, int64(device), run) || e.Bytes == 0 && len(e.Targets) == 0 {
		return r.err
	}
	x := Transfer{Kind: kind, Op: r.op(Op{e.Op, run}), Device: device, Bytes: r.bytes(e.Bytes), First: uint32(len(t.Segments)), Fabric: e.Fabric != nil}
	noc := r.network(e.NoC)
	switch {
	case e.Fabric != nil:
		for _, p := range e.Fabric.Path {
			s := Segment{NoC: r.network(p.NoC), Device: r.device(p.Device), From: r.point(p.FromX, p.FromY), To: r.point(p.ToX, p.ToY)}
			s.End = s.To
			r.extend(s.Device, *e.Time)
			r.segment(&x, s)
		}
	case len(e.Targets) > 0:
		// A write to several places is several transfers.
		for _, y := range e.Targets {
			to := r.point(y.DX, y.DY)
			if y.NoC != "" {
				noc = r.network(y.NoC)
			}
			one := x
			one.Bytes, one.First = r.bytes(y.Bytes), uint32(len(t.Segments))
			r.segment(&one, Segment{device, noc, from, to, to})
			t.Transfers = append(t.Transfers, one)
		}
		return r.err
	case e.StartX != nil && e.StartY != nil && e.EndX != nil && e.EndY != nil:
		r.segment(&x, Segment{device, noc, from, r.point(*e.StartX, *e.StartY), r.point(*e.EndX, *e.EndY)})
	case e.DX != nil && e.DY != nil && *e.DX >= 0 && *e.DY >= 0:
		to := r.point(*e.DX, *e.DY)
		if reads(e.Type) {
			from, to = to, from // the data comes from there
		}
		r.segment(&x, Segment{device, noc, from, to, to})
	}
	t.Transfers = append(t.Transfers, x)
	return r.err
}

// fail keeps the first fault.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// segment adds a way to a transfer.
func (r *reader) segment(x *Transfer, s Segment) {
	if x.Segments++; x.Segments > maxSegments {
		r.fail("a transfer of more than %d ways", maxSegments)
		return
	}
	r.t.Segments = append(r.t.Segments, s)
}

func (r *reader) device(n int64) int32 {
	if n < 0 || n > 1<<20 {
		r.fail("device %d", n)
		return 0
	}
	return int32(n)
}

func (r *reader) bytes(n uint64) uint64 {
	if n > maxBytes {
		r.fail("a transfer of %d bytes", n)
	}
	return n
}

// reads reports whether data of this kind flows to the processor.
func reads(kind string) bool { return len(kind) >= 4 && kind[:4] == "READ" }

func (r *reader) network(name string) uint8 {
	switch name {
	case "NOC_0":
		return 0
	case "NOC_1":
		return 1
	}
	r.fail("network %q is not NOC_0 or NOC_1", name)
	return 0
}

func (r *reader) point(x, y int64) Point {
	if x < 0 || y < 0 || x > maxCoordinate || y > maxCoordinate {
		r.fail("place %d, %d is not on a chip", x, y)
		return Point{}
	}
	p := Point{int16(x), int16(y)}
	r.t.Max = Point{max(r.t.Max.X, p.X), max(r.t.Max.Y, p.Y)}
	return p
}

func (r *reader) kind(name string) uint16 {
	k, ok := r.kinds[name]
	if !ok {
		if len(r.t.Kinds) == maxKinds {
			r.fail("more than %d kinds of events", maxKinds)
			return 0
		}
		k = uint16(len(r.t.Kinds))
		r.kinds[name] = k
		r.t.Kinds = append(r.t.Kinds, name)
		r.t.Counts = append(r.t.Counts, 0)
	}
	return k
}

func (r *reader) op(o Op) uint32 {
	k, ok := r.ops[o]
	if !ok {
		k = uint32(len(r.t.Ops))
		r.ops[o] = k
		r.t.Ops = append(r.t.Ops, o)
	}
	return k
}

// extend takes an event of a device into its extent.
func (r *reader) extend(device int32, time uint64) {
	k, ok := r.devices[device]
	if !ok {
		k = len(r.t.Devices)
		r.devices[device] = k
		r.t.Devices = append(r.t.Devices, Device{ID: device, First: time, End: time})
	}
	d := &r.t.Devices[k]
	d.First, d.End, d.Events = min(d.First, time), max(d.End, time), d.Events+1
}

// barrier takes the start or end of a barrier and reports whether it is one.
func (r *reader) barrier(e *event, device, run int64) bool {
	kind, start := e.Type, false
	if n := len(kind) - len("_START"); n > 0 && kind[n:] == "_START" {
		kind, start = kind[:n], true
	} else if n := len(kind) - len("_END"); n > 0 && kind[n:] == "_END" {
		kind = kind[:n]
	} else {
		return false
	}
	w := waiting{device, run, e.SX, e.SY, e.Proc, kind}
	began, open := r.open[w]
	if start {
		if open {
			r.t.Open++
		}
		r.open[w] = *e.Time
		return true
	}
	if !open || *e.Time < began {
		r.t.Open++
		return true
	}
	delete(r.open, w)
	k, ok := r.waits[kind]
	if !ok {
		k = len(r.t.Waits)
		r.waits[kind] = k
		r.t.Waits = append(r.t.Waits, Wait{Kind: kind})
	}
	r.t.Waits[k].Count++
	r.t.Waits[k].Cycles += *e.Time - began
	return true
}
