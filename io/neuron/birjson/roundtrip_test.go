package birjson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
)

// rewrite writes m and reads it back.
func rewrite(m *components.Module, jobs int) (*components.Module, string, error) {
	var buf bytes.Buffer
	if err := Write(context.Background(), &buf, m, format.Options{Jobs: 1}); err != nil {
		return nil, "", err
	}
	src, err := format.FromBytes("again.bir.json", buf.Bytes())
	if err != nil {
		return nil, "", err
	}
	again, err := Read(context.Background(), src, format.Options{Jobs: jobs})
	return again, buf.String(), err
}

// checkRoundTrip says what is lost when m is written and read.
func checkRoundTrip(m *components.Module) error {
	again, text, err := rewrite(m, 2)
	if err != nil {
		return fmt.Errorf("reading what was written: %w\n%s", err, text)
	}
	if diff := moduleDiff(m, again); diff != "" {
		return fmt.Errorf("%s\n%s", diff, text)
	}
	_, text2, err := rewrite(again, 1)
	if err != nil {
		return err
	}
	if text != text2 {
		return errors.New("writing a second time gives other bytes")
	}
	return nil
}

func TestRoundTripExamples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m, err := readText(t, string(b), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRoundTrip(m); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// randomDocument draws a module as text: functions with allocations, blocks,
// loops, all shapes of dependencies the format allows, known and unknown keys.
func randomDocument(t *rapid.T) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	n := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, label) }
	yes := func(label string) bool { return rapid.Bool().Draw(t, label) }
	var functions []string
	row := 0
	for f := range n("functions", 1, 3) {
		var allocs, locs []string
		for a := range n("allocations", 0, 4) {
			name := fmt.Sprintf("t%d_%d", f, a)
			switch n("sort", 0, 5) {
			case 0:
				allocs = append(allocs, `{"Skind":"register","name":"`+name+`"}`)
				locs = append(locs, `"regref":"`+name+`"`)
				continue
			case 1:
				allocs = append(allocs, `{"name":"`+name+`_set","kind":"Internal","Skind":"memory_location_set"}`)
				locs = append(locs, `"memsetref":"`+name+`_set"`)
				continue
			}
			var places []string
			for p := range n("placements", 1, 2) {
				alias := ""
				if a > 0 && yes("alias") {
					alias = fmt.Sprintf(`,"alias":[["t%d_%d_set","t%d_%d.0",3]]`, f, n("with", 0, a-1), f, n("with", 0, a-1))
					if yes("old") {
						alias = fmt.Sprintf(`,"alias":[["t%d_%d.0",1]]`, f, n("with", 0, a-1))
					}
				}
				mem := pick("memory", `"SB"`, `"PSUM"`, `"DRAM"`, `"Input"`, `"Output"`, `8`, `16`, `32`, `"Unallocated"`)
				places = append(places, fmt.Sprintf(`{"name":"%s.%d","type":%s,"addr":%d,"dims":[%d,%d],"bank":%d,"base":%d%s}`,
					name, p, mem, 4*n("addr", 0, 1000), n("parts", 1, 128), 4*n("bytes", 1, 600), n("bank", 0, 7), 32*n("base", 0, 3), alias))
				locs = append(locs, fmt.Sprintf(`"memref":"%s.%d","memsetref":"%s_set"`, name, p, name))
			}
			allocs = append(allocs, `{"Skind":"memory_location_set","kind":"`+pick("kind", "Input", "Output", "Const", "Internal", "Weird")+
				`","name":"`+name+`_set","memorylocations":[`+strings.Join(places, ",")+`]}`)
		}
		var names []string
		operand := func() string {
			ap := fmt.Sprintf(`[[%d,%d],[%d,%d]]`, n("s0", 0, 2048), n("c0", 0, 128), n("s1", -2, 3), n("c1", 0, 700))
			switch n("operand", 0, 8) {
			case 0:
				return `{"kind":"imm_value","dtype":"float32","value":` + pick("value", "2.5", `"inf"`, `"nan"`, "-1e-7") + `}`
			case 1:
				return `{"kind":"imm_array","dtype":"int32","value_array":[1,2,3]}`
			case 2:
				return `{"kind":"symbolic_ap","dtype":"bfloat16","ap":` + ap + `,"addrs":[{"kind":"AffExprKind","terms":[],"c":4}],"memsetref":"nowhere"}`
			case 3:
				return `{"kind":"new_kind","x":[{}],"dtype":"posit8"}`
			}
			where := `"memref":"nowhere"`
			if len(locs) > 0 {
				where = rapid.SampledFrom(locs).Draw(t, "location")
			}
			return `{"kind":"physical_ap","dtype":"` + pick("dtype", "float32", "bfloat16", "uint8") + `","ap":` + ap +
				fmt.Sprintf(`,"offset":%d,`, n("offset", 0, 3000)) + where + `}`
		}
		var instruction func(depth int) string
		block := func(depth, most int) string {
			var list []string
			for range n("instructions", 0, most) {
				list = append(list, instruction(depth))
			}
			return fmt.Sprintf(`{"name":"b%d","instructions":[%s]}`, n("block", 0, 99), strings.Join(list, ","))
		}
		instruction = func(depth int) string {
			name := fmt.Sprintf("I-%d", row)
			if yes("named") {
				name = fmt.Sprintf(pick("name", "n%d", "I-7-%d", "Ü%d", `q\"%d`, `\u0000%d`), row)
			}
			row++
			var parts []string
			add := func(s string) { parts = append(parts, s) }
			add(`"name":"` + name + `"`)
			op := pick("opcode", "Matmult", "Activation", "DMACopy", "Load", "TensorTensor", "CollectiveCompute", "DMATrigger", "Memset", "Call", "Zorb", "UnconditionalBranch")
			loop := depth < 3 && n("loop", 0, 9) == 9
			if loop {
				op = pick("loop opcode", "Loop", "DynamicForLoop", "DoWhile")
				axis := pick("axis", `"LoopAxis":{"name":"i","lb":0,"ub":5,"stride":2}`, `"LoopAxis":{"lb":0,"ub":5,"stride":1}`, `"lb":9,"ub":0,"stride":-3`,
					`"LoopAxis":{"lb":{"kind":"AffExprKind","terms":[],"c":2},"ub":{"kind":"AffIVKind","axis":"o"},"stride":1}`, `"cond":{"x":1}`)
				add(axis)
				var inner []string
				for range n("bodies", 0, 2) {
					inner = append(inner, block(depth+1, 3))
				}
				add(`"blocks":[` + strings.Join(inner, ",") + `]`)
			}
			add(`"opcode":"` + op + `"`)
			if yes("engine") {
				add(`"engine":"` + pick("engine", "Pool", "PE", "DVE", "SP", "ALL", "Activation", "Unassigned") + `"`)
			}
			for _, key := range []string{"dependencies", "loop_carried_dependencies"} {
				if len(names) == 0 || !yes(key) {
					continue
				}
				var list []string
				for range n("edges", 0, 3) {
					to := rapid.SampledFrom(names).Draw(t, "to")
					list = append(list, pick("edge", `"`+to+`"`, `["`+to+`","Anti"]`, `["`+to+`",3]`, `["`+to+`","Ordered"]`, `["`+to+`","Invalid"]`))
				}
				if key != "dependencies" && yes("distance") {
					list = append(list, `["`+names[0]+`","Output",[0,-2]]`)
				}
				add(`"` + key + `":[` + strings.Join(list, ",") + `]`)
			}
			for _, key := range []string{"ins", "outs", "indirection_ins"} {
				if !yes(key) {
					continue
				}
				var list []string
				for range n("operands", 0, 3) {
					list = append(list, operand())
				}
				add(`"` + key + `":[` + strings.Join(list, ",") + `]`)
			}
			for _, extra := range []string{`"dge_type":"HWDGE"`, `"dge_type":"None"`, `"queue":"q1"`, `"queue":"q2"`, `"stream_id":2`, `"stream_id":9`, `"is_local":true`,
				`"start_tensor_calc":true`, `"stop_tensor_calc":false`, `"accumulation_flag":"Zero"`, `"is_transpose":true`, `"mode":"Transpose"`, `"mode":"Copy"`, `"constant":0.0`,
				`"func":"Exp"`, `"op0":"mult"`, `"zz":{"b":[1,{"c":null}],"a":"é"}`, `"debug":{"filename":"a.py","lineno":3,"op_name":"x","more":1}`,
				`"debug":{"filename":"a.py"}`, `"debug":{"op_name":"y"}`, `"debug":{"kernelName":"y"}`, `"debug":"text"`,
				`"sync_info":{"on_wait":[{"from":"q","id":3,"wait_value":16}],"on_update":[{"id":4,"update_value":1}]}`, `"unroll_dependencies":[["x","Flow",[],[]]]`,
				`"target":"f1"`, `"dma_blocks":["d0","d1"]`, `"scheduled_start":7`, `"engine_id":0`, `"is_tensor_tensor_scan":true`} {
				if n("extra", 0, 11) == 11 && !strings.Contains(strings.Join(parts, ","), extra[:strings.IndexByte(extra, ':')+1]) {
					add(extra)
				}
			}
			names = append(names, name)
			return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
		}
		var blocks []string
		for range n("blocks", 1, 3) {
			blocks = append(blocks, block(0, 8))
		}
		parts := rapid.Permutation([]string{fmt.Sprintf(`"name":"f%d"`, f), `"blocks":[` + strings.Join(blocks, ",") + `]`,
			`"allocations":[` + strings.Join(allocs, ",") + `]`, `"attributes":["need_dce"]`, `"origin":"NKI"`}).Draw(t, "function")
		functions = append(functions, "{"+strings.Join(parts, ",")+"}")
	}
	queues := `"queues":[{"name":"qT","num_dma_engines":16,"blocks":[{"instructions":[{"name":"d0","opcode":"DMABlock","blocks":[{"instructions":[
		{"opcode":"DMADescriptorCopy","ins":[{"kind":"physical_ap","dtype":"uint8","ap":[[64,4],[1,64]]}],"outs":[{"kind":"physical_ap","dtype":"uint8","ap":[[64,4],[1,64]]}]}]}]}]}]},{"name":"unused"}]`
	parts := rapid.Permutation([]string{`"version":2`, `"arch":"gen3"`, `"revision":"v2"`, `"attributes":{"zeta":[1,{}],"neuron_core_id":0,"pass":"x"}`, queues,
		`"functions":[` + strings.Join(functions, ",\n") + `]`}).Draw(t, "top")
	return "{" + strings.Join(parts, ",\n") + "}"
}

