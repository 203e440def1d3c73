package tracetable

import (
	"math"
	"reflect"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// A table makes its rows one after the other; the row is reused.
type Table[R any] struct {
	Name string
	Each func(f func(*R) error) error
}

// executions is the weight of an instruction.
func executions(t *components.Timeline, i components.InstrID) int64 {
	return int64(min(t.Weight(i), math.MaxInt64))
}

// Slices is the table of events.
func Slices(t *components.Timeline) Table[Slice] {
	return Table[Slice]{"slice", func(f func(*Slice) error) error {
		m := t.World.Module
		var s Slice
		var issue, bytes, held, slack int64
		var critical bool
		tracks := trackIDs(t)
		texts := newTexts(m)
		waits := m.WaitOpcodes()
		return t.Merge(func(e *components.TimelineEvent) error {
			i := int(e.Instr)
			in := &m.Instr
			times := executions(t, e.Instr)
			s = Slice{BusyNS: float64(t.Busy(e, waits)) / float64(max(times, 1)), Executions: times, ID: t.ID(e.Process, e.Instr), TS: int64(e.Start), Dur: int64(e.Dur), EndTS: int64(e.Start + e.Dur), LatencyNS: int64(e.Full),
				TrackID: tracks[e.Process][e.Lane], TID: int32(e.Lane) + 1, PID: int32(e.Process),
				Engine: texts.lane(e.Lane), Name: m.InstrName(e.Instr), Category: m.Category(e.Instr), Opcode: m.OpcodeName(in.Opcode.At(i)),
				Core: int32(m.Lanes.Core.At(int(e.Lane))), Row: int64(i), DType: in.DType.At(i).String(), Elements: int64(in.Elems.At(i)),
				Partitions: int32(in.Parts.At(i)), WaitNS: int64(e.Idle), Source: texts.of(in.Source.Get(i)), HLOName: texts.of(in.HLO.Get(i)),
				Scope: texts.of(in.Scope.Get(i)), Operator: texts.operator(e.Instr), Operands: m.Symbols.String(in.Text.Get(i))}
			b := t.Blocks[t.Block(e.Instr)]
			s.Block, s.Function = texts.of(m.Blocks.Name.At(b)), texts.of(m.Functions.Name.At(int(m.Blocks.Function.At(b))))
			if s.Kernel = s.Function; m.Lanes.Kind.At(int(e.Lane)) == components.LaneThread {
				s.Kernel = s.Name
			}
			if in.DMABytes.Len() > 0 {
				if bytes = int64(in.DMABytes.At(i)); bytes > 0 {
					s.Bytes = &bytes
				}
			}
			if q := in.Queue.Get(i); q > 0 {
				s.Queue = texts.of(m.Queues.Name.At(int(q - 1)))
			}
			p := t.Processes[e.Process]
			if !p.Measured {
				issue = int64(in.Issue.Get(i))
				s.IssueNS = &issue
			}
			if w := t.Why; w != nil && !p.Measured && p.Run == w.Run {
				s.Cause = w.Cause.At(i).String()
				if by := w.Pred.At(i); by != components.NoInstr {
					held = t.ID(e.Process, by)
					s.HeldBy = &held
				}
				if t.Slack != nil {
					slack = int64(t.Slack[i])
					s.SlackNS = &slack
				}
				if t.Critical != nil {
					critical = t.Critical.Has(uint32(i))
					s.IsCritical = &critical
				}
			}
			return f(&s)
		})
	}}
}

// texts caches names that many rows share.
type texts struct {
	m     *components.Module
	lanes []string
	cache map[ecs.Symbol]string
}

func newTexts(m *components.Module) *texts {
	t := &texts{m: m, cache: map[ecs.Symbol]string{}}
	for l := range m.Lanes.Len() {
		t.lanes = append(t.lanes, m.LaneName(uint16(l)))
	}
	return t
}

func (t *texts) lane(l uint16) string { return t.lanes[l] }

func (t *texts) of(s ecs.Symbol) string {
	if s == 0 {
		return ""
	}
	v, ok := t.cache[s]
	if !ok {
		v = t.m.Symbols.String(s)
		t.cache[s] = v
	}
	return v
}

// operator returns the operator of an instruction.
func (t *texts) operator(i components.InstrID) string {
	if s := t.m.Instr.HLO.Get(int(i)); s != 0 {
		return t.of(s)
	}
	return t.m.OperatorOf(i)
}

// trackIDs numbers the lanes of all processes.
func trackIDs(t *components.Timeline) [][]int32 {
	out := make([][]int32, len(t.Processes))
	n := int32(0)
	for p := range out {
		out[p] = make([]int32, t.World.Module.Lanes.Len())
		for l := range out[p] {
			out[p][l] = n
			n++
		}
	}
	return out
}

// Dependencies is the table of edges, of the first process.
func Dependencies(t *components.Timeline) Table[Dependency] {
	return Table[Dependency]{"dependency", func(f func(*Dependency) error) error {
		var r Dependency
		return t.Dependencies(0, func(d *components.Dependency) error {
			r = Dependency{ID: int64(d.Edge), SliceOut: t.ID(0, d.From), SliceIn: t.ID(0, d.To), DependencyType: typeOf[d.Kind], Kind: profilerKind[d.Kind],
				GapNS: d.Gap, IsBinding: d.Binding, IsCritical: d.Critical}
			return f(&r)
		})
	}}
}

// Tracks is the table of lanes.
func Tracks(t *components.Timeline) Table[Track] {
	return Table[Track]{"track", func(f func(*Track) error) error {
		m := t.World.Module
		ids := trackIDs(t)
		for p, proc := range t.Processes {
			for l, rows := range t.Lanes(p) {
				if len(rows) == 0 {
					continue
				}
				kind := [...]string{"engine", "dma", "cc", "thread", "operator"}[min(m.Lanes.Kind.At(l), components.LaneOperator)]
				if m.Lanes.Engine.At(l) == components.DMA {
					kind = "dma"
				}
				r := Track{TrackID: ids[p][l], UTID: ids[p][l], TID: int32(l) + 1, ThreadName: m.LaneName(uint16(l)), SortIndex: int32(l), PID: int32(p),
					ProcessName: proc.Name, Kind: kind, Engine: m.Lanes.Engine.At(l).String(), Core: int32(m.Lanes.Core.At(l)), SliceCount: int64(len(rows))}
				if err := f(&r); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// Counters is the table of counter values.
func Counters(t *components.Timeline) Table[Counter] {
	return Table[Counter]{"counter", func(f func(*Counter) error) error {
		for _, s := range t.Series {
			for k := range s.Time {
				r := Counter{TS: int64(s.Time[k]), PID: int32(s.Process), Name: s.Name, Unit: s.Unit, Value: s.Value[k]}
				if err := f(&r); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// Metrics is the table of figures.
func Metrics(t *components.Timeline) Table[Metric] {
	return Table[Metric]{"metric", func(f func(*Metric) error) error {
		for _, x := range t.Metrics {
			r := Metric{x.Name, x.Value, x.Unit}
			if err := f(&r); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Warnings is the table of remarks.
func Warnings(t *components.Timeline) Table[Warning] {
	return Table[Warning]{"warning", func(f func(*Warning) error) error {
		for _, n := range t.World.Module.Notes {
			r := Warning{n.Code, n.Text, int64(n.Count)}
			if err := f(&r); err != nil {
				return err
			}
		}
		return nil
	}}
}

// About is the table of what the file says about itself.
func AboutTable(t *components.Timeline, version string) Table[Metadata] {
	return Table[Metadata]{"metadata", func(f func(*Metadata) error) error {
		for _, x := range About(t, version) {
			if err := f(&x); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Instructions is the table of events under the profiler's names.
func Instructions(t *components.Timeline) Table[Instruction] {
	return Table[Instruction]{"Instruction", func(f func(*Instruction) error) error {
		m := t.World.Module
		texts := newTexts(m)
		var r Instruction
		var pc, compilerPC, ref int64
		return t.Merge(func(e *components.TimelineEvent) error {
			if e.Process != 0 {
				return nil
			}
			i := int(e.Instr)
			in := &m.Instr
			r = Instruction{ID: t.ID(0, e.Instr), StartTS: int64(e.Start), EndTS: int64(e.Start + e.Full), DurationNS: int64(e.Full),
				Engine: profilerEngine[m.Lanes.Engine.At(int(e.Lane))], Track: texts.lane(e.Lane), CoreIdx: int32(m.Lanes.Core.At(int(e.Lane))),
				Opcode: m.OpcodeName(in.Opcode.At(i)), Operands: m.Symbols.String(in.Text.Get(i)), BirName: m.InstrName(e.Instr),
				HLOName: texts.of(in.HLO.Get(i)), Source: texts.of(in.Source.Get(i)), Executions: executions(t, e.Instr), EvtWaitNS: int64(e.Idle)}
			if r.Engine == "" {
				r.Engine = r.Track
			}
			if in.PC.Len() > 0 {
				pc = int64(in.PC.At(i))
				r.PC = &pc
			}
			if in.Ref.Len() > 0 {
				ref = int64(in.Ref.At(i))
				r.RawBirID = &ref
			}
			if compilerPC = int64(in.CompilerPC.Get(i)); compilerPC > 0 {
				compilerPC--
				r.CompilerPC = &compilerPC
			}
			return f(&r)
		})
	}}
}

// Flows is the table of edges under the profiler's names.
func Flows(t *components.Timeline) Table[Flow] {
	return Table[Flow]{"Flow", func(f func(*Flow) error) error {
		var r Flow
		return t.Dependencies(0, func(d *components.Dependency) error {
			r = Flow{OutID: t.ID(0, d.From), InID: t.ID(0, d.To), OutTable: "instruction", InTable: "instruction", DependencyType: profilerKind[d.Kind], GapTime: d.Gap}
			return f(&r)
		})
	}}
}

// Summary is the table of figures under the profiler's name.
func Summary(t *components.Timeline) Table[Metric] {
	s := Metrics(t)
	s.Name = "Summary"
	return s
}

// Columns describes the columns of a row type, from its tags.
func Columns[R any](table string) []Field {
	var out []Field
	rt := reflect.TypeFor[R]()
	for k := range rt.NumField() {
		f := rt.Field(k)
		tag := f.Tag.Get("parquet")
		name, options, _ := strings.Cut(tag, ",")
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		required := !strings.Contains(options, "optional")
		kind := map[reflect.Kind]string{reflect.Int64: "INT64", reflect.Int32: "INT32", reflect.String: "STRING", reflect.Bool: "BOOL", reflect.Float64: "DOUBLE"}[typ.Kind()]
		out = append(out, Field{table, name, kind, f.Tag.Get("unit"), f.Tag.Get("doc"), required})
	}
	return out
}

// Schema is the table that describes the columns of all tables.
func Schema() Table[Field] {
	return Table[Field]{"schema_fields", func(f func(*Field) error) error {
		for _, list := range [][]Field{Columns[Slice]("slice"), Columns[Dependency]("dependency"), Columns[Track]("track"), Columns[Counter]("counter"),
			Columns[Metric]("metric"), Columns[Warning]("warning"), Columns[Field]("schema_fields")} {
			for _, x := range list {
				if err := f(&x); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}
