package occupancy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems"
	"perfsim/systems/lower"
	"perfsim/systems/occupancy"
)

// world makes a module of one block by hand: rows with their times and accesses.
type row struct {
	start, end uint64
	flags      components.Flags
	banks      uint16
	ops        []components.AccessPattern
}

type tensor struct {
	memory      components.Memory
	kind        uint8
	addr, bytes uint64
}

func world(t *testing.T, tensors []tensor, rows []row) *components.World {
	t.Helper()
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(len(rows))
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(len(rows)))
	m.Functions.EndBlock.Set(f, 1)
	for k, x := range tensors {
		l := &m.Locations
		name := m.Symbols.InternString(string(rune('a' + k)))
		l.Name.Append(name)
		l.Tensor.Append(name)
		l.Memory.Append(x.memory)
		l.Addr.Append(x.addr)
		l.Bytes.Append(x.bytes)
		l.Parts.Append(1)
		l.Base.Append(0)
		l.Bank.Append(-1)
		l.Alias.Append(0)
		l.Kind.Append(x.kind)
	}
	w := &components.World{Module: m, Machine: mach, Events: components.NewEvents(), Config: components.Config{Model: components.Reference}}
	last := uint64(0)
	for i, r := range rows {
		m.Instr.Lane.Set(i, components.LaneDVE)
		m.Instr.Engine.Set(i, components.DVE)
		m.Instr.Flags.Set(i, r.flags)
		m.Instr.Banks.Set(i, r.banks)
		w.Events.Arrive.Append([2]uint64{r.end, r.end})
		w.Events.Dur.Append([2]uint32{uint32(r.end - r.start), uint32(r.end - r.start)})
		for _, o := range r.ops {
			m.Operands.Add(o)
		}
		m.Operands.EndRow()
		last = max(last, r.end)
	}
	w.Blocks = []components.BlockResult{{Latency: [2]uint64{last, last}}}
	return w
}

func access(role components.OperandRole, memory components.Memory, where uint32, address, bytes uint64) components.AccessPattern {
	return components.AccessPattern{Role: role, Memory: memory, Where: where, DType: components.Uint8, Address: address, Steps: []int64{1, 1}, Counts: []uint64{1, bytes}}
}

