package profilelog

import (
	"math"
	"strings"
	"testing"

	"perfsim/components/datadir"
)

func TestRealOpsTables(t *testing.T) {
	for _, tc := range []struct {
		file                           string
		family                         string
		cols, rows, device, signs      int
		first                          string
		firstFWStart, firstFWEnd, core int64
	}{
		{"tenstorrent__tt-forge-fe/forge/test/benchmark/test_data/device_perf/ops_perf_results.csv", "V1", 72, 6, 6, 0, "Matmul", 191618606856, 191618628876, 8},
		{"tenstorrent__tt-perf-report/tests/data/bh20_oft_integral_image_trace.csv", "V1", 74, 27, 21, 6, "integral_image_start", -1, -1, -1},
		{"tenstorrent__tt-metal/tt_eager/model_analyzer/reports/ResNet50-ops-1402fps.csv", "analyzer", 17, 103, 0, 0, "OptimizedConv", -1, -1, -1},
		{"tenstorrent__tt-metal/cpp_device_perf_report.EXCERPT.csv", "C++", 28, 37, 0, 0, "", 2569131976497, 2569131982223, 64},
		{"tenstorrent__tt-perf-report/tests/data/ops_perf_results_2025_09_18_11_39_20.csv.gz", "V2", 91, 671, 621, 50, "OftNet module started", -1, -1, -1},
		{"tenstorrent__ttnn-visualizer/ops_perf_results_2025_02_16_18_11_10.csv.gz", "V1", 89, 1179, 398, 0, "(torch) __get__", -1, -1, -1},
		{"tenstorrent__ttnn-visualizer/public/perf/ops_perf_results_SEG_ENCODER_2024_10_04_01_36_08.csv.gz", "V1", 63, 1004, 519, 0, "(torch) __get__", -1, -1, -1},
	} {
		tab, err := ReadOpsFile(datadir.Path(t, "tenstorrent", tc.file))
		if err != nil {
			t.Error(err)
			continue
		}
		device, signs := 0, 0
		for i := range tab.Ops {
			switch tab.Ops[i].Type {
			case "tt_dnn_device":
				device++
			case "signpost":
				signs++
			}
		}
		if tab.Family != tc.family || len(tab.Columns) != tc.cols || len(tab.Ops) != tc.rows || device != tc.device || signs != tc.signs || tab.Ragged != 0 || tab.BadNum != 0 {
			t.Errorf("%s: family %s, %d columns, %d rows, %d device, %d signposts, %d ragged, %d bad", tc.file, tab.Family, len(tab.Columns), len(tab.Ops), device, signs, tab.Ragged, tab.BadNum)
		}
		o := tab.Ops[0]
		if o.Code != tc.first || o.FWStart != tc.firstFWStart || o.FWEnd != tc.firstFWEnd || o.Cores != tc.core {
			t.Errorf("%s: first row %+v", tc.file, o)
		}
	}
}

func TestOpsCells(t *testing.T) {
	tab, err := ReadOps(strings.NewReader("OP CODE,GLOBAL CALL COUNT,CORE COUNT,DEVICE KERNEL DURATION [ns],LOC\n" +
		"A,1024.0,64,12.5,\"loc(\"\"x\"\":1)\"\nB,,x,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := tab.Ops[0], tab.Ops[1]
	if a.CallCount != 1024 || a.Kernel != 12.5 || tab.Cell(0, "LOC") != `loc("x":1)` || b.CallCount != -1 || !math.IsNaN(b.Kernel) || tab.BadNum != 1 || b.Line != 3 {
		t.Errorf("%+v %+v", a, b)
	}
	for text, want := range map[string]string{"": "the ops table is empty", "a,b\n": "line 1: not an ops table: no column OP CODE, OP_CODE or OP NAME"} {
		if _, err := ReadOps(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func FuzzReadOps(f *testing.F) {
	f.Add("OP CODE,OP TYPE\nA,signpost\n")
	f.Add("GLOBAL CALL COUNT,OP NAME,DEVICE FW START CYCLE\n1,,2\n")
	f.Fuzz(func(t *testing.T, in string) {
		tab, err := ReadOps(strings.NewReader(in))
		if err != nil {
			return
		}
		for i := range tab.Ops {
			tab.Cell(i, "OP CODE")
		}
	})
}
