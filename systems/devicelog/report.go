package devicelog

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"perfsim/components/zonelog"
)

// reportColumns are the twelve durations of the C++ report, in its order.
var reportColumns = []string{
	"DEVICE TRACE FIRMWARE DURATION [ns]", "DEVICE TRACE KERNEL DURATION [ns]",
	"DEVICE KERNEL FIRST TO LAST START [ns]", "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]",
	"DEVICE KERNEL DURATION DM START [ns]", "DEVICE BRISC KERNEL DURATION [ns]", "DEVICE NCRISC KERNEL DURATION [ns]",
	"DEVICE TRISC0 KERNEL DURATION [ns]", "DEVICE TRISC1 KERNEL DURATION [ns]", "DEVICE TRISC2 KERNEL DURATION [ns]",
	"DEVICE ERISC KERNEL DURATION [ns]",
}

// Places in reportColumns.
const (
	colFirstToLast = 2
	colFW          = 3
	colKernel      = 4
	colKernelDM    = 5
)

// setupReport returns the definitions of the C++ report: start and end
// phases are named, and a zone takes part when its name contains the keyword.
func setupReport() Setup {
	agg := []string{"TENSIX_RISC_AGG"}
	def := func(i int, riscs []string, keyword string) Analysis {
		m := Match{Core: "ANY", Risc: "WORKER", Riscs: riscs, Zones: []string{keyword + "*"}}
		a := Analysis{Name: reportColumns[i], Across: "ops", Kind: LaunchSpan, Start: m, End: m}
		a.Start.Want, a.End.Want = zonelog.MarkerStart, zonelog.MarkerEnd
		return a
	}
	s := Setup{Name: "report", Rule: ByRun}
	s.Analyses = []Analysis{def(0, agg, "-FW"), def(1, agg, "-KERNEL"), def(2, nil, "-KERNEL"), def(3, nil, "-FW"), def(4, nil, "-KERNEL"), def(5, nil, "-KERNEL")}
	s.Analyses[colFirstToLast].End.Want = zonelog.MarkerStart
	dm := &s.Analyses[colKernelDM].Start
	dm.Riscs = []string{"BRISC", "NCRISC", "ERISC"}
	dm.Zones = []string{"BRISC-KERNEL*", "NCRISC-KERNEL*", "ERISC-KERNEL*"}
	for i, r := range []string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"} {
		kw := r + "-KERNEL"
		if i >= 2 && i <= 4 {
			kw = "TRISC-KERNEL"
		}
		s.Analyses = append(s.Analyses, def(6+i, []string{r}, kw))
	}
	return s
}

// ReportRow is one launch in the C++ report. A duration that does not exist
// has ok false.
type ReportRow struct {
	Run       zonelog.LogRun
	Device    int32
	Arch      string
	FreqMHz   float64
	Cores     int
	Available int
	Launch    int
	Dur       [12]Duration
	Ok        [12]bool

	// Gap to the launch before it on the device: exact cycles from the last
	// kernel end to the kernel start. GapOK is false for the first launch and
	// where the two overlap.
	Gap      uint64
	GapOK    bool
	First    bool   // first launch of the device
	Vendor   uint64 // the report's rounded ns of the gap, and from the data movement start
	VendorDM uint64
	VendorOK [2]bool
}

// vendorOpToOp is the op-to-op latency of the vendor's report: gap cycles
// times the rounded ns of this launch over its cycles, rounded. The factor
// comes from a rounded number, so long gaps carry an error. ok is false
// where the report leaves the cell empty: a gap that is negative, or a launch
// without length.
func vendorOpToOp(prevEnd, start, end uint64, mhz float64) (uint64, bool) {
	if start < prevEnd || end <= start || mhz <= 0 {
		return 0, false
	}
	ns, _ := roundNS(end-start, mhz)
	return uint64(math.Round(float64(start-prevEnd) * (float64(ns) / float64(end-start)))), true
}

// Report makes the C++ report of every device of a log.
func Report(l *zonelog.DeviceLog, t *Topology, launches []*Launches) []ReportRow {
	s := setupReport()
	var rows []ReportRow
	for d := range t.Devices {
		ls := launches[d]
		res := analyze(l, t, ls, &s, false)
		dev := make([]ReportRow, len(ls.List))
		for i := range ls.List {
			la := &ls.List[i]
			r := &dev[i]
			r.Run, r.Device, r.Launch, r.Cores = l.Runs[la.Run], la.Device, i, la.Cores
			sess := &l.Sessions[r.Run.Session]
			r.Arch, r.FreqMHz, r.Available = sess.Arch, sess.FreqMHz, sess.MaxCores
		}
		for c := range res {
			for _, ser := range res[c].Series {
				dev[ser.Launch].Dur[c], dev[ser.Launch].Ok[c] = ser.Values[0], true
			}
		}
		opToOp(dev)
		rows = append(rows, dev...)
	}
	slices.SortStableFunc(rows, func(a, b ReportRow) int {
		return cmp.Or(cmp.Compare(a.Run.HostID, b.Run.HostID), cmp.Compare(a.Run.RunID, b.Run.RunID),
			cmp.Compare(a.Run.TraceID, b.Run.TraceID), cmp.Compare(a.Run.TraceCounter, b.Run.TraceCounter))
	})
	return rows
}

