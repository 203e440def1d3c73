package devicelog

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perfsim/io/tenstorrent/profilelog"
)

// chip has the peaks by which an operator is judged.
type chip struct {
	Name string
	// LoFi are the TFLOP/s of a core at one pass; a fidelity of n passes has
	// 1/n of it, but for Wormhole's published figures.
	LoFi, HiFi2, HiFi4 float64
	DRAM               float64 // GB/s
}

// chips are the boards' published peaks: Wormhole n150 (74, 148 and 262
// TFLOP/s of 72 cores, 288 GB/s), Blackhole p150 (4,096 FLOP a core and cycle
// at 1.35 GHz, 512 GB/s), n1 (the same at 0.65 GHz, 120 GB/s), Grayskull e150
// (332 and 83 TFLOP/s of 120 cores, 118.4 GB/s).
var chips = []chip{
	{"wormhole", 262. / 72, 148. / 72, 74. / 72, 288},
	{"blackhole", 4.096 * 1.35, 4.096 * 1.35 / 2, 4.096 * 1.35 / 4, 512},
	{"n1", 4.096 * 0.65, 4.096 * 0.65 / 2, 4.096 * 0.65 / 4, 120},
	{"grayskull", 332. / 120, 332. / 240, 83. / 120, 118.4},
}

// ChipNames lists the chips whose peaks are known.
func ChipNames() []string {
	var out []string
	for _, c := range chips {
		out = append(out, c.Name)
	}
	return out
}

// chipOf returns the chip of an ARCH text such as wormhole_b0; nil for others.
func chipOf(arch string) *chip {
	for i := range chips {
		if strings.HasPrefix(strings.ToLower(arch), chips[i].Name) {
			return &chips[i]
		}
	}
	return nil
}

// perCore returns the TFLOP/s of a core at a fidelity, 0 where it is unknown.
func (c *chip) perCore(fidelity string) float64 {
	switch fidelity {
	case "LoFi":
		return c.LoFi
	case "HiFi2":
		return c.HiFi2
	case "HiFi3": // four passes in three
		return c.HiFi4 * 4 / 3
	case "HiFi4":
		return c.HiFi4
	}
	return 0
}

// OpPerf is how well an operator of a table ran.
type OpPerf struct {
	ID       int    `json:"id"`             // row of the table, from 1
	Line     int    `json:"line"`           // line of the table's file
	Code     string `json:"op_code"`        // OP CODE of the table
	Size     string `json:"size,omitempty"` // M × K × N of products
	Device   int64  `json:"device"`
	Signpost string `json:"signpost,omitempty"` // the last one before it
	Host     bool   `json:"host_op"`            // whether the operator runs on the host
	// Time is the kernel duration, Gap what passed since the kernel of the
	// operator before it; both absent where the table has none.
	Time         *float64 `json:"device_ns"`
	Gap          *float64 `json:"op_to_op_ns"`
	Share        float64  `json:"share"`            // of time and gaps of its device
	Cores        int64    `json:"cores"`            // cores that it runs on
	Available    int64    `json:"available_cores"`  // cores that the device has for operators
	DRAMBytes    uint64   `json:"dram_bytes"`       // of tensors in device memory, each once
	DRAMPercent  *float64 `json:"dram_percent"`     // bytes over the device time, in percent of the memory's peak rate
	FLOPs        uint64   `json:"flops"`            // 2·M·N·K of a matmul, or those of a convolution
	FLOPsPercent *float64 `json:"flops_percent"`    // FLOPs over the device time, in percent of the peak of the cores in use
	Fidelity     string   `json:"math_fidelity"`    // math fidelity of the table
	Types        string   `json:"types"`            // data types of inputs and output
	Bound        string   `json:"bound"`            // DRAM, FLOP, BOTH, SLOW, HOST or ""
	Advice       []string `json:"advice,omitempty"` // what to try
	// Launch is the launch of the log that ran it; nil where none was joined.
	Launch *OpLaunch `json:"launch,omitempty"`

	call, trace, replay, start int64 // identity of the launch, -1 where absent
}

