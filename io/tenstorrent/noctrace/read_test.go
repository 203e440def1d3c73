package noctrace

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perfsim/components/datadir"
)

func read(t *testing.T, text string) *Trace {
	t.Helper()
	x, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestRead reads what traces of both eras hold.
func TestRead(t *testing.T) {
	t.Parallel()
	f, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	if !Is(f) || Is([]byte(`{"sx":1}`)) || Is([]byte("PCIe slot, core_x")) {
		t.Error("a trace is not told by its beginning")
	}
	x := read(t, string(f))
	if x.Events != 11 || len(x.Transfers) != 6 || x.Open != 1 || x.Max != (Point{9, 11}) {
		t.Errorf("%d events, %d transfers, %d open, up to %v", x.Events, len(x.Transfers), x.Open, x.Max)
	}
	want := []Segment{
		{0, 0, Point{0, 11}, Point{1, 1}, Point{1, 1}}, // a read: the data comes from 0,11
		{0, 1, Point{1, 1}, Point{4, 6}, Point{4, 6}},
		{0, 0, Point{1, 1}, Point{2, 2}, Point{3, 3}}, // a rectangle
		{0, 1, Point{1, 1}, Point{9, 0}, Point{9, 0}},
		{2, 0, Point{9, 6}, Point{4, 0}, Point{4, 0}},
		{0, 0, Point{1, 1}, Point{5, 1}, Point{5, 1}}, // a write to two places
		{0, 0, Point{1, 1}, Point{5, 2}, Point{5, 2}},
	}
	if !slices.Equal(x.Segments, want) {
		t.Errorf("ways %v, want %v", x.Segments, want)
	}
	if f := x.Transfers[3]; !f.Fabric || f.Segments != 2 || f.Bytes != 1088 {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(x.Waits, []Wait{{"READ_BARRIER", 1, 40}}) {
		t.Errorf("waits %v", x.Waits)
	}
	if !slices.Equal(x.Devices, []Device{{0, 100, 190, 10}, {2, 170, 170, 1}}) {
		t.Errorf("devices %v", x.Devices)
	}
	if x.Ops[0] != (Op{"Add", 1024}) {
		t.Errorf("ops %v", x.Ops)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{``, "byte 0: unexpected EOF"}, {`{}`, "not an array"}, {`[]`, "there are no events"}, {`[{"sx":1,"sy":1,"proc":"BRISC"}]`, "an event without timestamp"},
		{`[{"sx":1,"sy":1,"timestamp":1},`, "unexpected EOF"}, {`[{"sx":999,"sy":1,"timestamp":1}]`, "place 999, 1 is not on a chip"},
		{`[{"sx":1,"sy":1,"timestamp":1,"type":"READ","num_bytes":5,"noc":"NOC_7"}]`, `network "NOC_7"`},
		{`[{"sx":1,"sy":1,"timestamp":1,"type":"READ","num_bytes":-5,"noc":"NOC_0"}]`, "byte"},
		{`[{"sx":1,"sy":1,"timestamp":1}] x`, "byte 32"}, {`[{"sx":1,"sy":1,"timestamp":1}] []`, "something follows"},
		{`[{"sx":1,"sy":1,"timestamp":1,"src_device_id":-1}]`, "device -1"},
	} {
		if _, err := Read(strings.NewReader(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", c[0], err, c[1])
		}
	}
}

// TestReal reads the public samples: their kinds are those that were counted by
// hand.
func TestReal(t *testing.T) {
	t.Parallel()
	root := datadir.Path(t, "tenstorrent", "tenstorrent__tt-npe", "tt_npe")
	total := map[string]int{}
	for _, f := range []string{"workload/noc_trace_json/DRAM_TO_8x8_HEIGHT.json", "workload/T3K-fabric-traces/line-4/noc_trace_dev0_AllGatherAsync_ID1.json",
		"cpp/test/data/multichip-trace-example.json", "workload/T3K-fabric-traces/line-4/all_gather_combined.json"} {
		x, err := ReadFile(filepath.Join(root, f))
		if err != nil {
			t.Fatal(err)
		}
		for k, n := range x.Counts {
			total[x.Kinds[k]] += n
		}
		if x.Open != 0 {
			t.Errorf("%s: %d barriers without a partner", f, x.Open)
		}
	}
	for kind, n := range map[string]int{"READ": 1158, "READ_BARRIER_START": 373, "WRITE_": 262, "FABRIC_UNICAST_WRITE": 150, "SEMAPHORE_INC": 13} {
		if total[kind] != n {
			t.Errorf("%d events %s, want %d", total[kind], kind, n)
		}
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/small.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`[{"sx":1,"sy":1,"timestamp":1,"type":"READ","num_bytes":5,"noc":"NOC_0","dx":-1,"dy":-1}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		events := 0
		for _, n := range x.Counts {
			events += n
		}
		if events > x.Events || x.Events > len(data) {
			t.Errorf("%d events of a kind, %d in all, %d bytes", events, x.Events, len(data))
		}
		for _, y := range x.Transfers {
			if int(y.First)+int(y.Segments) > len(x.Segments) || int(y.Op) >= len(x.Ops) || int(y.Kind) >= len(x.Kinds) {
				t.Errorf("%+v", y)
			}
		}
	})
}