// opToOp fills the gaps of the rows of one device.
func opToOp(rows []ReportRow) {
	idx := make([]int, 0, len(rows))
	for i := range rows {
		if rows[i].Ok[colKernel] {
			idx = append(idx, i)
		}
	}
	slices.SortStableFunc(idx, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[a].Run.Session, rows[b].Run.Session), cmp.Compare(rows[a].Dur[colKernel].Start, rows[b].Dur[colKernel].Start))
	})
	for k, i := range idx {
		r := &rows[i]
		if k == 0 || rows[idx[k-1]].Run.Session != r.Run.Session {
			r.First, r.VendorOK = true, [2]bool{true, true}
			continue
		}
		prev := &rows[idx[k-1]].Dur[colKernel]
		kd, dm := &r.Dur[colKernel], &r.Dur[colKernelDM]
		if kd.Start >= prev.End {
			r.Gap, r.GapOK = kd.Start-prev.End, true
		}
		r.Vendor, r.VendorOK[0] = vendorOpToOp(prev.End, kd.Start, kd.End, r.FreqMHz)
		if r.Ok[colKernelDM] {
			r.VendorDM, r.VendorOK[1] = vendorOpToOp(prev.End, dm.Start, dm.End, r.FreqMHz)
		}
	}
}

const reportHeader = "GLOBAL CALL COUNT,METAL TRACE ID,METAL TRACE REPLAY SESSION ID,DEVICE ID,DEVICE ARCH,OP NAME,CORE COUNT,AVAILABLE WORKER CORE COUNT," +
	"DEVICE TRACE FIRMWARE DURATION [ns],DEVICE TRACE KERNEL DURATION [ns],DEVICE KERNEL FIRST TO LAST START [ns]," +
	"DEVICE FW DURATION [ns],DEVICE FW START CYCLE,DEVICE FW END CYCLE,DEVICE KERNEL DURATION [ns],DEVICE KERNEL START CYCLE,DEVICE KERNEL END CYCLE," +
	"DEVICE KERNEL DURATION DM START [ns],DEVICE KERNEL DM START CYCLE,DEVICE KERNEL DM END CYCLE," +
	"DEVICE BRISC KERNEL DURATION [ns],DEVICE NCRISC KERNEL DURATION [ns],DEVICE TRISC0 KERNEL DURATION [ns],DEVICE TRISC1 KERNEL DURATION [ns],DEVICE TRISC2 KERNEL DURATION [ns],DEVICE ERISC KERNEL DURATION [ns]," +
	"OP TO OP LATENCY [ns],OP TO OP LATENCY BR/NRISC START [ns]"

// WriteReport writes the rows as cpp_device_perf_report.csv. With exact, two
// columns follow that the vendor does not have: the gap in cycles and in ns
// without the rounded factor.
func WriteReport(w io.Writer, rows []ReportRow, exact bool) error {
	out := bufio.NewWriter(w)
	out.WriteString(reportHeader)
	if exact {
		out.WriteString(",OP TO OP EXACT [cycles],OP TO OP EXACT [ns]")
	}
	out.WriteByte('\n')
	for i := range rows {
		out.Write(rows[i].append(nil, exact))
	}
	return out.Flush()
}

func (r *ReportRow) append(b []byte, exact bool) []byte {
	opt := func(v int64) {
		if v >= 0 {
			b = strconv.AppendInt(b, v, 10)
		}
		b = append(b, ',')
	}
	key := r.Run.HostID
	if key < 0 {
		key = r.Run.RunID // versions without a host id
	}
	opt(key)
	opt(r.Run.TraceID)
	opt(r.Run.TraceCounter)
	opt(int64(r.Device))
	b = append(b, r.Arch...)
	b = append(b, ",,"...) // a device log has no operator names
	opt(int64(r.Cores))
	if r.Available > 0 {
		opt(int64(r.Available))
	} else {
		opt(-1)
	}
	for c := range reportColumns {
		if r.Ok[c] {
			if ns, ok := roundNS(r.Dur[c].Cycles, r.FreqMHz); ok {
				b = strconv.AppendUint(b, ns, 10)
			}
		}
		b = append(b, ',')
		if c >= colFW && c <= colKernelDM {
			if r.Ok[c] {
				b = strconv.AppendUint(b, r.Dur[c].Start, 10)
				b = append(b, ',')
				b = strconv.AppendUint(b, r.Dur[c].End, 10)
			} else {
				b = append(b, ',')
			}
			b = append(b, ',')
		}
	}
	for k, v := range [2]uint64{r.Vendor, r.VendorDM} {
		if r.VendorOK[k] {
			b = strconv.AppendUint(b, v, 10)
		}
		if k == 0 {
			b = append(b, ',')
		}
	}
	if exact {
		b = append(b, ',')
		if r.GapOK || r.First {
			b = strconv.AppendUint(b, r.Gap, 10)
			b = append(b, ',')
			if r.FreqMHz > 0 {
				b = strconv.AppendFloat(b, nanoseconds(float64(r.Gap), r.FreqMHz), 'f', 3, 64)
			}
		} else {
			b = append(b, ',')
		}
	}
	return append(b, '\n')
}