// OpLaunch is an operator in the device log.
type OpLaunch struct {
	Run        string   `json:"run"`                  // run host id of the launch
	Start      uint64   `json:"firmware_start_cycle"` // first cycle of the firmware zones
	Cores      int      `json:"cores"`                // cores with zones in the launch
	FirmwareNS *float64 `json:"firmware_ns"`          // from the first start to the last end of its firmware zones
	KernelNS   *float64 `json:"kernel_ns"`
	GapNS      *float64 `json:"op_to_op_ns"`
}

// OpTotal sums operators.
type OpTotal struct {
	Name   string  `json:"name"` // op code or signpost
	Device int64   `json:"device"`
	Ops    int     `json:"ops"` // operators added up
	Time   float64 `json:"device_ns"`
	Gap    float64 `json:"op_to_op_ns"`
	Share  float64 `json:"share"` // part of the device time and gaps of all
}

// bounds, gaps and cores from which something is said, as tt-perf-report has
// them.
const (
	boundPercent = 65
	gapLimit     = 6500 // ns
	fewCores     = 10
	shardedCores = 12 // that a product with weights sharded over DRAM counts with
)

// PerfOps judges every operator of a table. arch overrules the table's chip.
func PerfOps(t *profilelog.OpsTable, arch string) []OpPerf {
	var out []OpPerf
	signpost := ""
	seen := map[int64]bool{}
	total := map[int64]float64{}
	for i := range t.Ops {
		o := &t.Ops[i]
		if o.Type == "signpost" {
			signpost = o.Code
			continue
		}
		p := OpPerf{ID: i + 1, Line: o.Line, Code: o.Code, Device: o.Device, Signpost: signpost, Cores: o.Cores, Available: o.Available,
			Host: o.Type == "tt_dnn_cpu" || o.Type == "python_fallback" || strings.Contains(o.Code, "(torch)"), Fidelity: t.Cell(i, "MATH FIDELITY"),
			call: o.CallCount, trace: o.TraceID, replay: o.Session, start: o.FWStart}
		if impossible(o) == "" {
			p.Time = ptr(o.Kernel)
		}
		// The first operator of a device has nothing before it.
		if seen[o.Device] && o.OpToOp >= 0 {
			p.Gap = ptr(o.OpToOp)
		}
		seen[o.Device] = seen[o.Device] || !p.Host
		p.work(t, i, cmp.Or(arch, o.Arch))
		p.advise(t, i)
		total[p.Device] += value(p.Time) + value(p.Gap)
		out = append(out, p)
	}
	for i := range out {
		if x := total[out[i].Device]; x > 0 {
			out[i].Share = (value(out[i].Time) + value(out[i].Gap)) / x
		}
	}
	return out
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// tensor is an input or output of an operator as the table has it.
type tensor struct {
	dims   [4]uint64 // W, Z, Y, X with padding
	dtype  string
	memory string
	ok     bool
}

func (x *tensor) elems() uint64 { return x.dims[0] * x.dims[1] * x.dims[2] * x.dims[3] }

// most bounds a dimension, so that products fit.
const mostDim = 1 << 31

func tensorOf(t *profilelog.OpsTable, i int, name string) tensor {
	x := tensor{dtype: t.Cell(i, name+"_DATATYPE"), memory: t.Cell(i, name+"_MEMORY"), ok: true}
	for k, d := range []string{"_W", "_Z", "_Y", "_X"} {
		text := cmp.Or(t.Cell(i, name+d+"_PAD[LOGICAL]"), t.Cell(i, name+d))
		text, _, _ = strings.Cut(text, "[")
		v, err := strconv.ParseFloat(text, 64) // a spreadsheet writes 32.0
		if err != nil || v < 1 || v > mostDim {
			return tensor{}
		}
		x.dims[k] = uint64(v)
	}
	if x.dims[0] > 1<<16 || x.dims[1] > 1<<16 || math.Log2(float64(x.dims[0]))+math.Log2(float64(x.dims[1]))+math.Log2(float64(x.dims[2]))+math.Log2(float64(x.dims[3])) > 50 {
		return tensor{}
	}
	return x
}

// bytes returns the size of a tensor by the digits of its type: BFLOAT16 has
// two bytes an element, BFLOAT8_B one (its shared exponents are left out, as
// the vendor's report does).
func (x *tensor) bytes() uint64 {
	bits := 0
	for _, c := range x.dtype {
		if c >= '0' && c <= '9' {
			bits = min(bits*10+int(c-'0'), 1024)
		} else if bits > 0 {
			break
		}
	}
	if bits == 0 {
		bits = 32
	}
	return x.elems() * uint64(bits) / 8
}

var typeNames = map[string]string{"FLOAT32": "FP32", "BFLOAT16": "BF16", "BFLOAT8_B": "BFP8", "BFLOAT4_B": "BFP4"}

// work fills bytes, FLOPs and what bounds the operator.
func (p *OpPerf) work(t *profilelog.OpsTable, i int, arch string) {
	in0, in1, out := tensorOf(t, i, "INPUT_0"), tensorOf(t, i, "INPUT_1"), tensorOf(t, i, "OUTPUT_0")
	var types []string
	for _, x := range []*tensor{&in0, &in1} {
		if x.ok && x.dtype != "" {
			types = append(types, cmp.Or(typeNames[x.dtype], x.dtype))
		}
	}
	p.Types = strings.Join(types, " × ")
	if out.ok && out.dtype != "" {
		p.Types += " → " + cmp.Or(typeNames[out.dtype], out.dtype)
	}
	for n := range 16 {
		x := tensorOf(t, i, "INPUT_"+strconv.Itoa(n))
		if !x.ok {
			break
		}
		if strings.Contains(x.memory, "DRAM") {
			p.DRAMBytes += x.bytes()
		}
	}
	if out.ok && strings.Contains(out.memory, "DRAM") {
		p.DRAMBytes += out.bytes()
	}
	product := strings.Contains(p.Code, "Matmul")
	conv := strings.Contains(p.Code, "Conv")
	cores := p.Cores
	var m, k, n uint64
	switch {
	case product && in0.ok && in1.ok:
		m, k, n = in0.dims[0]*in0.dims[1]*in0.dims[2], in0.dims[3], in1.dims[3]
		if strings.Contains(t.Cell(i, "ATTRIBUTES"), "DRAMShardedProgramConfig") {
			cores = shardedCores
		}
		p.Size = fmt.Sprintf("%d × %d × %d", in0.dims[2], k, n)
	case conv && in1.ok && out.ok:
		// The weights are a matrix: window and input channels by output channels.
		m, k, n = out.dims[2], in1.dims[2], in1.dims[3]
		p.Size = fmt.Sprintf("%d × %d × %d", m, k, n)
	}
	if f := 2 * float64(m) * float64(k) * float64(n); f < 1<<62 {
		p.FLOPs = uint64(f)
	}
	if p.Host {
		p.Bound = "HOST"
	}
	on := chipOf(arch)
	if on == nil || value(p.Time) <= 0 || p.Host {
		return
	}
	if p.DRAMBytes > 0 {
		p.DRAMPercent = ptr(100 * float64(p.DRAMBytes) / *p.Time / on.DRAM)
	}
	if peak := on.perCore(p.Fidelity) * float64(cores); p.FLOPs > 0 && peak > 0 {
		p.FLOPsPercent = ptr(100 * float64(p.FLOPs) / *p.Time / (peak * 1e3))
	}
	dram, flop := value(p.DRAMPercent) >= boundPercent, value(p.FLOPsPercent) >= boundPercent
	switch {
	case dram && flop:
		p.Bound = "BOTH"
	case dram:
		p.Bound = "DRAM"
	case flop:
		p.Bound = "FLOP"
	case product && p.FLOPsPercent != nil:
		p.Bound = "SLOW"
	}
}

// Pieces of advice.
const (
	adviceHost    = "runs on the host: move it to the device"
	adviceGap     = "starts late: replay a captured trace, or see what the host does before it"
	adviceCores   = "few cores: choose a layout or program that uses more"
	adviceL1      = "its first input is in DRAM: shard it in L1, where it fits"
	adviceSharded = "weights come from DRAM: a product sharded over DRAM reads them faster"
	adviceBlock   = "in0_block_w is 1: 2 or more read longer blocks of the inner dimension"
	adviceSub     = "output subblocks of one tile: larger ones keep the matrix engine busy"
	adviceLower   = "a lower fidelity is enough for these types, and faster"
	adviceHigher  = "the fidelity drops bits of these types: HiFi2 or HiFi4 keep them"
)

var configNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(in0_block_w|out_subblock_h|out_subblock_w)=(\d+)`) })

// advise says what may help an operator.
func (p *OpPerf) advise(t *profilelog.OpsTable, i int) {
	add := func(on bool, text string) {
		if on {
			p.Advice = append(p.Advice, text)
		}
	}
	if p.Host {
		add(true, adviceHost)
		return
	}
	add(value(p.Gap) > gapLimit, adviceGap)
	add(p.Cores > 0 && p.Cores < fewCores && (p.Available < 0 || p.Cores < p.Available), adviceCores)
	if !strings.Contains(p.Code, "Matmul") && !strings.Contains(p.Code, "Conv") {
		return
	}
	switch needed, ok := fidelityFor(t.Cell(i, "INPUT_0_DATATYPE"), t.Cell(i, "INPUT_1_DATATYPE"), t.Cell(i, "OUTPUT_0_DATATYPE")); {
	case !ok:
	case p.Bound == "DRAM": // the matrix engine is not what it waits for
		add(passes[p.Fidelity] > 0 && passes[p.Fidelity] < passes[needed], adviceHigher)
	default:
		add(passes[p.Fidelity] > passes[needed], adviceLower)
		add(passes[p.Fidelity] > 0 && passes[p.Fidelity] < passes[needed], adviceHigher)
	}
	if p.Bound != "SLOW" {
		return
	}
	numbers := map[string]int{}
	for _, m := range configNumber().FindAllStringSubmatch(t.Cell(i, "ATTRIBUTES"), -1) {
		numbers[m[1]], _ = strconv.Atoi(m[2])
	}
	add(strings.Contains(t.Cell(i, "INPUT_0_MEMORY"), "DRAM"), adviceL1)
	add(strings.Contains(t.Cell(i, "INPUT_1_MEMORY"), "DRAM") && value(p.DRAMPercent) > value(p.FLOPsPercent) &&
		!strings.Contains(t.Cell(i, "ATTRIBUTES"), "DRAMShardedProgramConfig"), adviceSharded)
	add(numbers["in0_block_w"] == 1, adviceBlock)
	add(numbers["out_subblock_h"] == 1 && numbers["out_subblock_w"] == 1, adviceSub)
}

var passes = map[string]int{"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}

// fidelityFor returns the lowest fidelity that keeps the bits of the types of a
// product: activations reach the multiplier with 7 bits of mantissa a pass
// pair, weights with 5. ok is false for types that this does not hold for.
func fidelityFor(in0, in1, out string) (fidelity string, ok bool) {
	bits := map[string]int{"FLOAT32": 23, "BFLOAT16": 8, "BFLOAT8_B": 7, "BFLOAT4_B": 3}
	a, b, c := bits[in0], bits[in1], bits[out]
	switch {
	case a == 0 || b == 0 || c == 0:
		return "", false
	case b == 3:
		return "LoFi", true
	case a >= 8 && c >= 7:
		return "HiFi4", true
	}
	return "HiFi2", true
}

// TotalOps sums operators by device and a name, the largest time first.
func TotalOps(ops []OpPerf, name func(*OpPerf) string) []OpTotal {
	sums := map[OpTotal]*OpTotal{}
	var order []*OpTotal
	for i := range ops {
		p := &ops[i]
		k := OpTotal{Name: name(p), Device: p.Device}
		s := sums[k]
		if s == nil {
			s = &OpTotal{Name: k.Name, Device: k.Device}
			sums[k] = s
			order = append(order, s)
		}
		s.Ops++
		s.Time += value(p.Time)
		s.Gap += value(p.Gap)
		s.Share += p.Share
	}
	out := make([]OpTotal, len(order))
	for i, s := range order {
		out[i] = *s
	}
	return out
}

// ByTime orders totals by device, the largest time and gap first.
func ByTime(list []OpTotal) []OpTotal {
	slices.SortStableFunc(list, func(a, b OpTotal) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(b.Time+b.Gap, a.Time+a.Gap), cmp.Compare(a.Name, b.Name))
	})
	return list
}
