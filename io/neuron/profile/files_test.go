package profile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/ecs"
	"perfsim/io/format"
)

// profiles are the real files with the numbers worth writing down: edges by
// kind as the files declare them.
var profiles = []struct {
	name                        string
	instructions                int
	flow, anti, output, ordered uint64
}{
	{"trn2_attn_baseline_bf16_s512", 452, 413, 38, 66, 192},
	{"trn2_attn_baseline_bf16_s1024", 886, 1571, 390, 439, 896},
	{"trn2_attn_baseline_fp32_s1024", 917, 1711, 374, 701, 896},
	{"trn2_attn_fused_bf16_s512", 436, 403, 114, 48, 192},
	{"trn2_attn_fused_fp32_s512", 442, 434, 118, 80, 192},
}

func profileText(t testing.TB, name string) []byte {
	f, err := os.Open(datadir.Path(t, "neuron-profiles", name+".profile.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, name string, text []byte, jobs int) (*components.Module, error) {
	src, err := format.FromBytes(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return Importer.Module(context.Background(), src, format.Options{Jobs: jobs})
}

// plainProfile is a profile as the standard library reads it.
type plainProfile struct {
	Instruction []struct {
		ID           uint64
		Timestamp    uint64
		Duration     uint64
		Wait         uint64 `json:"evt_wait_time"`
		Label        string
		Opcode       string
		Operands     string
		Subgraph     string
		PC           uint32
		CompilerPC   *uint32 `json:"compiler_pc"`
		Name         string  `json:"bir_instruction_name"`
		Predecessors []struct {
			ID   uint64
			Type string
		}
	}
	DMA []struct {
		ID           uint64
		Timestamp    uint64
		Duration     uint64
		TransferSize uint64 `json:"transfer_size"`
	}
	Semaphores []struct{ Timestamp, Value uint64 } `json:"semaphore_update"`
	Ham        []struct{ Timestamp, Duration, K, N uint64 }
	Summary    []map[string]any
}

func TestFiles(t *testing.T) {
	for _, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			text := profileText(t, p.name)
			var want plainProfile
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			m, err := parse(t, p.name+".profile.json", text, 2)
			if err != nil {
				t.Fatal(err)
			}
			if m.Instr.Len() != p.instructions || len(want.Instruction) != p.instructions {
				t.Fatalf("%d instructions, %d in the file, want %d", m.Instr.Len(), len(want.Instruction), p.instructions)
			}

			// Edges by kind: declared, as written down, and as placed.
			counts := map[string]uint64{}
			for _, i := range want.Instruction {
				for _, e := range i.Predecessors {
					counts[e.Type]++
				}
			}
			declared := [components.NumEdgeKinds]uint64{components.Flow: counts["FLOW_DEPENDENCE"], components.Anti: counts["ANTI_DEPENDENCE"],
				components.Output: counts["OUTPUT_DEPENDENCE"], components.Ordered: counts["ORDERED"]}
			noted := [components.NumEdgeKinds]uint64{components.Flow: p.flow, components.Anti: p.anti, components.Output: p.output, components.Ordered: p.ordered}
			if m.Edges.Declared != declared || declared != noted {
				t.Errorf("edges %v, %v in the file, want %v", m.Edges.Declared, declared, noted)
			}
			// No pair of instructions has two edges in these files, and program
			// order agrees with all of them.
			if got := m.Edges.Counts(); got != declared || m.Edges.Other.Len() != 0 {
				t.Errorf("placement honours %v of %v edges, %d are left over", got, declared, m.Edges.Other.Len())
			}

			// Every instruction, by its id.
			rowOf := map[uint64]int{}
			for i, id := range m.Instr.Ref.Slice() {
				rowOf[id] = i
			}
			engines := map[string]int{}
			lo, hi := uint64(math.MaxUint64), uint64(0)
			for _, x := range want.Instruction {
				i, ok := rowOf[x.ID]
				if !ok {
					t.Fatalf("instruction %d is missing", x.ID)
				}
				delete(rowOf, x.ID)
				engines[laneOf(x.Subgraph, x.Label, x.Opcode)]++
				if got := m.LaneName(m.Instr.Lane.At(i)); got != laneOf(x.Subgraph, x.Label, x.Opcode) {
					t.Errorf("%d (%s on %s) is on lane %s", x.ID, x.Opcode, x.Label, got)
				}
				if e := m.Instr.Engine.At(i).String(); e != engineOf[x.Label] {
					t.Errorf("%d is of engine %s, want %s", x.ID, e, engineOf[x.Label])
				}
				compilerPC := uint32(0)
				if x.CompilerPC != nil {
					compilerPC = *x.CompilerPC + 1
				}
				got := []any{m.OpcodeName(m.Instr.Opcode.At(i)), m.Symbols.String(m.Instr.Text.At(i)), m.Instr.PC.At(i), m.Instr.CompilerPC.At(i),
					m.Instr.MeasuredStart.At(i), uint64(m.Instr.MeasuredDur.At(i)), uint64(m.Instr.MeasuredWait.At(i))}
				if d := cmp.Diff([]any{x.Opcode, x.Operands, x.PC, compilerPC, x.Timestamp, x.Duration, x.Wait}, got); d != "" {
					t.Errorf("%d differs:\n%s", x.ID, d)
				}
				name := m.InstrName(components.InstrID(i))
				if x.Name != "" && name != x.Name && !strings.HasPrefix(name, x.Name+".") {
					t.Errorf("%d is called %q, want %q", x.ID, name, x.Name)
				}
				lo, hi = min(lo, x.Timestamp), max(hi, x.Timestamp+x.Duration)
			}
			gotEngines := map[string]int{}
			for _, l := range m.Instr.Lane.Slice() {
				gotEngines[m.LaneName(l)]++
			}
			if d := cmp.Diff(engines, gotEngines); d != "" {
				t.Errorf("instructions by lane:\n%s", d)
			}
			if span, ok := m.MeasuredSpan(); !ok || span != hi-lo {
				t.Errorf("measured span %d, want %d", span, hi-lo)
			}
			names := map[string]bool{}
			for i := range m.Instr.Len() {
				names[m.InstrName(components.InstrID(i))] = true
			}
			if len(names) != m.Instr.Len() {
				t.Errorf("%d names for %d instructions", len(names), m.Instr.Len())
			}

			// Program counters ascend on each engine, the closing strict mode apart.
			last := map[[2]uint16]int64{}
			for i := range m.Instr.Len() {
				key := [2]uint16{m.Lanes.Core.At(int(m.Instr.Lane.At(i))), uint16(m.Instr.Engine.At(i))}
				pc := int64(m.Instr.PC.At(i))
				if text := m.Symbols.String(m.Instr.Text.At(i)); strings.Contains(text, "ordering_mode=strict") {
					pc += 1 << 32
				}
				if pc <= last[key] {
					t.Errorf("%s comes after pc %d of its engine", m.InstrName(components.InstrID(i)), last[key])
				}
				last[key] = pc
			}

			// Measurements.
			var bytes, dur, gotBytes, gotDur uint64
			refs := map[uint64]bool{}
			for _, x := range want.DMA {
				bytes, dur = bytes+x.TransferSize, dur+x.Duration
				refs[x.ID] = true
			}
			for i, id := range m.Packets.Ref.Slice() {
				gotBytes, gotDur = gotBytes+uint64(m.Packets.Bytes.At(i)), gotDur+uint64(m.Packets.Dur.At(i))
				delete(refs, id)
			}
			if m.Packets.Ref.Len() != len(want.DMA) || gotBytes != bytes || gotDur != dur || len(refs) != 0 {
				t.Errorf("%d packets of %d bytes and %d ns, want %d, %d, %d", m.Packets.Ref.Len(), gotBytes, gotDur, len(want.DMA), bytes, dur)
			}
			if m.SemUpdates.ID.Len() != len(want.Semaphores) || m.Windows.K.Len() != len(want.Ham) {
				t.Errorf("%d semaphore updates and %d windows, want %d and %d", m.SemUpdates.ID.Len(), m.Windows.K.Len(), len(want.Semaphores), len(want.Ham))
			}
			slices.SortFunc(want.Ham, func(x, y struct{ Timestamp, Duration, K, N uint64 }) int { return int(x.Timestamp) - int(y.Timestamp) })
			for i, h := range want.Ham {
				if m.Windows.Start.At(i) != h.Timestamp || m.Windows.Dur.At(i) != h.Duration || uint64(m.Windows.K.At(i)) != h.K || uint64(m.Windows.N.At(i)) != h.N {
					t.Errorf("window %d differs from %v", i, h)
				}
			}
			for k, v := range want.Summary[0] {
				switch got := m.Attribute("summary." + k); v := v.(type) {
				case string:
					if got != v {
						t.Errorf("summary.%s is %q, want %q", k, got, v)
					}
				case float64:
					if f, err := strconv.ParseFloat(got, 64); err != nil || f != v {
						t.Errorf("summary.%s is %q, want %v", k, got, v)
					}
				}
			}
			if m.Attribute("metadata.pe_clock_freq") != "2.4" || m.Attribute("metadata.is_simulation") != "false" || m.Arch != "trn2" {
				t.Errorf("clock %q, simulation %q, arch %q", m.Attribute("metadata.pe_clock_freq"), m.Attribute("metadata.is_simulation"), m.Arch)
			}
			for _, n := range m.Notes {
				if n.Code != "profile-lacks" && (n.Code != components.NoteInferred || p.name != "trn2_attn_baseline_fp32_s1024") {
					t.Errorf("unexpected note %v", n)
				}
			}
		})
	}
}

