package nki

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/valyala/fastjson"

	"perfsim/components"
	"perfsim/components/nkirecord"
	"perfsim/io/format"
)

// Limits of a record; beyond them reading fails.
const (
	maxLine    = 64 << 20
	maxDims    = 16
	maxForms   = 1 << 24
	maxTensors = 1 << 26
	maxSteps   = 1 << 28
)

// Importer reads records.
var Importer = format.Importer{
	Name: "nkirecord",
	Sniff: func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("{")) && bytes.Contains(firstLine(head), []byte(`"perfsim_nki":`))
	},
	Record: Read,
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return line
}

type reader struct {
	rec    *nkirecord.Record
	p      *nkirecord.Program
	parser fastjson.Parser
	loops  []int32 // open loops
	done   bool
}

// Read reads a record.
func Read(ctx context.Context, src *format.Source, _ format.Options) (*nkirecord.Record, error) {
	in := bufio.NewScanner(src)
	in.Buffer(make([]byte, 1<<16), maxLine)
	r := &reader{rec: &nkirecord.Record{}}
	n := 0
	for in.Scan() {
		n++
		if n&0xffff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := r.line(in.Bytes(), n); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", src.Name, n, err)
		}
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("%s:%d: a line of more than %d bytes", src.Name, n+1, maxLine)
		}
		return nil, err
	}
	if !r.done {
		return nil, fmt.Errorf("%s:%d: the record ends without its last line: %w", src.Name, n, io.ErrUnexpectedEOF)
	}
	return r.rec, nil
}

func (r *reader) line(b []byte, n int) error {
	if r.done {
		return errors.New("a line after the last one")
	}
	if n == 1 {
		return r.head(b)
	}
	if len(b) < 3 || b[0] != '[' || b[len(b)-1] != ']' {
		return errors.New("not a list")
	}
	if b[1] != '"' {
		return r.step(b[1 : len(b)-1])
	}
	v, err := r.parser.ParseBytes(b)
	if err != nil {
		return err
	}
	list, _ := v.Array()
	switch string(list[0].GetStringBytes()) {
	case "t":
		return r.tensor(list)
	case "f":
		return r.form(list)
	case "p":
		return r.program(list)
	case "l":
		return r.loop(list)
	case "e":
		if len(r.loops) == 0 {
			return errors.New("the end of a loop that did not begin")
		}
		r.loops = r.loops[:len(r.loops)-1]
		r.p.Steps = append(r.p.Steps, nkirecord.Step{Form: nkirecord.LoopEnd})
	case "n":
		if len(list) != 3 {
			return errors.New("a note needs a text and a count")
		}
		r.rec.Notes = append(r.rec.Notes, nkirecord.Note{Text: string(list[1].GetStringBytes()), Count: list[2].GetInt()})
	case "z":
		if len(r.loops) > 0 {
			return errors.New("the record ends inside a loop")
		}
		r.done = true
	default:
		return fmt.Errorf("a line of kind %q", list[0].GetStringBytes())
	}
	return nil
}

func (r *reader) head(b []byte) error {
	v, err := r.parser.ParseBytes(b)
	if err != nil {
		return err
	}
	if got := v.GetInt("perfsim_nki"); got != 1 {
		return fmt.Errorf("record version %d; 1 is known", got)
	}
	str := func(keys ...string) string { return string(v.GetStringBytes(keys...)) }
	rec := r.rec
	rec.Kernel, rec.File, rec.Generation, rec.Machine, rec.ArgumentsFrom = str("kernel"), str("file"), str("generation"), str("machine"), str("arguments_from")
	for _, f := range v.GetArray("files") {
		rec.Files = append(rec.Files, string(f.GetStringBytes()))
	}
	for _, d := range v.GetArray("grid") {
		rec.Grid = append(rec.Grid, d.GetInt())
	}
	for _, a := range v.GetArray("args") {
		arg := nkirecord.Arg{Name: string(a.GetStringBytes("name")), DType: string(a.GetStringBytes("dtype"))}
		for _, d := range a.GetArray("shape") {
			arg.Shape = append(arg.Shape, d.GetInt())
		}
		if x := a.Get("value"); x != nil {
			arg.Value = strings.Trim(x.String(), `"`)
		}
		rec.Args = append(rec.Args, arg)
	}
	return nil
}

// dtypes are the recorder's names that BIR spells in another way.
var dtypes = map[string]components.DType{
	"tfloat32": components.Float32R, "float8_e4m3": components.Float8E4, "float8_e5m2": components.Float8E5, "float8_e3m4": components.Float8E3,
	"bool": components.Uint8, "float64": components.Int64,
}

func dtype(v *fastjson.Value) (components.DType, error) {
	name := string(v.GetStringBytes())
	if d, ok := dtypes[name]; ok {
		return d, nil
	}
	d, ok := components.ParseDType(name)
	if !ok {
		return 0, fmt.Errorf("element type %q is not known", name)
	}
	return d, nil
}

