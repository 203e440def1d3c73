package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"perfsim/systems/occupancy"
	"perfsim/systems/work"
)

// printWork prints the work of a module and how near it is to the machine's
// peaks: lines of a table of two columns.
func printWork(w io.Writer, f *work.Figures) {
	if f == nil || f.Predicted == nil {
		return
	}
	if f.FLOPs == nil && f.HBMRead == nil {
		sayf(w, "work\tunknown: %s\n", f.Reason("flops"))
		return
	}
	var m, p work.Rates // measured, profiler's
	if f.Measured != nil {
		m = *f.Measured
	}
	if s := f.Profiler; s != nil {
		p.MFU16, p.HFU16, p.MBU = s.MFU, s.HFU, s.MBU
	}
	switch {
	case f.FLOPs == nil:
		sayf(w, "FLOPs\tunknown: %s\n", f.Reason("flops"))
	case *f.FLOPs == 0 && *f.HelperFLOPs == 0 && *f.RecomputedFLOPs == 0:
		sayf(w, "FLOPs\tnone: no products or convolutions\n")
	default:
		line := si(*f.FLOPs, "FLOP")
		if f.Predicted.FLOPs != nil {
			line += ", " + siRate(*f.Predicted.FLOPs, "FLOP/s")
			line += sides(", MFU", f.Predicted.MFU, m.MFU, nil)
		}
		sayf(w, "FLOPs\t%s\n", line)
		var more []string
		if *f.HelperFLOPs > 0 {
			more = append(more, si(*f.HelperFLOPs, "FLOP")+" of transposes and sums")
		}
		if *f.RecomputedFLOPs > 0 {
			more = append(more, si(*f.RecomputedFLOPs, "FLOP")+" recomputed")
		}
		if len(more) > 0 {
			sayf(w, "\t+ %s%s\n", strings.Join(more, ", "), sides(", HFU", f.Predicted.HFU, m.HFU, nil))
		}
		if p.MFU16 != nil && f.Predicted.MFU16 != nil {
			sayf(w, "\tall types at the 16-bit peak%s\n", sides(": MFU", f.Predicted.MFU16, m.MFU16, p.MFU16))
		}
	}
	if f.HBMRead == nil {
		sayf(w, "HBM traffic\tunknown: %s\n", f.Reason("hbm_bytes"))
		return
	}
	line := fmt.Sprintf("read %s, written %s", humanize.Bytes(*f.HBMRead), humanize.Bytes(*f.HBMWritten))
	if f.Predicted.HBMRate != nil && *f.HBMRead+*f.HBMWritten > 0 {
		line += ", " + siRate(*f.Predicted.HBMRate, "B/s") + sides(", MBU", f.Predicted.MBU, m.MBU, p.MBU)
	}
	sayf(w, "HBM traffic\t%s\n", line)
	if f.Intensity != nil && f.Ridge != nil && *f.FLOPs > 0 {
		side := "memory"
		if *f.Intensity > *f.Ridge {
			side = "compute"
		}
		sayf(w, "intensity\t%.4g FLOP/byte, ridge %.4g: %s side\n", *f.Intensity, *f.Ridge, side)
	}
}

// printMemoryPeaks prints the peaks of the memories against their sizes, of each
// kind that of the core that holds most; those that do not fit have a line.
func printMemoryPeaks(w io.Writer, list []occupancy.Head) {
	var parts, faults []string
	for _, name := range []string{"HBM", "SBUF", "PSUM"} {
		var most *occupancy.Head
		for k := range list {
			if h := &list[k]; h.Name == name && h.Absent == "" && (most == nil || h.Peak > most.Peak) {
				most = h
			}
		}
		if most == nil || most.Peak == 0 {
			continue
		}
		text := name + " "
		if most.AtMost {
			text += "≤ "
		}
		text += humanize.IBytes(most.Peak)
		if most.Size > 0 {
			text += " of " + humanize.IBytes(most.Size)
		}
		switch {
		case most.Fits || most.Size == 0:
			parts = append(parts, text)
		case most.AtMost:
			faults = append(faults, text+": MAY NOT FIT (see perfsim memory)")
		default:
			faults = append(faults, text+": DOES NOT FIT")
		}
	}
	for _, f := range faults {
		sayf(w, "memory\t%s\n", f)
	}
	if len(parts) > 0 {
		sayf(w, "memory\t%s\n", strings.Join(parts, ", "))
	}
}

// sides writes, behind name, a share of the predicted time, and of the measured time and the
// profiler where there are such.
func sides(name string, predicted, measured, profiler *float64) string {
	if predicted == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s", name, short(*predicted))
	var more []string
	if measured != nil {
		more = append(more, "measured "+short(*measured))
	}
	if profiler != nil {
		more = append(more, "profiler "+short(*profiler))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// short is a share as a percentage with two significant digits.
func short(v float64) string {
	if v < 0.01 {
		return fmt.Sprintf("%.2f %%", 100*v)
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

func si(n uint64, unit string) string { return siRate(float64(n), unit) }

// si3 is si with three digits, for columns.
func si3(n uint64, unit string) string {
	x, prefix := humanize.ComputeSI(float64(n))
	return fmt.Sprintf("%.3g %s%s", x, prefix, unit)
}

// siRate writes a number with four digits and a prefix.
func siRate(v float64, unit string) string {
	x, prefix := humanize.ComputeSI(v)
	return fmt.Sprintf("%.4g %s%s", x, prefix, unit)
}
