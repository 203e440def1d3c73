package record

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Named is the records of one file: one, or several repeats of one run.
type Named struct {
	Name    string
	Records []*Record
}

// Column is one side of a comparison.
type Column struct {
	Title string
	File  string
	Rec   *Record // the first record, or of repeats the one of the median rate
	// Spread is over the repeats; N is their number.
	N                   int
	Median, Least, Most float64 // samples per second
}

// Ratio compares one metric of two columns.
type Ratio struct {
	Metric string  `json:"metric"`
	Column string  `json:"column"`
	Base   string  `json:"base"`
	Ratio  float64 `json:"ratio"` // column over base
}

// Comparison is several columns next to one another.
type Comparison struct {
	Columns []Column
	Rows    [][]string // property, then a value a column; "" where there is none
	Ratios  []Ratio
	// Geomean is the geometric mean of the rate ratios over pairs of the same
	// model, configuration, task and microbatch, by column; nil where fewer
	// than two pairs exist.
	Geomean []Ratio
	Notes   []string
}

// Metrics are the properties that Ratios compare.
func Metrics() []string {
	return []string{"samples_per_sec", "tokens_per_sec", "inference_time_ms", "total_run_time"}
}

// Compare puts records next to one another. Several records of one file that
// are of the same run become one column with their median and spread.
func Compare(files []Named) *Comparison {
	c := &Comparison{}
	for _, f := range files {
		for _, group := range groups(f.Records) {
			c.Columns = append(c.Columns, column(f.Name, group))
		}
	}
	titles(c.Columns)
	c.rows()
	c.ratios()
	c.notes()
	return c
}

// identity is equal for two records that repeat one run.
func identity(r *Record) string {
	var b strings.Builder
	for _, k := range []string{"model", "config", "task", "microbatch", "device", "device_name", "machine", "dataformat", "math_fidelity", "loop_count", "input_size", "num_tokens", "prediction_options"} {
		v, _ := r.Raw(k)
		b.WriteString(v + "\x00")
	}
	return b.String()
}

