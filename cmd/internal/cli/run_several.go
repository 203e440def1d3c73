package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/terminal"
	"perfsim/cmd/internal/units"
	"perfsim/systems"
	"perfsim/systems/emit"
)

// failedRun is the entry of an input that failed in the array of `run --json`.
type failedRun struct {
	Input string `json:"input"`
	Error string `json:"error"`
}

// runSeveral runs every input and prints a table or a JSON array in the order
// of the inputs. An input that fails is reported on standard error at once; the
// returned error says how many failed.
func runSeveral(c *cobra.Command, inputs []string, one func(string) (*systems.Report, error), r systems.Request, p *progress, asJSON bool) error {
	entries := make([]any, 0, len(inputs))
	reports := make([]*systems.Report, 0, len(inputs))
	for _, input := range inputs {
		rep, err := one(input)
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		if err != nil {
			p.finish()
			text := terminal.Message(err)
			if !strings.Contains(text, input) {
				text = input + ": " + text
			}
			sayf(c.ErrOrStderr(), "perfsim: %s\n", text)
			entries = append(entries, failedRun{input, text})
			continue
		}
		entries, reports = append(entries, rep), append(reports, rep)
	}
	var shared []emit.Artifact
	var err error
	if g := r.Out.Group; g != nil {
		if shared, err = g.Finish(c.Context(), r.Log); err != nil {
			return err
		}
	}
	p.close()
	if asJSON {
		for _, r := range reports {
			for _, a := range shared {
				r.Artifacts = append(r.Artifacts, systems.Artifact{Path: a.Path, Kind: a.Kind, Size: a.Size})
			}
		}
		err = writeJSON(c.OutOrStdout(), entries)
	} else if len(reports) > 0 {
		err = printRuns(c.OutOrStdout(), reports, shared)
	}
	if failed := len(inputs) - len(reports); err == nil && failed > 0 {
		err = fmt.Errorf("%d of %s failed", failed, countOf(len(inputs), "input"))
	}
	return err
}

// printRuns prints a row for every report, and the files they share.
func printRuns(out io.Writer, reports []*systems.Report, shared []emit.Artifact) error {
	tw := newTable(out)
	fmt.Fprintln(tw, "INPUT\tMACHINE\tROWS\tLATENCY\tWITHOUT ANTI\tBUSIEST\t")
	var times []uint64
	files := len(shared)
	for _, r := range reports {
		times = append(times, r.LatencyA.Or(0), r.LatencyB.Or(0))
		files += len(r.Artifacts)
	}
	text := units.Column(times...)
	for _, r := range reports {
		machine, busiest, share := "replayed", "", 0.0
		if r.Machine != nil {
			machine = *r.Machine
		}
		for _, e := range r.Engines {
			if e.Utilization > share {
				busiest, share = e.Name, e.Utilization
			}
		}
		if busiest != "" {
			busiest = fmt.Sprintf("%s %.1f %%", busiest, 100*share)
		}
		latency, relaxed := "not predicted", ""
		if len(r.Estimates) > 0 {
			latency, relaxed = units.Optional(text, r.LatencyA), units.Optional(text, r.LatencyB)
		}
		sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", cut(r.Input, 24), machine, humanize.Comma(int64(r.Instructions)), latency, relaxed, busiest)
	}
	if err := tw.Flush(); err != nil || files == 0 {
		return err
	}
	var size int64
	for _, r := range reports {
		for _, a := range r.Artifacts {
			size += a.Size
		}
	}
	fmt.Fprintln(out)
	if n := files - len(shared); n > 0 {
		sayf(out, "wrote %s of the modules, %s\n", countOf(n, "file"), humanize.IBytes(uint64(size)))
	}
	for _, a := range shared {
		sayf(out, "wrote %s, %s\n", a.Path, humanize.IBytes(uint64(a.Size)))
	}
	return nil
}
