package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"perfsim/components/datadir"
)

// Every name that explain and query print can be typed back.
func TestPrintedNamesAreUnderstood(t *testing.T) {
	for _, input := range []string{
		"../../../examples/attention.bir.json", "../../../examples/collective.bir.json", "../../../examples/loop.bir.json", "../../../examples/tiled_matmul.bir.json",
		datadir.Path(t, "neuron-profiles", "trn2_attn_fused_bf16_s512.profile.json.gz"),
		datadir.Path(t, "kineto", "facebookresearch__HolisticTraceAnalysis__alexnet_trace.json"),
	} {
		var r struct {
			Model  string
			Causes []struct {
				Name, Kind string
				Place      struct{ Source, Instruction string }
			}
			Engines []struct{ Name string }
			Stalls  []struct{ Cause, Opcode, Source, Example string }
			Lines   []struct{ Source, Example string }
			Blocks  []struct{ Function, Block string }
			Buffers []struct{ Name, Tensor string } `json:"antideps"`
		}
		if err := json.Unmarshal([]byte(perfsim(t, "explain", "--json", "--top", "6", input)), &r); err != nil {
			t.Fatal(err)
		}
		asked := map[string]bool{}
		count := func(field, value string) int {
			n, err := strconv.Atoi(strings.TrimSpace(perfsim(t, "query", "--count", input, field+"=\""+value+"\"")))
			if err != nil {
				t.Errorf("%s: %s=%s: %v", input, field, value, err)
			}
			return n
		}
		some := func(field, value string) {
			key := field + "=" + value
			if value == "" || asked[key] {
				return
			}
			asked[key] = true
			if count(field, value) == 0 {
				t.Errorf("%s: query %s=%q finds nothing", input, field, value)
			}
		}
		for _, e := range r.Engines {
			perfsim(t, "explain", "--engine", e.Name, input)
			some("lane", e.Name)
			some("engine", e.Name)
			if r.Model != "calibrated" {
				perfsim(t, "whatif", input, "latency."+e.Name+"=0.5x")
			}
		}
		for _, c := range r.Causes {
			if c.Kind == "constraint" && r.Model == "reference" {
				perfsim(t, "whatif", input, "drop="+c.Name)
			}
			if c.Kind != "runtime" { // that is before and behind the program
				some("source", c.Place.Source)
			}
			if name := c.Place.Instruction; name != "" {
				some("name", name)
				some("name", cut(name, 8))
				if key := "explain " + name; !asked[key] && count("name", name) == 1 {
					asked[key] = true
					perfsim(t, "explain", "--instruction", name, input)
				}
			}
		}
		for _, s := range r.Stalls {
			some("opcode", s.Opcode)
			some("source", s.Source)
			some("cause", s.Cause)
		}
		for _, l := range r.Lines {
			some("source", l.Source)
			some("source", cut(l.Source, 6))
		}
		for _, b := range r.Blocks {
			perfsim(t, "explain", "--block", b.Function+"/"+b.Block, input)
			some("block", b.Function+"/"+b.Block)
			some("block", b.Block)
		}
		if r.Model != "calibrated" {
			for _, b := range r.Buffers {
				label := b.Name
				if b.Tensor != "" && b.Tensor != b.Name {
					label += " of " + b.Tensor
				}
				perfsim(t, "whatif", input, "drop=anti:buffer="+label+",anti:buffer=\""+label+"\"")
			}
		}
	}
}
