package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/formats"
	"perfsim/systems/emit"
	"perfsim/systems/zonerecorder"
)

// recordFlags are the recordings that a run may leave: what a profiler of the
// simulated device would have kept, what its kernels would have printed, and
// where perfsim itself spent its time.
type recordFlags struct {
	device, print, self string
	push                bool
	clock               float64
	set                 func(flag string) bool // reports whether a flag was given

	version string

	trace *selfTrace
}

func (f *recordFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.set = fl.Changed
	fl.StringVar(&f.device, "device-profile", "", "write the device log that Tenstorrent's profiler would have kept of the run, with its buffer limits (.csv or .csv.gz)")
	fl.BoolVar(&f.push, "device-profile-push", false, "with --device-profile: processors push full buffers and go on (quick_push), as dispatch cores do")
	fl.Float64Var(&f.clock, "device-profile-mhz", 1000, "with --device-profile: clock of the log")
	fl.StringVar(&f.print, "dprint", "", "write what the kernels would print: a line per instruction as it starts, through Tenstorrent's print buffers")
	fl.StringVar(&f.version, "device-profile-version", "V11", "with --device-profile: version of the log, V5 to V11")
	fl.StringVar(&f.self, "trace-self", "", "write what perfsim itself did, in wall time, as a trace for chrome://tracing and Perfetto")
}

// refuseSeveral fails where a recording of one input, or standard input, is
// asked for with several inputs.
func (f *recordFlags) refuseSeveral(inputs []string) error {
	if len(inputs) < 2 {
		return nil
	}
	for _, x := range []struct{ flag, path string }{{"device-profile", f.device}, {"dprint", f.print}, {"trace-self", f.self}} {
		if x.path != "" {
			return usagef("--%s records one input, and %d are given: run them one by one", x.flag, len(inputs))
		}
	}
	if n := len(inputs) - len(slices.DeleteFunc(slices.Clone(inputs), func(s string) bool { return s == "-" })); n > 1 {
		return usagef("- is given %d times: standard input holds one module", n)
	}
	return nil
}

// begin checks the flags and starts the trace of perfsim itself.
func (f *recordFlags) begin(p *progress) error {
	for _, x := range []struct{ flag, path string }{{"device-profile", f.device}, {"dprint", f.print}, {"trace-self", f.self}} {
		if x.path == "-" {
			return usagef("--%s needs a file: standard output has the summary", x.flag)
		}
	}
	if f.push && f.device == "" {
		return usagef("--device-profile-push needs --device-profile FILE")
	}
	if f.device == "" && f.set("device-profile-mhz") {
		return usagef("--device-profile-mhz needs --device-profile FILE")
	}
	if !(f.clock >= 1 && f.clock <= 100_000) {
		return usagef("--device-profile-mhz %g is not between 1 and 100000", f.clock)
	}
	if f.device == "" && f.set("device-profile-version") {
		return usagef("--device-profile-version needs --device-profile FILE")
	}
	if !slices.Contains(recordVersions, f.version) {
		return usagef("--device-profile-version %q is not %s", f.version, strings.Join(recordVersions, ", "))
	}
	if f.device != "" && f.print != "" {
		return usagef("--device-profile and --dprint exclude each other: kernels that are profiled have their prints compiled out")
	}
	if f.self != "" {
		f.trace = newSelfTrace()
		p.watch = f.enter
	}
	return nil
}

// recordVersions are the versions of the device log that have zones, and that
// perfsim reads back.
var recordVersions = []string{"V5", "V6", "V7", "V8", "V9", "V10", "V11"}

// enter records that other work begins; "" ends the last.
func (f *recordFlags) enter(name string) {
	if f.trace != nil {
		f.trace.enter(name)
	}
}

// finish writes the recordings and prints what they hold. Those that lie in the
// folder of the outputs are of their set.
func (f *recordFlags) finish(ctx context.Context, w *components.World, out *emit.Output, tell io.Writer) error {
	save := func(path string, stdout io.Writer, write func(io.Writer) error) error {
		if !out.Holds(path) {
			return save(path, stdout, write)
		}
		return out.Beside(filepath.Base(path), func(to io.Writer) error { return formats.Packed(path, to, write) })
	}
	if (f.device != "" || f.print != "") && w.Events.Arrive.Len() < w.Module.Instr.Len() {
		return usagef("--device-profile and --dprint record a simulation, and no pass placed the instructions")
	}
	if f.device != "" {
		f.enter("device profile")
		var rep zonerecorder.LogReport
		err := save(f.device, nil, func(out io.Writer) (err error) {
			rep, err = zonerecorder.WriteLog(ctx, w, out, zonerecorder.LogOptions{Push: f.push, ClockMHz: f.clock, Version: f.version})
			return err
		})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s: %s of %s", f.device, humanize.Comma(int64(rep.Kept)), countOf(int(rep.Zones), "zone"))
		if rep.Lost > 0 {
			text += fmt.Sprintf("; %s found the marker buffers full", humanize.Comma(int64(rep.Lost)))
		}
		if rep.DRAMFull > 0 {
			text += fmt.Sprintf("; the DRAM buffers of %s were full", countOf(rep.DRAMFull, "processor"))
		}
		if rep.Collisions > 0 {
			text += fmt.Sprintf("; %s", countOf(rep.Collisions, "collision")+" of zone ids")
		}
		fmt.Fprintln(tell, text)
	}
	if f.print != "" {
		f.enter("print")
		var waits uint64
		err := save(f.print, nil, func(out io.Writer) (err error) {
			waits, err = zonerecorder.PrintTrace(ctx, w, out)
			return err
		})
		if err != nil {
			return err
		}
		sayf(tell, "%s: %s\n", f.print, countOf(int(waits), "wait")+" for a full print buffer")
	}
	if f.trace == nil {
		return nil
	}
	if err := save(f.self, nil, func(out io.Writer) error { return f.trace.write(out, "run") }); err != nil {
		return err
	}
	sayf(tell, "%s: %s of perfsim itself\n", f.self, countOf(len(f.trace.spans), "span"))
	return nil
}
