// Package accuracy predicts everything measured that lies in a folder and
// puts predictions and measurements next to one another: instruction laws,
// profiles, NKI kernels, kernels written as graphs, whole models.
//
// What a file is is recognised by its columns or its contents. A prediction reads
// the description of what was measured (opcodes, shapes, kernel source,
// program of a profile), never the measured figure: a test permutes all
// measured figures and asks for the same predictions.
package accuracy

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Item is one figure, predicted and measured.
type Item struct {
	Class    string `json:"class"`
	Name     string `json:"name"` // what was measured
	Machine  string `json:"machine"`
	Quantity string `json:"quantity"` // kernel time, device latency, …
	// Predicted and Measured are in ns; Predicted is absent where there is
	// only a reason.
	Predicted *float64 `json:"predicted_ns"`
	Measured  float64  `json:"measured_ns"`
	// Low and High are the prediction over the phases of the PE clock, in ns; 0
	// where the phase leaves nothing open.
	Low  float64 `json:"low_ns,omitempty"`
	High float64 `json:"high_ns,omitempty"`
	// Inside reports whether the measurement lies within Low and High.
	Inside *bool `json:"inside,omitempty"`
	// Reason says why there is no prediction.
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"` // caution about the prediction
	// Source is where the measurement stands, Origin who published it and under
	// which licence, where a MANIFEST.tsv near the file or the table says so.
	Source string `json:"source"`
	Origin string `json:"origin,omitempty"`
	path   string
}

// Error is predicted over measured less one; NaN where there is no prediction.
func (i *Item) Error() float64 {
	if i.Predicted == nil || i.Measured == 0 {
		return math.NaN()
	}
	return *i.Predicted/i.Measured - 1
}

func (i *Item) set(predicted, low, high float64) {
	i.Predicted = &predicted
	if low < high {
		inside := low <= i.Measured && i.Measured <= high
		i.Low, i.High, i.Inside = low, high, &inside
	}
}

// Class is the items of one class in a few figures.
type Class struct {
	Name      string  `json:"name"`                 // class of measurements
	Predicted int     `json:"predicted"`            // measurements with a prediction
	Skipped   int     `json:"skipped"`              // measurements without a prediction
	Median    float64 `json:"median_error_percent"` // absolute
	Worst     float64 `json:"worst_error_percent"`  // absolute
	Inside    int     `json:"inside"`               // of those with a range
	Ranges    int     `json:"ranges"`               // predictions with a range
	Ratio     float64 `json:"median_ratio"`         // predicted over measured
}

// Report is all items, class by class.
type Report struct {
	Classes []Class `json:"classes"`
	Items   []Item  `json:"items"` // predictions against measurements
}

// Options say what is run.
type Options struct {
	// Machine replaces the machine that an input names; "" keeps it.
	Machine string
	Jobs    int
	// Progress, where not nil, is called before every prediction.
	Progress func(name string, done, total int64)
	// Execute allows kernels to be recorded, which runs their Python source.
	Execute bool
}

// job predicts one figure; it fills the item.
type job struct {
	item Item
	run  func(ctx context.Context, i *Item) error
}

// file is an input that was found.
type file struct {
	path string
	rows []map[string]string // of a table
}

// Run predicts what lies in the files and folders named.
func Run(ctx context.Context, paths []string, opt Options) (*Report, error) {
	var jobs []job
	var profiles []string
	all, err := list(paths)
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		switch {
		case strings.HasSuffix(path, ".csv"):
			f, err := table(path)
			if err != nil {
				return nil, err
			}
			for _, k := range kinds {
				if f.has(k.columns...) {
					add, err := k.jobs(f, all, &opt)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", path, err)
					}
					jobs = append(jobs, add...)
					break
				}
			}
		case strings.HasSuffix(path, ".profile.json.gz") || strings.HasSuffix(path, ".profile.json"):
			profiles = append(profiles, path)
		}
	}
	add, err := profileJobs(ctx, profiles, &opt)
	if err != nil {
		return nil, err
	}
	jobs = append(add, jobs...)
	r := &Report{}
	for n := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		j := &jobs[n]
		if opt.Progress != nil {
			opt.Progress(j.item.Name, int64(n), int64(len(jobs)))
		}
		if j.item.Reason == "" {
			if err := j.run(ctx, &j.item); err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				j.item.Reason = firstLine(err.Error())
			}
		}
		r.Items = append(r.Items, j.item)
	}
	origins := map[string]map[string]string{}
	for n := range r.Items {
		i := &r.Items[n]
		if i.path == "" {
			i.path, _, _ = strings.Cut(i.Source, ", line ")
		}
		if o := originOf(origins, i.path); o != "" && i.Origin == "" {
			i.Origin = o
		}
	}
	r.summarize()
	return r, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// originOf looks a file up in the MANIFEST.tsv of its folder or the one above:
// path, kind, repository, commit, licence.
func originOf(known map[string]map[string]string, path string) string {
	for dir, up := filepath.Dir(path), 0; up < 2; dir, up = filepath.Dir(dir), up+1 {
		if known[dir] == nil {
			known[dir] = map[string]string{}
			text, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
			if err != nil || len(text) > maxTable {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if x := strings.Split(strings.TrimRight(line, "\r\n"), "\t"); len(x) >= 5 {
					known[dir][x[0]] = strings.TrimSpace(x[2] + " " + x[3] + ", " + x[4])
				}
			}
		}
		if rel, err := filepath.Rel(dir, path); err == nil && known[dir][filepath.ToSlash(rel)] != "" {
			return known[dir][filepath.ToSlash(rel)]
		}
	}
	return ""
}

// kinds are the tables of measurements, recognised by their columns.
var kinds = []struct {
	columns []string
	jobs    func(f *file, all []string, opt *Options) ([]job, error)
}{
	{[]string{"instruction", "engine", "in_dtype", "out_dtype", "src", "dst", "startup_ns", "ns_per_element"}, lawJobs},
	{[]string{"id", "function", "args", "machine", "latency_us"}, kernelJobs},
	{[]string{"kernel", "trn1_ms", "trn2_ms"}, benchJobs},
	{[]string{"kernel", "seqlen", "d_head", "dtype", "p50_us"}, attentionJobs},
	{[]string{"kernel", "K", "M", "N", "dtype", "p50_us"}, mlpJobs},
	{[]string{"model", "batch", "seq_or_image", "instance", "per_core_ms"}, awsJobs},
	{[]string{"model", "chip", "batch", "samples_per_s_device"}, tenstorrentJobs},
}

// list returns the files below the paths, sorted.
func list(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		err = filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// maxTable bounds a table; real ones have some tens of kilobytes.
const maxTable = 64 << 20

// table reads a CSV file with a line of names.
func table(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTable {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxTable)
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &file{path: path}
	for n, line := range lines {
		if n == 0 {
			continue
		}
		row := map[string]string{}
		for k, name := range lines[0] {
			if k < len(line) {
				row[strings.TrimPrefix(name, "\ufeff")] = strings.TrimSpace(line[k])
			} else {
				row[name] = ""
			}
		}
		f.rows = append(f.rows, row)
	}
	return f, nil
}

func (f *file) has(columns ...string) bool {
	if len(f.rows) == 0 {
		return false
	}
	for _, c := range columns {
		if _, ok := f.rows[0][c]; !ok {
			return false
		}
	}
	return true
}

// summarize adds the classes up, in the order in which they come.
func (r *Report) summarize() {
	at := map[string]int{}
	errors, ratios := map[string][]float64{}, map[string][]float64{}
	for n := range r.Items {
		i := &r.Items[n]
		k, ok := at[i.Class]
		if !ok {
			k = len(r.Classes)
			at[i.Class] = k
			r.Classes = append(r.Classes, Class{Name: i.Class})
		}
		c := &r.Classes[k]
		e := i.Error()
		if math.IsNaN(e) {
			c.Skipped++
			continue
		}
		c.Predicted++
		errors[i.Class] = append(errors[i.Class], 100*math.Abs(e))
		ratios[i.Class] = append(ratios[i.Class], 1+e)
		if i.Inside != nil {
			c.Ranges++
			if *i.Inside {
				c.Inside++
			}
		}
	}
	for k := range r.Classes {
		c := &r.Classes[k]
		if e := errors[c.Name]; len(e) > 0 {
			c.Median, c.Worst, c.Ratio = median(e), slices.Max(e), median(ratios[c.Name])
		}
	}
}

func median(v []float64) float64 {
	v = slices.SortedFunc(slices.Values(v), cmp.Compare)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}
