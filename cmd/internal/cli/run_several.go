package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/terminal"
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
func runSeveral(c *cobra.Command, inputs []string, one func(string) (*systems.Report, error), p *progress, asJSON bool) error {
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
			fmt.Fprintf(c.ErrOrStderr(), "perfsim: %s\n", text)
			entries = append(entries, failedRun{input, text})
			continue
		}
		entries, reports = append(entries, rep), append(reports, rep)
	}
	p.close()
	var err error
	if asJSON {
		err = writeJSON(c.OutOrStdout(), entries)
	} else if len(reports) > 0 {
		err = printRuns(c.OutOrStdout(), reports)
	}
	if failed := len(inputs) - len(reports); err == nil && failed > 0 {
		err = fmt.Errorf("%d of %s failed", failed, countOf(len(inputs), "input"))
	}
	return err
}

// printRuns prints a row for every report.
func printRuns(out io.Writer, reports []*systems.Report) error {
	tw := newTable(out)
	fmt.Fprintln(tw, "INPUT\tMACHINE\tINSTRUCTIONS\tLATENCY\tWITHOUT ANTI\tBUSIEST\t")
	var times []uint64
	files := 0
	for _, r := range reports {
		times = append(times, r.LatencyA, r.LatencyB.Or(0))
		files += len(r.Artifacts)
	}
	text := timeColumn(times...)
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
			latency, relaxed = text(r.LatencyA), optionalText(text, r.LatencyB)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", cut(r.Input, 24), machine, humanize.Comma(int64(r.Instructions)), latency, relaxed, busiest)
	}
	if err := tw.Flush(); err != nil || files == 0 {
		return err
	}
	fmt.Fprintln(out)
	for _, r := range reports {
		var size int64
		for _, a := range r.Artifacts {
			size += a.Size
		}
		if len(r.Artifacts) == 0 {
			continue
		}
		fmt.Fprintf(tw, "wrote\t%s\t%s\t%s\t\n", filepath.Dir(r.Artifacts[0].Path), countOf(len(r.Artifacts), "file"), humanize.IBytes(uint64(size)))
	}
	return tw.Flush()
}

// folderNames hands out names of folders, each once, upper and lower case
// alike.
type folderNames map[string]bool

// next returns the folder of a module: its name, made safe for a path, with
// -2, -3 and so on behind it where the name is taken.
func (f folderNames) next(module string) string {
	base := emit.Sanitize(module)
	if strings.Trim(base, ".") == "" {
		base = "module"
	}
	name := base
	for n := 2; f[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	f[strings.ToLower(name)] = true
	return name
}
