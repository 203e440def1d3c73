package devicelog

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"testing"

	"perfsim/io/tenstorrent/profilelog"
)

func TestProfileOfRealLog(t *testing.T) {
	l := load(t, profilelog.Options{}, "tenstorrent__ttnn-visualizer", "scripts", "fixtures", "smoke-performance-report", "profile_log_device.csv")
	p, err := New(context.Background(), "x", l, Options{By: ByZone | ByRisc, Slowest: 2, Gaps: 3})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 1000 || p.Setup != "current" || len(p.Devices) != 1 {
		t.Fatalf("%s", b)
	}
	d := p.Devices[0]
	// Five launches, the last without its end; the first starts at
	// 2170879416545, the fourth ends at 2171369946310.
	if d.Launches != 5 || d.Open != 1 || d.Span.Cycles != 2171369946310-2170879416545 || d.Busy.Cycles != 9241+8608+9204+8533 || d.Sum.Cycles != d.Busy.Cycles || len(d.Gaps) != 3 {
		t.Errorf("%+v", d)
	}
	if g := d.Gaps[0]; g.Cycles != 2171360206687-2170879425786 || *g.NS != float64(g.Cycles) || g.After != "host id 1024" || g.Before != "host id 2048" {
		t.Errorf("%+v", g)
	}
	z := p.Stats[0]
	if z.Zone != "BRISC-FW" || z.Count != 4 || z.Sum != 35586 || z.Min != 8533 || z.Max != 9241 || z.Median != 8906 || z.Unmatched != 1 || z.NS.Mean != 8896.5 {
		t.Errorf("%+v", z)
	}
	if s := p.Slow[0]; s.Zone != "BRISC-FW" || s.Cycles != 9241 || s.Line != 3 {
		t.Errorf("%+v", s)
	}
}

// The trace: strict JSON, zones nest on each thread, sums equal the log.
func TestTrace(t *testing.T) {
	l, _ := generated(t, profilelog.GenOptions{Rows: 4000, Seed: 9, Devices: 2, Width: 2, Height: 2, LoseEnds: 50})
	topo := newTopology(l)
	var b bytes.Buffer
	if err := WriteTrace(context.Background(), &b, l, topo); err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Name     string
		Ph       string
		Ts, Dur  json.Number
		Pid, Tid int
		Args     map[string]string
	}
	d := json.NewDecoder(bytes.NewReader(b.Bytes()))
	d.UseNumber()
	if err := d.Decode(&events); err != nil {
		t.Fatal(err)
	}
	ns := func(n json.Number) int64 {
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil {
			t.Fatal(err)
		}
		return int64(math.Round(f * 1000))
	}
	type iv struct{ a, b int64 }
	threads := map[[2]int][]iv{}
	procs, named, zones, cycles := map[int]string{}, map[[2]int]string{}, 0, uint64(0)
	for _, e := range events {
		switch e.Ph {
		case "M":
			if e.Name == "process_name" {
				procs[e.Pid] = e.Args["name"]
			} else {
				named[[2]int{e.Pid, e.Tid}] = e.Args["name"]
			}
		case "X":
			zones++
			c, _ := strconv.ParseUint(e.Args["cycles"], 10, 64)
			cycles += c
			k := [2]int{e.Pid, e.Tid}
			if procs[e.Pid] == "" || named[k] == "" {
				t.Fatalf("event before its names: %+v", e)
			}
			threads[k] = append(threads[k], iv{ns(e.Ts), ns(e.Ts) + ns(e.Dur)})
			if e.Name == "" || ns(e.Dur) < 0 || math.Abs(float64(ns(e.Dur))-float64(c)/1.35) > 1 {
				t.Fatalf("%+v", e)
			}
		}
	}
	want := uint64(0)
	for z := range l.Zones.Len() {
		want += l.Dur(z)
	}
	if zones != l.Zones.Len() || cycles != want || len(procs) != 8 || len(named) != 40 {
		t.Errorf("%d zones of %d, %d cycles of %d, %d processes, %d threads", zones, l.Zones.Len(), cycles, want, len(procs), len(named))
	}
	if procs[1] != "device 0 core 1,1" || named[[2]int{1, 1}] != "BRISC" {
		t.Errorf("%v %v", procs[1], named[[2]int{1, 1}])
	}
	for k, v := range threads {
		if !sort.SliceIsSorted(v, func(i, j int) bool { return v[i].a < v[j].a }) {
			t.Errorf("thread %v is not in time order", k)
		}
		var open []iv
		for _, x := range v {
			for len(open) > 0 && open[len(open)-1].b <= x.a {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && x.b > open[len(open)-1].b {
				t.Fatalf("thread %v: %v overlaps %v in part", k, x, open[len(open)-1])
			}
			open = append(open, x)
		}
	}
}

func TestCSVExports(t *testing.T) {
	l := logOf(t, "0/BRISC/1/f(a,b)/s/10/1027", "0/BRISC/1/f(a,b)/e/30/1027", "0/BRISC/1/g/s/40/1027", "0/BRISC/1/g/e/45/1027")
	var b bytes.Buffer
	if err := WriteZones(context.Background(), &b, l, false); err != nil {
		t.Fatal(err)
	}
	recs, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 3 || fmt.Sprint(recs[1]) != "[0 1 1 BRISC f(a,b) k.cc 5 0  1027   0 10 20 20.000 3]" {
		t.Errorf("%q", recs)
	}
	p, err := New(context.Background(), "x", l, Options{By: ByZone | ByCore | ByLaunchID})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := WriteZoneStats(context.Background(), &b, p.Stats, false); err != nil {
		t.Fatal(err)
	}
	recs, err = csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 3 || strings.Join(recs[1], "|") != "f(a,b)|k.cc|5||0|1|1|host id 1027|1|20|20|20|0|20|20|20|20|0|20.000|20.000|20.000|0.000|20.000|20.000|20.000|20.000" {
		t.Errorf("%q", recs)
	}
}

func TestParseBy(t *testing.T) {
	by, err := ParseBy([]string{"zone", "RISC", " run"})
	if err != nil || by != ByZone|ByRisc|ByLaunchID {
		t.Errorf("%v %v", by, err)
	}
	if _, err := ParseBy([]string{"chip"}); err == nil {
		t.Error("chip is taken")
	}
}