func groups(rs []*Record) [][]*Record {
	var out [][]*Record
	at := map[string]int{}
	for _, r := range rs {
		k := identity(r)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

func column(file string, rs []*Record) Column {
	sorted := slices.Clone(rs)
	rate := func(r *Record) float64 { x, _ := r.Number("samples_per_sec"); return x }
	slices.SortStableFunc(sorted, func(a, b *Record) int {
		switch x, y := rate(a), rate(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	n := len(sorted)
	c := Column{File: file, N: n, Rec: sorted[(n-1)/2], Least: rate(sorted[0]), Most: rate(sorted[n-1])}
	c.Median = (rate(sorted[(n-1)/2]) + rate(sorted[n/2])) / 2
	c.Title = "CUDA"
	device, _ := c.Rec.Text("device")
	name, ok := c.Rec.Text("device_name")
	switch {
	case device == "cuda":
	case ok && name != "null":
		c.Title = name
	case device != "":
		c.Title = device
	default:
		c.Title = file
	}
	return c
}

// titles makes equal titles different by the model, then by the file.
func titles(cols []Column) {
	for _, more := range []func(c *Column) string{
		func(c *Column) string {
			if s, _ := c.Rec.Raw("simulated"); s == "true" {
				return "simulated"
			}
			return ""
		},
		func(c *Column) string {
			m, _ := c.Rec.Text("model")
			k, _ := c.Rec.Text("config")
			return strings.TrimSpace(m + " " + k)
		},
		func(c *Column) string { b, _ := c.Rec.Text("microbatch"); return "mb" + b },
		func(c *Column) string { return c.File },
	} {
		seen := map[string]int{}
		for i := range cols {
			seen[cols[i].Title]++
		}
		for i := range cols {
			if s := more(&cols[i]); seen[cols[i].Title] > 1 && s != "" {
				cols[i].Title += " " + s
			}
		}
	}
}

func (c *Comparison) rows() {
	var names []string
	seen := map[string]bool{}
	for _, f := range append(fields(), marks()[:2]...) {
		for i := range c.Columns {
			if _, ok := c.Columns[i].Rec.Raw(f.Name); ok && !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	for _, m := range marks() {
		seen[m.Name] = true
	}
	for i := range c.Columns { // what this program does not know
		for _, p := range c.Columns[i].Rec.Props {
			if !seen[p.Name] {
				seen[p.Name] = true
				names = append(names, p.Name)
			}
		}
	}
	for _, n := range names {
		row := []string{n}
		for i := range c.Columns {
			v, _ := c.Columns[i].Rec.Text(n)
			row = append(row, v)
		}
		c.Rows = append(c.Rows, row)
	}
}

// work lists the arguments that say what was computed. Ratios of records that
// differ in one of them mean nothing.
var work = []string{"model", "config", "task", "microbatch", "num_tokens", "input_size", "training"}

// workload is equal for two records whose ratio is meaningful.
func workload(r *Record) string {
	var b strings.Builder
	for _, k := range work {
		v, _ := r.Text(k)
		b.WriteString(v + "/")
	}
	return b.String()
}

func (c *Comparison) ratios() {
	if len(c.Columns) < 2 {
		return
	}
	base := &c.Columns[0]
	for i := 1; i < len(c.Columns); i++ {
		if workload(base.Rec) != workload(c.Columns[i].Rec) {
			continue // a note says in what they differ
		}
		for _, m := range Metrics() {
			loops, _ := base.Rec.Text("loop_count")
			if other, _ := c.Columns[i].Rec.Text("loop_count"); m == "total_run_time" && loops != other {
				continue
			}
			x, ok1 := base.Rec.Number(m)
			y, ok2 := c.Columns[i].Rec.Number(m)
			if ok1 && ok2 && x > 0 && y > 0 {
				c.Ratios = append(c.Ratios, Ratio{m, c.Columns[i].Title, base.Title, y / x})
			}
		}
	}
	// Pairs of devices over all workloads they share.
	device := func(r *Record) string {
		n, _ := r.Text("device_name")
		if s, _ := r.Raw("simulated"); s == "true" {
			n += " (simulated)"
		}
		return n
	}
	var devices []string
	rate := map[string]map[string]float64{}
	for i := range c.Columns {
		d := device(c.Columns[i].Rec)
		if rate[d] == nil {
			rate[d] = map[string]float64{}
			devices = append(devices, d)
		}
		if c.Columns[i].Median > 0 {
			rate[d][workload(c.Columns[i].Rec)] = c.Columns[i].Median
		}
	}
	for _, d := range devices[1:] {
		var logs []float64
		for i := range c.Columns { // in the order of the columns, once a workload
			w := workload(c.Columns[i].Rec)
			x, y := rate[devices[0]][w], rate[d][w]
			if x > 0 && y > 0 && device(c.Columns[i].Rec) == d {
				logs = append(logs, math.Log(y/x))
			}
		}
		if len(logs) < 2 {
			continue
		}
		sum := 0.0
		for _, l := range logs {
			sum += l
		}
		c.Geomean = append(c.Geomean, Ratio{fmt.Sprintf("samples_per_sec, geometric mean of %d", len(logs)), d, devices[0], math.Exp(sum / float64(len(logs)))})
	}
}

// notes says why columns are not comparable, and names known slips of the
// reference benchmark that show in them.
func (c *Comparison) notes() {
	differ := map[string]bool{}
	for i := range c.Columns {
		for _, k := range append([]string{"loop_count"}, work...) {
			a, _ := c.Columns[0].Rec.Text(k)
			if b, _ := c.Columns[i].Rec.Text(k); a != b && !differ[k] {
				differ[k] = true
				text := "%s differs: the columns are not the same work and have no ratios"
				if k == "loop_count" {
					text = "%s differs: total_run_time has no ratio"
				}
				c.Notes = append(c.Notes, fmt.Sprintf(text, k))
			}
		}
	}
	for i := range c.Columns {
		r := c.Columns[i].Rec
		simulated, _ := r.Raw("simulated")
		tokens, _ := r.Number("tokens_per_sec")
		loops, _ := r.Number("loop_count")
		if simulated != "true" && tokens > 0 && loops > 1 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: the reference benchmark counts the tokens of one loop over the time of %g: its tokens_per_sec is %g times too low", c.Columns[i].Title, loops, loops))
		}
		if e, ok := r.Text("error"); ok {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: the run failed: %s", c.Columns[i].Title, e))
		}
		if c.Columns[i].N > 1 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: %d repeats, samples_per_sec median %s, from %s to %s", c.Columns[i].Title, c.Columns[i].N,
				brief(c.Columns[i].Median), brief(c.Columns[i].Least), brief(c.Columns[i].Most)))
		}
	}
}

func brief(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// Text returns the comparison as an aligned table, the ratios and the notes.
func (c *Comparison) Text() string {
	head := []string{"Property"}
	for i := range c.Columns {
		head = append(head, c.Columns[i].Title)
	}
	rows := append([][]string{head}, c.Rows...)
	width := make([]int, len(head))
	for _, r := range rows {
		for i, v := range r {
			width[i] = max(width[i], utf8.RuneCountInString(v))
		}
	}
	var b strings.Builder
	for _, r := range rows {
		for i, v := range r {
			b.WriteString(v)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(v)+2))
			}
		}
		s := strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(s + "\n")
	}
	if len(c.Ratios) > 0 {
		b.WriteString("\n")
	}
	for _, r := range append(slices.Clone(c.Ratios), c.Geomean...) {
		fmt.Fprintf(&b, "%s: %s is %s times %s\n", r.Metric, r.Column, strconv.FormatFloat(r.Ratio, 'g', 4, 64), r.Base)
	}
	if len(c.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range c.Notes {
		b.WriteString("note: " + n + "\n")
	}
	return b.String()
}
