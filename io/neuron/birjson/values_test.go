package birjson

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
)

func mustRead(t testing.TB, text string) *components.Module {
	t.Helper()
	m, err := readText(t, text, 2)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// withAllocs makes a module of one block with allocations.
func withAllocs(allocs, instructions string) string {
	return `{"functions":[{"name":"f","allocations":[` + allocs + `],"blocks":[{"name":"b","instructions":[` + instructions + `]}]}]}`
}

func loc(name, mem string, addr, parts, bytes, bank, base int) string {
	return fmt.Sprintf(`{"Skind":"memory_location_set","name":"%s_set","kind":"Internal","memorylocations":[{"Skind":"memory_location","name":"%s","type":%s,"addr":%d,"dims":[%d,%d],"bank":%d,"base":%d}]}`,
		name, name, mem, addr, parts, bytes, bank, base)
}

// Addresses, partitions and PSUM banks, worked out by hand .
func TestOperandAddresses(t *testing.T) {
	allocs := strings.Join([]string{
		loc("s", `"SB"`, 4096, 128, 1024, 0, 32),
		loc("p", `"PSUM"`, 0, 128, 2048, 3, 0),
		loc("q", `32`, 100, 128, 1948, 2, 0),       // the flag's number; an address relative to bank 2
		loc("r", `"PSUM"`, 10240, 128, 2048, 5, 0), // an address from bank 0 on
		loc("d", `"DRAM"`, 65536, 256, 512, 0, 0),
		loc("w", `"PSUM"`, 1024, 128, 2048, 0, 0),
	}, ",")
	for _, c := range []struct {
		op      string
		addr    uint64
		base    uint16
		banks   uint16 // as an output
		memory  components.Memory
		where   uint32
		elems   uint32
		partsOf uint16
	}{
		// 512 elements of two bytes are a partition: 1000 is partition 1, element 488.
		{`"memref":"s","dtype":"bfloat16","ap":[[512,64],[1,16]],"offset":1000`, 4096 + 488*2, 33, 0, components.MemSBUF, 1, 16, 64},
		{`"memref":"s","dtype":"float32","ap":[[256,1],[4,4],[1,4]],"offset":0`, 4096, 32, 0, components.MemSBUF, 1, 16, 1},
		{`"memref":"p","dtype":"float32","ap":[[512,128],[1,512]],"offset":0`, 3 * 2048, 0, 1 << (8 + 3), components.MemPSUM, 2, 512, 128},
		{`"memref":"q","dtype":"float32","ap":[[487,128],[1,10]],"offset":5`, 2*2048 + 100 + 20, 0, 1 << (8 + 2), components.MemPSUM, 3, 10, 128},
		{`"memref":"r","dtype":"float32","ap":[[512,128],[1,1]],"offset":0`, 10240, 0, 1 << (8 + 5), components.MemPSUM, 4, 1, 128},
		{`"memref":"d","dtype":"uint8","ap":[[512,256],[1,512]],"offset":7`, 65543, 0, 0, components.MemDRAM, 5, 512, 256},
		// 1024 bytes into bank 0, 2000 bytes long: banks 0 and 1.
		{`"memref":"w","dtype":"float32","ap":[[512,128],[1,500]],"offset":0`, 1024, 0, 3 << 8, components.MemPSUM, 6, 500, 128},
		// Only the set is named: its first placement.
		{`"memsetref":"s_set","dtype":"uint8","ap":[[1024,2],[1,8]],"offset":1`, 4097, 32, 0, components.MemSBUF, 1, 8, 2},
	} {
		m := mustRead(t, withAllocs(allocs, `{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap",`+c.op+`}]}`))
		o := m.Operands.At(0)
		if o.Address != c.addr || o.Base != c.base || o.Memory != c.memory || o.Where != c.where {
			t.Errorf("%s: address %d, partition %d, %s, location %d", c.op, o.Address, o.Base, o.Memory, o.Where)
		}
		if got := m.Instr.Banks.At(0); got != c.banks {
			t.Errorf("%s: banks %#x, not %#x", c.op, got, c.banks)
		}
		if m.Instr.Elems.At(0) != c.elems || m.Instr.Parts.At(0) != c.partsOf {
			t.Errorf("%s: %d elements, %d partitions", c.op, m.Instr.Elems.At(0), m.Instr.Parts.At(0))
		}
	}
}

// Allocations behind the blocks, and of another function.
func TestLateLocations(t *testing.T) {
	m := mustRead(t, `{"functions":[{"name":"f","blocks":[{"instructions":[
		{"opcode":"TensorCopy","name":"a","ins":[{"kind":"physical_ap","dtype":"float32","ap":[[512,128],[1,512]],"memref":"p"}],
		 "outs":[{"kind":"physical_ap","dtype":"uint8","ap":[[64,2],[1,64]],"memref":"far","memref_owner_func":"g"}]}]}],
		"allocations":[`+loc("p", `"PSUM"`, 0, 128, 2048, 6, 0)+`]},
		{"name":"g","allocations":[`+loc("far", `"Output"`, 0, 2, 64, 0, 0)+`]}]}`)
	if b := m.Instr.Banks.At(0); b != 1<<6 {
		t.Errorf("banks %#x", b)
	}
	if f := m.Instr.Flags.At(0); f != components.FlagSrcPSUM|components.FlagDstDRAM|components.FlagMixedTypes {
		t.Errorf("flags %b", f)
	}
	if o := m.Operands.At(1); o.Where != 2 || o.Memory != components.MemOutput {
		t.Errorf("%+v", o)
	}
	if len(m.Notes) != 0 {
		t.Errorf("%v", m.Notes)
	}
}

func TestDependencyForms(t *testing.T) {
	m := mustRead(t, one(`{"opcode":"NoOp","name":"a"},{"opcode":"NoOp","name":"b"},{"opcode":"NoOp","name":"c","dependencies":["a",["b","Anti"],["b",1],["a",3],["b"]],
		"loop_carried_dependencies":[["a","Anti",[2,3]],["b","Output"],"c"]}`))
	row := m.Edges.Preds.Row(2)
	// a is flow (over output), b is flow (over anti and ordered): rows 0 and 1 of class flow.
	if len(row) != 2 || row[0] != 0 || row[1] != 1 {
		t.Errorf("row %v", row)
	}
	want := [components.NumEdgeKinds]uint64{components.Flow: 3, components.Anti: 2, components.Ordered: 1, components.Output: 2}
	if m.Edges.Declared != want {
		t.Errorf("declared %v, not %v", m.Edges.Declared, want)
	}
	o := &m.Edges.Other
	if o.Len() != 3 || o.Distance.At(0) != 3 || o.Distance.At(1) != 1 || o.Kind.At(2) != components.Flow || o.Scope.At(2) != components.ScopeCarried {
		t.Errorf("%d carried, distances %v", o.Len(), o.Distance.Slice())
	}
}

func TestLanes(t *testing.T) {
	for member, want := range map[string]struct {
		lane  uint16
		flags components.Flags
	}{
		`"opcode":"DMACopy","engine":"SP"`:                                                   {components.LaneDMA, 0},
		`"opcode":"Load","engine":"Activation","dge_type":"None"`:                            {components.LaneDMA, components.FlagStaticDMA},
		`"opcode":"Load","engine":"Activation","dge_type":"SWDGE"`:                           {components.LaneDMA, components.FlagSWDGE},
		`"opcode":"DMATrigger","engine":"SP","dge_type":"HWDGE"`:                             {components.LaneSP, components.FlagTrigger | components.FlagHWDGE},
		`"opcode":"Collective","engine":"Pool"`:                                              {components.LaneCC0, 0},
		`"opcode":"CollectiveCompute","engine":"Pool","stream_id":2`:                         {components.LaneCC0 + 2, components.FlagCollective},
		`"opcode":"CollectiveCompute","engine":"Pool","is_local":true`:                       {components.LaneDMA, components.FlagCollective | components.FlagLocal},
		`"opcode":"CollectiveSend","engine":"Pool","stream_id":1`:                            {components.LaneCC0 + 1, 0},
		`"opcode":"UnconditionalBranch","engine":"ALL"`:                                      {components.LaneBarrier, components.FlagBarrier | components.FlagSequencer},
		`"opcode":"AllEngineBarrier","engine":"ALL"`:                                         {components.LaneBarrier, components.FlagBarrier},
		`"opcode":"Matmult","engine":"PE","start_tensor_calc":true,"stop_tensor_calc":false`: {components.LanePE, components.FlagAccStart},
		`"opcode":"Matmult","engine":"PE","accumulation_flag":"ZeroAccumulate"`:              {components.LanePE, components.FlagAccStart},
		`"opcode":"Matmult","engine":"Tensor","is_transpose":true`:                           {components.LanePE, components.FlagTranspose},
		`"opcode":"DMACopy","engine":"SP","mode":"Transpose"`:                                {components.LaneDMA, components.FlagTranspose},
		`"opcode":"Memset","engine":"DVE","constant":0`:                                      {components.LaneDVE, components.FlagZeroConst},
		`"opcode":"Memset"`:                     {components.LaneUnassigned, 0},
		`"opcode":"Frobnicate","engine":"Pool"`: {components.LanePool, components.FlagUnknownOp},
		`"opcode":"TensorScalarPtr","engine":"DVE","is_tensor_tensor_scan":true`: {components.LaneDVE, components.FlagScan},
	} {
		m := mustRead(t, one(`{"name":"a",`+member+`}`))
		if l, f := m.Instr.Lane.At(0), m.Instr.Flags.At(0); l != want.lane || f != want.flags {
			t.Errorf("%s: lane %d, flags %b; not %d, %b", member, l, f, want.lane, want.flags)
		}
	}
}

func TestTripCounts(t *testing.T) {
	for axis, want := range map[string]uint64{
		`"LoopAxis":{"name":"i","lb":0,"ub":16,"stride":1}`:                                                                                    16,
		`"LoopAxis":{"name":"i","lb":0,"ub":17,"stride":4}`:                                                                                    5, // (17+3)/4
		`"LoopAxis":{"lb":-3,"ub":3,"stride":2}`:                                                                                               3,
		`"LoopAxis":{"lb":10,"ub":0,"stride":-3}`:                                                                                              4, // 10, 7, 4, 1
		`"LoopAxis":{"lb":5,"ub":5,"stride":1}`:                                                                                                0,
		`"LoopAxis":{"lb":0,"ub":{"kind":"AffExprKind","terms":[],"c":8},"stride":1}`:                                                          8,
		`"LoopAxis":{"lb":0,"ub":{"terms":[],"c":6},"stride":1}`:                                                                               6, // version 1
		`"LoopAxis":{"lb":0,"ub":{"kind":"MultKind","var":{"kind":"AffExprKind","c":3,"terms":[]},"scale":4},"stride":1}`:                      12,
		`"LoopAxis":{"lb":0,"ub":{"kind":"FloorDivKind","numer":-7,"denom":-2},"stride":1}`:                                                    3,
		`"LoopAxis":{"lb":0,"ub":{"kind":"ModuloKind","numer":-7,"denom":5},"stride":1}`:                                                       3,
		`"LoopAxis":{"lb":0,"ub":{"kind":"SumKind","n_terms":2,"terms":[2,5]},"stride":1}`:                                                     7,
		`"LoopAxis":{"lb":0,"ub":{"kind":"AffExprKind","terms":[{"idx":{"kind":"AffExprKind","c":5,"terms":[]},"coeff":2}],"c":1},"stride":1}`: 11,
		`"LoopAxis":{"lb":0,"ub":{"kind":"AffIVKind","axis":"o"},"stride":1}`:                                                                  0,
		`"lb":0,"ub":9,"stride":2`: 5,
		`"DynamicForLoopAxis":{"name":"d"},"lb":0,"ub":{"kind":"IntRuntimeValueKind","regref":"r"},"stride":1`: 0,
		`"cond":{}`: 0,
	} {
		m := mustRead(t, one(`{"opcode":"Loop","name":"L",`+axis+`,"blocks":[{"name":"x","instructions":[{"opcode":"NoOp","name":"a"}]}]},{"opcode":"NoOp","name":"z","dependencies":["L",["a","Flow"]]}`))
		if got := m.Blocks.Trip.At(1); got != want {
			t.Errorf("%s: %d trips, not %d", axis, got, want)
		}
		if want == 0 && (len(m.Notes) != 1 || m.Notes[0].Code != "unknown-trip-count" && m.Notes[0].Code != "empty-loop") {
			t.Errorf("%s: notes %v", axis, m.Notes)
		}
		if m.Blocks.Parent.At(1) != 1 || m.Blocks.First.At(1) != 1 || m.Blocks.End.At(1) != 2 || m.Blocks.End.At(0) != 3 {
			t.Errorf("blocks %v %v %v", m.Blocks.Parent.Slice(), m.Blocks.First.Slice(), m.Blocks.End.Slice())
		}
		if s := m.Edges.Other.Scope.Slice(); len(s) != 2 || s[0] != components.ScopeLoop || s[1] != components.ScopeRegion {
			t.Errorf("scopes %v", s)
		}
	}
}

// A trigger moves what the descriptors of its DMA blocks move; the queue of
// the block is its queue.
func TestTriggers(t *testing.T) {
	descriptor := func(in, out string) string {
		return `{"opcode":"DMADescriptorCopy","ins":[{"kind":"physical_ap","dtype":"bfloat16",` + in + `}],"outs":[{"kind":"physical_ap","dtype":"bfloat16",` + out + `}]}`
	}
	m := mustRead(t, `{"functions":[{"name":"f","allocations":[`+loc("x", `"DRAM"`, 0, 128, 4096, 0, 0)+","+loc("t", `"SB"`, 0, 128, 1024, 0, 0)+`],
		"blocks":[{"instructions":[{"opcode":"DMATrigger","name":"a","engine":"SP","dma_blocks":["d0","d1"]},{"opcode":"DMATrigger","name":"b","engine":"SP","queue":"own","dma_blocks":["d1"]},
			{"opcode":"DMATrigger","name":"c","engine":"SP","dma_blocks":["none"]}]}]}],
		"queues":[{"name":"q0","blocks":[{"instructions":[{"name":"d0","opcode":"DMABlock","blocks":[{"instructions":[`+
		// 128 rows of 512 elements out of rows of 2048: 128 KiB in rows of 1 KiB.
		descriptor(`"ap":[[2048,128],[1,512]],"memref":"x"`, `"ap":[[512,128],[1,512]],"memref":"t"`)+`]}]}]}]},
		{"name":"q1","blocks":[{"instructions":[{"name":"d1","opcode":"DMABlock","blocks":[{"instructions":[`+
		// 16 rows of 64 elements: 2 KiB in rows of 128 bytes.
		descriptor(`"ap":[[2048,16],[1,64]],"memref":"x"`, `"ap":[[512,16],[1,64]],"memref":"t"`)+`]}]}]}]}]}`)
	in := &m.Instr
	if in.DMABytes.At(0) != 131072+2048 || in.DMARow.At(0) != 128 || in.Parts.At(0) != 128 || in.Elems.At(0) != (131072+2048)/128/2 || in.DType.At(0) != components.BFloat16 {
		t.Errorf("a: %d bytes in rows of %d, %d partitions of %d", in.DMABytes.At(0), in.DMARow.At(0), in.Parts.At(0), in.Elems.At(0))
	}
	if in.DMABytes.At(1) != 2048 || in.DMABytes.At(2) != 0 {
		t.Errorf("b: %d bytes, c: %d", in.DMABytes.At(1), in.DMABytes.At(2))
	}
	var queues []string
	for i := range 3 {
		name := "-"
		if q := in.Queue.At(i); q > 0 {
			name = m.Symbols.String(m.Queues.Name.At(int(q) - 1))
		}
		queues = append(queues, name)
	}
	if strings.Join(queues, " ") != "q0 own -" {
		t.Errorf("queues %v", queues)
	}
	if len(m.Notes) != 1 || m.Notes[0].Code != "unknown-dma-block" || m.Notes[0].Count != 1 {
		t.Errorf("%v", m.Notes)
	}
}

// Runs of functions: call sites times trip counts times the caller's runs.
func TestRuns(t *testing.T) {
	call := func(f string) string { return `{"opcode":"Call","name":"to_` + f + `","target":"` + f + `"}` }
	fn := func(name, instructions string) string {
		return `{"name":"` + name + `","blocks":[{"instructions":[` + instructions + `]}]}`
	}
	loop := func(n int, body string) string {
		return fmt.Sprintf(`{"opcode":"Loop","name":"L%d","LoopAxis":{"lb":0,"ub":%d,"stride":1},"blocks":[{"instructions":[%s]}]}`, n, n, body)
	}
	m := mustRead(t, `{"functions":[`+strings.Join([]string{
		fn("main", loop(3, call("a")+","+loop(5, call("b")))),
		fn("a", call("c")+`,{"opcode":"Call","name":"again","target":"c"}`),
		fn("b", call("c")),
		fn("c", `{"opcode":"NoOp"}`),
		fn("alone", call("alone")+","+call("nowhere")),
	}, ",")+`]}`)
	// a 3, b 15, c 3 × 2 + 15 = 21; a function that calls itself runs once.
	if got := fmt.Sprint(m.Functions.Runs.Slice()); got != "[1 3 15 21 1]" {
		t.Errorf("runs %s", got)
	}
	if len(m.Notes) != 2 || m.Notes[0].Code != "recursion" || m.Notes[1].Code != "unknown-call-target" {
		t.Errorf("%v", m.Notes)
	}
}

func TestSyncsAndSource(t *testing.T) {
	m := mustRead(t, one(`{"opcode":"NoOp","name":"a","debug":{"filename":"k.py","lineno":12,"op_name":"dot.3"}},
		{"opcode":"NoOp","name":"b","sync_info":{"on_wait":[{"from":"a","id":7,"wait_value":16}],"on_update":[{"id":8,"update_value":1}]},"debug":{"fileName":"x.py","lineNo":1}}`))
	if lo, hi := m.Syncs.Range(1); hi-lo != 2 || m.Syncs.Op.At(lo) != components.WaitGE || m.Syncs.ID.At(lo) != 7 || m.Syncs.Value.At(lo) != 16 ||
		m.Symbols.String(m.Syncs.Owner.At(lo)) != "a" || m.Syncs.Op.At(lo+1) != components.SetInc || m.Syncs.ID.At(lo+1) != 8 {
		t.Errorf("syncs %v %v %v", m.Syncs.Op.Slice(), m.Syncs.ID.Slice(), m.Syncs.Value.Slice())
	}
	if lo, hi := m.Syncs.Range(0); lo != hi {
		t.Errorf("a has syncs %d to %d", lo, hi)
	}
	if s, h := m.Symbols.String(m.Instr.Source.At(0)), m.Symbols.String(m.Instr.HLO.At(0)); s != "k.py:12" || h != "dot.3" {
		t.Errorf("source %s, %s", s, h)
	}
	if s := m.Symbols.String(m.Instr.Source.At(1)); s != "x.py:1" {
		t.Errorf("source %s", s)
	}
}

func TestModuleAsAWhole(t *testing.T) {
	m := mustRead(t, `{"module":{"version":1,"arch":"sunda","archRev":"v1","attributes":{"z":1,"a":"x","g":[[0,1]]},"artifact_path":"/w",
		"functions":[{"name":"f","origin":"Penguin","attributes":["need_dce"],"blocks":[{"name":"b","instructions":[{"opcode":"NoOp"}]}]}],
		"nki_functions":[{"name":"k","blocks":[{"name":"b","instructions":[{"opcode":"NoOp","name":"I-1"}]}]}]}}`)
	want := `[{a x} {g [[0,1]]} {z 1} {bir.archRev "v1"} {bir.artifact_path "/w"} {bir.function.f ["need_dce"]} {bir.origin.f Penguin} {bir.nki_function k}]`
	if got := fmt.Sprint(m.Attributes); got != want {
		t.Errorf("attributes\n%s\n%s", got, want)
	}
	if m.Arch != "sunda" || m.Functions.Len() != 2 || m.Instr.Len() != 2 || m.FunctionName(1) != "k" {
		t.Errorf("arch %s, %d functions", m.Arch, m.Functions.Len())
	}
	for path, name := range map[string]string{"x/nc00/sg00/bir.json": "nc00_sg00", "sg01/bir.json": "sg01", "bir.json": "bir", "a/b.bir.json": "b", "standard input": "standard input"} {
		if got := moduleName(path); got != name {
			t.Errorf("%s: %s, not %s", path, got, name)
		}
	}
}

// Functions without any dependencies are marked, those with an empty list not.
func TestAbsentDependencies(t *testing.T) {
	op := `"outs":[{"kind":"physical_ap","dtype":"uint8","ap":[[1,1],[1,8]]}]`
	fn := func(name, extra string) string {
		return `{"name":"` + name + `","blocks":[{"instructions":[{"opcode":"Memset","name":"a",` + op + `},{"opcode":"Memset","name":"b",` + op + extra + `}]}]}`
	}
	m := mustRead(t, `{"functions":[`+fn("f", "")+","+fn("g", `,"dependencies":[]`)+","+fn("h", `,"dependencies":["a"]`)+`]}`)
	if len(m.Attributes) != 1 || m.Attributes[0] != (components.Attribute{Key: components.AttributeNoDependencies, Value: "f"}) {
		t.Errorf("%v", m.Attributes)
	}
}
