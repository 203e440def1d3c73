package profilelog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"perfsim/components/datadir"
	"perfsim/components/zonelog"
)

func readText(t testing.TB, text string, opt Options) *zonelog.DeviceLog {
	t.Helper()
	l, err := Read(context.Background(), strings.NewReader(text), opt)
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, l)
	return l
}

// checkLog tests what must hold of every log, however damaged.
func checkLog(t testing.TB, l *zonelog.DeviceLog) {
	t.Helper()
	n := l.Rows()
	if len(l.Def) != n || len(l.Run) != n || l.Src.Len() != n || l.Data != nil && len(l.Data) != n {
		t.Fatalf("columns have %d, %d, %d, %d, %d rows", n, len(l.Def), len(l.Run), l.Src.Len(), len(l.Data))
	}
	if n == 0 {
		return
	}
	if int(l.LaneOff[len(l.Lanes)]) != n {
		t.Fatalf("lanes end at %d of %d rows", l.LaneOff[len(l.Lanes)], n)
	}
	used := make([]uint8, n)
	src := make([]bool, n)
	for m := range n {
		s := l.Src.At(m)
		if int(s) >= n || src[s] {
			t.Fatalf("source row %d is missing or twice", s)
		}
		src[s] = true
	}
	for lane := range l.Lanes {
		for m := int(l.LaneOff[lane]) + 1; m < int(l.LaneOff[lane+1]); m++ {
			if l.Runs[l.Run[m]].Session < l.Runs[l.Run[m-1]].Session ||
				l.Runs[l.Run[m]].Session == l.Runs[l.Run[m-1]].Session && l.Time[m] < l.Time[m-1] {
				t.Fatalf("row %d is out of order", m)
			}
		}
		lo, hi := l.Zones.LaneOff[lane], l.Zones.LaneOff[lane+1]
		for z := lo; z < hi; z++ {
			b, e := l.Zones.Begin[z], l.Zones.End[z]
			if b < l.LaneOff[lane] || e >= l.LaneOff[lane+1] {
				t.Fatalf("zone %d lies outside its lane", z)
			}
			if l.Time[e] < l.Time[b] {
				t.Fatalf("zone %d ends before it starts", z)
			}
			db, de := l.Defs[l.Def[b]], l.Defs[l.Def[e]]
			if db.Type != zonelog.MarkerStart || de.Type != zonelog.MarkerEnd || db.Key != de.Key {
				t.Fatalf("zone %d pairs %+v with %+v", z, db, de)
			}
			used[b]++
			used[e]++
			if z > lo && b <= l.Zones.Begin[z-1] {
				t.Fatalf("zone %d is not in order of its start", z)
			}
			if p := l.Zones.Parent[z]; p != zonelog.NoZone {
				if p < lo || p >= z || l.Time[l.Zones.Begin[p]] > l.Time[b] || l.Time[l.Zones.End[p]] < l.Time[e] {
					t.Fatalf("zone %d is not inside its parent %d", z, p)
				}
				if l.Zones.Depth[p] != 255 && l.Zones.Depth[z] != l.Zones.Depth[p]+1 {
					t.Fatalf("zone %d has depth %d below depth %d", z, l.Zones.Depth[z], l.Zones.Depth[p])
				}
			} else if l.Zones.Depth[z] != 0 {
				t.Fatalf("zone %d has no parent and depth %d", z, l.Zones.Depth[z])
			}
		}
	}
	for _, u := range append(append([]uint32{}, l.UnmatchedStart...), l.UnmatchedEnd...) {
		used[u]++
	}
	for m := range used {
		want := uint8(0)
		if ty := l.Type(m); ty == zonelog.MarkerStart || ty == zonelog.MarkerEnd {
			want = 1
		}
		if used[m] != want {
			t.Fatalf("row %d (%s) is used %d times", m, l.Type(m), used[m])
		}
	}
}

func diagText(l *zonelog.DeviceLog) string {
	var b strings.Builder
	for _, d := range l.Diags.All() {
		fmt.Fprintf(&b, "%s %d line %d\n", d.Code, d.Count, d.Line)
	}
	return b.String()
}

