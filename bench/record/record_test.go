package record

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fastjson"
)

// seedColumns makes the two records of the seed's table, as the reference
// benchmark's files would hold them.
func seedColumns(t *testing.T) (left, right []byte, lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../../shared/seeds/tenstorrent-profiler-benchmark.txt")
	if err != nil {
		t.Skipf("the seed is not here: %v", err)
	}
	_, rest, ok := strings.Cut(string(text), "Property Grayskull CUDA\n")
	if !ok {
		t.Fatal("the seed has no table")
	}
	var a, b []string
	add := func(to *[]string, name, v string) {
		if _, err := strconv.ParseFloat(v, 64); err != nil && v != "true" && v != "false" && v != "null" || name == "config" {
			v = strconv.Quote(v)
		}
		*to = append(*to, strconv.Quote(name)+": "+v)
	}
	for _, line := range strings.Split(rest, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			break
		}
		lines = append(lines, line)
		name, v := f[0], f[1:]
		switch {
		case name == "pybuda_hash":
			add(&a, name, v[0])
		case name == "pytorch_version":
			add(&b, name, v[0])
		case name == "pybuda_version_date": // an empty text on the left
			add(&a, name, "")
			add(&b, name, v[0])
		default:
			cut := len(v) / 2
			if name == "device_name" {
				cut = 1
			}
			if name == "host_device" { // "… @ 2.50GHz" ends the left one
				for i, w := range v {
					if strings.HasSuffix(w, "GHz") {
						cut = i + 1
					}
				}
			}
			add(&a, name, strings.Join(v[:cut], " "))
			add(&b, name, strings.Join(v[cut:], " "))
		}
	}
	return []byte("[{" + strings.Join(a, ", ") + "}]"), []byte("[{" + strings.Join(b, ", ") + "}]"), lines
}

func must(v *fastjson.Value, err error) *fastjson.Value {
	if err != nil {
		panic(err)
	}
	return v
}

func TestSeedsTable(t *testing.T) {
	left, right, lines := seedColumns(t)
	var files []Named
	for _, f := range []struct {
		name string
		b    []byte
	}{{"tt.json", left}, {"cuda.json", right}} {
		rs, err := Read(f.name, f.b)
		if err != nil {
			t.Fatal(err)
		}
		var p, q fastjson.Parser
		for _, e := range schemaErrors(t, must(p.ParseBytes(Schema())), must(q.ParseBytes(f.b))) {
			t.Errorf("%s: %v", f.name, e)
		}
		files = append(files, Named{f.name, rs})
	}
	c := Compare(files)
	got := strings.Split(c.Text(), "\n")
	want := append([]string{"Property Grayskull CUDA"}, lines...)
	if len(got) < len(want) {
		t.Fatalf("%d lines, the seed has %d", len(got), len(want))
	}
	for i, w := range want {
		if g := strings.Join(strings.Fields(got[i]), " "); g != w {
			t.Errorf("line %d is %q, the seed's %q", i+1, g, w)
		}
	}
	const second = len("dump_intermediate_count") + 2 // where the second column starts
	for _, l := range got[:len(want)] {
		if len(l) < second || l[second-2:second] != "  " {
			t.Errorf("not aligned: %q", l)
		}
	}
	// 3966.892 / 1630.061 and 0.25209 / 0.61347, worked out.
	if r := c.Ratios[0]; r.Metric != "samples_per_sec" || math.Abs(r.Ratio-2.433584) > 1e-6 {
		t.Errorf("rate ratio %+v, want 2.433584", r)
	}
	if r := c.Ratios[1]; r.Metric != "inference_time_ms" || math.Abs(r.Ratio-0.410917) > 1e-6 {
		t.Errorf("time ratio %+v, want 0.410917", r)
	}
}

// The formulas, by the seed's own numbers.
func TestFormulas(t *testing.T) {
	r := &Record{}
	if err := (Stats{RunSeconds: 4.71147894859314, Samples: 8 * 64 * 15}).Set(r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"total_samples": "7680", "samples_per_sec": "1630.0614061521528",
		"inference_time_ms": "0.6134738214313984", "tokens_per_sec": "0.0", "total_run_time": "4.71147894859314"} {
		if got, _ := r.Raw(name); got != want {
			t.Errorf("%s is %s, the seed has %s", name, got, want)
		}
	}
	if err := (Stats{Samples: 1}).Set(r); err == nil {
		t.Error("a run of no time gave a rate")
	}
	r = &Record{}
	if err := (Stats{RunSeconds: 2, Samples: 8, Tokens: 512}).Set(r); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Raw("tokens_per_sec"); got != "256.0" {
		t.Errorf("512 tokens in 2 s: %s", got)
	}
}

