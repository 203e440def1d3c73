package devicelog

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"

	"perfsim/components/zonelog"
	"perfsim/io/format"
)

// WriteTrace writes a log as a Chrome trace that Perfetto opens too: a
// process for each device and core, a thread for each processor, a complete
// event for each zone and an instant for each time stamp. Times are
// microseconds since the first marker of the device (and session), with
// three decimals; a log without a clock shows one cycle as a nanosecond.
// Devices do not share a clock, so each starts at 0.
func WriteTrace(ctx context.Context, w io.Writer, l *zonelog.DeviceLog, t *Topology) error {
	out := bufio.NewWriterSize(w, 256<<10)
	b := []byte("[")
	for c := range t.Cores {
		core := &t.Cores[c]
		b = fmt.Appendf(b, `{"name":"process_name","ph":"M","pid":%d,"tid":0,"args":{"name":"device %d core %s"}},`+"\n", c+1, t.Devices[core.Device], core.Name())
		for i, lane := range core.Lanes {
			b = fmt.Appendf(b, `{"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":`, c+1, i+1)
			b = append(format.AppendJSONString(b, l.Lanes[lane].Risc), "}},\n"...)
		}
	}
	at := sessionTimes(l, t)
	for c := range t.Cores {
		for i, lane := range t.Cores[c].Lanes {
			if err := ctx.Err(); err != nil {
				return err
			}
			z, end := int(l.Zones.LaneOff[lane]), int(l.Zones.LaneOff[lane+1])
			for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
				zone := -1
				if z < end && int(l.Zones.Begin[z]) == row {
					zone = z
					z++
				} else if l.Type(row) <= zonelog.MarkerEnd {
					continue // the end of a zone, or half a zone
				}
				b = at[t.Cores[c].Device][l.Runs[l.Run[row]].Session].event(b, l, row, zone, c+1, i+1)
				b = append(b, ",\n"...)
				if len(b) < 1<<16 {
					continue
				}
				if _, err := out.Write(b[:len(b)-2]); err != nil {
					return err
				}
				b = append(b[:0], ",\n"...)
			}
		}
	}
	out.Write(append(bytes.TrimSuffix(b, []byte(",\n")), "]\n"...)) // an error stays until Flush
	return out.Flush()
}

// sessionTime turns the cycles of a device in a session into the trace's time.
type sessionTime struct {
	base  uint64  // first cycle
	shift float64 // ns: sessions follow each other in the trace
	mhz   float64
}

// sessionTimes returns the times by device and session.
func sessionTimes(l *zonelog.DeviceLog, t *Topology) [][]sessionTime {
	out := make([][]sessionTime, len(t.Devices))
	for d := range out {
		out[d] = make([]sessionTime, len(l.Sessions))
		at := 0.0
		for s := range l.Sessions {
			if start, end, ok := sessionSpan(l, t, d, uint32(s)); ok {
				out[d][s] = sessionTime{start, at, l.Sessions[s].FreqMHz}
				at += ticks(end-start, l.Sessions[s].FreqMHz) + 1e6
			}
		}
	}
	return out
}

func (x sessionTime) ns(cycle uint64) float64 { return x.shift + ticks(cycle-x.base, x.mhz) }

// event appends a zone, or the marker in a row where zone is negative.
func (x sessionTime) event(b []byte, l *zonelog.DeviceLog, row, zone, pid, tid int) []byte {
	key := l.Defs[l.Def[row]].Key
	ns := x.ns(l.Time[row])
	b = format.AppendJSONString(append(b, `{"name":`...), l.ZoneName(key))
	if zone >= 0 {
		b = micros(append(b, `,"cat":"zone","ph":"X","ts":`...), ns)
		b = micros(append(b, `,"dur":`...), x.ns(l.Time[row]+l.Dur(zone))-ns)
	} else {
		b = micros(append(b, `,"cat":"marker","ph":"i","s":"t","ts":`...), ns)
	}
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(pid), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(tid), 10)
	b = strconv.AppendUint(append(b, `,"args":{"cycle":"`...), l.Time[row], 10)
	if zone >= 0 {
		b = strconv.AppendUint(append(b, `","cycles":"`...), l.Dur(zone), 10)
	}
	if l.Data != nil && l.Data[row] != 0 {
		b = strconv.AppendUint(append(b, `","data":"`...), l.Data[row], 10)
	}
	b = format.AppendJSONString(append(b, `","run":`...), runText(l.Runs[l.Run[row]]))
	if k := &l.Keys[key]; k.File != "" {
		b = format.AppendJSONString(append(b, `,"source":`...), k.File+":"+strconv.FormatUint(uint64(k.Line), 10))
	}
	return append(b, "}}"...)
}

// ticks turns cycles into whole nanoseconds.
func ticks(cycles uint64, mhz float64) float64 {
	if mhz <= 0 {
		return float64(cycles)
	}
	return float64(uint64(float64(cycles)*1000/mhz + 0.5))
}

// micros writes whole nanoseconds as microseconds.
func micros(b []byte, ns float64) []byte {
	v := uint64(ns)
	b = strconv.AppendUint(b, v/1000, 10)
	if f := v % 1000; f != 0 {
		b = append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
	return b
}
