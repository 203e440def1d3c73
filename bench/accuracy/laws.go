package accuracy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
)

// Laws are lines of a table: start-up and ns an element of one instruction.
// Each is predicted at the least, the middle and the largest number of
// elements it was measured at.

const classLaws = "instruction laws"

func lawJobs(f *file, _ []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		name := row["instruction"]
		where := fmt.Sprintf("%s, line %d", f.path, n+2)
		if types := strings.Trim(row["in_dtype"]+">"+row["out_dtype"], ">"); types != "" {
			name += " " + types
		}
		if row["src"] != "" || row["dst"] != "" {
			name += " " + row["src"] + ">" + row["dst"]
		}
		mach := opt.Machine
		if mach == "" {
			mach = "trn2"
		}
		item := Item{Class: classLaws, Machine: mach, Quantity: "instruction", Source: where}
		facts, err := lawFacts(row)
		if err != nil {
			item.Name, item.Reason = name, err.Error()
			out = append(out, job{item: item})
			continue
		}
		for _, x := range facts {
			it := item
			it.Name, it.Measured = strings.TrimSpace(name+" "+x.what), x.measured
			out = append(out, job{it, func(ctx context.Context, i *Item) error {
				m, err := machine.Load(mach)
				if err != nil {
					return err
				}
				v, err := x.predict(ctx, m)
				if err != nil {
					return err
				}
				i.set(v, 0, 0)
				return nil
			}})
		}
	}
	return out, nil
}

// fact is one figure of a law.
type fact struct {
	what     string
	measured float64
	predict  func(ctx context.Context, m *machine.Machine) (float64, error)
}

