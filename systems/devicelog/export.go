package devicelog

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
	"perfsim/io/format"
)

// csvText appends a cell, quoted where it has to be.
func csvText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}

// WriteZones writes every zone as CSV, by processor and start: one row a
// zone, for a spreadsheet or a data frame.
func WriteZones(ctx context.Context, w io.Writer, l *zonelog.DeviceLog) error {
	out := bufio.NewWriterSize(w, 256<<10)
	out.WriteString("device,core_x,core_y,processor,zone,file,line,depth,run_id,run_host_id,trace_id,trace_id_counter,session,start_cycle,duration_cycles,duration_ns,log_line\n")
	var b []byte
	for lane := range l.Lanes {
		if err := ctx.Err(); err != nil {
			return err
		}
		ln := &l.Lanes[lane]
		head := strconv.AppendInt(nil, int64(ln.Device), 10)
		head = strconv.AppendInt(append(head, ','), int64(ln.X), 10)
		head = strconv.AppendInt(append(head, ','), int64(ln.Y), 10)
		head = append(csvText(append(head, ','), ln.Risc), ',')
		for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
			row := l.Zones.Begin[z]
			k := &l.Keys[l.Key(z)]
			r := &l.Runs[l.Run[row]]
			b = append(b[:0], head...)
			b = csvText(b, l.ZoneName(l.Key(z)))
			b = csvText(append(b, ','), k.File)
			b = strconv.AppendUint(append(b, ','), uint64(k.Line), 10)
			b = strconv.AppendUint(append(b, ','), uint64(l.Zones.Depth[z]), 10)
			for _, v := range []int64{r.RunID, r.HostID, r.TraceID, r.TraceCounter} {
				b = append(b, ',')
				if v >= 0 {
					b = strconv.AppendInt(b, v, 10)
				}
			}
			b = strconv.AppendUint(append(b, ','), uint64(r.Session), 10)
			b = strconv.AppendUint(append(b, ','), l.Start(z), 10)
			b = strconv.AppendUint(append(b, ','), l.Dur(z), 10)
			b = append(b, ',')
			if f := l.Freq(l.Run[row]); f > 0 {
				b = strconv.AppendFloat(b, nanoseconds(float64(l.Dur(z)), f), 'f', 3, 64)
			}
			b = strconv.AppendUint(append(b, ','), l.Line(int(row)), 10)
			b = append(b, '\n')
			if _, err := out.Write(b); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// WriteTrace writes a log as a Chrome trace that Perfetto opens too: a
// process for each device and core, a thread for each processor, a complete
// event for each zone and an instant for each time stamp. Times are
// microseconds since the first marker of the device (and session), with
// three decimals; a log without a clock shows one cycle as a nanosecond.
// Devices do not share a clock, so each starts at 0.
func WriteTrace(ctx context.Context, w io.Writer, l *zonelog.DeviceLog, t *Topology) error {
	out := bufio.NewWriterSize(w, 256<<10)
	out.WriteString("[")
	first := true
	begin := func(b []byte) []byte {
		if !first {
			b = append(b, ",\n"...)
		}
		first = false
		return b
	}
	starts := map[[2]int]uint64{}
	for lane := range l.Lanes {
		for s := range l.Sessions {
			lo, hi := sessionRange(l, lane, uint32(s))
			if lo == hi {
				continue
			}
			k := [2]int{t.DeviceOf[lane], s}
			if v, ok := starts[k]; !ok || l.Time[lo] < v {
				starts[k] = l.Time[lo]
			}
		}
	}
	// Sessions follow each other in the trace.
	shift := make([]map[int]float64, len(t.Devices))
	for d := range t.Devices {
		shift[d] = map[int]float64{}
		at := 0.0
		for s := range l.Sessions {
			base, ok := starts[[2]int{d, s}]
			if !ok {
				continue
			}
			end := base
			for _, lane := range t.ByDevice[d] {
				if lo, hi := sessionRange(l, lane, uint32(s)); hi > lo {
					end = max(end, l.Time[hi-1])
				}
			}
			shift[d][s] = at
			at += ticks(end-base, l.Sessions[s].FreqMHz) + 1e6
		}
	}
	var b []byte
	for c := range t.Cores {
		core := &t.Cores[c]
		pid := c + 1
		b = begin(b[:0])
		b = append(b, `{"name":"process_name","ph":"M","pid":`...)
		b = strconv.AppendInt(b, int64(pid), 10)
		b = append(b, `,"tid":0,"args":{"name":"device `...)
		b = strconv.AppendInt(b, int64(t.Devices[core.Device]), 10)
		b = append(b, " core "...)
		b = append(b, core.Name()...)
		b = append(b, `"}}`...)
		for i, lane := range core.Lanes {
			b = begin(b)
			b = append(b, `{"name":"thread_name","ph":"M","pid":`...)
			b = strconv.AppendInt(b, int64(pid), 10)
			b = append(b, `,"tid":`...)
			b = strconv.AppendInt(b, int64(i+1), 10)
			b = append(b, `,"args":{"name":`...)
			b = format.AppendJSONString(b, l.Lanes[lane].Risc)
			b = append(b, "}}"...)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	for c := range t.Cores {
		core := &t.Cores[c]
		for i, lane := range core.Lanes {
			if err := ctx.Err(); err != nil {
				return err
			}
			z, zEnd := int(l.Zones.LaneOff[lane]), int(l.Zones.LaneOff[lane+1])
			for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
				isZone := z < zEnd && int(l.Zones.Begin[z]) == row
				typ := l.Type(row)
				if !isZone && (typ == zonelog.MarkerStart || typ == zonelog.MarkerEnd) {
					continue
				}
				s := int(l.Runs[l.Run[row]].Session)
				mhz := l.Sessions[s].FreqMHz
				base := starts[[2]int{core.Device, s}]
				ns := shift[core.Device][s] + ticks(l.Time[row]-base, mhz)
				b = begin(b[:0])
				b = append(b, `{"name":`...)
				key := l.Defs[l.Def[row]].Key
				b = format.AppendJSONString(b, l.ZoneName(key))
				if isZone {
					b = append(b, `,"cat":"zone","ph":"X","ts":`...)
					b = micros(b, ns)
					b = append(b, `,"dur":`...)
					end := shift[core.Device][s] + ticks(l.Time[row]+l.Dur(z)-base, mhz)
					b = micros(b, end-ns)
				} else {
					b = append(b, `,"cat":"marker","ph":"i","s":"t","ts":`...)
					b = micros(b, ns)
				}
				b = append(b, `,"pid":`...)
				b = strconv.AppendInt(b, int64(c+1), 10)
				b = append(b, `,"tid":`...)
				b = strconv.AppendInt(b, int64(i+1), 10)
				b = append(b, `,"args":{"cycle":"`...)
				b = strconv.AppendUint(b, l.Time[row], 10)
				if isZone {
					b = append(b, `","cycles":"`...)
					b = strconv.AppendUint(b, l.Dur(z), 10)
					z++
				}
				if l.Data != nil && l.Data[row] != 0 {
					b = append(b, `","data":"`...)
					b = strconv.AppendUint(b, l.Data[row], 10)
				}
				b = append(b, `","run":`...)
				b = format.AppendJSONString(b, runText(l.Runs[l.Run[row]]))
				if k := &l.Keys[key]; k.File != "" {
					b = append(b, `,"source":`...)
					b = format.AppendJSONString(b, k.File+":"+strconv.FormatUint(uint64(k.Line), 10))
				}
				b = append(b, "}}"...)
				if _, err := out.Write(b); err != nil {
					return err
				}
			}
		}
	}
	out.WriteString("]\n")
	return out.Flush()
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