var engineOf = map[string]string{"Tensor": "PE", "TensorMatrix": "PE", "Vector": "DVE", "Scalar": "Activation", "GpSimd": "Pool", "Sync": "SP"}

func laneOf(subgraph, label, opcode string) string {
	lane := engineOf[label]
	if strings.HasPrefix(opcode, "DMA_") {
		lane = "DMA"
	}
	if subgraph == "sg01" {
		lane = "nc1." + lane
	}
	return lane
}

// TestKnownRows checks rows of one file against its text, read by a person.
func TestKnownRows(t *testing.T) {
	m, err := parse(t, "x", profileText(t, "trn2_attn_fused_bf16_s512"), 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "fused" || m.FunctionName(0) != "sg0000" || m.BlockName(0) != "Block1" || m.Blocks.Len() != 1 {
		t.Errorf("module %s, function %s, block %s", m.Name, m.FunctionName(0), m.BlockName(0))
	}
	row := map[string]int{}
	for i := range m.Instr.Len() {
		row[m.InstrName(components.InstrID(i))] = i
	}
	at := func(name string) int {
		i, ok := row[name]
		if !ok {
			t.Fatalf("no instruction %s; there are %v", name, slices.Sorted(maps.Keys(row)))
		}
		return i
	}
	syncs := func(i int) (out []string) {
		ops := [...]string{">=", "==", "+=", "-=", "="}
		lo, hi := m.Syncs.Range(components.InstrID(i))
		for r := lo; r < hi; r++ {
			out = append(out, string(m.Syncs.Space.At(r))+strconv.Itoa(int(m.Syncs.ID.At(r)))+ops[m.Syncs.Op.At(r)]+
				strconv.Itoa(int(m.Syncs.Value.At(r)))+" "+m.Symbols.String(m.Syncs.Owner.At(r)))
		}
		return out
	}

	// LDWEIGHTS and MATMUL of one transpose share their BIR name.
	ld, mm := at("I-50-0"), at("I-50-0.2")
	if m.Instr.Ref.At(ld) != 915562788731499561 || m.Instr.Ref.At(mm) != 3080749359096240105 {
		t.Errorf("ids %d and %d", m.Instr.Ref.At(ld), m.Instr.Ref.At(mm))
	}
	if !m.Instr.Flags.At(mm).Has(components.FlagTranspose|components.FlagAccStart|components.FlagAccStop|components.FlagDstPSUM|components.FlagMeasured) ||
		m.Instr.Banks.At(mm) != 0x0100 || m.Instr.Elems.At(mm) != 128 || m.Instr.Parts.At(mm) != 128 || m.Instr.DType.At(mm) != components.BFloat16 {
		t.Errorf("transpose: flags %b banks %x elems %d", m.Instr.Flags.At(mm), m.Instr.Banks.At(mm), m.Instr.Elems.At(mm))
	}
	if d := cmp.Diff([]string{"S8>=16 qSyncDynamicHW"}, syncs(ld)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"S5+=1 Tensor"}, syncs(mm)); d != "" {
		t.Error(d)
	}
	// Its weights and input come by DMA, one of them through a wait of the PE.
	var preds []string
	for _, w := range m.Edges.Preds.Row(mm) {
		preds = append(preds, m.InstrName(components.InstrID(w&ecs.TargetMask))+" "+components.KindOfClass(uint8(w>>ecs.ClassShift)).String())
	}
	slices.Sort(preds)
	if d := cmp.Diff([]string{"I-49-0 Flow", "I-50-0-wait-0 Flow", "I-7-0 Flow"}, preds); d != "" {
		t.Error(d)
	}

	dma := at("I-49-0")
	if m.LaneName(m.Instr.Lane.At(dma)) != "DMA" || m.Instr.Engine.At(dma) != components.SP || m.Instr.DMABytes.At(dma) != 32768 || m.Instr.DMARow.At(dma) != 256 ||
		!m.Instr.Flags.At(dma).Has(components.FlagHWDGE|components.FlagSrcDRAM) || m.Symbols.String(m.Queues.Name.At(int(m.Instr.Queue.At(dma))-1)) != "qSyncDynamicHW" {
		t.Errorf("load: lane %d bytes %d row %d flags %b", m.Instr.Lane.At(dma), m.Instr.DMABytes.At(dma), m.Instr.DMARow.At(dma), m.Instr.Flags.At(dma))
	}
	if d := cmp.Diff([]string{"S8+=16 qSyncDynamicHW"}, syncs(dma)); d != "" {
		t.Error(d)
	}
	store := at("I-41-0")
	if !m.Instr.Flags.At(store).Has(components.FlagSWDGE|components.FlagDstDRAM|components.FlagMixedTypes) || m.Instr.DMABytes.At(store) != 131072 {
		t.Errorf("store: flags %b bytes %d", m.Instr.Flags.At(store), m.Instr.DMABytes.At(store))
	}
	lo, hi := m.Operands.Range(components.InstrID(store))
	if hi-lo != 2 || m.Symbols.String(m.Locations.Name.At(int(m.Operands.Where.At(lo+1))-1)) != "table[3]" {
		t.Errorf("store: operands %d to %d", lo, hi)
	}

	exp := at("I-26-0")
	if fn := m.Symbols.String(m.Instr.Func.At(exp)); fn != "EXP" || m.Instr.Banks.At(exp) != 0x0010 {
		t.Errorf("activation %s reads banks %x", fn, m.Instr.Banks.At(exp))
	}
	barrier := at("Tensor.65.EVENT_SEMAPHORE")
	if d := cmp.Diff([]string{"$2==8 ", "$2=0 "}, syncs(barrier)); d != "" || !m.Instr.Flags.At(barrier).Has(components.FlagSequencer) {
		t.Error(d)
	}
	if clear := at("nc1.Tensor.51.NOP"); cmp.Diff([]string{"E4==1 ", "E4=0 "}, syncs(clear)) != "" {
		t.Error(syncs(clear))
	}
	// The runtime's closing mode switch has a low program counter.
	if strict, branch := at("nc1.Sync.21.SET_ORDERING_MODE"), at("nc1.Sync.58.COMPARE_BRANCH"); strict < branch {
		t.Errorf("strict mode in row %d before the branch to it in row %d", strict, branch)
	}
}

