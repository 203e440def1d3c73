package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// agreeTables holds query, export, diff and view to the answer of run, and
// the sums over the rows of export's tables to its figures.
func agreeTables(t *testing.T, input, loops string, want answer) {
	t.Helper()
	busy, count := map[string]uint64{}, map[string]int{}
	for _, e := range want.Engines {
		busy[e.Name], count[e.Name] = e.Busy, e.Instructions
	}
	var groups struct {
		Count  int
		Groups []struct {
			Value string
			Count int
			NS    uint64
		}
	}
	decode(t, perfsim(t, "query", "--json", "--by", "lane", "--loops", loops, input), &groups)
	seen := 0
	for _, g := range groups.Groups {
		if n, ok := count[g.Value]; ok {
			seen++
			if n != g.Count && g.Value != "Unassigned" { // loops are rows of that lane
				t.Errorf("%s, %s: query has %d instructions of %s, run %d", input, loops, g.Count, g.Value, n)
			}
			if g.NS != busy[g.Value] {
				t.Errorf("%s, %s: query has %d ns of %s, run %d", input, loops, g.NS, g.Value, busy[g.Value])
			}
		}
	}
	if seen != len(want.Engines) {
		t.Errorf("%s, %s: query has %d of the %d engines of run", input, loops, seen, len(want.Engines))
	}

	dir := t.TempDir()
	perfsim(t, "export", "--to", "csv", "--loops", loops, input, dir+"/")
	metric := map[string]string{}
	for _, r := range readCSV(t, filepath.Join(dir, "metric.csv")) {
		metric[r["name"]] = r["value"]
	}
	figure := func(name string, value uint64) {
		if metric[name] != strconv.FormatUint(value, 10) {
			t.Errorf("%s, %s: export has %s %q, run %d", input, loops, name, metric[name], value)
		}
	}
	figure("latency_ns", want.A)
	if want.B != nil {
		figure("latency_no_antideps_ns", *want.B)
	}
	figure("instructions", uint64(want.Instructions))
	if w := want.Work; w != nil && w.Read != nil {
		figure("hbm_read_bytes", *w.Read)
		figure("hbm_write_bytes", *w.Written)
	}
	for name, ns := range busy {
		if ns > 0 { // a lane that is never busy has no metric
			figure("busy_ns."+name, ns)
		}
	}
	rows := map[string]float64{}
	for _, r := range readCSV(t, filepath.Join(dir, "slice.csv")) {
		rows[r["engine"]] += decimal(t, r["busy_ns"]) * decimal(t, r["executions"])
	}
	for name, ns := range busy {
		if math.Abs(rows[name]-float64(ns)) > 0.01 {
			t.Errorf("%s, %s: the slices of %s sum to %.2f ns, run has %d", input, loops, name, rows[name], ns)
		}
	}

	var d struct {
		Matched int
		OnlyA   int `json:"only_in_a"`
		OnlyB   int `json:"only_in_b"`
		Whole   struct {
			A float64 `json:"a_ns"`
			B float64 `json:"b_ns"`
		}
		AWork *workload `json:"a_work"`
		BWork *workload `json:"b_work"`
		Start struct {
			Max float64 `json:"max_ns"`
		} `json:"start_errors"`
		Duration struct {
			Max float64 `json:"max_ns"`
		} `json:"duration_errors"`
	}
	decode(t, perfsim(t, "diff", "--json", "--a", "predicted", "--b", "predicted", "--loops", loops, input, input), &d)
	if d.Matched == 0 || d.OnlyA != 0 || d.OnlyB != 0 || d.Whole.A != d.Whole.B || d.Start.Max != 0 || d.Duration.Max != 0 {
		t.Errorf("%s, %s: a file is different from itself: %+v", input, loops, d)
	}
	if want.Work != nil && (!want.Work.equal(d.AWork) || !want.Work.equal(d.BWork)) {
		t.Errorf("%s, %s: diff has the work %+v and %+v, run %+v", input, loops, d.AWork, d.BWork, want.Work)
	}
	if d.Whole.A != float64(want.A) {
		t.Errorf("%s, %s: diff has %.0f ns, run %d", input, loops, d.Whole.A, want.A)
	}

	page := filepath.Join(dir, "page.html")
	perfsim(t, "view", "-o", page, "--loops", loops, input)
	var data pageOf
	pageData(t, page, &data)
	if s := data.Pages[0].Meta.Sections; len(s) < 1 || want.B != nil && len(s) < 2 || !want.hasBlock(s[0].Span, s[len(s)-1].Span) {
		t.Errorf("%s, %s: the page has %+v, run the blocks %+v", input, loops, s, want.Blocks)
	}
}

