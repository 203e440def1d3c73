package cli

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/systems/query"
)

func newQueryCommand() *cobra.Command {
	var in inputFlags
	var o queryFlags
	c := &cobra.Command{
		Use:   "query [flags] INPUT [EXPRESSION]",
		Short: "Count, list and group instructions and dependencies",
		Long: `query predicts INPUT and answers an expression over its instructions or its
dependencies: FIELD=VALUE, joined by & | ! and parentheses. It is about
dependencies where it uses a field that only they have (kind, cross, binding,
gap, …) or with --edges; then a field means that of the consumer, and with
from. in front that of the producer. Values may be lists (engine=PE,DVE), ~
means "contains" (or matches /a regular expression/), times take units
(dur>1us). --fields lists the fields.`,
		Example: `  perfsim query profile.json.gz 'kind=anti & engine=PE & cross'
  perfsim query module.bir.json 'engine=DVE & dur>1us & !critical' --by opcode
  perfsim query module.bir.json 'binding & from.engine=DMA' --limit 5
  perfsim query module.bir.json 'critical' --csv > path.csv
  perfsim query --fields`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.fields {
				return listFields(c.OutOrStdout(), o.json)
			}
			if len(args) == 0 {
				return usagef("an input is missing")
			}
			if err := in.check(); err != nil {
				return err
			}
			if o.limit < -1 {
				return usagef("--limit %d is not at least -1", o.limit)
			}
			text := ""
			if len(args) == 2 {
				text = args[1]
			}
			q, err := query.Compile(text, o.edges)
			if err != nil {
				return usageError{withNames(err)}
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			res, err := in.predict(c.Context(), c, args[0], p)
			if err != nil {
				return err
			}
			r, err := res.Query(c.Context(), q)
			if err != nil {
				return err
			}
			p.close()
			return o.print(c.OutOrStdout(), r)
		},
	}
	in.add(c)
	fl := c.Flags()
	fl.BoolVar(&o.edges, "edges", false, "ask about dependencies even where the expression does not say so")
	fl.BoolVar(&o.count, "count", false, "print the number only")
	fl.IntVar(&o.limit, "limit", 20, "rows to print, -1 for all (--json and --csv print all where it is not given)")
	fl.StringVar(&o.by, "by", "", "count by the values of a field")
	fl.BoolVar(&o.json, "json", false, "print JSON")
	fl.BoolVar(&o.csv, "csv", false, "print CSV")
	fl.BoolVar(&o.fields, "fields", false, "list the fields")
	c.PreRun = func(c *cobra.Command, _ []string) {
		if (o.json || o.csv) && !fl.Changed("limit") {
			o.limit = -1
		}
	}
	return c
}

type queryFlags struct {
	edges, count, json, csv, fields bool
	limit                           int
	by                              string
}

func listFields(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, query.Fields())
	}
	tw := newFacts(out)
	edges := false
	fmt.Fprintln(tw, "FIELD (KIND)\tWHAT")
	for _, f := range query.Fields() {
		if f.Edge && !edges {
			edges = true
			fmt.Fprintln(tw, "of dependencies only:\t")
		}
		sayf(tw, "%s (%s)\t%s\n", f.Name, f.Kind, f.Doc)
	}
	return tw.Flush()
}

func (o *queryFlags) print(out io.Writer, r *query.Result) error {
	if o.by != "" {
		return o.groups(out, r)
	}
	if o.count {
		_, err := fmt.Fprintln(out, r.Len())
		return err
	}
	if o.json {
		rows := []query.Row{}
		if err := r.Each(o.limit, func(row *query.Row) error { rows = append(rows, *row); return nil }); err != nil {
			return err
		}
		return writeJSON(out, struct {
			Domain string      `json:"domain"` // instructions or edges
			Count  int         `json:"count"`  // how many were found
			Rows   []query.Row `json:"rows"`
		}{r.Domain.String(), r.Len(), rows})
	}
	if o.csv {
		return rowsCSV(out, r, o.limit)
	}
	fmt.Fprintln(out, countOf(r.Len(), strings.TrimSuffix(r.Domain.String(), "s")))
	if r.Len() == 0 {
		return nil
	}
	tw := newTable(out)
	if r.Domain == query.Edges {
		fmt.Fprintln(tw, "KIND\tFROM\t\t\tTO\t\t\tGAP\t\t")
	}
	var rows []query.Row
	var starts, times, slacks []uint64
	err := r.Each(o.limit, func(row *query.Row) error {
		if r.Domain == query.Edges {
			mark := ""
			if row.Binding != nil && *row.Binding {
				mark = "binds"
			}
			gap := "–"
			if *row.Gap >= 0 {
				gap = units.Nanos(uint64(*row.Gap))
			}
			_, err := sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", row.Kind, cut(row.From, 32), row.FromLane, row.FromOpcode,
				cut(row.Name, 32), row.Lane, row.Opcode, gap, mark)
			return err
		}
		// Instructions are laid out when all are known: their times share units.
		rows, starts, times = append(rows, *row), append(starts, row.Start), append(times, row.End-row.Start)
		if row.Slack != nil {
			slacks = append(slacks, *row.Slack)
		}
		return nil
	})
	if err != nil {
		return err
	}
	start, time, slackText := units.MomentColumn(starts...), units.Column(times...), units.Column(slacks...)
	// Columns that the expression did not need are left out.
	held := slices.ContainsFunc(rows, func(r query.Row) bool { return r.Cause != "" })
	column := func(shown bool, text string) string {
		if shown {
			return text + "\t"
		}
		return ""
	}
	if r.Domain != query.Edges {
		fmt.Fprintln(tw, "ROW\tNAME\tENGINE\tOPCODE\tSTART\tTIME\t"+column(held, "HELD BY")+column(slacks != nil, "SLACK")+"SOURCE\t")
	}
	for k := range rows {
		row, slack := &rows[k], ""
		if row.Slack != nil {
			slack = slackText(*row.Slack)
		}
		sayf(tw, "%d\t%s\t%s\t%s\t%s\t%s\t%s%s%s\t\n", row.ID, cut(row.Name, 40), row.Lane, row.Opcode, start(row.Start),
			time(row.End-row.Start), column(held, row.Cause), column(slacks != nil, slack), cut(source(r.Module(), row.Source), 40))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if n := r.Len() - o.limit; o.limit >= 0 && n > 0 {
		_, err = sayf(out, "… and %s more (--limit N, --by FIELD, --csv)\n", comma(uint64(n)))
	}
	return err
}

