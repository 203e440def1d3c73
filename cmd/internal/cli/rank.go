package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems"
)

// modelError is the share by which two predictions of variants of one kernel
// must differ for their order to be clear: the median error on the NKIBench
// kernels on the machine (docs/nki.md). Machines without a measurement have
// scaled constants, as trn1 has.
func modelError(machine string) float64 {
	if machine == "trn2" {
		return 0.11
	}
	return 0.24
}

// rankRow is one variant.
type rankRow struct {
	Input     string  `json:"input"`
	LatencyNs uint64  `json:"latency_ns"`          // latency of run A
	Slower    float64 `json:"slower_than_fastest"` // latency over that of the fastest, less 1
	// Clear and Within say whether the distance to the row above is larger
	// than the model's error; of the first row both are false.
	Clear    bool     `json:"clear"`
	Within   bool     `json:"within_model_error"`
	Cautions []string `json:"cautions,omitempty"`
	Bound    string   `json:"busiest_engine"`
	Busy     float64  `json:"busiest_share"` // busy time of the busiest lane over the latency
	HBMBytes uint64   `json:"hbm_bytes"`
	Spills   bool     `json:"spills"`
	Error    string   `json:"error,omitempty"`
	limit    float64
}

func newRankCommand() *cobra.Command {
	var in inputFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "rank [flags] INPUT...",
		Short: "Predict several variants of a kernel and list them, fastest first",
		Long: `rank predicts every INPUT with the same arguments and prints a table, fastest
first. A variant whose distance to the one above it is larger than the model's
error is marked *; one within the model's error is marked ≈, and the chip may
order the two the other way round. A kernel of a kind that was measured far from
its prediction has the note caution. An INPUT that fails is listed last with its
error.`,
		Example: `  perfsim rank v1.py v2.py v3.py --arg 'bf16[2048,2048]' --arg 'bf16[2048,2048]'
  perfsim rank --json kernels.py:v1 kernels.py:v2 | jq -r '.[0].input'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			rows := make([]rankRow, 0, len(args))
			failed := 0
			for _, a := range args {
				l, err := in.load(c.Context(), c, a, p)
				var res *systems.Result
				if err == nil {
					res, err = in.simulate(c.Context(), l, systems.Request{}, p)
				}
				if err == nil {
					err = res.CheckTimes(a)
				}
				if c.Context().Err() != nil {
					return c.Context().Err()
				}
				if err != nil {
					if len(args) == 1 {
						return err
					}
					failed++
					rows = append(rows, rankRow{Input: a, Error: err.Error()})
					continue
				}
				rows = append(rows, rankOf(a, res))
			}
			p.close()
			slices.SortStableFunc(rows, func(a, b rankRow) int {
				switch {
				case (a.Error == "") != (b.Error == ""):
					if a.Error == "" {
						return -1
					}
					return 1
				case a.LatencyNs < b.LatencyNs:
					return -1
				case a.LatencyNs > b.LatencyNs:
					return 1
				}
				return 0
			})
			for i := range rows {
				if rows[i].Error != "" || rows[0].LatencyNs == 0 {
					continue
				}
				rows[i].Slower = float64(rows[i].LatencyNs)/float64(rows[0].LatencyNs) - 1
				if i > 0 {
					rows[i].Clear = float64(rows[i].LatencyNs) > float64(rows[i-1].LatencyNs)*(1+rows[i].limit)
					rows[i].Within = !rows[i].Clear
				}
			}
			var err error
			if asJSON {
				err = writeJSON(c.OutOrStdout(), rows)
			} else {
				err = printRank(c.OutOrStdout(), rows)
			}
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s of %d failed", countOf(failed, "input"), len(args))
			}
			return err
		},
	}
	in.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON list instead of the table")
	return c
}

// rankOf sums a prediction up.
func rankOf(input string, res *systems.Result) rankRow {
	rep := res.Report()
	row := rankRow{Input: input, LatencyNs: rep.LatencyA.Or(0), limit: modelError(res.World.Machine.Name)}
	for _, n := range res.Notes() {
		switch n.Code {
		case components.NoteTinyRows, components.NoteRepeatedLoads, components.NoteTinyInstructions, components.NoteClockUndecided, components.NoteSpills:
			row.Cautions = append(row.Cautions, n.Text)
		}
	}
	for _, e := range rep.Engines {
		if e.Utilization > row.Busy {
			row.Bound, row.Busy = e.Name, e.Utilization
		}
	}
	if f := rep.Work; f != nil && f.HBMRead != nil {
		row.HBMBytes = *f.HBMRead + *f.HBMWritten
	}
	if k := rep.Kernel; k != nil {
		row.Spills = k.SpilledData > 0
	}
	return row
}

func printRank(out io.Writer, rows []rankRow) error {
	tw := newTable(out)
	fmt.Fprintln(tw, "  \tINPUT\tLATENCY\tSLOWER\tBUSIEST\tHBM\t")
	for i, r := range rows {
		if r.Error != "" {
			continue
		}
		mark := " "
		switch {
		case r.Clear:
			mark = "*"
		case r.Within:
			mark = "≈"
		}
		slower := ""
		if i > 0 {
			slower = fmt.Sprintf("+%.1f %%", 100*r.Slower)
		}
		note := ""
		if r.Spills {
			note = "spills"
		}
		if len(r.Cautions) > 0 {
			note = strings.TrimPrefix(note+", caution", ", ")
		}
		sayf(tw, "%d%s\t%s\t%s\t%s\t%s %.0f %%\t%.1f MB\t%s\n", i+1, mark, cut(r.Input, 40), units.Nanos(r.LatencyNs), slower, r.Bound, 100*r.Busy,
			float64(r.HBMBytes)/1e6, note)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Error != "" {
			if _, err := sayf(out, "–  %s: %s\n", r.Input, r.Error); err != nil {
				return err
			}
		}
	}
	for _, r := range rows {
		for _, text := range r.Cautions {
			if _, err := sayf(out, "caution  %s: %s\n", r.Input, text); err != nil {
				return err
			}
		}
	}
	if len(rows) == 0 || rows[0].Error != "" {
		return nil
	}
	_, err := sayf(out, "* slower than the one above by more than the model's error of %.0f %%\n≈ within that error: the chip may order the two the other way round\n", 100*rows[0].limit)
	return err
}