func (r *reader) tensor(l []*fastjson.Value) error {
	if len(l) != 12 {
		return fmt.Errorf("a tensor has 12 fields, not %d", len(l))
	}
	rec := r.rec
	if id := l[1].GetInt(); id != len(rec.Tensors) || id >= maxTensors {
		return fmt.Errorf("tensor %d where %d comes next", id, len(rec.Tensors))
	}
	t := nkirecord.Tensor{Name: string(l[2].GetStringBytes()), PDim: l[6].GetInt(), Kind: string(l[7].GetStringBytes()),
		Loop: int32(l[8].GetInt()), Fill: int8(l[9].GetInt()), File: -1}
	var err error
	if t.DType, err = dtype(l[3]); err != nil {
		return err
	}
	switch m := string(l[4].GetStringBytes()); m {
	case "hbm":
		t.Memory = components.MemDRAM
	case "sbuf":
		t.Memory = components.MemSBUF
	case "psum":
		t.Memory = components.MemPSUM
	default:
		return fmt.Errorf("memory %q is not known", m)
	}
	elems := int64(1)
	for _, d := range l[5].GetArray() {
		n := d.GetInt()
		if n < 0 || elems > 1<<50 {
			return errors.New("a shape beyond any memory")
		}
		elems *= int64(max(n, 1))
		t.Shape = append(t.Shape, n)
	}
	if t.Memory != components.MemDRAM && (t.PDim < 0 || t.PDim >= len(t.Shape) || t.Parts() > 128 || t.Blocks() > 1<<24) {
		return errors.New("a tile without a partition axis of at most 128")
	}
	if at := l[10].GetArray(); len(at) == 2 {
		t.File, t.Line = int32(at[0].GetInt()), int32(at[1].GetInt())
	}
	for _, a := range l[11].GetArray() {
		xy := a.GetArray()
		if len(xy) != 2 {
			return errors.New("a direct address is partition and byte")
		}
		t.Addr = append(t.Addr, [2]int64{xy[0].GetInt64(), xy[1].GetInt64()})
	}
	rec.Tensors = append(rec.Tensors, t)
	return nil
}

func (r *reader) form(l []*fastjson.Value) error {
	if len(l) != 9 {
		return fmt.Errorf("a form has 9 fields, not %d", len(l))
	}
	rec := r.rec
	if id := l[1].GetInt(); id != len(rec.Forms) || id >= maxForms {
		return fmt.Errorf("form %d where %d comes next", id, len(rec.Forms))
	}
	f := nkirecord.Form{Op: string(l[2].GetStringBytes()), Engine: string(l[3].GetStringBytes()), File: int32(l[5].GetInt()), Line: int32(l[6].GetInt())}
	a := l[4]
	str := func(k string) string { return string(a.GetStringBytes(k)) }
	f.Attrs = nkirecord.Attrs{Func: str("func"), Op0: str("op0"), Op1: str("op1"), ReduceOp: str("reduce_op"), ReduceCmd: str("reduce_cmd"), DGE: str("dge"),
		RMW: str("rmw"), PerfMode: str("perf_mode"), Transpose: a.GetBool("transpose"), Zero: a.GetBool("zero"), High: a.GetBool("high"), OneZero: a.GetBool("onezero"),
		Negate: a.GetBool("negate"), Accumulate: -1, Implied: a.GetBool("implied"), Axes: a.GetInt("axes"), To: a.GetInt("to"), From: a.GetInt("source"),
		Pipe: a.GetInt("pipe")}
	if x := a.Get("accumulate"); x != nil {
		f.Attrs.Accumulate = 0
		if x.GetBool() {
			f.Attrs.Accumulate = 1
		}
	}
	if t := a.GetArray("tile"); len(t) == 2 {
		f.Attrs.TileRows, f.Attrs.TileCols = t[0].GetInt(), t[1].GetInt()
	}
	var err error
	if f.Outs, err = patterns(l[7]); err == nil {
		f.Ins, err = patterns(l[8])
	}
	rec.Forms = append(rec.Forms, f)
	return err
}

func patterns(v *fastjson.Value) ([]nkirecord.Pattern, error) {
	var out []nkirecord.Pattern
	for _, x := range v.GetArray() {
		l := x.GetArray()
		if len(l) != 5 {
			return nil, errors.New("an access pattern has 5 fields")
		}
		p := nkirecord.Pattern{Parts: l[1].GetInt(), Step: l[2].GetInt(), Dynamic: l[4].GetInt() != 0}
		var err error
		if p.DType, err = dtype(l[0]); err != nil {
			return nil, err
		}
		n := int64(1)
		for _, d := range l[3].GetArray() {
			xy := d.GetArray()
			if len(xy) != 2 || xy[1].GetInt64() < 1 || xy[1].GetInt64() > 1<<40 || n > 1<<50 || len(p.Dims) == maxDims {
				return nil, errors.New("an access pattern that is no list of (step, count)")
			}
			n *= xy[1].GetInt64()
			p.Dims = append(p.Dims, [2]int64{xy[0].GetInt64(), xy[1].GetInt64()})
		}
		out = append(out, p)
	}
	return out, nil
}

