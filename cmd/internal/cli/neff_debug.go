package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/neuron/neff"
	"perfsim/io/neuron/pttf"
)

func newNEFFDebug() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "debug [flags] FILE [MEMBER...]",
		Short: "Print the instructions of the debug information",
		Long: `debug prints one line for each instruction of the debug_info_* members, or of
those that are named: layer, engine, id, name, type, source, dataflow and
scheduling predecessors with their kinds, separated by tabs. With --json each
line is an object.`,
		Example: `  perfsim neff debug file.neff | cut -f 4,6
  perfsim neff debug --json file.neff debug_info/debug_info_backend_PE.dbg`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := neff.Open(args[0])
			if err != nil {
				return notA(c.Context(), "NEFF", args[0], err)
			}
			defer f.Close()
			w := bufio.NewWriterSize(c.OutOrStdout(), 64<<10)
			if err := printDebug(c.Context(), w, f, args[1:], asJSON); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return c
}

// debugRow is a line of `neff debug --json`.
type debugRow struct {
	Member     string            `json:"member"`
	Layer      string            `json:"layer"`
	Engine     string            `json:"engine"` // engine of the debug file
	ID         uint64            `json:"id"`     // id of the instruction
	Name       string            `json:"name"`   // name of the instruction
	Type       string            `json:"type"`
	File       string            `json:"file,omitempty"`
	Function   string            `json:"function,omitempty"`
	Line       uint64            `json:"line,omitempty"`
	Parents    []uint64          `json:"parents"`         // records that enclose it
	Dataflow   []dependencyRow   `json:"dataflow"`        // what it takes data from
	Scheduling []dependencyRow   `json:"scheduling"`      // what it comes after
	Attrs      map[string]string `json:"attrs,omitempty"` // attributes of the record
}

type dependencyRow struct {
	ID   uint64 `json:"id"`   // id of the instruction
	Kind string `json:"kind"` // kind of the dependency, in the file's words
}

func printDebug(ctx context.Context, w io.Writer, f *neff.File, names []string, asJSON bool) error {
	found := make([]bool, len(names))
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := f.Walk(ctx, neff.DefaultLimits, func(e neff.Entry, data io.Reader) error {
		i := slices.Index(names, strings.TrimPrefix(e.Name, "./"))
		if i < 0 {
			i = slices.Index(names, e.Name)
		}
		n, isDebug := neff.ParseDebugName(e.Name)
		switch {
		case e.Kind != pttf.Regular:
			return nil
		case i >= 0:
			found[i] = true
		case len(names) > 0 || !isDebug || n.Layer == neff.LayerFramework:
			// The framework layer holds a trace package, or a format
			// that is not public.
			return nil
		}
		d, err := neff.ReadDebugInfo(ctx, data, nil)
		if err != nil {
			return fmt.Errorf("member %q: %w", e.Name, err)
		}
		row := debugRow{Member: e.Name, Engine: d.Engine.String()}
		if isDebug {
			row.Layer = strings.TrimPrefix(n.Layer.String(), "debug_info_")
			if d.Engine == components.Unassigned {
				row.Engine = n.Engine.String()
			}
		}
		for i := range d.Instructions {
			row.fill(d, &d.Instructions[i])
			if asJSON {
				err = enc.Encode(row)
			} else {
				_, err = io.WriteString(w, row.text())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for i, ok := range found {
		if err == nil && !ok {
			err = fmt.Errorf("no member is named %q", names[i])
		}
	}
	return err
}

func (r *debugRow) fill(d *neff.DebugInfo, in *neff.DebugInstruction) {
	r.ID, r.Name, r.Type, r.Parents = in.ID, in.Name, in.Type.String(), in.Parents
	if r.Parents == nil {
		r.Parents = []uint64{}
	}
	s, _ := d.Source(in)
	r.File, r.Function, r.Line = s.File, s.Function, s.Line
	r.Dataflow, r.Scheduling = dependencyRows(in.Dataflow), dependencyRows(in.Scheduling)
	r.Attrs = nil
	if len(in.Attrs) > 0 {
		r.Attrs = make(map[string]string, len(in.Attrs))
		for _, a := range in.Attrs {
			r.Attrs[a.Key] = a.Value
		}
	}
}

func dependencyRows(deps []neff.Dependency) []dependencyRow {
	out := make([]dependencyRow, len(deps))
	for i, d := range deps {
		out[i] = dependencyRow{d.ID, d.Kind.String()}
	}
	return out
}

func (r *debugRow) text() string {
	source := "-"
	if r.File != "" {
		source = printable(r.File) + ":" + strconv.FormatUint(r.Line, 10)
	}
	list := func(deps []dependencyRow) string {
		if len(deps) == 0 {
			return "-"
		}
		parts := make([]string, len(deps))
		for i, d := range deps {
			parts[i] = d.Kind + ":" + strconv.FormatUint(d.ID, 10)
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", r.Layer, r.Engine, r.ID, printable(r.Name), r.Type, source, list(r.Dataflow), list(r.Scheduling))
}