// TestJobs reads with one and with two workers: the modules are equal, byte
// by byte.
func TestJobs(t *testing.T) {
	for _, p := range profiles {
		text := profileText(t, p.name)
		one, err := parse(t, p.name, text, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, jobs := range []int{2, 5} {
			two, err := parse(t, p.name, text, jobs)
			if err != nil {
				t.Fatal(err)
			}
			sameModule(t, one, two)
		}
	}
}

func sameModule(t *testing.T, a, b *components.Module) {
	t.Helper()
	if d := cmp.Diff(a.Attributes, b.Attributes) + cmp.Diff(a.Notes, b.Notes) + cmp.Diff(a.Opcodes, b.Opcodes); d != "" || a.Name != b.Name {
		t.Errorf("differ: %s", d)
	}
	cols := b.Columns()
	for i, c := range a.Columns() {
		if !bytes.Equal(c.Raw(), cols[i].Raw()) {
			t.Errorf("column %s differs", c.Name())
		}
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		head string
		want bool
	}{
		{`{"instruction":[{"opcode":"NOP","pc":1}]}`, true},
		{` {"active_time" : [ {"a":1}`, true},
		{`{"metadata":[{"pe_clock_freq":2.4}],"dma":[]}`, true},
		{`{"warnings":[],"nc_mem_usage":[`, true},
		{`{"metadata":[{"author":"me"}],"functions":[]}`, false},
		{`{"traceEvents":[{"ph":"X"}]}`, false},
		{`{"metadata":{"pe_clock_freq":2.4}}`, false},
		{`{"instruction":"x"}`, false},
		{`[{"instruction":[]}]`, false},
		{`{}`, false},
		{``, false},
		{`{"instruction`, false},
		{"\x1f\x8b", false},
	} {
		if got := sniff([]byte(c.head)); got != c.want {
			t.Errorf("%s: %v", c.head, got)
		}
	}
	for _, p := range profiles {
		if !sniff(profileText(t, p.name)[:format.SniffLen]) {
			t.Errorf("%s is not recognised", p.name)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	text := profileText(b, "trn2_attn_fused_bf16_s512")
	// A large profile: the real one a hundred times, with fresh ids.
	var p map[string]json.RawMessage
	if err := json.Unmarshal(text, &p); err != nil {
		b.Fatal(err)
	}
	big, n := repeat(b, p, 100)
	for _, jobs := range []int{1, 2} {
		b.Run("jobs="+strconv.Itoa(jobs), func(b *testing.B) {
			b.SetBytes(int64(len(big)))
			b.ReportAllocs()
			var before, after syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				m, err := parse(b, "big", big, jobs)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(m.Bytes())/float64(n), "module-B/instr")
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "instr/s")
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
				b.Fatal(err)
			}
			cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(len(big))*float64(b.N)/float64(cpu)*1000, "MB/cpu-s")
		})
	}
}

