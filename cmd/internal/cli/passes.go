package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/ecs"
	"perfsim/systems"
)

func newPassesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "passes", Short: "List the passes of the pipeline in the order in which they run", Args: cobra.NoArgs,
		Long: `passes lists the pipeline that run takes: ordinal (that of the documented
compiler where it has one), name, what the pass reads and writes. run --pass,
--skip-pass and --start-pass pick from it; passes marked with a flag run only
with --enable-perf-sim.`,
		Example: "  perfsim passes\n  perfsim run --skip-pass perf_sim_at_end -o out module.bir.json",
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				Ordinal int             `json:"ordinal"`
				Name    string          `json:"name"`                  // name of the pass
				Flagged bool            `json:"needs_enable_perf_sim"` // whether it runs with --enable-perf-sim only
				Systems []string        `json:"systems"`               // systems that it runs
				Reads   []ecs.Component `json:"reads"`                 // tables that it reads
				Writes  []ecs.Component `json:"writes"`                // tables that it writes
				When    []string        `json:"when"`                  // conditions of its systems
				Doc     string          `json:"doc"`
			}
			var rows []row
			for _, p := range systems.Passes() {
				r := row{Ordinal: p.Ordinal, Name: p.Name, Flagged: p.Flagged, Doc: p.Doc, When: []string{}}
				for _, s := range p.Make(p, true) {
					r.Systems = append(r.Systems, s.Name)
					for _, x := range s.Reads {
						if !slices.Contains(r.Reads, x) && !slices.Contains(r.Writes, x) {
							r.Reads = append(r.Reads, x)
						}
					}
					for _, x := range s.Writes {
						if !slices.Contains(r.Writes, x) {
							r.Writes = append(r.Writes, x)
						}
					}
					if len(s.When) > 0 {
						var names []string
						for _, w := range s.When {
							names = append(names, w.Name)
						}
						r.When = append(r.When, s.Name+": "+strings.Join(names, ", "))
					}
				}
				rows = append(rows, r)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			tw := newFacts(c.OutOrStdout())
			for _, r := range rows {
				name := r.Name
				if r.Flagged {
					name += " (--enable-perf-sim)"
				}
				sayf(tw, "%d\t%s\n\t%s\n\treads: %s\n\twrites: %s\n", r.Ordinal, name, r.Doc, join(r.Reads), join(r.Writes))
				if len(r.When) > 0 {
					sayf(tw, "\twhen: %s\n", strings.Join(r.When, "; "))
				}
			}
			return tw.Flush()
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func join(list []ecs.Component) string {
	s := make([]string, len(list))
	for i, x := range list {
		s[i] = string(x)
	}
	return strings.Join(s, " ")
}
