package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"perfsim/components/machine"
	"perfsim/components/machine/grid"
)

func newMachineCommand() *cobra.Command {
	c := &cobra.Command{Use: "machine", Short: "List and show the machine descriptions",
		Example: "  perfsim machine list\n  perfsim machine show trn2 > mine.yaml\n  perfsim run --machine mine.yaml module.bir.json"}
	c.AddCommand(newMachineList(), newMachineShow())
	return c
}

func newMachineList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "list", Short: "List the machines that are built in", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				Name    string   `json:"name"` // name of the machine
				Title   string   `json:"title"`
				Aliases []string `json:"aliases"` // other names of the machine
				Arch    int      `json:"arch"`
				Models  []string `json:"models"`
			}
			rows := []row{}
			for _, n := range machine.Names() {
				m, err := machine.Load(n)
				if err != nil {
					return err
				}
				models := []string{"reference"}
				if len(m.Calibrated.Ops) > 0 {
					models = append(models, "calibrated")
				}
				rows = append(rows, row{m.Name, m.Title, m.Aliases, m.Arch, models})
			}
			for _, n := range grid.Names() {
				g, err := grid.Load(n)
				if err != nil {
					return err
				}
				rows = append(rows, row{g.Name, g.Title, g.Aliases, 0, []string{"bench"}})
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rows)
			}
			tw := newFacts(c.OutOrStdout())
			for _, r := range rows {
				sayf(tw, "%s\t%s\n\talso %s; models: %s\n", r.Name, r.Title, strings.Join(r.Aliases, ", "), strings.Join(r.Models, ", "))
			}
			return tw.Flush()
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newMachineShow() *cobra.Command {
	var asJSON, assumptions bool
	c := &cobra.Command{Use: "show NAME", Short: "Print a machine description with its sources and assumptions", Args: cobra.ExactArgs(1),
		Long: `show prints the description as the YAML that --machine FILE reads back. Every
cost carries a mark: CONFIRMED and OFFICIAL are documented, INFERRED is likely,
OURS was chosen by this project where nothing is published.`,
		Example: "  perfsim machine show trn2\n  perfsim machine show --assumptions trn2",
		RunE: func(c *cobra.Command, args []string) error {
			if g, err := grid.Load(args[0]); err == nil {
				return showGrid(c, g, args[0], asJSON, assumptions)
			}
			m, err := machine.Load(args[0])
			if _, none := os.Stat(args[0]); err != nil && none != nil && !strings.ContainsAny(args[0], "/.") {
				return fmt.Errorf("machine %q is neither known (%s) nor a file", args[0], strings.Join(append(machine.Names(), grid.Names()...), ", "))
			}
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return writeDescription(c.OutOrStdout(), m)
			case assumptions:
				return printAssumptions(c, m)
			}
			text, err := machine.Text(args[0])
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&assumptions, "assumptions", false, "print only what is ours and not documented")
	return c
}

// writeDescription prints a description as JSON with the keys of its YAML.
func writeDescription(out io.Writer, m *machine.Machine) error {
	text, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	var v map[string]any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	return writeJSON(out, v)
}

// showGrid prints a machine of many like cores.
func showGrid(c *cobra.Command, g *grid.Machine, name string, asJSON, assumptions bool) error {
	out := c.OutOrStdout()
	switch {
	case asJSON:
		return writeJSON(out, g)
	case assumptions:
		for _, a := range g.Assumptions {
			sayf(&wrapper{w: out}, "- %s\n", a)
		}
		return nil
	}
	text, err := grid.Text(name)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func printAssumptions(c *cobra.Command, m *machine.Machine) error {
	out := &wrapper{w: c.OutOrStdout()}
	for _, a := range m.Assumptions {
		sayf(out, "- %s\n", a)
	}
	var ours []string
	for name, cost := range m.Reference.Costs {
		if cost.Mark == "OURS" || cost.Mark == "INFERRED" {
			ours = append(ours, name)
		}
	}
	slices.Sort(ours)
	_, err := sayf(out, "- Costs that are ours or inferred: %s.\n", strings.Join(ours, ", "))
	return err
}
