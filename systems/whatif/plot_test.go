package whatif

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"perfsim/components"
	"strings"
	"testing"
)

// elements counts the elements of a picture that must be XML, and returns its
// text.
func elements(t *testing.T, picture []byte) (map[string]int, string) {
	t.Helper()
	count := map[string]int{}
	var text strings.Builder
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := tok.(type) {
		case xml.StartElement:
			count[x.Name.Local]++
		case xml.CharData:
			text.Write(x)
			text.WriteByte('\n')
		}
	}
}

// point makes the points of a sweep with the given latencies.
func points(t *testing.T, ns []uint64, assignments ...string) (*Result, []Assignment) {
	t.Helper()
	var list []Assignment
	for _, s := range assignments {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	all, err := Points(list)
	if err != nil || len(all) != len(ns) {
		t.Fatalf("%d points, %v", len(all), err)
	}
	r := &Result{Base: Point{NS: 20_000, NoAntiNS: 20_000}}
	for k, s := range all {
		p := Point{NS: ns[k], NoAntiNS: components.OptionalNS(ns[k]), Change: change(r.Base.NS, ns[k])}
		for _, v := range s {
			p.Settings = append(p.Settings, v.Name+"="+v.Text)
		}
		r.Points = append(r.Points, p)
	}
	return r, list
}

func TestPlotOfOneParameter(t *testing.T) {
	r, list := points(t, []uint64{40_000, 20_000, 10_000}, "pe.clock=0.5x,1x,2x")
	picture := r.SVG("What if: a<b", list)
	count, text := elements(t, picture)
	// One line of three dots; the legend says what it is and what the dashed
	// line is; ticks at the values and at round numbers of µs up to 40.
	if count["polyline"] != 1 || count["circle"] != 3 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{"What if: a<b", "as it is: 20.00 µs", "latency, µs", "pe.clock", "0.5x", "2x", "least 10.00 µs", "pe.clock=2x: 10.00 µs, -50.0 %", "40"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%q is not in the picture", want)
		}
	}
	// The panel is from y 78 to 392 (0 µs): 40 µs at the top, 20 in the middle,
	// 10 at three quarters; x from 72 to 656 with 1x at a third.
	if !strings.Contains(string(picture), `points="72,78 266.67,235 656,313.5"`) {
		t.Errorf("the line is elsewhere:\n%s", picture)
	}
	if !bytes.Equal(picture, r.SVG("What if: a<b", list)) {
		t.Error("two pictures of one result differ")
	}
}

func TestPlotOfSeveralParameters(t *testing.T) {
	ns := make([]uint64, 3*2*2)
	for k := range ns {
		ns[k] = uint64(10_000 + 1_000*k)
	}
	r, list := points(t, ns, "drop=anti,output", "dma.engines=4,8,16", "pe.clock=1x,2x", "queue.depth=3")
	count, text := elements(t, r.SVG("t", list))
	// The engines are the axis, drop and the clock lines and panels: two
	// panels with two lines of three dots.
	if count["polyline"] != 4 || count["circle"] != 12 || strings.Count(text, "dma.engines\n") != 2 {
		t.Errorf("%v %s", count, text)
	}
	if !strings.Contains(text, "t, with queue.depth=3\n") {
		t.Error("what is fixed is not told")
	}
}

func TestPlotOfWhatDoesNotFit(t *testing.T) {
	r, list := points(t, []uint64{20_000, 15_000, 12_000}, "buffers=1,2,4")
	r.Points[2].TooMuch = true
	r.Points[2].Fitting = &Point{Settings: r.Points[2].Settings, NS: 14_000, Change: -0.3}
	count, text := elements(t, r.SVG("t", list))
	// The hollow dot and its entry in the legend; the line of what fits; the
	// least of what fits is named.
	if count["polyline"] != 2 || count["circle"] != 7 || !strings.Contains(text, "does not fit\n") || !strings.Contains(text, "least 14.00 µs\n") {
		t.Errorf("%v %s", count, text)
	}
}

func TestPlotOfWords(t *testing.T) {
	r, list := points(t, []uint64{15_000, 18_000}, "drop=anti,output")
	count, text := elements(t, r.SVG("t", list))
	if count["rect"] != 1+3 || !strings.Contains(text, "drop=anti\n") || !strings.Contains(text, "15.00 µs, -25.0 %\n") {
		t.Errorf("%v %s", count, text)
	}
	count, text = elements(t, ElasticitySVG("t", []Elasticity{{"a", 0.5, 1, 2}, {"b", -0.25, 1, 2}, {"c", 0.1, 1, 2}}, 2))
	if count["rect"] != 1+2 || !strings.Contains(text, "-0.250\n") || !strings.Contains(text, "and 1 more") {
		t.Errorf("%v %s", count, text)
	}
}
