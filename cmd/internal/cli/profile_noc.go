package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"perfsim/io/tenstorrent/noctrace"
	"perfsim/systems/nocload"
)

// isNoCTrace looks at the beginning of a file.
func isNoCTrace(path string) bool { return noctrace.Is(headOf(path)) }

func nocReport(path, chip string) (*nocload.Report, error) {
	t, err := noctrace.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r, err := nocload.Load(path, t, chip)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// printNoC prints what the networks of a chip carried.
func printNoC(out io.Writer, r *nocload.Report, top int) error {
	guess := ""
	if r.Guessed {
		guess = " by its places; --chip names another"
	}
	sayf(out, "%s: NoC trace of %s, %s%s\n", r.File, count(r.Events, "event"), r.Chip, guess)
	sayf(out, "%s of %s, %d of them over Ethernet\n", count(r.Transfers, "transfer"), humanize.IBytes(r.Bytes), r.Fabric)
	if r.Unrouted > 0 {
		sayf(out, "%s without a way on the chip: they are in no link\n", count(r.Unrouted, "transfer"))
	}
	if r.Open > 0 {
		sayf(out, "%s begin without an end, or the reverse: they are in no sum\n", count(r.Open, "barrier"))
	}
	some := func(n int) int {
		if top > 0 {
			n = min(n, top)
		}
		return n
	}
	optional := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.1f %%", 100**v)
	}
	kinds := columns{left: 1}
	kinds.add("kind", "events", "transfers", "bytes")
	for _, k := range r.Kinds {
		kinds.add(printable(orText(k.Kind, "(none)")), whole(uint64(k.Events)), whole(uint64(k.Transfers)), whole(k.Bytes))
	}
	ops := columns{left: 1}
	ops.add("op", "run", "device", "transfers", "bytes")
	for _, o := range r.Ops[:some(len(r.Ops))] {
		ops.add(shorten(printable(orText(o.Op, "(unnamed)")), 32), fmt.Sprint(o.Run), fmt.Sprint(o.Device), whole(uint64(o.Transfers)), whole(o.Bytes))
	}
	waits := columns{left: 1}
	waits.add("barrier", "waits", "cycles of all", "mean")
	for _, w := range r.Waits {
		waits.add(printable(w.Barrier), whole(uint64(w.Count)), whole(w.Cycles), tenths(w.Mean))
	}
	nets := columns{left: 1}
	nets.add("network", "cycles", "transfers", "bytes", "links", "link bytes", "mean", "busiest")
	for _, n := range r.Networks[:some(len(r.Networks))] {
		nets.add(fmt.Sprintf("device %d NOC_%d", n.Device, n.NoC), whole(n.Span), whole(uint64(n.Transfers)), whole(n.Bytes), fmt.Sprint(n.Links), whole(n.LinkBytes), optional(n.Mean), optional(n.Most))
	}
	links := columns{left: 1}
	links.add("busiest links", "transfers", "bytes", "busy")
	for _, l := range r.Links[:some(len(r.Links))] {
		links.add(fmt.Sprintf("device %d NOC_%d %d,%d %s", l.Device, l.NoC, l.X, l.Y, l.To), whole(uint64(l.Transfers)), whole(l.Bytes), optional(l.Utilization))
	}
	for _, t := range []*columns{&kinds, &ops, &waits, &nets, &links} {
		if len(t.rows) == 1 {
			continue
		}
		fmt.Fprintln(out)
		if err := t.print(out); err != nil {
			return err
		}
	}
	if n := len(r.Links) - some(len(r.Links)); n > 0 {
		sayf(out, "… and %d more (--top 0 lists them)\n", n)
	}
	if !strings.HasPrefix(r.Chip, "wormhole") {
		fmt.Fprintln(out, "\nno utilization: what a link of this chip carries is not published")
	}
	return nil
}