// What is read, written and read again is the same, on one goroutine and two.
func TestRoundTripRandom(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		text := randomDocument(rt)
		m, err := readText(t, text, 1)
		if err != nil {
			if strings.Contains(err.Error(), "has no instructions") || strings.Contains(err.Error(), "leaves the memory") {
				rt.Skip()
			}
			rt.Fatalf("%v\n%s", err, text)
		}
		two, err := readText(t, text, 3)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := moduleDiff(m, two); diff != "" {
			rt.Fatalf("three goroutines read something else: %s\n%s", diff, text)
		}
		if err := checkRoundTrip(m); err != nil {
			rt.Fatalf("%v\nread from\n%s", err, text)
		}
	})
}

// A trace repeats names and may have durations without starts.
func TestRoundTripOfATrace(t *testing.T) {
	m, err := readText(t, `{"functions":[{"name":"f","blocks":[{"name":"b","instructions":[
{"opcode":"NoOp","name":"gemm"},{"opcode":"NoOp","name":"x"},{"opcode":"NoOp","name":"gemm#1"},
{"opcode":"NoOp","name":"y","dependencies":["x"]}]}]}],"version":2}`, 1)
	if err != nil {
		t.Fatal(err)
	}
	m.Instr.Name.Set(1, m.Instr.Name.At(0)) // gemm, gemm, gemm#1, y
	m.Instr.MeasuredDur.Resize(4)
	m.Instr.MeasuredDur.Set(3, 70)
	m.Instr.MACs.Resize(4)
	m.Instr.MACs.Set(2, 4096)
	m.Instr.Work.Resize(4)
	m.Instr.Work.Set(1, 1<<40)
	m.Instr.Scope.Resize(4)
	m.Instr.Scope.Set(0, m.Symbols.InternString("model/layer"))
	m.Instr.Flags.Set(2, m.Instr.Flags.At(2)|components.FlagHelper|components.FlagContinued)
	again, text, err := rewrite(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"gemm", "gemm#1#", "gemm#1", "y"} {
		if got := again.InstrName(components.InstrID(i)); got != want {
			t.Errorf("row %d is called %s, want %s\n%s", i, got, want, text)
		}
	}
	if p := again.Edges.Preds.Row(3); len(p) != 1 || p[0]&ecs.TargetMask != 1 {
		t.Errorf("y depends on %v, want row 1\n%s", p, text)
	}
	in := &again.Instr
	if scope := again.Symbols.String(in.Scope.Get(0)); in.MACs.Get(2) != 4096 || in.Work.Get(1) != 1<<40 || scope != "model/layer" || in.Flags.At(2) != m.Instr.Flags.At(2) {
		t.Errorf("macs %d, work %d, scope %q, flags %b\n%s", in.MACs.Get(2), in.Work.Get(1), scope, in.Flags.At(2), text)
	}
	if d := again.Instr.MeasuredDur; d.Len() != 4 || d.At(3) != 70 || again.HasMeasurement() {
		t.Errorf("durations %v, measured %t\n%s", d.Slice(), again.HasMeasurement(), text)
	}
}
