package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/cmd/internal/units"
	"perfsim/components/datadir"
)

// The page's labels are the figures of run --json: latency, machine, busy time
// of every lane, and what operators and opcodes add up to.
func TestPageLabels(t *testing.T) {
	t.Parallel()
	inputs := [][]string{{example(t, "attention.bir.json")}, {example(t, "loop.bir.json")}, {"--loops", "trips", example(t, "loop.bir.json")},
		{example(t, "collective.bir.json")}, {example(t, "tiled_matmul.bir.json")}}
	t.Run("data", func(t *testing.T) {
		files := [][]string{{"neuron-profiles", "trn2_attn_fused_bf16_s512.profile.json.gz"}, {"hlo_text", "openxla__xla__dlrm_keras_jax_f32_train_step.hlo"}}
		if os.Getenv("PERFSIM_LONG") != "" { // five blocks, 373,119 instructions
			files = append(files, []string{"hlo_text", "openxla__xla__hlo_llama3_8b_bf16_activation_offloading_1x8.hlo"})
		}
		for _, f := range files {
			inputs = append(inputs, []string{datadir.Path(t, f...)})
		}
	})
	for _, in := range inputs {
		var run struct {
			Latency uint64 `json:"latency_ns"`
			Machine string `json:"machine"`
			Model   string `json:"model"`
			Memory  []struct {
				Space string `json:"space"`
				Peak  uint64 `json:"peak_bytes"`
			} `json:"memory"`
			Engines []struct {
				Name string `json:"name"`
				Busy uint64 `json:"busy_ns"`
			} `json:"engines"`
		}
		decode(t, perfsim(t, append([]string{"run", "--json"}, in...)...), &run)
		path := filepath.Join(t.TempDir(), "page.html")
		perfsim(t, append([]string{"view", "-o", path}, in...)...)
		var page pageOf
		pageData(t, path, &page)
		facts := map[string]string{}
		for _, f := range page.Program.Facts {
			facts[f.Name] = f.Value
		}
		if got := facts["latency"]; len(got) < len(units.Nanos(run.Latency)) || got[:len(units.Nanos(run.Latency))] != units.Nanos(run.Latency) {
			t.Errorf("%s: the page says a latency of %s, run %d ns", in, got, run.Latency)
		}
		if got := facts["machine"]; got != run.Machine+", "+run.Model+" model" {
			t.Errorf("%s: the page says machine %s, run %s and %s", in, got, run.Machine, run.Model)
		}
		if len(page.Memory) != len(run.Memory) {
			t.Errorf("%s: the page has the memories %+v, run %+v", in, page.Memory, run.Memory)
		}
		for n, m := range run.Memory {
			if n < len(page.Memory) && page.Memory[n].Peak != m.Peak {
				t.Errorf("%s: %s holds %d bytes on the page, %d in run", in, m.Space, page.Memory[n].Peak, m.Peak)
			}
		}
		var total uint64
		for _, b := range page.Program.Blocks {
			total += b.Total
		}
		if total != run.Latency {
			t.Errorf("%s: the blocks take %d ns, the program %d", in, total, run.Latency)
		}
		if len(page.Pages) != len(page.Program.Blocks) {
			continue // a file of a part of the program
		}
		busy := map[string]uint64{}
		var runs uint64
		for n, p := range page.Pages {
			b := page.Program.Blocks[page.Program.Held[n]]
			runs += b.Runs
			var lanes, groups, work uint64
			for _, r := range p.Meta.Sections[0].Rows {
				if r.Parent == 0 {
					busy[r.Name] += r.Busy * b.Runs
					lanes += r.Busy
				}
				for _, l := range r.Loops { // [loop, start, last, end, busy, …]
					if l[1] > l[2] || l[2] > l[3] || l[3] > p.Meta.Sections[0].Span || l[4] > l[3]-l[1] {
						t.Errorf("%s: lane %s has a loop of %v in %d ns", in, r.Name, l, p.Meta.Sections[0].Span)
					}
					// An inner loop lies in the last iteration of the one around it.
					for _, o := range r.Loops {
						if o[6]+1 == l[6] && o[1] <= l[1] && l[3] <= o[3] && l[1] < o[2] {
							t.Errorf("%s: lane %s: the loop %v begins before the last iteration of %v", in, r.Name, l, o)
						}
					}
				}
			}
			for _, g := range p.Groups {
				if g.Parent < 0 {
					for _, ns := range g.Busy {
						groups += ns
					}
				}
			}
			// Shares of whole ns of several runs are cut.
			if lost := uint64(len(p.Groups)*8) * min(b.Runs-1, 1); groups > lanes || groups+lost < lanes {
				t.Errorf("%s: the operators are busy for %d ns, the lanes for %d", in, groups, lanes)
			}
			moved, bytes := 0.0, 0.0
			for _, g := range p.Groups {
				if g.Parent < 0 {
					bytes += float64(g.Bytes)
				}
			}
			for _, c := range p.Counters.Counters {
				for k, v := range c.Value {
					if v < 0 || c.Most > 0 && v > c.Most*1.000001 {
						t.Errorf("%s: %s is %v at %d, the machine has %v", in, c.Name, v, c.Time[k], c.Most)
					}
				}
				var want float64
				for _, g := range p.Groups {
					switch {
					case g.Parent >= 0:
					case c.Name == "FLOP rate":
						want += float64(g.FLOPs) / 1e3 // TFLOP/s times ns
					}
				}
				sum := 0.0
				for k, v := range c.Value {
					until := p.Meta.Sections[0].Span
					if k+1 < len(c.Time) {
						until = c.Time[k+1]
					}
					sum += v * float64(until-min(until, c.Time[k]))
				}
				if strings.HasSuffix(c.Name, "HBM read") || strings.HasSuffix(c.Name, "HBM written") {
					moved += sum
				}
				if want > 0 && math.Abs(sum/want-1) > .03 {
					t.Errorf("%s: %s adds up to %g, the operators to %g", in, c.Name, sum, want)
				}
			}
			if bytes > 0 && math.Abs(moved/bytes-1) > .03 {
				t.Errorf("%s: the memory moves %g bytes, the operators %g", in, moved, bytes)
			}
			for _, w := range p.Meta.Work {
				work += w.Time
			}
			if loops := p.Meta.Loops; len(loops) > 0 && (work > lanes || work+lanes/100 < lanes) {
				t.Errorf("%s: the opcodes are busy for %d ns, the lanes for %d", in, work, lanes)
			}
		}
		for _, e := range run.Engines {
			if got := busy[e.Name]; got > e.Busy || got+runs < e.Busy {
				t.Errorf("%s: lane %s is busy for %d ns on the page, run says %d", in, e.Name, got, e.Busy)
			}
		}
	}
}