func space(t *testing.T, r *occupancy.Report, name string) occupancy.Space {
	t.Helper()
	for _, s := range r.Spaces {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no %s", name)
	return occupancy.Space{}
}

// An input of 1000 bytes is there all the time, an intermediate of 500 from 10
// to 60, one of 300 at half its addresses from 60 to 90, an output of 100 from
// 80 to the end. At 10 there are 1500, at 60 1300, at 80 1400.
func TestHBMByHand(t *testing.T) {
	t.Parallel()
	const in, out, mid = 0, 3, 7
	d, input, output := components.MemDRAM, components.MemInput, components.MemOutput
	w := world(t, []tensor{{input, in, 0, 1000}, {d, mid, 1000, 500}, {d, mid, 1250, 300}, {output, out, 2000, 100}}, []row{
		{start: 10, end: 20, ops: []components.AccessPattern{access(components.RoleIn, input, 1, 0, 1000), access(components.RoleOut, d, 2, 1000, 500)}},
		{start: 50, end: 60, ops: []components.AccessPattern{access(components.RoleIn, d, 2, 1000, 500)}},
		{start: 60, end: 70, ops: []components.AccessPattern{access(components.RoleOut, d, 3, 1250, 300)}},
		{start: 80, end: 90, ops: []components.AccessPattern{access(components.RoleIn, d, 3, 1250, 300), access(components.RoleOut, output, 4, 2000, 100)}},
		{start: 90, end: 100},
	})
	r, err := occupancy.Make(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	s := space(t, r, "HBM")
	if s.Peak != 1500 || s.At != 10 || !s.Fits {
		t.Errorf("peak %d at %d, fits %v", s.Peak, s.At, s.Fits)
	}
	want := []occupancy.Level{{NS: 0, Bytes: 1000}, {NS: 10, Bytes: 1500}, {NS: 60, Bytes: 1300}, {NS: 80, Bytes: 1400}, {NS: 90, Bytes: 1100}, {NS: 100, Bytes: 0}}
	if len(s.Series) != len(want) {
		t.Fatalf("levels %v, want %v", s.Series, want)
	}
	for k := range want {
		if s.Series[k] != want[k] {
			t.Errorf("level %d: %v, want %v", k, s.Series[k], want[k])
		}
	}
	if len(s.Tensors) != 2 || s.Tensors[0].Name != "a" || s.Tensors[0].Kind != "input" || s.Tensors[1].Name != "b" || s.Tensors[1].From != 10 || s.Tensors[1].To != 60 {
		t.Errorf("tensors %+v", s.Tensors)
	}
}

// Two tensors that share half their addresses while both are held count once
// where they overlap.
func TestUnion(t *testing.T) {
	t.Parallel()
	d := components.MemDRAM
	w := world(t, []tensor{{d, 7, 1000, 500}, {d, 7, 1250, 500}}, []row{
		{start: 0, end: 10, ops: []components.AccessPattern{access(components.RoleOut, d, 1, 1000, 500)}},
		{start: 10, end: 20, ops: []components.AccessPattern{access(components.RoleOut, d, 2, 1250, 500)}},
		{start: 20, end: 30, ops: []components.AccessPattern{access(components.RoleIn, d, 1, 1000, 500), access(components.RoleIn, d, 2, 1250, 500)}},
	})
	r, err := occupancy.Make(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	if s := space(t, r, "HBM"); s.Peak != 750 || s.At != 10 {
		t.Errorf("peak %d at %d, want 750 at 10", s.Peak, s.At)
	}
}

// 130 bytes of a partition are three cells of 64; a second write of the same
// bytes begins a new life. A bank is 2 KiB of a partition.
func TestOnChipByHand(t *testing.T) {
	t.Parallel()
	sb := components.MemSBUF
	w := world(t, []tensor{{sb, 7, 0, 130}, {sb, 7, 192, 64}}, []row{
		{start: 0, end: 10, ops: []components.AccessPattern{access(components.RoleOut, sb, 1, 0, 130)}},
		{start: 10, end: 20, banks: 1 << 8, flags: components.FlagAccStart, ops: []components.AccessPattern{access(components.RoleIn, sb, 1, 0, 130)}},
		{start: 30, end: 40, banks: 1, ops: []components.AccessPattern{access(components.RoleOut, sb, 2, 192, 64)}},
		{start: 40, end: 50, ops: []components.AccessPattern{access(components.RoleOut, sb, 1, 0, 130)}},
		{start: 50, end: 60, ops: []components.AccessPattern{access(components.RoleIn, sb, 1, 0, 130), access(components.RoleIn, sb, 2, 192, 64)}},
	})
	r, err := occupancy.Make(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	s := space(t, r, "SBUF")
	if s.Peak != 4*64 || s.At != 40 || s.Size != 229376 {
		t.Errorf("SBUF: peak %d at %d of %d", s.Peak, s.At, s.Size)
	}
	if len(s.Tensors) != 2 || s.Tensors[0].Name != "a" || s.Tensors[0].Bytes != 192 || s.Tensors[0].From != 40 {
		t.Errorf("tensors %+v", s.Tensors)
	}
	if p := space(t, r, "PSUM"); p.Peak != 2048 || p.At != 10 || p.Size != 16384 {
		t.Errorf("PSUM: peak %d at %d of %d", p.Peak, p.At, p.Size)
	}
}

// While a function runs, what its caller holds counts; its parameters are the
// caller's. No space of an example holds more than the machine has, and the
// levels of a series end at nothing.
func TestGraphs(t *testing.T) {
	t.Parallel()
	const hlo = `HloModule m

body {
  s = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024,1024] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[1024,1024] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[1024,1024]) tuple(n, y)
}

condition {
  s = (s32[], f32[1024,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT lt = pred[] compare(i, five), direction=LT
}

ENTRY main {
  x = f32[1024,1024] parameter(0)
  big = f32[4096,4096] parameter(1)
  z = s32[] constant(0)
  s = (s32[], f32[1024,1024]) tuple(z, x)
  w = (s32[], f32[1024,1024]) while(s), condition=condition, body=body
  r = f32[1024,1024] get-tuple-element(w), index=1
  sum = f32[4096,4096] add(big, big)
  ROOT out = (f32[1024,1024], f32[4096,4096]) tuple(r, sum)
}
`
	graph := filepath.Join(t.TempDir(), "m.hlo")
	if err := os.WriteFile(graph, []byte(hlo), 0o600); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("../../examples/*.bir.json")
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples", err)
	}
	for _, path := range append(paths, graph) {
		s := systems.Settings{}
		if strings.HasSuffix(path, ".hlo") {
			s.Graph = lower.DefaultOptions()
			s.Graph.Operands = true
		}
		res, err := systems.Simulate(context.Background(), systems.Request{Reading: systems.Reading{Path: path}, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		r, err := res.Memory(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Spaces {
			if s.Absent != "" {
				continue
			}
			sum := uint64(0)
			for _, x := range s.Tensors {
				sum += x.Bytes
			}
			if sum != s.Peak || !s.Fits || s.Series[len(s.Series)-1].Bytes != 0 {
				t.Errorf("%s: %s holds %d at its peak, its tensors %d; fits %v, ends with %v", path, s.Name, s.Peak, sum, s.Fits, s.Series[len(s.Series)-1])
			}
		}
		if path == graph {
			h := space(t, r, "HBM")
			// x and big, the function's result, and at most two copies of the state.
			const mib = 1 << 20
			if h.Peak < (4+64+4)*mib || h.Peak > (4+64+64+3*4)*mib+4096 {
				t.Errorf("the loop holds %d bytes", h.Peak)
			}
			if !strings.Contains(names(h.Tensors), "big") {
				t.Errorf("the caller's tensors are not held: %v", names(h.Tensors))
			}
		}
	}
}

func names(list []occupancy.Tensor) string {
	var out []string
	for _, x := range list {
		out = append(out, x.Name)
	}
	return strings.Join(out, " ")
}