// repeat makes a profile of the instructions and packets of p, times over:
// each copy has ids and program counters of its own.
func repeat(t testing.TB, p map[string]json.RawMessage, times int) (text []byte, instructions int) {
	var instr []map[string]any
	d := json.NewDecoder(bytes.NewReader(p["instruction"]))
	d.UseNumber()
	if err := d.Decode(&instr); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.WriteString(`{"instruction":[`)
	for k := range times {
		for i, x := range instr {
			if k+i > 0 {
				out.WriteByte(',')
			}
			c := maps.Clone(x)
			c["id"] = other(x["id"], k)
			c["pc"] = json.Number(strconv.FormatInt(num(x["pc"])+int64(k)*10000, 10))
			c["timestamp"] = json.Number(strconv.FormatInt(num(x["timestamp"])+int64(k)*100000, 10))
			if preds, ok := x["predecessors"].([]any); ok {
				var list []any
				for _, p := range preds {
					p := maps.Clone(p.(map[string]any))
					p["id"] = other(p["id"], k)
					list = append(list, p)
				}
				c["predecessors"] = list
			}
			b, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
		}
	}
	out.WriteString(`],"dma":[`)
	body := bytes.TrimSuffix(bytes.TrimPrefix(p["dma"], []byte("[")), []byte("]"))
	for k := range times {
		if k > 0 {
			out.WriteByte(',')
		}
		out.Write(body)
	}
	out.WriteString("]}")
	return out.Bytes(), len(instr) * times
}

func num(v any) int64 {
	n, _ := v.(json.Number).Int64()
	return n
}

func other(id any, k int) json.Number {
	n, _ := strconv.ParseUint(id.(json.Number).String(), 10, 64)
	return json.Number(strconv.FormatUint(n^uint64(k)<<1, 10))
}