func (o *queryFlags) groups(out io.Writer, r *query.Result) error {
	groups, err := r.GroupBy(o.by)
	if err != nil {
		return usageError{withNames(err)}
	}
	if o.json {
		if groups == nil {
			groups = []query.Group{}
		}
		return writeJSON(out, struct {
			Domain string        `json:"domain"`
			Count  int           `json:"count"` // how many were found
			By     string        `json:"by"`
			Groups []query.Group `json:"groups"`
		}{r.Domain.String(), r.Len(), o.by, groups})
	}
	if o.csv {
		w := csv.NewWriter(out)
		if err := w.Write([]string{o.by, "count", "executions", "ns"}); err != nil {
			return err
		}
		for _, g := range groups {
			if err := w.Write([]string{g.Value, strconv.Itoa(g.Count), strconv.FormatUint(g.Executions, 10), strconv.FormatUint(g.NS, 10)}); err != nil {
				return err
			}
		}
		w.Flush()
		return w.Error()
	}
	what := "BUSY"
	if r.Domain == query.Edges {
		what = "GAPS"
	}
	fmt.Fprintln(out, countOf(r.Len(), strings.TrimSuffix(r.Domain.String(), "s")))
	if len(groups) == 0 {
		return nil
	}
	tw := newTable(out)
	sayf(tw, "%s\tROWS\tEXECUTIONS\t%s\t\n", strings.ToUpper(o.by), what)
	var times []uint64
	for k, g := range groups {
		if k != o.limit {
			times = append(times, g.NS)
			continue
		}
		break
	}
	text := units.Column(times...)
	for k, g := range groups {
		if k == o.limit {
			sayf(tw, "… and %d more\n", len(groups)-k)
			break
		}
		v := g.Value
		if v == "" {
			v = "(none)"
		}
		sayf(tw, "%s\t%s\t%s\t%s\t\n", cut(v, 60), comma(uint64(g.Count)), comma(g.Executions), text(g.NS))
	}
	return tw.Flush()
}

// rowsCSV prints rows with stable columns; those that were not worked out are
// empty.
func rowsCSV(out io.Writer, r *query.Result, limit int) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	w := csv.NewWriter(buffered)
	head := []string{"row", "name", "lane", "opcode", "source", "start_ns", "end_ns", "cause", "slack_ns", "executions"}
	if r.Domain == query.Edges {
		head = []string{"edge", "kind", "from", "from_lane", "from_opcode", "to", "to_lane", "to_opcode", "gap_ns", "binding", "executions"}
	}
	if err := w.Write(head); err != nil {
		return err
	}
	number := func(v uint64) string { return strconv.FormatUint(v, 10) }
	err := r.Each(limit, func(row *query.Row) error {
		if r.Domain == query.Edges {
			binding := ""
			if row.Binding != nil {
				binding = strconv.FormatBool(*row.Binding)
			}
			return w.Write([]string{number(uint64(row.ID)), row.Kind, row.From, row.FromLane, row.FromOpcode, row.Name, row.Lane, row.Opcode,
				strconv.FormatInt(*row.Gap, 10), binding, number(row.Executions)})
		}
		slack := ""
		if row.Slack != nil {
			slack = number(*row.Slack)
		}
		return w.Write([]string{number(uint64(row.ID)), row.Name, row.Lane, row.Opcode, row.Source, number(row.Start), number(row.End), row.Cause, slack, number(row.Executions)})
	})
	if err != nil {
		return err
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return buffered.Flush()
}