func TestFileName(t *testing.T) {
	got := FileName("mobilenetv2", "224", "3x224x224", "tt", 64, "a1b2c")
	if want := "perf_mobilenetv2_224_3x224x224_tt_mb64_a1b2c.json"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := FileName("a/b", "", "NA", "cuda", 1, "x"); got != "perf_a_b_None_NA_cuda_mb1_x.json" {
		t.Error(got)
	}
}

// whole is a record that has every property.
func whole() *Record {
	r := &Record{}
	for _, f := range fields() {
		switch f.Kind {
		case Number:
			r.SetNumber(f.Name, 1.5)
		case integer:
			r.SetInt(f.Name, 2)
		case String:
			r.SetText(f.Name, "x\"\n\u2028é")
		case boolean:
			r.SetBool(f.Name, true)
		}
	}
	return r
}

// A schema validator of the few keywords that Schema uses, working from the
// schema's text: the schema, not Validate, decides.
func schemaErrors(t *testing.T, schema, doc *fastjson.Value) (errs []string) {
	t.Helper()
	items := schema.Get("items")
	for _, d := range doc.GetArray() {
		for _, name := range items.GetArray("required") {
			if !d.Exists(string(name.GetStringBytes())) {
				errs = append(errs, string(name.GetStringBytes())+" is missing")
			}
		}
		items.GetObject("properties").Visit(func(key []byte, s *fastjson.Value) {
			v := d.Get(string(key))
			if v == nil {
				return
			}
			types := s.GetArray("type")
			if types == nil {
				types = []*fastjson.Value{s.Get("type")}
			}
			ok := false
			for _, ty := range types {
				switch want := string(ty.GetStringBytes()); v.Type() {
				case fastjson.TypeNumber:
					ok = ok || want == "number" || want == "integer" && v.GetFloat64() == math.Trunc(v.GetFloat64())
				case fastjson.TypeTrue, fastjson.TypeFalse:
					ok = ok || want == "boolean"
				default:
					ok = ok || want == v.Type().String()
				}
			}
			if !ok {
				errs = append(errs, string(key)+" has another type")
			}
			if v.Type() == fastjson.TypeNumber && s.Exists("minimum") && v.GetFloat64() < s.GetFloat64("minimum") {
				errs = append(errs, string(key)+" is too small")
			}
		})
	}
	return errs
}

func TestSchema(t *testing.T) {
	var p, q fastjson.Parser
	schema, err := p.ParseBytes(Schema())
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, r *Record, bad bool) {
		doc, err := q.ParseBytes(Append(nil, []*Record{r}))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if errs := schemaErrors(t, schema, doc); (len(errs) > 0) != bad {
			t.Errorf("%s: the schema says %q, bad is %v", what, errs, bad)
		}
	}
	check("whole", whole(), false)
	for _, f := range fields() {
		r := whole()
		r.SetNull(f.Name)
		check(f.Name+" null", r, !f.Null)
		r = whole()
		r.Set(f.Name, "[]")
		check(f.Name+" array", r, true)
		if f.Kind == Number || f.Kind == integer {
			r.Set(f.Name, "-1")
			check(f.Name+" negative", r, true)
		}
		if f.Kind == integer {
			r.Set(f.Name, "1.5")
			check(f.Name+" fraction", r, true)
		}
		r = whole()
		for i := range r.Props {
			if r.Props[i].Name == f.Name {
				r.Props = append(r.Props[:i], r.Props[i+1:]...)
				break
			}
		}
		check(f.Name+" missing", r, !f.Optional)
	}
}

func TestReadWhatIsWritten(t *testing.T) {
	a, b := whole(), whole()
	b.SetText("extra", "kept")
	rs, err := Read("x", Append(nil, []*Record{a, b}))
	if err != nil || len(rs) != 2 {
		t.Fatalf("%d records, %v", len(rs), err)
	}
	for i, r := range []*Record{a, b} {
		if got, want := fmt.Sprint(rs[i].Props), fmt.Sprint(r.Props); got != want {
			t.Errorf("record %d\n%s\nwas\n%s", i, got, want)
		}
	}
	if s, _ := rs[0].Text("model"); s != "x\"\n\u2028é" {
		t.Errorf("text is %q", s)
	}
}

