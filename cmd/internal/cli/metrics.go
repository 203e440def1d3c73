package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/io/neuron/metricstore"
	"perfsim/io/neuron/neff"
	"perfsim/io/neuron/pttf"
)

// layouts are the layouts of a metric store file by their names on the command
// line.
var layouts = map[string]metricstore.Layout{"nested": metricstore.Nested, "flat": metricstore.Flat, "lossless": metricstore.Lossless}

// layoutNamed returns the layout that flag names.
func layoutNamed(flag, name string) (metricstore.Layout, error) {
	l, ok := layouts[name]
	if !ok {
		return l, usagef("--%s %q is not nested, flat or lossless", flag, name)
	}
	return l, nil
}

// metricRow is an entry as `metrics --json` prints it.
type metricRow struct {
	Member      string `json:"member,omitempty"` // of a NEFF
	Name        string `json:"name"`             // name of the metric
	Type        string `json:"type"`
	Aggregation string `json:"aggregation"` // how values of one key are put together
	Kind        string `json:"kind"`        // kind of the metric
	Value       any    `json:"value"`
	text        string
}

func newMetricsCommand() *cobra.Command {
	var asJSON, documented bool
	c := &cobra.Command{
		Use:   "metrics [flags] FILE [KEY]",
		Short: "Read a metric store back",
		Long: `metrics prints the entries of a metric store: global_metric_store.json or any
other layout that run writes, a front end's tensorizer_metric_store.json, or
the metric files in a NEFF. KEY picks the entries of one metric, by its type
(backend::PostSchedEstLatency), its bare name or its documented number; their
values alone are printed then.`,
		Example: `  perfsim metrics out/global_metric_store.json
  perfsim metrics out/global_metric_store.json PostSchedEstLatency
  perfsim metrics file.neff 42`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			rows, err := readMetrics(c.Context(), c, args[0], metricstore.ReadOptions{Documented: documented})
			if err != nil {
				return err
			}
			if len(args) == 2 {
				all := rows
				rows = slices.DeleteFunc(slices.Clone(rows), func(r metricRow) bool { return !isMetric(r.Type, args[1]) })
				if len(rows) == 0 {
					return fmt.Errorf("%s has no metric %q (%s)", args[0], args[1], strings.Join(typesOf(all), ", "))
				}
			}
			switch {
			case asJSON:
				return writeJSON(c.OutOrStdout(), rows)
			case len(args) == 2:
				for _, r := range rows {
					fmt.Fprintln(c.OutOrStdout(), r.text)
				}
				return nil
			}
			tw := newTable(c.OutOrStdout())
			fmt.Fprintln(tw, "NAME\tTYPE\tAGGREGATION\tVALUE")
			for _, r := range rows {
				sayf(tw, "%s\t%s\t%s\t%s\n", printable(r.Name), printable(r.Type), r.Aggregation, r.text)
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&documented, "documented", false, "read as the documented program does: members of \"backend\" only, as floats, aggregation None")
	return c
}

// isMetric reports whether key means the metric of a type.
func isMetric(typ, key string) bool {
	if typ == key || strings.HasSuffix(typ, "::"+key) {
		return true
	}
	t, ok := metricstore.ParseMetricType(typ)
	return ok && strings.HasPrefix(typ, metricstore.Prefix) && fmt.Sprint(int(t)) == key
}

// typesOf lists the types of entries, each once.
func typesOf(rows []metricRow) []string {
	var out []string
	for _, r := range rows {
		if !slices.Contains(out, r.Type) {
			out = append(out, r.Type)
		}
	}
	return out
}

// readMetrics reads the metric store at path, or those in the NEFF there.
func readMetrics(ctx context.Context, c *cobra.Command, file string, opt metricstore.ReadOptions) ([]metricRow, error) {
	f, err := neff.Open(file)
	if err != nil {
		name, in, err := openArg(c, file)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		rows, err := entries("", in, opt, name)
		return rows, notA(ctx, "metric store", file, err)
	}
	defer f.Close()
	rows := []metricRow{}
	err = f.Walk(ctx, neff.DefaultLimits, func(e neff.Entry, r io.Reader) error {
		if e.Kind != pttf.Regular || !isMetricFile(e.Name) {
			return nil
		}
		more, err := entries(e.Name, r, opt, file+": "+e.Name)
		rows = append(rows, more...)
		return err
	})
	if err == nil && len(rows) == 0 {
		err = errors.New("the NEFF has no metric store; 'neff add-metrics' adds one")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

// isMetricFile reports whether a member of a NEFF is a metric store by its
// name.
func isMetricFile(name string) bool {
	switch path.Base(name) {
	case metricstore.NEFFMember, metricstore.GlobalFile, metricstore.TensorizerFile, "metrics.json":
		return true
	}
	return false
}

func entries(member string, in io.Reader, opt metricstore.ReadOptions, from string) ([]metricRow, error) {
	s := metricstore.New()
	if _, err := s.Read(in, opt); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	rows := []metricRow{}
	for _, e := range s.Entries() {
		r := metricRow{Member: member, Name: e.Name, Type: e.Type, Aggregation: e.Aggregation.String(), Kind: e.Value.Kind().String(), text: e.Value.String()}
		r.Value = rawNumber(r.text)
		rows = append(rows, r)
	}
	return rows, nil
}

// rawNumber is a number that is written as it stands.
type rawNumber string

// MarshalJSON returns the digits.
func (n rawNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

func newNEFFAddMetrics() *cobra.Command {
	var out, layout string
	var inPlace bool
	var opt neff.AddOptions
	c := &cobra.Command{
		Use:   "add-metrics [flags] FILE STORE",
		Short: "Add a metric store to a NEFF",
		Long: `add-metrics writes a NEFF with the metric store STORE, any layout that 'perfsim
metrics' reads, as its member ` + metricstore.NEFFMember + `. That name is not proven; the
documented writer registers the file under the tag metric-metadata.`,
		Example: "  perfsim neff add-metrics -o new.neff file.neff out/global_metric_store.json\n  perfsim metrics new.neff PostSchedEstLatency",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if inPlace == (out != "") {
				return usagef("give either -o FILE or --in-place")
			}
			l, err := layoutNamed("layout", layout)
			if err != nil {
				return err
			}
			if inPlace {
				out = args[0]
			}
			s := metricstore.New()
			if _, err := s.ReadFile(args[1], metricstore.ReadOptions{}); err != nil {
				return err
			}
			if s.Len() == 0 {
				return fmt.Errorf("%s has no metrics", args[1])
			}
			var b bytes.Buffer
			if err := s.Write(&b, l); err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			res, err := neff.Add(c.Context(), args[0], neff.BytesMember(metricstore.NEFFMember, b.Bytes()), out, opt)
			if errors.Is(err, neff.ErrMemberExists) {
				err = fmt.Errorf("%w; --replace puts the new one in its place", err)
			}
			if err != nil {
				return err
			}
			verb := "added"
			if res.Replaced {
				verb = "replaced"
			}
			_, err = sayf(c.OutOrStdout(), "%s: %s %s, %s\n", out, verb, metricstore.NEFFMember, fmt.Sprintf("%d metrics", s.Len()))
			return err
		},
	}
	fl := c.Flags()
	fl.StringVarP(&out, "output", "o", "", "the NEFF to write")
	fl.BoolVar(&inPlace, "in-place", false, "replace FILE by the new NEFF")
	fl.StringVar(&layout, "layout", "nested", "layout of the member: nested (documented), flat or lossless")
	fl.BoolVar(&opt.Replace, "replace", false, "replace the store that is there")
	fl.BoolVar(&opt.Force, "force", false, "accept a wrong hash of FILE")
	return c
}
