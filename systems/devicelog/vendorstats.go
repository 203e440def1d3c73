package devicelog

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// Vendor is the vendor's view of a log: launches and analyses of one era,
// device by device, as its script computes them.
type Vendor struct {
	Log     *zonelog.DeviceLog
	Topo    *Topology
	Setup   Setup
	Devices []VendorDevice
	Diags   zonelog.Diagnostics
}

// VendorDevice is one device of it.
type VendorDevice struct {
	Launches *Launches
	Results  []Result

	dispatchCores []int
}

// NewVendor runs a setup on every device of a log.
func NewVendor(l *zonelog.DeviceLog, s Setup) *Vendor {
	v := &Vendor{Log: l, Topo: newTopology(l), Setup: s}
	dispatch, cores := make([][]dispatchOp, len(v.Topo.Devices)), make([][]int, len(v.Topo.Devices))
	if s.Style == StyleHostID {
		// The script names the markers of commands in place, before it looks
		// for launches.
		names := map[uint32]string{}
		for d := range dispatch {
			var of map[uint32]string
			cores[d] = dispatchCores(l, v.Topo, d)
			dispatch[d], of = findDispatch(l, v.Topo, d, true, &v.Diags)
			maps.Copy(names, of)
		}
		v.Log = withNames(l, names)
	}
	for d := range v.Topo.Devices {
		ls := findLaunches(v.Log, v.Topo, d, s.Rule, &v.Diags)
		ls.dispatch, ls.dispatchLog = dispatch[d], v.Log
		v.Devices = append(v.Devices, VendorDevice{ls, analyze(v.Log, v.Topo, ls, &v.Setup, true), cores[d]})
	}
	return v
}

var displayStats = []string{"Count", "Average", "Max", "Median", "Min", "Sum", "Range"}

// WriteStats writes device_stats.txt.
func (v *Vendor) WriteStats(w io.Writer) error {
	out := bufio.NewWriter(w)
	old := v.Setup.Style == Style2023
	for d := range v.Devices {
		for _, r := range v.Devices[d].Results {
			if len(r.Series) == 0 {
				continue
			}
			fmt.Fprintf(out, "\n=================== %s ===================\n", r.Analysis.Name)
			unit := " [cycles]"
			if old {
				unit = " "
			}
			if stats := statsDict(&r.Stats); r.Stats.Count > 1 {
				for _, name := range displayStats {
					if old && (name == "Sum" || name == "Range") {
						continue
					}
					val, ok := stats[name].(float64)
					if !ok {
						val = float64(stats[name].(uint64))
					}
					switch {
					case old:
						fmt.Fprintf(out, "%12s  = %10s\n", name, thousands(val))
					case name == "Count":
						fmt.Fprintf(out, "%12s          = %10s\n", name, thousands(val))
					default:
						fmt.Fprintf(out, "%12s%s = %10s\n", name, unit, thousands(val))
					}
				}
			} else {
				fmt.Fprintf(out, "%12s%s = %10s\n", "Duration", unit, thousands(float64(r.Stats.Max)))
			}
			out.WriteByte('\n')
			if r.Analysis.Across == "core" && v.arch() == "grayskull" {
				v.coreMap(out, d, &r, old)
			}
		}
	}
	return out.Flush()
}

func (v *Vendor) arch() string {
	if len(v.Log.Sessions) == 0 {
		return ""
	}
	return v.Log.Sessions[0].Arch
}

// thousands prints a number without decimals (halves to even, as Python
// does) and with commas.
func thousands(f float64) string {
	s := strconv.FormatFloat(f, 'f', 0, 64)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	var b strings.Builder
	if neg {
		b.WriteByte('-')
	}
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// coreMap prints the grayskull grid with a cell for each core: its median,
// and half of its range where it has several values. The first scripts count
// cores from 0 and keep the DRAM rows apart; those of 2024 show the grid as
// the network sees it.
func (v *Vendor) coreMap(out *bufio.Writer, dev int, r *Result, old bool) {
	const width = 17
	cell := map[[2]int]string{}
	for i := range r.Series {
		s := &r.Series[i]
		c := &v.Topo.Cores[s.Core]
		if c.Device != dev {
			continue
		}
		text := thousands(s.Stats.Median)
		if s.Stats.Count > 1 {
			text += "±" + thousands(math.Floor(float64(s.Stats.Max-s.Stats.Min)/2))
		}
		cell[[2]int{int(c.X), int(c.Y)}] = text
	}
	right := func(s string) { fmt.Fprintf(out, "%*s", width, s) }
	firstRow, lastRow, firstCol, lastCol := -2, 11, 0, 12
	header, bar, dramTop, dramMid := -2, -1, 0, 6
	if old {
		firstRow, lastRow, firstCol, lastCol = -3, 10, -1, 11
		header, bar, dramTop, dramMid = -3, -2, -1, 5
	}
	for y := firstRow; y <= lastRow; y++ {
		switch {
		case old && y >= 0 && y < 5:
			fmt.Fprintf(out, "%2d|| ", y)
		case old && y > 5:
			fmt.Fprintf(out, "%2d|| ", y-1)
		case !old && y > 0:
			fmt.Fprintf(out, "%2d|| ", y)
		default:
			out.WriteString("     ")
		}
		for x := firstCol; x <= lastCol; x++ {
			if x == firstCol {
				switch {
				case y == 1:
					out.WriteString("ARC")
				case y == 3:
					out.WriteString("PCI")
				case y > -1:
					out.WriteString("---")
				default:
					out.WriteString("   ")
				}
				continue
			}
			dram := func(base int) {
				col := x
				if !old {
					col = x - 1
				}
				if col%3 == 0 {
					right("DRAM" + strconv.Itoa(base+x/3))
				} else {
					right("---")
				}
			}
			switch y {
			case header:
				right(strconv.Itoa(x))
			case bar:
				out.WriteString(strings.Repeat("=", width))
			case dramTop:
				dram(0)
			case dramMid:
				dram(4)
			default:
				cy := y
				if old && y > 5 {
					cy = y - 1
				}
				if text, ok := cell[[2]int{x, cy}]; ok {
					right(text)
				} else {
					right("X")
				}
			}
		}
		out.WriteByte('\n')
	}
	out.WriteString("\n\n\n")
}