func TestReadOddTexts(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"{\"model\":\"\\u0001\\u007f\\t\\/\"}", `model="\u0001` + "\x7f" + `\t/"`},
		{"{\"model\":\"a\xff\xfeb\",\"m\xff\":1,\"m\xfe\":2}", `model="a` + "\uFFFD" + `b" m` + "\uFFFD=2"},
		{`{"model":"\u0000","\u0000":1}`, "model=\"\uFFFD\" \uFFFD=1"},
		{`{"model":{"\"":[1e3,"\u000b",null,true,{}]}}`, `model={"\"":[1e3,"\u000b",null,true,{}]}`},
		{`{"args":{"args":{"model":1},"b":2},"model":3}`, `model=3 b=2`},
		{`{"model":1,"args":null}`, `model=1 args=null`},
	} {
		rs, err := Read("x", []byte(c.in))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		var props []string
		for _, p := range rs[0].Props {
			props = append(props, p.Name+"="+p.JSON)
		}
		if got := strings.Join(props, " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
		if _, err := Read("x", Append(nil, rs)); err != nil {
			t.Errorf("%q is not read again: %v", c.in, err)
		}
	}
	many := `{"model":1,"args":{` + strings.Repeat(`"a":1,`, maxProps-1) + `"b":2}}`
	if _, err := Read("x", []byte(many)); err == nil || !strings.Contains(err.Error(), "entry 0 has 4097 properties, more than 4096") {
		t.Errorf("error %v", err)
	}
}

func TestReadFailedRunsAndBadFiles(t *testing.T) {
	rs, err := Read("x", []byte(`[{"args": {"model": "bert", "microbatch": 4}, "samples_per_sec": 0.0, "error": "no device"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := rs[0].Text("model"); m != "bert" {
		t.Errorf("model of a failed run is %q", m)
	}
	if s := Compare([]Named{{"x", rs}}).Text(); !strings.Contains(s, "the run failed: no device") {
		t.Errorf("the failure is not told:\n%s", s)
	}
	for in, want := range map[string]string{"": "no JSON", "[": "no JSON", "[]": "no record", "[1]": "entry 0", "{}": "empty", `{"a":1}`: "no benchmark record", "[{\"model\":1}] x": "no JSON",
		strings.Repeat(`[`, 1<<20): "no JSON", strings.Repeat(`[`, 1<<10) + strings.Repeat(`]`, 1<<10): "no JSON", `[{"model":01}]`: "no JSON"} {
		if _, err := Read("f.json", []byte(in)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.json") {
			t.Errorf("%q: error %v does not say %q and the file", in, err, want)
		}
	}
}

func TestRepeatsAndGeomean(t *testing.T) {
	rec := func(model, device string, rate float64) *Record {
		r := &Record{}
		r.SetText("model", model)
		r.SetText("device", device)
		r.SetText("device_name", device)
		r.SetNumber("samples_per_sec", rate)
		return r
	}
	c := Compare([]Named{
		{"a", []*Record{rec("m1", "X", 10), rec("m1", "X", 14), rec("m1", "X", 11)}},
		{"b", []*Record{rec("m1", "Y", 22)}}, {"c", []*Record{rec("m2", "X", 5)}}, {"d", []*Record{rec("m2", "Y", 40)}},
	})
	if x := c.Columns[0]; x.N != 3 || x.Median != 11 || x.Least != 10 || x.Most != 14 {
		t.Errorf("repeats: %+v", x)
	}
	if len(c.Geomean) != 1 || math.Abs(c.Geomean[0].Ratio-4) > 1e-12 { // √(22/11 · 40/5)
		t.Errorf("geometric mean %+v, want 4", c.Geomean)
	}
	titles := map[string]bool{}
	for _, x := range c.Columns {
		titles[x.Title] = true
	}
	if len(titles) != 4 {
		t.Errorf("titles repeat: %v", titles)
	}
	if svg := string(c.SVG("samples_per_sec")); strings.Count(svg, "<rect") != 5 || !strings.Contains(svg, "40") {
		t.Errorf("plot:\n%s", svg)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`[{"model": "bert", "samples_per_sec": 1.0}]`))
	f.Add([]byte(`[{"args": {"model": null}, "samples_per_sec": 0, "error": "\ud800"}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := Read("f", b)
		if err != nil {
			return
		}
		c := Compare([]Named{{"f", rs}, {"g", rs}})
		_, _ = c.Text(), c.SVG("samples_per_sec")
		text := Append(nil, rs)
		again, err := Read("g", text)
		if err != nil || len(again) != len(rs) {
			t.Fatalf("what was read is not read again: %v\n%s", err, text)
		}
		if s := Append(nil, again); !bytes.Equal(s, text) {
			t.Fatalf("what was read is read as something else:\n%s\n%s", s, text)
		}
	})
}