// Every real log, with numbers counted by hand or with cut, sort and uniq.
func TestRealLogs(t *testing.T) {
	for _, tc := range []struct {
		file                 string
		version, arch        string
		mhz                  float64
		rows, zones, lanes   int
		badStarts, badEnds   int
		diags                string
		firstStart, lastTime uint64
	}{
		{"tenstorrent-metal__lfs/09ef5bc6/logs/profile_log_device_add_two_ints.csv", "V1", "grayskull", 1200, 16, 8, 2, 0, 0, "clock-assumed", 619831471164341, 619831471630152},
		{"tenstorrent-metal__lfs/09ef5bc6/logs/profile_log_device_large.csv.gz", "V1", "grayskull", 1200, 24120, 480, 240, 0, 0, "clock-assumed", 689962, 30062655},
		{"tenstorrent-metal__lfs/1e8e47b1/logs/profile_log_device_wormhole_multi_core.csv", "V2", "wormhole_b0", 1000, 4480, 280, 280, 3920, 0, "buffer-full unmatched-start", 176082791474283, 176082791666274},
		{"tenstorrent-metal__lfs/399015d2/logs/profile_log_device_add_two_ints.csv", "V5", "grayskull", 1200, 16, 8, 2, 0, 0, "clock-assumed columns-swapped", 619831471164341, 619831471630152},
		{"tenstorrent-metal__lfs/399015d2/logs/profile_log_device_large.csv.gz", "V5", "grayskull", 1200, 24120, 480, 240, 0, 0, "clock-assumed columns-swapped", 689962, 30062655},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_circular_trace_order.csv", "V4", "grayskull", 1200, 8, 2, 2, 2, 2, "clock-assumed unmatched-end unmatched-start", 620014949329412, 620014949330517},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_matmul.csv", "V4", "grayskull", 1200, 1200, 480, 240, 0, 0, "clock-assumed", 6572664646739, 6572694119430},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_missing_BRISC.csv", "V4", "grayskull", 1200, 8, 4, 1, 0, 0, "clock-assumed", 512868455662463, 512868456116211},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_missing_NCRISC.csv", "V4", "grayskull", 1200, 8, 4, 1, 0, 0, "clock-assumed", 512868455659697, 512868456115605},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_missing_all_defualt_markers.csv", "V4", "grayskull", 1200, 16, 0, 2, 0, 0, "clock-assumed", 0, 620014949789957},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_multi_core_multi_launch.csv", "V4", "grayskull", 1200, 32, 16, 4, 0, 0, "clock-assumed", 154926163479927, 154926164037964},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_wormhole_multi_core.csv", "V4", "wormhole_b0", 1000, 4480, 280, 280, 3920, 0, "buffer-full unmatched-start", 176082791474283, 176082791666274},
		{"tenstorrent-metal__lfs/9041d4d7/logs/profile_log_device_wormhole_single_core.csv", "V4", "wormhole_b0", 1000, 20, 10, 5, 0, 0, "", 175970447478802, 175970447484123},
		{"tenstorrent__tt-metal/docs/source/tt-metalium/tools/device_program_profiler.rst.snippet.csv", "V5", "grayskull", 1202, 6, 3, 1, 0, 0, "", 11233712278980, 11233712334431},
		{"tenstorrent__ttnn-visualizer/scripts/fixtures/smoke-performance-report/profile_log_device.csv", "V9", "wormhole_b0", 1000, 200, 8, 1, 2, 0, "unmatched-start", 2170879416545, 0},
	} {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(tc.file)))+"/"+filepath.Base(tc.file), func(t *testing.T) {
			l, err := ReadFile(context.Background(), datadir.Path(t, "tenstorrent", tc.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkLog(t, l)
			s := l.Sessions[0]
			if s.Version != tc.version || s.Arch != tc.arch || s.FreqMHz != tc.mhz || len(l.Sessions) != 1 {
				t.Errorf("session %+v", s)
			}
			got := []int{l.Rows(), l.Zones.Len(), len(l.Lanes), len(l.UnmatchedStart), len(l.UnmatchedEnd)}
			if want := []int{tc.rows, tc.zones, tc.lanes, tc.badStarts, tc.badEnds}; !cmp.Equal(got, want) {
				t.Errorf("rows, zones, lanes, unmatched = %v, want %v", got, want)
			}
			var codes []string
			for _, d := range l.Diags.All() {
				codes = append(codes, d.Code)
			}
			if c := strings.Join(codes, " "); c != tc.diags {
				t.Errorf("diagnostics %q, want %q\n%s", c, tc.diags, diagText(l))
			}
			first, last := ^uint64(0), uint64(0)
			for m := range l.Time {
				if l.Type(m) == zonelog.MarkerStart {
					first = min(first, l.Time[m])
				}
				last = max(last, l.Time[m])
			}
			if tc.firstStart != 0 && first != tc.firstStart || tc.lastTime != 0 && last != tc.lastTime {
				t.Errorf("first start %d, last time %d; want %d, %d", first, last, tc.firstStart, tc.lastTime)
			}
		})
	}
}