func (r *reader) program(l []*fastjson.Value) error {
	if len(l) != 3 || len(r.loops) > 0 {
		return errors.New("a program inside a loop")
	}
	p := nkirecord.Program{Core: l[1].GetInt()}
	if p.Core < 0 || p.Core > 63 {
		return fmt.Errorf("core %d", p.Core)
	}
	for _, d := range l[2].GetArray() {
		p.IDs = append(p.IDs, d.GetInt())
	}
	r.rec.Programs = append(r.rec.Programs, p)
	r.p = &r.rec.Programs[len(r.rec.Programs)-1]
	return nil
}

func (r *reader) loop(l []*fastjson.Value) error {
	if r.p == nil || len(l) != 3 {
		return errors.New("a loop outside a program")
	}
	id, trips := l[1].GetInt(), l[2].GetInt()
	if id < 0 || id > maxSteps || trips < 1 || trips > 1<<30 || len(r.loops) > 64 {
		return errors.New("a loop needs a number and its trips")
	}
	r.rec.Loops = max(r.rec.Loops, id+1)
	r.loops = append(r.loops, int32(id))
	r.p.Steps = append(r.p.Steps, nkirecord.Step{Form: nkirecord.LoopBegin, First: uint32(id), Trips: uint32(trips)})
	return nil
}

// step parses an instruction: integers and lists [constant, loop, factor, …].
func (r *reader) step(b []byte) error {
	if r.p == nil {
		return errors.New("an instruction outside a program")
	}
	if len(r.p.Steps) >= maxSteps {
		return errors.New("too many instructions")
	}
	form, rest, err := integer(b)
	if err != nil {
		return err
	}
	if form < 0 || form >= int64(len(r.rec.Forms)) {
		return fmt.Errorf("form %d is not known", form)
	}
	p := r.p
	first := uint32(len(p.Values))
	f := &r.rec.Forms[form]
	for k := 0; k < len(f.Outs)+len(f.Ins); k++ {
		var v nkirecord.Value
		if v, rest, err = r.value(rest); err != nil {
			return err
		}
		if v.N > 0 || v.C < 0 || v.C >= int64(len(r.rec.Tensors)) {
			return fmt.Errorf("tensor %d is not known", v.C)
		}
		p.Values = append(p.Values, v)
		more := 3
		if r.rec.Tensors[v.C].Memory == components.MemDRAM {
			more = 1
		}
		for range more {
			if v, rest, err = r.value(rest); err != nil {
				return err
			}
			p.Values = append(p.Values, v)
		}
	}
	if len(rest) > 0 {
		return errors.New("an instruction with too many numbers")
	}
	p.Steps = append(p.Steps, nkirecord.Step{Form: int32(form), First: first})
	return nil
}

// value parses one number or affine expression after a comma.
func (r *reader) value(b []byte) (nkirecord.Value, []byte, error) {
	if len(b) < 2 || b[0] != ',' {
		return nkirecord.Value{}, b, errors.New("an instruction with too few numbers")
	}
	b = b[1:]
	if b[0] != '[' {
		n, rest, err := integer(b)
		return nkirecord.Value{C: n}, rest, err
	}
	n, b, err := integer(b[1:])
	v := nkirecord.Value{C: n, First: uint32(len(r.p.Terms))}
	for err == nil && len(b) > 0 && b[0] == ',' {
		var loop, k int64
		if loop, b, err = integer(b[1:]); err != nil {
			break
		}
		if len(b) == 0 || b[0] != ',' {
			return v, b, errors.New("an expression without a factor")
		}
		if k, b, err = integer(b[1:]); err != nil {
			break
		}
		known := false
		for _, l := range r.loops {
			known = known || int64(l) == loop
		}
		if !known {
			return v, b, fmt.Errorf("an expression of loop %d outside it", loop)
		}
		r.p.Terms = append(r.p.Terms, nkirecord.Term{Loop: int32(loop), K: k})
		v.N++
	}
	if err != nil {
		return v, b, err
	}
	if len(b) == 0 || b[0] != ']' {
		return v, b, errors.New("an expression without its end")
	}
	return v, b[1:], nil
}

// integer parses a decimal integer at the start of b.
func integer(b []byte) (int64, []byte, error) {
	i := 0
	neg := false
	if i < len(b) && b[i] == '-' {
		neg = true
		i++
	}
	start := i
	n := int64(0)
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		if n > 1<<58 {
			return 0, b, errors.New("a number beyond 64 bits")
		}
		n = n*10 + int64(b[i]-'0')
		i++
	}
	if i == start {
		return 0, b, errors.New("not an integer")
	}
	if neg {
		n = -n
	}
	return n, b[i:], nil
}