var (
	issueNS = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`issue (\d+(?:\.\d+)?)`) })
	other   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`K=(\d+): issue (\d+(?:\.\d+)?)`) })
	sizes   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([KNM])=(\d+)`) })
	parts   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`dispatch (\d+(?:\.\d+)?)`) })
)

// lawFacts returns what a line says that the model predicts.
func lawFacts(row map[string]string) ([]fact, error) {
	name := row["instruction"]
	startup, slope := number(row["startup_ns"]), number(row["ns_per_element"])
	switch {
	case strings.HasPrefix(name, "matmul"):
		return matmulFacts(row)
	case strings.HasPrefix(name, "dma "):
		return transferFacts(row)
	case name == "fixed kernel overhead":
		return []fact{{"", startup, constant("launch_ns")}}, nil
	case name == "act table load":
		return []fact{{"", startup, constant("seq.Activation.ACT_TABLE_LOAD_ns")}}, nil
	case strings.HasPrefix(name, "register move"):
		return []fact{{"", startup, constant("seq.SP.MOVE_ns")}}, nil
	}
	p, err := probeOf(row)
	if err != nil {
		return nil, err
	}
	lo, hi := number(row["min_n"]), number(row["max_n"])
	if !(lo >= 1) || !(hi >= lo) {
		lo, hi = 64, 512
	}
	if !(slope > 0) {
		slope = 0
		hi = lo
		if strings.Contains(row["max_n"], "") && number(row["max_n"]) > 0 {
			lo, hi = number(row["max_n"]), number(row["max_n"])
		}
	}
	var out []fact
	seen := map[float64]bool{}
	for _, n := range []float64{lo, math.Round(math.Sqrt(lo * hi)), hi} {
		if seen[n] {
			continue
		}
		seen[n] = true
		what := fmt.Sprintf("N=%.0f", n)
		if slope == 0 {
			what = ""
		}
		out = append(out, fact{what, startup + slope*n, func(ctx context.Context, m *machine.Machine) (float64, error) {
			return p.latency(ctx, m, uint32(n))
		}})
	}
	return out, nil
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func constant(name string) func(context.Context, *machine.Machine) (float64, error) {
	return func(_ context.Context, m *machine.Machine) (float64, error) {
		v, ok := m.Calibrated.Constant(name)
		if !ok {
			return 0, fmt.Errorf("machine %s has no constant %s", m.Name, name)
		}
		return v, nil
	}
}

// probe is a program of one instruction.
type probe struct {
	opcode  string
	engine  components.Engine
	fn      string
	flags   components.Flags
	in      []components.Memory
	dst     components.Memory
	from    components.DType
	to      components.DType
	reduces bool
}

// instructions are the names that laws have, with the compiler's opcodes.
var instructions = []struct {
	prefix, opcode string
	flags          components.Flags
}{
	{"tensor_tensor_scan", "TensorScalarPtr", components.FlagScan}, {"scalar_tensor_tensor", "TensorScalarPtr", components.FlagScalarTT},
	{"tensor_tensor", "TensorTensor", 0}, {"tensor_scalar", "TensorScalar", 0}, {"tensor_copy", "TensorCopy", 0}, {"memset", "Memset", 0},
	{"tensor_reduce", "TensorReduce", 0}, {"reciprocal", "Reciprocal", 0}, {"predicated copy", "CopyPredicated", 0}, {"stream_shuffle", "StreamShuffle", 0},
	{"stream_transpose", "StreamTranspose", 0}, {"activation accumulator read", "ActivationReadAccumulator", 0}, {"activation", "Activation", 0},
	{"affine_select", "TensorScalarAffineSelect", 0}, {"iota", "Iota", 0}, {"select", "Select", 0}, {"bn_stats", "BNStats", 0}, {"bn_aggr", "BNStatsAggregate", 0},
	{"max8", "Max", 0}, {"dropout", "Dropout", 0}, {"range_select", "RangeSelect", 0},
}

var probeEngines = map[string]components.Engine{"VectorE": components.DVE, "ScalarE": components.Activation, "GpSimdE": components.Pool, "any": components.DVE}

func probeOf(row map[string]string) (*probe, error) {
	name := row["instruction"]
	p := &probe{}
	for _, k := range instructions {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok {
			p.opcode, p.flags = k.opcode, k.flags
			if word, _, _ := strings.Cut(strings.TrimSpace(rest), " "); word != "" {
				p.fn, _, _ = strings.Cut(word, "/")
			}
			break
		}
	}
	if p.opcode == "" {
		return nil, fmt.Errorf("%q names no instruction that is known", name)
	}
	var ok bool
	if p.engine, ok = probeEngines[row["engine"]]; !ok {
		return nil, fmt.Errorf("%q is no engine that is known", row["engine"])
	}
	p.from, p.to = components.NoDType, components.NoDType
	for _, x := range []struct {
		text string
		to   *components.DType
	}{{row["in_dtype"], &p.from}, {row["out_dtype"], &p.to}} {
		if x.text == "" {
			continue
		}
		if *x.to, ok = components.ParseDType(x.text); !ok {
			return nil, fmt.Errorf("%q is no element type that is known", x.text)
		}
	}
	for _, s := range strings.Split(row["src"], "+") {
		if mem, ok := memories[s]; ok {
			p.in = append(p.in, mem)
		}
	}
	p.dst = memories[row["dst"]]
	p.reduces = p.opcode == "TensorReduce"
	return p, nil
}

var memories = map[string]components.Memory{"SBUF": components.MemSBUF, "PSUM": components.MemPSUM}

// latency predicts the time from start to retirement of the instruction with n
// elements in each of 128 partitions.
func (p *probe) latency(ctx context.Context, mach *machine.Machine, n uint32) (float64, error) {
	m := components.NewModule("probe", "law")
	lane := m.AddCoreLanes(0)
	m.Instr.Grow(1)
	m.Instr.OutElems.Resize(1)
	m.Instr.Func.Resize(1)
	in := &m.Instr
	in.Opcode.Set(0, m.Opcode(p.opcode))
	in.Engine.Set(0, p.engine)
	in.Lane.Set(0, lane+uint16(p.engine))
	in.Elems.Set(0, n)
	in.Parts.Set(0, 128)
	if p.opcode == "StreamTranspose" {
		in.Parts.Set(0, 32)
	}
	in.Func.Set(0, m.Symbols.InternString(p.fn))
	flags := p.flags
	tensor := func(role components.OperandRole, d components.DType, mem components.Memory, n uint32) {
		m.Operands.Add(components.AccessPattern{Role: role, DType: d, Memory: mem, Steps: []int64{1, 1}, Counts: []uint64{128, uint64(n)}})
	}
	for k, mem := range p.in {
		tensor(components.RoleIn, p.from, mem, n)
		if mem == components.MemPSUM {
			flags |= []components.Flags{components.FlagSrcPSUM, components.FlagSrc2PSUM}[min(k, 1)]
		}
	}
	if len(p.in) > 1 {
		flags |= components.FlagTwoInputs
	}
	dtype := p.from
	if p.to != components.NoDType && p.dst != 0 {
		out := n
		if p.reduces {
			out = 1
		}
		tensor(components.RoleOut, p.to, p.dst, out)
		in.OutElems.Set(0, out)
		if p.dst == components.MemPSUM {
			flags |= components.FlagDstPSUM
		}
	}
	if dtype == components.NoDType {
		dtype = p.to
	} else if p.to != components.NoDType && p.to != dtype {
		flags |= components.FlagMixedTypes
	}
	in.DType.Set(0, dtype)
	in.Flags.Set(0, flags)
	m.Operands.EndRow()
	if err := oneBlock(m); err != nil {
		return 0, err
	}
	r, err := calibrated.Predict(ctx, m, mach, calibrated.Options{})
	if err != nil {
		return 0, err
	}
	return float64(r.Dur[0]), nil
}

// oneBlock makes all rows of m one block.
func oneBlock(m *components.Module) error {
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, uint32(m.Instr.Len()))
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	if err := m.Link(&components.EdgeSet{}); err != nil {
		return err
	}
	return m.Check()
}

// matmulFacts predicts the distance of matmuls that follow one another, with
// the rows of the array that the law names and those that its note names.
func matmulFacts(row map[string]string) ([]fact, error) {
	shape := map[string]float64{}
	for _, x := range sizes().FindAllStringSubmatch(row["instruction"], -1) {
		shape[x[1]] = number(x[2])
	}
	d, ok := components.ParseDType(row["in_dtype"])
	if !ok || shape["K"] == 0 || shape["M"] == 0 {
		return nil, errors.New("the law names no shape K=, M=")
	}
	var out []fact
	note := row["note"]
	if x := other().FindStringSubmatch(note); x != nil {
		out = append(out, matmulFact(d, number(x[1]), shape["M"], number(x[2])))
		note = strings.Replace(note, x[0], "", 1)
	}
	if x := issueNS().FindStringSubmatch(note); x != nil {
		out = append(out, matmulFact(d, shape["K"], shape["M"], number(x[1])))
	}
	if len(out) == 0 {
		return nil, errors.New("the note names no issue interval")
	}
	return out, nil
}

func matmulFact(d components.DType, rows, columns, measured float64) fact {
	return fact{fmt.Sprintf("issue, K=%.0f", rows), measured, func(ctx context.Context, mach *machine.Machine) (float64, error) {
		const n = 64
		m := components.NewModule("probe", "law")
		lane := m.AddCoreLanes(0)
		m.Instr.Grow(n)
		m.Instr.OutElems.Resize(n)
		for i := range n {
			m.Instr.Opcode.Set(i, components.OpcodeMatmult)
			m.Instr.Engine.Set(i, components.PE)
			m.Instr.Lane.Set(i, lane+uint16(components.PE))
			m.Instr.Elems.Set(i, uint32(columns))
			m.Instr.OutElems.Set(i, uint32(columns))
			m.Instr.Parts.Set(i, uint16(rows))
			m.Instr.DType.Set(i, d)
			m.Instr.Flags.Set(i, components.FlagDstPSUM)
		}
		if err := oneBlock(m); err != nil {
			return 0, err
		}
		r, err := calibrated.Predict(ctx, m, mach, calibrated.Options{})
		if err != nil {
			return 0, err
		}
		// The clock has settled in the second half.
		return (r.Start[n-1] - r.Start[n/2]) / (n/2 - 1), nil
	}}
}

// transferFacts predicts the time from a trigger to the first packet, which
// the law has as issue and dispatch.
func transferFacts(row map[string]string) ([]fact, error) {
	issue, dispatch := issueNS().FindStringSubmatch(row["note"]), parts().FindStringSubmatch(row["note"])
	if issue == nil || dispatch == nil {
		return nil, errors.New("the note names no issue and dispatch")
	}
	name := "dma.hw_start_read_ns"
	if row["dst"] == "HBM" {
		name = "dma.hw_start_write_ns"
	}
	return []fact{{"trigger to first packet", number(issue[1]) + number(dispatch[1]), constant(name)}}, nil
}