// The rows of every real log against a plain reader: encoding/csv, columns
// by header name, no cleverness.
func TestAgainstPlainReader(t *testing.T) {
	root := datadir.Path(t, "tenstorrent")
	files := 0
	err := filepath.Walk(root, func(p string, st os.FileInfo, err error) error {
		if err != nil || st.IsDir() || !strings.Contains(filepath.Base(p), "profile_log_device") && !strings.Contains(p, "snippet.csv") {
			return err
		}
		files++
		l, err := ReadFile(context.Background(), p, Options{KeepSwapped: true})
		if err != nil {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		var in io.Reader = f
		if strings.HasSuffix(p, ".gz") {
			if in, err = gzip.NewReader(f); err != nil {
				return err
			}
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		_, text, _ = bytes.Cut(text, []byte{'\n'})
		cr := csv.NewReader(bytes.NewReader(text))
		cr.FieldsPerRecord = -1
		recs, err := cr.ReadAll()
		if err != nil {
			return err
		}
		col := map[string]int{}
		for i, h := range recs[0] {
			col[strings.TrimSpace(h)] = i
		}
		rows := recs[1:]
		if len(rows) != l.Rows() {
			t.Errorf("%s: %d rows, plain reader %d", p, l.Rows(), len(rows))
			return nil
		}
		byRow := make([]int, len(rows))
		for m := range l.Rows() {
			byRow[l.Src.At(m)] = m
		}
		for i, rec := range rows {
			m := byRow[i]
			get := func(names ...string) string {
				for _, n := range names {
					if c, ok := col[n]; ok && c < len(rec) {
						return strings.TrimSpace(rec[c])
					}
				}
				return ""
			}
			ln := l.Lanes[l.LaneOfMarker(m)]
			d := l.Defs[l.Def[m]]
			k := l.Keys[d.Key]
			got := []string{strconv.Itoa(int(ln.Device)), strconv.Itoa(int(ln.X)), strconv.Itoa(int(ln.Y)), ln.Risc,
				strconv.Itoa(int(d.Timer)), strconv.FormatUint(l.Time[m], 10)}
			want := []string{get("PCIe slot"), get("core_x"), get("core_y"), get("RISC processor type"), get("timer_id"), get("time[cycles since reset]")}
			if _, ok := col["zone name"]; ok {
				got = append(got, k.Name, d.Phase, strconv.Itoa(int(k.Line)), k.File)
				want = append(want, get("zone name"), get("zone phase", "type"), get("source line"), get("source file"))
			}
			if !cmp.Equal(got, want) {
				t.Fatalf("%s row %d:\n got %q\nwant %q", p, i, got, want)
			}
			if l.Line(m) != uint64(i)+3 {
				t.Fatalf("%s row %d: line %d", p, i, l.Line(m))
			}
			data := uint64(0)
			if l.Data != nil {
				data = l.Data[m]
			}
			if w, _ := strconv.ParseUint(get("stat value", "data"), 10, 64); w != data {
				t.Fatalf("%s row %d: data %d, want %d", p, i, data, w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files != 15 {
		t.Errorf("%d logs compared, 15 are there", files)
	}
}

// The article's own table: V5 with the columns in their right order.
const seedLog = `ARCH: grayskull, CHIP_FREQ[MHz]: 1202
PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], stat value, Run ID, zone name, zone phase, source line, source file
0,1,1,BRISC,6001,16403633605079,0,0,l1_to_l1,begin,43,./kernel.cpp
0,1,1,BRISC,71537,16403633605422,0,0,l1_to_l1,end,43,./kernel.cpp
0,1,1,NCRISC,65230,16403633602836,0,0,read_dram_to_l1,begin,23,./kernel.cpp
0,1,1,NCRISC,130766,16403633604827,0,0,read_dram_to_l1,end,23,./kernel.cpp
`

func TestSeedTable(t *testing.T) {
	l := readText(t, seedLog, Options{})
	if l.Zones.Len() != 2 || l.Dur(0) != 343 || l.Dur(1) != 1991 {
		t.Fatalf("zones %d: %d and %d cycles, want 343 and 1991", l.Zones.Len(), l.Dur(0), l.Dur(1))
	}
	k := l.Keys[l.Key(0)]
	if k.ID != 6001 || k.Name != "l1_to_l1" || k.Line != 43 || k.File != "./kernel.cpp" {
		t.Errorf("key %+v", k)
	}
	if len(l.Diags.All()) != 0 {
		t.Errorf("diagnostics:\n%s", diagText(l))
	}
}

// One zone in every version, rows built from the tables of the versions.
// V6, V7 and V9 all have 13 columns.
func TestEveryVersion(t *testing.T) {
	const (
		gs = "Chip clock is at 1.2 GHz\n"
		wh = "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n"
	)
	head := "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]"
	for _, tc := range []struct {
		want, text string
		host       int64
		trace      [2]int64
		data       uint64
		meta       string
	}{
		{"V0", gs + "chip_id, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\n2, 3, 4, NCRISC, 1, 100\n2, 3, 4, NCRISC, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V1", gs + head + "\n2, 3, 4, NCRISC, 1, 100\n2, 3, 4, NCRISC, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V2", wh + head + "\n2, 3, 4, NCRISC, 1, 100\n2, 3, 4, NCRISC, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V3", wh + "Program ID, " + head + "\n7, 2, 3, 4, NCRISC, 1, 100\n7, 2, 3, 4, NCRISC, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V3", wh + "PCIe slot, core_x, core_y, RISC processor type, Program ID, timer_id, time[cycles since reset]\n2, 3, 4, NCRISC, 7, 1, 100\n2, 3, 4, NCRISC, 7, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V3", wh + "Program ID, PCIe slot, core_x, core_y, core_flat, core_flat_read, core_flat_read_ts, RISC processor type, RISC read, RISC read ts, timer_id, time[cycles since reset]\n7, 2, 3, 4, 11, 11, 1, NCRISC, 1, 1, 1, 100\n7, 2, 3, 4, 11, 11, 1, NCRISC, 1, 1, 4, 350\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V4", wh + head + ", Run ID, zone name, zone phase, source line, source file\n2, 3, 4, NCRISC, 1, 100,7,NCRISC-FW,begin,0,\n2, 3, 4, NCRISC, 4, 350,7,NCRISC-FW,end,0,\n", -1, [2]int64{-1, -1}, 0, ""},
		{"V5", wh + head + ", stat value, Run ID, zone name, zone phase, source line, source file\n2,3,4,NCRISC,12030,100,0,7,NCRISC-FW,begin,80,nc.cc\n2,3,4,NCRISC,77566,350,0,7,NCRISC-FW,end,80,nc.cc\n", -1, [2]int64{-1, -1}, 0, ""},
		// The id pair 924 / 66460 of a V6 row in the visualizer's tests.
		{"V6", wh + head + ", stat value, run ID, run host ID,  zone name, zone phase, source line, source file\n2,3,4,NCRISC,924,100,0,7,1027,NCRISC-FW,begin,80,nc.cc\n2,3,4,NCRISC,66460,350,0,7,1027,NCRISC-FW,end,80,nc.cc\n2,3,4,NCRISC,132068,100,56,7,1027,WAIT,sum,90,nc.cc\n", 1027, [2]int64{-1, -1}, 56, ""},
		{"V7", wh + head + ", data, run ID, run host ID,  zone name, type, source line, source file\n2,3,4,NCRISC,924,100,0,7,1027,NCRISC-FW,ZONE_START,80,nc.cc\n2,3,4,NCRISC,924,350,0,7,1027,NCRISC-FW,ZONE_END,80,nc.cc\n2,3,4,NCRISC,996,100,56,7,1027,WAIT,ZONE_TOTAL,90,nc.cc\n", 1027, [2]int64{-1, -1}, 56, ""},
		{"V8", wh + head + ", data, run ID, run host ID,  zone name, type, source line, source file, meta data\n2,3,4,NCRISC,924,100,0,7,1027,NCRISC-FW,ZONE_START,80,nc.cc,\n2,3,4,NCRISC,924,350,0,7,1027,NCRISC-FW,ZONE_END,80,nc.cc,\n2,3,4,NCRISC,9090,120,56,7,1027,,TS_DATA,0,,{\"counter type\":\"FPU_COUNTER\";\"ref cnt\":1000;\"value\":600}\n", 1027, [2]int64{-1, -1}, 56, `{"counter type":"FPU_COUNTER";"ref cnt":1000;"value":600}`},
		{"V9", wh + head + ", data, run host ID,  zone name, type, source line, source file, meta data\n2,3,4,NCRISC,924,100,0,1027,NCRISC-FW,ZONE_START,80,nc.cc,\n2,3,4,NCRISC,924,350,0,1027,NCRISC-FW,ZONE_END,80,nc.cc,\n2,3,4,NCRISC,12345,120,56,1027,,TS_EVENT,0,,\n", 1027, [2]int64{-1, -1}, 56, ""},
		{"V10", wh + head + ", data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data\n2,3,4,NCRISC,924,100,0,1027,5,11,NCRISC-FW,ZONE_START,80,nc.cc,\n2,3,4,NCRISC,12345,120,56,1027,5,11,,TS_DATA_16B,0,,{\"dst_addr\":1;\"src_addr\":2;\"noc_status_counter\":3}\n2,3,4,NCRISC,924,350,0,1027,5,11,NCRISC-FW,ZONE_END,80,nc.cc,\n", 1027, [2]int64{5, 11}, 56, `{"dst_addr":1;"src_addr":2;"noc_status_counter":3}`},
		{"V11", "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64\n" + head + ", data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data\n2,3,4,NCRISC,924,100,0,1027,,,NCRISC-FW,ZONE_START,80,nc.cc,\n2,3,4,NCRISC,924,350,0,1027,,,NCRISC-FW,ZONE_END,80,nc.cc,\n", 1027, [2]int64{-1, -1}, 0, ""},
		{"V12", "ARCH: blackhole, CHIP_FREQ[MHz]: 1350, Max Compute Cores: 0\n" + head + ", data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data\n2, 3, 4, NCRISC, 140000000, 100, 0, 4711, 1027, , NCRISC-FW, ZONE_START, 0, streaming, \n2, 3, 4, NCRISC, 140000000, 350, 0, 4711, 1027, , NCRISC-FW, ZONE_END, 0, streaming, \n", 4711, [2]int64{1027, -1}, 0, ""},
		{"V12", "ARCH: blackhole, CHIP_FREQ[MHz]: 1350, Max Compute Cores: 0\n" + head + ", data, run host ID, trace id, trace id counter, zone name, type, source line, source file, meta data, logical_x, logical_y\n2, 3, 4, NCRISC, 140000000, 100, 0, 4711, 1027, , NCRISC-FW, ZONE_START, 0, streaming, , 1, 2\n2, 3, 4, NCRISC, 140000000, 350, 0, 4711, 1027, , NCRISC-FW, ZONE_END, 0, streaming, , 1, 2\n", 4711, [2]int64{1027, -1}, 0, ""},
	} {
		t.Run(tc.want, func(t *testing.T) {
			l := readText(t, tc.text, Options{})
			if v := l.Sessions[0].Version; v != tc.want {
				t.Errorf("version %s", v)
			}
			if l.Zones.Len() != 1 || l.Dur(0) != 250 || len(l.UnmatchedStart)+len(l.UnmatchedEnd) != 0 {
				t.Fatalf("%d zones, %d and %d unmatched", l.Zones.Len(), len(l.UnmatchedStart), len(l.UnmatchedEnd))
			}
			if k := l.Keys[l.Key(0)]; k.Name != "NCRISC-FW" {
				t.Errorf("key %+v", k)
			}
			ln := l.Lanes[0]
			if ln.Device != 2 || ln.X != 3 || ln.Y != 4 || ln.Risc != "NCRISC" || len(l.Lanes) != 1 {
				t.Errorf("lanes %+v", l.Lanes)
			}
			r := l.Runs[0]
			if r.HostID != tc.host || r.TraceID != tc.trace[0] || r.TraceCounter != tc.trace[1] || len(l.Runs) != 1 {
				t.Errorf("runs %+v", l.Runs)
			}
			if tc.data != 0 {
				found := false
				for m := range l.Time {
					if l.Data != nil && l.Data[m] == tc.data {
						found = true
						if l.Meta(m) != tc.meta {
							t.Errorf("meta data %q", l.Meta(m))
						}
						if l.Type(m) == zonelog.MarkerTotal && l.Keys[l.Defs[l.Def[m]].Key].ID != 996 {
							t.Errorf("sum has key %+v", l.Keys[l.Defs[l.Def[m]].Key])
						}
					}
				}
				if !found {
					t.Errorf("no row with data %d", tc.data)
				}
			}
			for _, d := range l.Diags.All() {
				if d.Code != diagClockAssumed {
					t.Errorf("diagnostic %+v", d)
				}
			}
		})
	}
}

// Each kind of damage: a named diagnostic with line and count, and the rest
// of the log is used.
func TestDamage(t *testing.T) {
	const h9 = "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n" +
		"PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID,  zone name, type, source line, source file, meta data\n"
	row := func(time int, host int, phase string) string {
		return fmt.Sprintf("0,1,1,BRISC,924,%d,0,%d,Z,%s,80,a.cc,\n", time, host, phase)
	}
	fw := func(time, host int) string {
		return strings.ReplaceAll(row(time, host, "ZONE_START")+row(time+10, host, "ZONE_END"), ",Z,", ",BRISC-FW,")
	}
	pair := func(time, host int) string { return row(time, host, "ZONE_START") + row(time+10, host, "ZONE_END") }
	other := func(rows string) string {
		return strings.ReplaceAll(strings.ReplaceAll(rows, ",BRISC,", ",NCRISC,"), "1, BRISC", "1, NCRISC")
	}
	v1 := func(time int) string {
		return fmt.Sprintf("0, 1, 1, BRISC, 1, %d\n0, 1, 1, BRISC, 4, %d\n", time, time+10)
	}
	const h2 = "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\nPCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset]\n"
	for _, tc := range []struct {
		name, text, want string
		zones            int
	}{
		{"empty", "", "empty-file 1 line 0\n", 0},
		{"blank", "\n\n", "empty-file 1 line 0\n", 0},
		{"clock only", "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n", "no-rows 1 line 1\n", 0},
		{"no rows", h9, "no-rows 1 line 2\n", 0},
		{"good", h9 + pair(5, 1), "", 1},
		{"carriage returns", strings.ReplaceAll(h9+pair(5, 1), "\n", "\r\n"), "", 1},
		{"byte order mark", "\ufeff" + h9 + pair(5, 1), "", 1},
		{"blank lines", h9 + "\n" + row(5, 1, "ZONE_START") + "\n\n" + row(9, 1, "ZONE_END"), "", 1},
		{"no clock line", strings.SplitN(h9, "\n", 2)[1] + pair(5, 1), "clock-missing 1 line 1\n", 1},
		{"clock 0", strings.Replace(h9, "1000", "0", 1) + pair(5, 1), "clock-missing 1 line 2\n", 1},
		{"clock text", strings.Replace(h9, "1000", "fast", 1) + pair(5, 1), "clock-missing 1 line 2\n", 1},
		{"clock 250 on a chip of 1000", strings.Replace(h9, "1000", "250", 1) + pair(5, 1), "clock-unlikely 1 line 2\n", 1},
		{"unknown column", strings.Replace(h9, "meta data", "meta data, colour", 1) + strings.ReplaceAll(pair(5, 1), ",\n", ",,red\n"), "unknown-column 1 line 2\n", 1},
		{"short row", h9 + "0,1,1\n" + pair(5, 1), "row-short 1 line 3\n", 1},
		{"long row", h9 + "0,1,1,BRISC,924,5,0,1,Z,ZONE_START,80,a.cc,,more,and more\n" + pair(5, 1), "row-long 1 line 3\n", 1},
		{"commas in the name", h9 + "0,1,1,BRISC,924,5,0,1,f(a,b,c),ZONE_START,80,a.cc,\n0,1,1,BRISC,924,7,0,1,f(a,b,c),ZONE_END,80,a.cc,\n", "comma-in-name 2 line 3\n", 1},
		{"a comma in the name and an empty last field", h9 + "0,1,1,BRISC,924,5,0,1,f(a\\,b),ZONE_START,80,a.cc,\n0,1,1,BRISC,924,7,0,1,f(a\\,b),ZONE_END,80,a.cc,\n", "comma-in-name 2 line 3\n", 1},
		{"empty fields at the end", h9 + strings.ReplaceAll(pair(5, 1), ",\n", ",,,\n"), "", 1},
		{"missing meta data", h9 + strings.ReplaceAll(pair(5, 1), ",\n", "\n"), "", 1},
		{"quoted", h9 + `"0","1","1","BRISC","924","5","0","1","f(a,b)","ZONE_START","80","a.cc",""` + "\n" + `0,1,1,BRISC,924,8,0,1,"f(a,b)",ZONE_END,80,a.cc,` + "\n", "", 1},
		{"time is no number", h9 + row(5, 1, "ZONE_START") + "0,1,1,BRISC,924,x5,0,1,Z,ZONE_END,80,a.cc,\n" + row(9, 1, "ZONE_END"), "bad-number 1 line 4\n", 1},
		{"time above 64 bits", h9 + "0,1,1,BRISC,924,18446744073709551616,0,1,Z,ZONE_END,80,a.cc,\n" + pair(5, 1), "bad-number 1 line 3\n", 1},
		{"negative core", h9 + "0,-1,1,BRISC,924,4,0,1,Z,ZONE_END,80,a.cc,\n" + pair(5, 1), "bad-number 1 line 3\n", 1},
		{"odd phase", h9 + "0,1,1,BRISC,924,4,0,1,Z,MIDDLE,80,a.cc,\n" + pair(5, 1), "unknown-phase 1 line 3\n", 1},
		{"text line", h9 + row(5, 1, "ZONE_START") + "Aborted (core dumped)\n" + row(9, 1, "ZONE_END"), "not-a-row 1 line 4\n", 1},
		{"start without end", h9 + row(5, 1, "ZONE_START") + pair(7, 1), "unmatched-start 1 line 3\n", 1},
		{"end without start", h9 + pair(7, 1) + row(20, 1, "ZONE_END"), "unmatched-end 1 line 5\n", 1},
		{"end in another launch", h9 + row(5, 1, "ZONE_START") + row(9, 2, "ZONE_END"), "unmatched-end 1 line 4\nunmatched-start 1 line 3\n", 0},
		{"name missing", h9 + strings.ReplaceAll(pair(5, 1), ",Z,", ",,"), "zone-name-missing 2 line 3\n", 1},
		{"one id, two names", h9 + pair(5, 1) + strings.ReplaceAll(pair(25, 1), ",Z,", ",Y,"), "zone-id-collision 1 line 0\n", 2},
		{"two devices", h9 + pair(5, 1) + strings.ReplaceAll(pair(5, 1), "0,1,1,", "1,1,1,"), "devices-unaligned 2 line 0\n", 2},
		{"cut in the last row", h9 + pair(5, 1) + "0,1,1,BRISC,924,2", "truncated-last-line 1 line 5\n", 1},
		{"cut in the time", h2 + "0, 1, 1, BRISC, 1, 100000\n0, 1, 1, BRISC, 4, 100350\n0, 1, 1, BRISC, 1, 1004", "truncated-last-line 1 line 5\n", 1},
		{"no newline at the end", h9 + strings.TrimSuffix(pair(5, 1), "\n"), "", 1},
		{"glued with header", h9 + pair(50, 2) + h9 + pair(5, 1), "sessions-glued 1 line 6\n", 2},
		{"glued without header", h9 + fw(50, 1) + fw(80, 2) + fw(5, 1) + fw(20, 2), "sessions-glued 1 line 7\n", 4},
		{"glued behind a reset, one launch", h9 + fw(50, 1) + other(fw(52, 1)) + fw(5, 1) + other(fw(7, 1)), "sessions-glued 1 line 7\n", 4},
		{"three times", h9 + fw(50, 1) + other(fw(52, 1)) + fw(5, 1) + other(fw(7, 1)) + fw(5, 1) + other(fw(7, 1)), "sessions-glued 2 line 7\n", 6},
		{"the same session twice", h9 + fw(50, 1) + other(fw(52, 1)) + fw(50, 1) + other(fw(52, 1)), "sessions-glued 1 line 7\n", 4},
		{"the same session twice, without launches", h2 + v1(50) + other(v1(52)) + v1(50) + other(v1(52)), "sessions-glued 1 line 7\n", 4},
		{"launches in another order are not glued", h9 + fw(50, 2) + other(fw(52, 2)) + fw(5, 1) + other(fw(7, 1)), "", 4},
		{"unnumbered launches in another order are not glued", h2 + v1(50) + other(v1(52)) + v1(5) + other(v1(7)), "", 4},
		{"replays are not glued", h9 + pair(50, 2) + pair(80, 1) + pair(100, 2), "", 3},
		{"wrap between launches", h9 + pair(1<<44-100, 1) + pair(50, 2), "timer-wrap 1 line 5\n", 2},
		{"wrap inside a zone", h9 + row(1<<44-100, 1, "ZONE_START") + row(50, 1, "ZONE_END"), "timer-wrap 1 line 3\n", 1},
		{"no wrap above 44 bits", h9 + pair(1<<45, 1) + pair(50, 2), "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := readText(t, tc.text, Options{})
			if got := diagText(l); got != tc.want {
				t.Errorf("diagnostics\n%swant\n%s", got, tc.want)
			}
			if l.Zones.Len() != tc.zones {
				t.Errorf("%d zones, want %d", l.Zones.Len(), tc.zones)
			}
		})
	}
	l := readText(t, h9+row(1<<44-100, 1, "ZONE_START")+row(50, 1, "ZONE_END"), Options{})
	if d := l.Dur(0); d != 150 {
		t.Errorf("a zone over the wrap lasts %d cycles, want 150", d)
	}
	l = readText(t, h9+pair(50, 2)+h9+pair(5, 1), Options{})
	if len(l.Sessions) != 2 || l.Sessions[1].Line != 6 || l.Runs[1].Session != 1 {
		t.Errorf("sessions %+v, runs %+v", l.Sessions, l.Runs)
	}
	l = readText(t, strings.SplitN(h9, "\n", 2)[1]+pair(5, 1), Options{FreqMHz: 900})
	if l.Freq(0) != 900 {
		t.Errorf("clock %g, given 900", l.Freq(0))
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"hello\nworld\n": `line 1: not a device log: neither a clock line nor a column header: "hello"`,
		"ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n0,1,1,BRISC,1,2\n":                           `line 2: a column header was expected, found "0,1,1,BRISC,1,2"; rows without a header cannot be read, because several versions have the same number of columns`,
		"PCIe slot, core_x, core_y, RISC processor type, timer_id, when\n":                     `line 1: the header has no column "time[cycles since reset]"`,
		"PCIe slot, core_x, core_x, RISC processor type, timer_id, time[cycles since reset]\n": `line 1: columns 2 and 3 are both named "core_x"`,
		"PCIe slot, timer_id" + strings.Repeat(", a", 70) + "\n":                               "line 1: the header has 72 columns, more than 64",
	} {
		_, err := Read(context.Background(), strings.NewReader(text), Options{Name: "x.csv"})
		if err == nil || err.Error() != "x.csv: "+want {
			t.Errorf("error %v\nwant x.csv: %s", err, want)
		}
	}
	text := seedLog
	if _, err := Read(context.Background(), strings.NewReader(text), Options{MaxRows: 3}); err == nil || !strings.Contains(err.Error(), "too many rows: the limit is 3") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, strings.NewReader(text), Options{}); err == nil {
		t.Error("a cancelled context is not noticed")
	}
}

// The same bytes give the same log for any number of workers, with blocks
// cut anywhere; sessions that change the layout lie in the middle.
func TestWorkersAgree(t *testing.T) {
	var buf bytes.Buffer
	for i, v := range []string{"V11", "V5", "V9"} {
		if _, _, err := Generate(&buf, GenOptions{Rows: 30_000, Version: v, Seed: uint64(i), Devices: 2, Width: 3, Height: 4, LoseEnds: 97}); err != nil {
			t.Fatal(err)
		}
		buf.WriteString("this line is not a row\n")
	}
	var want *zonelog.DeviceLog
	for _, n := range []int{1, 2, 5} {
		l, err := Read(context.Background(), bytes.NewReader(buf.Bytes()), Options{Workers: n})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			checkLog(t, l)
			want = l
			if len(l.Sessions) != 3 {
				t.Fatalf("%d sessions", len(l.Sessions))
			}
			continue
		}
		a, b := *want, *l
		for _, x := range []*zonelog.DeviceLog{&a, &b} { // capacity is not compared, emptiness is not told from nil
			x.Skips = append([]zonelog.LineSkip{}, x.Skips...)
		}
		if !reflect.DeepEqual(&a, &b) {
			t.Fatalf("%d workers: %d rows, %d zones, diagnostics\n%s", n, l.Rows(), l.Zones.Len(), diagText(l))
		}
	}
}

// The reader finds what the generator counted while it wrote.
func TestGeneratorTotals(t *testing.T) {
	for _, v := range []string{"V5", "V6", "V7", "V8", "V9", "V10", "V11"} {
		var buf bytes.Buffer
		rows, totals, err := Generate(&buf, GenOptions{Rows: 5000, Version: v, Seed: 7, Width: 2, Height: 2, Zones: 7, Nest: 3, LoseEnds: 13})
		if err != nil {
			t.Fatal(err)
		}
		l := readText(t, buf.String(), Options{})
		if int64(l.Rows()) != rows || l.Sessions[0].Version != v {
			t.Errorf("%s: %d rows of %d, version %s", v, l.Rows(), rows, l.Sessions[0].Version)
		}
		got := map[string]GenTotal{}
		for z := range l.Zones.Len() {
			n := l.ZoneName(l.Key(z))
			g := got[n]
			g.Count++
			g.Cycles += l.Dur(z)
			got[n] = g
		}
		for _, m := range l.UnmatchedStart {
			n := l.ZoneName(l.Defs[l.Def[m]].Key)
			g := got[n]
			g.Lost++
			got[n] = g
		}
		if d := cmp.Diff(totals, got); d != "" {
			t.Errorf("%s:\n%s", v, d)
		}
	}
}

func TestCompressed(t *testing.T) {
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	io.WriteString(g, seedLog)
	g.Close()
	z, _ := zstd.NewWriter(&zs)
	io.WriteString(z, seedLog)
	z.Close()
	for name, b := range map[string]*bytes.Buffer{"gzip": &gz, "zstd": &zs} {
		full := b.Bytes()
		l, err := Read(context.Background(), bytes.NewReader(full), Options{})
		if err != nil || l.Zones.Len() != 2 {
			t.Errorf("%s: %v", name, err)
		}
		// Cut before anything can be unpacked, there is nothing to use.
		if _, err := Read(context.Background(), bytes.NewReader(full[:20]), Options{}); err == nil {
			t.Errorf("%s cut short gives no error", name)
		}
	}
}

// Compressed data that end early or are damaged: what can be unpacked is
// used, and the rest is told.
func TestCompressedBrokenOff(t *testing.T) {
	var plain, gz, zs bytes.Buffer
	if _, _, err := Generate(&plain, GenOptions{Rows: 20000, Version: "V9", Devices: 1, Width: 4, Height: 4, Zones: 4, Nest: 2, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	g := gzip.NewWriter(&gz)
	g.Write(plain.Bytes())
	g.Close()
	z, _ := zstd.NewWriter(&zs)
	z.Write(plain.Bytes())
	z.Close()
	whole := readText(t, plain.String(), Options{})
	for name, b := range map[string][]byte{"gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		damaged := bytes.Clone(b)
		for i := len(damaged) * 3 / 4; i < len(damaged); i++ {
			damaged[i] ^= 0x5a
		}
		for what, data := range map[string][]byte{"cut": b[:len(b)*3/4], "damaged": damaged} {
			l, err := Read(context.Background(), bytes.NewReader(data), Options{})
			if err != nil {
				t.Fatalf("%s %s: %v", name, what, err)
			}
			checkLog(t, l)
			d, ok := l.Diags.Find(diagBrokenFile)
			if !ok || d.Count != 1 || d.Line < uint64(l.Rows()) {
				t.Errorf("%s %s: %d rows, diagnostics %s", name, what, l.Rows(), diagText(l))
			}
			if l.Rows() < 1000 || l.Rows() >= whole.Rows() {
				t.Errorf("%s %s: %d of %d rows", name, what, l.Rows(), whole.Rows())
			}
		}
	}
}

// A line that never ends costs no memory and the rows around it survive.
func TestEndlessLine(t *testing.T) {
	head, rest, _ := strings.Cut(seedLog, "0,1,1,NCRISC")
	r := io.MultiReader(strings.NewReader(head), io.LimitReader(repeat('9'), 5<<20), strings.NewReader("\n0,1,1,NCRISC"+rest))
	l, err := Read(context.Background(), r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, l)
	d, ok := l.Diags.Find(diagLineTooLong)
	if !ok || d.Line != 5 || l.Rows() != 4 {
		t.Errorf("%d rows, diagnostics %s", l.Rows(), diagText(l))
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestSources(t *testing.T) {
	text := "tt_metal/tools/profiler/kernel_profiler.hpp:320:9: note: '#pragma message: BRISC-FW,tt_metal/hw/firmware/src/brisc.cc,315,KERNEL_PROFILER'\n" +
		"noc.o.log:kernel_profiler.hpp:320:9: note: '#pragma message: l1_to_l1,./kernel.cpp,43,KERNEL_PROFILER'\n" +
		"kernel_profiler.hpp:320:9: note: '#pragma message: l1_to_l1,./kernel.cpp,43,KERNEL_PROFILER'\n" +
		"kernel_profiler.hpp:1:1: note: '#pragma message: f(a, b),./k.cpp,7,KERNEL_PROFILER'\n" +
		"some other compiler output\n"
	s, err := ReadSources(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.list) != 3 || s.Skipped != 1 || len(s.Collisions) != 0 {
		t.Fatalf("%d zones, %d skipped, %d collisions", len(s.list), s.Skipped, len(s.Collisions))
	}
	z, ok := s.Lookup(6001)
	if !ok || z.Name != "l1_to_l1" || z.File != "./kernel.cpp" || z.Line != 43 {
		t.Errorf("6001 is %+v", z)
	}
	if z, _ := s.Lookup(uint32(zonelog.ZoneHash16("f(a, b),./k.cpp,7,KERNEL_PROFILER"))); z.Name != "f(a, b)" {
		t.Errorf("commas in a name: %+v", z)
	}
	// Names come from the source log where the device log has none.
	bare := strings.ReplaceAll(strings.ReplaceAll(seedLog, "l1_to_l1", ""), "read_dram_to_l1", "")
	l := readText(t, bare, Options{Sources: s})
	if l.ZoneName(l.Key(0)) != "l1_to_l1" || l.ZoneName(l.Key(1)) != "<65230>" {
		t.Errorf("names %s, %s", l.ZoneName(l.Key(0)), l.ZoneName(l.Key(1)))
	}
}

// Two texts with one hash, found by search; the first keeps its name.
func TestSourceCollision(t *testing.T) {
	seen := map[uint16]string{}
	var a, b string
	for i := 0; a == ""; i++ {
		text := fmt.Sprintf("ZONE-%d,./k.cpp,%d,KERNEL_PROFILER", i, i)
		h := zonelog.ZoneHash16(text)
		if old, ok := seen[h]; ok {
			a, b = old, text
		}
		seen[h] = text
	}
	s, err := NewSources(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Collisions) != 1 || s.Collisions[0].A.Text != a || s.Collisions[0].B.Text != b {
		t.Fatalf("collisions %+v", s.Collisions)
	}
	if z, ok := s.Lookup(uint32(zonelog.ZoneHash16(a))); !ok || z.Text != a {
		t.Errorf("%+v", z)
	}
}

// Rows of several lanes shuffled on purpose give the same zones.
func TestOutOfOrder(t *testing.T) {
	var buf bytes.Buffer
	if _, _, err := Generate(&buf, GenOptions{Rows: 800, Version: "V10", Width: 2, Height: 1}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(buf.String(), "\n"), "\n")
	head, rows := strings.Join(lines[:2], ""), lines[2:]
	rows[len(rows)-1] += "\n"
	want := zoneList(readText(t, buf.String(), Options{}))
	x := uint64(1)
	for i := len(rows) - 1; i > 0; i-- {
		x = x*6364136223846793005 + 1442695040888963407
		j := int(x>>33) % (i + 1)
		rows[i], rows[j] = rows[j], rows[i]
	}
	l := readText(t, head+strings.Join(rows, ""), Options{})
	if d := cmp.Diff(want, zoneList(l)); d != "" {
		t.Error(d)
	}
	if _, ok := l.Diags.Find(diagOutOfOrder); !ok {
		t.Error("no diagnostic")
	}
}

func zoneList(l *zonelog.DeviceLog) []string {
	var out []string
	for z := range l.Zones.Len() {
		ln := l.Lanes[l.LaneOfZone(z)]
		out = append(out, fmt.Sprint(ln, l.ZoneName(l.Key(z)), l.Start(z), l.Dur(z), l.Zones.Depth[z]))
	}
	sort.Strings(out)
	return out
}
