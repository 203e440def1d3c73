package catapult

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"perfsim/components"
)

// objectWorld makes two lanes: a load of 100 ns that leaves its lane after
// 60, a use that waits for it, an event of no length, and a second load.
func objectWorld() *components.World {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(4)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 4)
	m.Functions.EndBlock.Set(f, 1)
	m.Instr.Name.Resize(4)
	m.Instr.Name.Set(0, m.Symbols.InternString("lo\"ad\n\x00\xff"))
	for i, x := range []struct {
		lane  uint16
		issue uint32
		lat   uint32
	}{{components.LaneDMA, 60, 100}, {components.LaneDVE, 1050, 1050}, {components.LaneDVE, 0, 0}, {components.LaneDMA, 60, 100}} {
		m.Instr.Lane.Set(i, x.lane)
		m.Instr.Issue.Append(x.issue)
		m.Instr.Latency.Append(x.lat)
	}
	var edges components.EdgeSet
	edges.Add(1, 0, components.Flow)
	edges.Add(2, 1, components.Ordered)
	edges.Add(3, 0, components.Output)
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	for _, e := range []uint64{100, 1150, 1150, 160} {
		w.Events.Arrive.Append([2]uint64{e, e})
	}
	w.Blocks = []components.BlockResult{{Block: 0, Latency: [2]uint64{1150, 1150}}}
	return w
}

func TestWriteObject(t *testing.T) {
	tl := components.NewTimeline(objectWorld(), -1, components.Process{Name: "predicted"}, components.Process{Name: "b", Run: components.RunB})
	tl.Series = []components.Series{{Name: "busy", Unit: "%", Time: []uint64{0, 155}, Value: []float64{12.5, 0}}}
	var out bytes.Buffer
	stats, err := WriteObject(context.Background(), &out, tl, ObjectOptions{About: [][2]string{{"tool", "perfsim"}}})
	if err != nil {
		t.Fatal(err)
	}
	// The arrow to the event of no length cannot be drawn.
	if stats != (ObjectStats{Slices: 8, Flows: 2, Counters: 2, Unshown: 1}) {
		t.Errorf("wrote %+v", stats)
	}
	var doc struct {
		Unit   string                       `json:"displayTimeUnit"`
		Other  map[string]string            `json:"otherData"`
		Events []map[string]json.RawMessage `json:"traceEvents"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("no strict JSON: %v\n%s", err, out.Bytes())
	}
	if doc.Unit != "ns" || doc.Other["tool"] != "perfsim" {
		t.Errorf("head %q, %v", doc.Unit, doc.Other)
	}
	var text []string
	names := map[string]bool{}
	for n, e := range doc.Events {
		get := func(k string) string { return strings.Trim(string(e[k]), `"`) }
		if string(e["name"]) == "" {
			t.Errorf("event %d has no name", n)
		}
		switch get("ph") {
		case "X":
			if get("pid") == "1" {
				text = append(text, get("tid")+" "+get("ts")+" "+get("dur"))
			}
			var args struct {
				Instruction string `json:"instruction"`
			}
			if err := json.Unmarshal(e["args"], &args); err != nil {
				t.Fatal(err)
			}
			names[args.Instruction] = true
			if get("name") != "Generic" {
				t.Errorf("a slice is called %s, not by its opcode", e["name"])
			}
		case "s", "f":
			text = append(text, get("ph")+get("id")+" "+get("tid")+" "+get("ts"))
			if get("ph") == "f" && get("bp") != "e" {
				t.Error("an arrow ends at the next slice")
			}
		}
	}
	want := []string{"5 0.000 0.060", "5 0.060 0.100", "s3 5 0.059", "f3 5 0.060", "6 0.100 1.050", "s1 5 0.059", "f1 6 0.100", "6 1.150 0.000"}
	if strings.Join(text, "\n") != strings.Join(want, "\n") {
		t.Errorf("events are\n%s\nwant\n%s", strings.Join(text, "\n"), strings.Join(want, "\n"))
	}
	if !names["lo\"ad\n\uFFFD\uFFFD"] || !names["I-1"] {
		t.Errorf("instructions %v", names)
	}
	if strings.Contains(out.String(), `\ud`) || !strings.HasSuffix(out.String(), "]}\n") {
		t.Error("the form is one that viewers refuse")
	}
}

func TestAppendMicros(t *testing.T) {
	for ns, want := range map[uint64]string{0: "0.000", 1: "0.001", 999: "0.999", 1000: "1.000", 1234567: "1234.567", 1<<53 + 7: "9007199254740.999"} {
		if got := string(appendMicros(nil, ns)); got != want {
			t.Errorf("%d ns is %s, want %s", ns, got, want)
		}
	}
}