// workload is what a module computes and moves; a figure that is not known is
// nil.
type workload struct {
	FLOPs   *uint64
	Read    *uint64 `json:"hbm_read_bytes"`
	Written *uint64 `json:"hbm_written_bytes"`
}

func (w *workload) equal(v *workload) bool {
	return w == nil && v == nil || w != nil && v != nil &&
		equalOrAbsent(w.FLOPs, v.FLOPs) && equalOrAbsent(w.Read, v.Read) && equalOrAbsent(w.Written, v.Written)
}

// answer is what commands print of one prediction.
type answer struct {
	A            uint64  `json:"latency_ns"`
	B            *uint64 `json:"latency_no_antideps_ns"`
	Instructions int     `json:"instructions"`
	Engines      []struct {
		Name         string `json:"name"`
		Instructions int    `json:"instructions"`
		Busy         uint64 `json:"busy_ns"`
	} `json:"engines"`
	Work   *workload
	Blocks []struct {
		A uint64 `json:"latency_ns"`
		B uint64 `json:"latency_no_antideps_ns"`
	} `json:"blocks"`
}

func (a *answer) hasBlock(runA, runB uint64) bool {
	for _, b := range a.Blocks {
		if b.A == runA && (a.B == nil || b.B == runB) {
			return true
		}
	}
	return false
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}

func decimal(t testing.TB, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// readCSV returns the rows of a file by column.
func readCSV(t testing.TB, path string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatal(path, err)
	}
	for _, record := range all[1:] {
		row := map[string]string{}
		for c, name := range all[0] {
			row[name] = record[c]
		}
		rows = append(rows, row)
	}
	return rows
}

// pageOf is what tests read of the data of a page.
type pageOf struct {
	Memory []struct {
		Name string
		Peak uint64
	}
	Program struct {
		Facts  []struct{ Name, Value string }
		Blocks []struct {
			Name            string
			Runs, NS, Total uint64
		}
		Held    []int
		Sampled string
	}
	Pages []struct {
		Meta struct {
			Facts    []struct{ Name, Value string }
			Sections []struct {
				Name string
				Span uint64
				Rows []struct {
					Name         string
					Busy, Parent uint64
					Loops        [][]uint64
				}
			}
			Work  []struct{ Kind, Events, Time uint64 }
			Loops []struct{ Name string }
		}
		Groups []struct {
			Name         string
			Parent       int
			Busy         []uint64
			FLOPs, Bytes uint64
		}
		Counters struct {
			Counters []struct {
				Name  string
				Most  float64
				Time  []uint64
				Value []float64
			}
		}
		Sections []struct{ Rows []struct{ S, D []uint64 } }
	}
}

// pageData decodes the data of a page that view wrote.
func pageData(t testing.TB, path string, v any) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(string(page), `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.TrimSpace(data))))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(zip).Decode(v); err != nil {
		t.Fatal(err)
	}
}

// toCBOR writes a BIR JSON file as CBOR.
func toCBOR(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // integers of 64 bits do not fit a float
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := mode.Marshal(numbers(doc))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// numbers replaces the numbers of a decoded document by integers, where they
// are, and floats.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n
		}
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}
