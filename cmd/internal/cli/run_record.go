package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/systems/zonerecorder"
)

// recordFlags are the recordings that a run may leave: what a profiler of the
// simulated device would have kept, what its kernels would have printed, and
// where perfsim itself spent its time.
type recordFlags struct {
	device, print, self string
	push                bool
	clock               float64
	set                 func(flag string) bool // tells whether a flag was given

	prof *zonerecorder.Self
	lane *zonerecorder.SelfLane
	all  zonerecorder.Scope // the whole run
	open zonerecorder.Scope // the work of now
	busy bool
}

func (f *recordFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.set = fl.Changed
	fl.StringVar(&f.device, "device-profile", "", "write the device log that Tenstorrent's profiler would have kept of the run, with its buffer limits (.csv or .csv.gz)")
	fl.BoolVar(&f.push, "device-profile-push", false, "with --device-profile: processors push full buffers and go on (quick_push), as dispatch cores do")
	fl.Float64Var(&f.clock, "device-profile-mhz", 1000, "with --device-profile: clock of the log")
	fl.StringVar(&f.print, "dprint", "", "write what the kernels would print: a line per instruction as it starts, through Tenstorrent's print buffers")
	fl.StringVar(&f.self, "self-profile", "", "write a device log of perfsim's own systems ('perfsim profile' reads it)")
}

// begin checks the flags and starts the self-profile.
func (f *recordFlags) begin(p *progress) error {
	for _, x := range []struct{ flag, path string }{{"device-profile", f.device}, {"dprint", f.print}, {"self-profile", f.self}} {
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
	if f.self != "" {
		f.prof = zonerecorder.NewSelf()
		f.lane = f.prof.Lane("MAIN")
		f.all = f.lane.Open(f.prof.Zone("run", "perfsim", 0))
		p.watch = f.enter
	}
	return nil
}

// enter tells the self-profile that other work begins; "" ends the last.
func (f *recordFlags) enter(name string) {
	if f.prof == nil {
		return
	}
	if f.busy {
		f.lane.Close(&f.open)
	}
	if f.busy = name != ""; f.busy {
		f.open = f.lane.Open(f.prof.Zone(name, "perfsim", 1))
	}
}

// finish writes the recordings and tells people what they hold.
func (f *recordFlags) finish(ctx context.Context, w *components.World, tell io.Writer) error {
	if (f.device != "" || f.print != "") && w.Events.Arrive.Len() < w.Module.Instr.Len() {
		return usagef("--device-profile and --dprint record a simulation, and no pass placed the instructions")
	}
	if f.device != "" {
		f.enter("device profile")
		var rep zonerecorder.LogReport
		err := save(f.device, nil, func(out io.Writer) (err error) {
			rep, err = zonerecorder.WriteLog(ctx, w, out, zonerecorder.LogOptions{Push: f.push, ClockMHz: f.clock})
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
		fmt.Fprintf(tell, "%s: %s\n", f.print, countOf(int(waits), "wait")+" for a full print buffer")
	}
	if f.prof == nil {
		return nil
	}
	f.enter("")
	f.lane.Close(&f.all)
	if err := save(f.self, nil, f.prof.WriteLog); err != nil {
		return err
	}
	fmt.Fprintf(tell, "%s: perfsim's own zones\n", f.self)
	return nil
}
