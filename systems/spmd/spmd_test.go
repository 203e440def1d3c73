package spmd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/opgraph"
	"perfsim/io/format"
	"perfsim/io/xla/hlo"
)

func read(t *testing.T, text string) *opgraph.Graph {
	t.Helper()
	graphs, err := hlo.ReadText("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return graphs[0]
}

// work lists the shapes of the entry's operators that compute or move data.
func work(g *opgraph.Graph, c opgraph.CompID) string {
	var list []string
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		k := g.Ops.Kind[op]
		switch k {
		case opgraph.OpConstant, opgraph.OpTuple, opgraph.OpGetTupleElement:
			continue
		}
		s := k.String() + " " + g.ShapeText(g.Shapes.WithoutLayout(g.Ops.Shape[op]))
		if k.IsCollective() { // a collective-permute has pairs, no groups
			r, _ := g.ReplicaGroups(op)
			s += fmt.Sprint(" over ", r.AppendGroup(nil, 0))
		}
		list = append(list, s)
	}
	return strings.Join(list, "; ")
}

const add = `add { x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT s = f32[] add(x, y) }
`

func TestPartition(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"rows", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  b = f32[32,16]{1,0} parameter(1), sharding={replicated}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[16,32]; parameter f32[32,16]; dot f32[16,16]"},
		{"columns", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0)
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[1,4]0,1,2,3}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[64,32]; parameter f32[32,4]; dot f32[64,4]"},
		{"contracted: all-reduce", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[1,4]<=[4]}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[64,8]; parameter f32[8,16]; dot f32[64,16]; all-reduce f32[64,16] over [0 1 2 3]"},
		{"contracted, result cut: reduce-scatter", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[1,4]<=[4]}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
}`, "parameter f32[64,8]; parameter f32[8,16]; dot f32[64,16]; reduce-scatter f32[16,16] over [0 1 2 3]"},
		{"one axis twice: the smaller operand is gathered", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[4,1]<=[4]}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[16,32]; parameter f32[8,16]; all-gather f32[32,16] over [0 1 2 3]; dot f32[16,16]"},
		{"two axes", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[32,32]; parameter f32[32,4]; dot f32[32,4]"},
		{"groups along the major axis", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[1,2,4]<=[8] last_tile_dim_replicate}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[64,16]; parameter f32[16,16]; dot f32[64,16]; all-reduce f32[64,16] over [0 4]"},
		{"constants and scalars are made local", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[] constant(2)
  b = f32[64,32]{1,0} broadcast(c), dimensions={}
  ROOT m = f32[64,32]{1,0} multiply(a, b)
}`, "parameter f32[16,32]; broadcast f32[16,32]; multiply f32[16,32]"},
		{"constraint: gather", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  s = f32[64,32]{1,0} custom-call(a), custom_call_target="Sharding", sharding={replicated}
  ROOT n = f32[64,32]{1,0} negate(s)
}`, "parameter f32[16,32]; all-gather f32[64,32] over [0 1 2 3]; negate f32[64,32]"},
		{"constraint: change of dimension", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  s = f32[64,32]{1,0} custom-call(a), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
  ROOT n = f32[64,32]{1,0} negate(s)
}`, "parameter f32[16,32]; all-to-all f32[64,8] over [0 1 2 3]; negate f32[64,8]"},
		{"heads", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[1,4]<=[4]}
  r = f32[64,8,4]{2,1,0} reshape(a)
  ROOT t = f32[8,64,4]{2,1,0} transpose(r), dimensions={1,0,2}
}`, "parameter f32[64,8]; reshape f32[64,2,4]; transpose f32[2,64,4]"},
		{"reduce over a cut dimension", add + `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  z = f32[] constant(0)
  ROOT r = f32[32]{0} reduce(a, z), dimensions={0}, to_apply=add
}`, "parameter f32[16,32]; reduce f32[32]; all-reduce f32[32] over [0 1 2 3]"},
		{"table cut along its rows", `ENTRY e {
  t = f32[1024,16]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  i = s32[8,1]{1,0} parameter(1)
  ROOT g = f32[8,16]{1,0} gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
}`, "parameter f32[256,16]; parameter s32[8,1]; gather f32[8,16]; all-reduce f32[8,16] over [0 1 2 3]"},
		{"convolution cut in its space: a row from each neighbour", `ENTRY e {
  a = f32[8,64,64,16] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  k = f32[3,3,16,32] parameter(1), sharding={replicated}
  ROOT c = f32[8,64,64,32] convolution(a, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}`, "parameter f32[8,16,64,16]; parameter f32[3,3,16,32]; slice f32[8,1,64,16]; collective-permute f32[8,1,64,16] over []; slice f32[8,1,64,16]; collective-permute f32[8,1,64,16] over []; concatenate f32[8,18,64,16]; convolution f32[8,16,64,32]"},
		// Windows of 7 with stride 2 and 3 rows of padding: 8 windows read
		// 2*7+7 = 21 rows, 3 before the part's 16 and 2 behind it.
		{"convolution with a stride", `ENTRY e {
  a = f32[8,64,64,16] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  k = f32[7,1,16,32] parameter(1)
  ROOT c = f32[8,32,64,32] convolution(a, k), window={size=7x1 stride=2x1 pad=3_3x0_0}, dim_labels=b01f_01io->b01f
}`, "parameter f32[8,16,64,16]; parameter f32[7,1,16,32]; slice f32[8,3,64,16]; collective-permute f32[8,3,64,16] over []; slice f32[8,2,64,16]; collective-permute f32[8,2,64,16] over []; concatenate f32[8,21,64,16]; convolution f32[8,8,64,32]"},
		{"pooling without overlap needs no neighbour", add + `ENTRY e {
  a = f32[8,64,64,16] parameter(0), sharding={devices=[1,4,1,1]<=[4]}
  z = f32[] constant(0)
  ROOT c = f32[8,32,32,16] reduce-window(a, z), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=add
}`, "parameter f32[8,16,64,16]; reduce-window f32[8,8,32,16]"},
		{"depthwise convolution cut by batch", `ENTRY e {
  a = f32[8,64,64,16] parameter(0), sharding={devices=[4,1,1,1]<=[4]}
  k = f32[3,3,1,16] parameter(1)
  ROOT c = f32[8,62,62,16] convolution(a, k), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=16
}`, "parameter f32[2,64,64,16]; parameter f32[3,3,1,16]; convolution f32[2,62,62,16]"},
		{"Fourier transform of rows", `ENTRY e {
  a = c64[64,32] parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT f = c64[64,32] fft(a), fft_type=FFT, fft_length={32}
}`, "parameter c64[16,32]; fft c64[16,32]"},
		{"Shardy with the mesh in place", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<mesh<[\"x\"=4]>, [{\"x\"}, {}]>"}
  ROOT n = f32[64,32]{1,0} negate(a)
}`, "parameter f32[16,32]; negate f32[16,32]"},
		{"dimensions that the devices do not divide are padded", `ENTRY e {
  a = f32[10,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  b = f32[32,16]{1,0} parameter(1)
  d = f32[10,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = f32[10,16]{1,0} negate(d)
}`, "parameter f32[3,32]; parameter f32[32,16]; dot f32[3,16]; negate f32[3,16]"},
		{"devices in the order of a ring", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[1,4]0,1,3,2}
  b = f32[32,16]{1,0} parameter(1), sharding={devices=[4,1]0,1,3,2}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[64,8]; parameter f32[8,16]; dot f32[64,16]; all-reduce f32[64,16] over [0 1 3 2]"},
		{"named axes", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={mesh['x'=2,'y'=2], [{'x'}, {}], manual={'y'}}
  b = f32[32,16]{1,0} parameter(1), sharding={mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{}, {'y', ?}]}
  c = f32[32,16]{1,0} parameter(2), sharding={mesh[], replicated}
  ROOT d = f32[64,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}`, "parameter f32[32,32]; parameter f32[32,8]; parameter f32[32,16]; dot f32[32,8]"},
		{"what the module returns", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  n = f32[64,32]{1,0} negate(a)
  ROOT t = (f32[64,32], f32[64,32]) tuple(n, a), sharding={{devices=[4,1]<=[4]}, {replicated}}
}`, "parameter f32[16,32]; negate f32[16,32]; all-gather f32[64,32] over [0 1 2 3]"},
		{"open dimensions of constraints stay as they are", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
  s = f32[64,32]{1,0} custom-call(a), custom_call_target="Sharding", backend_config="unspecified_dims=[0]", sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
  t = f32[64,32]{1,0} custom-call(s), custom_call_target="Sharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding<mesh<[\"x\"=2, \"y\"=2]>, [{\"x\", ?}, {?}]>"}
  ROOT n = f32[64,32]{1,0} negate(t)
}`, "parameter f32[32,32]; slice f32[32,16]; negate f32[32,16]"},
		{"TopK as a call", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT t = (f32[64,8], s32[64,8]) custom-call(a), custom_call_target="TopK"
}`, "parameter f32[16,32]; custom-call (f32[16,8], s32[16,8])"},
		{"Shardy's marks of a manual region", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  l = (f32[16,32], f32[64,32]) custom-call(a, a), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<mesh<[\"x\"=4]>, [{\"x\"}, {}]>, <mesh<[\"x\"=4]>, [{}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}
  x = f32[16,32]{1,0} get-tuple-element(l), index=0
  n = f32[16,32]{1,0} negate(x)
  o = f32[64,32]{1,0} custom-call(n), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<mesh<[\"x\"=4]>, [{\"x\"}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}
  ROOT r = f32[64,32]{1,0} custom-call(o), custom_call_target="xla.sdy.FuncResultSharding", frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<mesh<[\"x\"=4]>, [{\"x\"}, {}]>]>"}
}`, "parameter f32[16,32]; all-gather f32[64,32] over [0 1 2 3]; negate f32[16,32]"},
		{"Shardy", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
  ROOT n = f32[64,32]{1,0} negate(a)
}`, "parameter f32[32,32]; negate f32[32,32]"},
		{"manual region", `ENTRY e {
  a = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  s = f32[64,32]{1,0} custom-call(a), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  l = f32[16,32]{1,0} custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
  n = f32[16,32]{1,0} negate(l), sharding={manual}
  ROOT o = f32[64,32]{1,0} custom-call(n), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
}`, "parameter f32[16,32]; negate f32[16,32]"},
	} {
		header := "HloModule m, num_partitions=4\n"
		if c.name == "Shardy" {
			header = "HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes=\"{mesh = #sdy.mesh<[\\\"x\\\"=2, \\\"y\\\"=2]>}\"}\n"
		}
		g := read(t, header+c.text)
		to, note := Partition(g)
		if note == nil || note.Code != components.NotePartitioned {
			t.Errorf("%s: note %v", c.name, note)
			continue
		}
		if got := work(to, to.Entry); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The state of a loop is cut as its body leaves it: zeros that are added to a
// cut array are made cut.
func TestLoop(t *testing.T) {
	g := read(t, `HloModule m, num_partitions=4
body { p = (s32[], f32[64,32], f32[64,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,32] get-tuple-element(p), index=1
  a = f32[64,32] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[64,32] add(x, a)
  ROOT t = (s32[], f32[64,32], f32[64,32]) tuple(n, y, a) }
cond { p = (s32[], f32[64,32], f32[64,32]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  lim = s32[] constant(10)
  ROOT lt = pred[] compare(i, lim), direction=LT }
ENTRY e {
  a = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}
  z = s32[] constant(0)
  f = f32[] constant(0)
  x = f32[64,32] broadcast(f), dimensions={}
  t0 = (s32[], f32[64,32], f32[64,32]) tuple(z, x, a)
  w = (s32[], f32[64,32], f32[64,32]) while(t0), condition=cond, body=body
  ROOT r = f32[64,32] get-tuple-element(w), index=1
}`)
	to, note := Partition(g)
	if note == nil || note.Code != components.NotePartitioned {
		t.Fatal(note)
	}
	if got, want := work(to, 0), "parameter (s32[], f32[16,32], f32[16,32]); add f32[16,32]; add s32[]"; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	if got, want := work(to, to.Entry), "parameter f32[16,32]; broadcast f32[16,32]; while (s32[], f32[16,32], f32[16,32])"; got != want {
		t.Errorf("entry %s, want %s", got, want)
	}
}

// What no rule cuts is named in the note.
func TestDoneWhole(t *testing.T) {
	g := read(t, `HloModule m, num_partitions=4
ENTRY e {
  a = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}
  r = f32[64,32] reverse(a), dimensions={0}
  b = f32[64,32] reverse(r), dimensions={0}
  ROOT c = f32[64,32] custom-call(a), custom_call_target="own"
}`)
	_, note := Partition(g)
	if want := "one of 4 devices, cut by the module's shardings; inserted 1 all-gather; every device does the whole of own ×1, reverse ×1: there is no rule to cut them so"; note == nil || note.Text != want {
		t.Errorf("%v\nwant %s", note, want)
	}
}

// Devices 0 to 7 on axes of 4 and 2: along the first, 2 follows 0.
func TestNeighbours(t *testing.T) {
	var a axes
	a.devices = 8
	major, err := a.add(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.add(1, 2); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(a.neighbours(major, 1)), "[0 2 1 3 2 4 3 5 4 6 5 7]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := fmt.Sprint(a.neighbours(major, -1)), "[2 0 3 1 4 2 5 3 6 4 7 5]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzPartition cuts modules with any shardings: what comes out passes the
// check of graphs.
func FuzzPartition(f *testing.F) {
	for _, s := range []string{
		"ENTRY e {\n a = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}\n b = f32[32,16] parameter(1), sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}\n ROOT d = f32[64,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}",
		"ENTRY e {\n a = f32[8,64,64,16] parameter(0), sharding={devices=[1,4,1,1]<=[4]}\n k = f32[3,3,16,32] parameter(1)\n ROOT c = f32[8,64,64,32] convolution(a, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n}",
		"ENTRY e {\n a = f32[64,32] parameter(0), frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<mesh<[\\\"x\\\"=4]>, [{\\\"x\\\"}, {}]>\"}\n ROOT n = f32[64,32] negate(a)\n}",
		"ENTRY e {\n a = f32[10,32] parameter(0), sharding={devices=[1,4]0,1,3,2}\n b = f32[10,32] parameter(1), sharding={mesh['x'=2,'y'=2], [{'y'}, {'x'}]}\n s = f32[10,32] add(a, b)\n ROOT t = (f32[10,32], f32[10,32]) tuple(s, a), sharding={{devices=[4,1]<=[4]}, {replicated}}\n}",
		"ENTRY e {\n a = f32[64,32] parameter(0)\n l = (f32[16,32], f32[64,32]) custom-call(a, a), custom_call_target=\"xla.sdy.GlobalToLocalShape\", frontend_attributes={xla.sdy.in_shardings=\"#sdy.sharding_per_value<[<mesh<[\\\"x\\\"=4]>, [{\\\"x\\\"}, {}]>, <mesh<[\\\"x\\\"=4]>, [{}, {}]>]>\"}\n ROOT x = f32[16,32] get-tuple-element(l), index=0\n}",
		"ENTRY e {\n a = f32[64,32] parameter(0), sharding={devices=[2,2]0,2,1,3}\n s = f32[64,32] custom-call(a), custom_call_target=\"Sharding\", sharding={devices=[1,4]<=[4]}\n r = f32[8,8,32] reshape(s)\n ROOT t = f32[32,8,8] transpose(r), dimensions={2,0,1}\n}",
	} {
		f.Add("HloModule m, num_partitions=4\n" + s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		graphs, err := hlo.ReadText("f", []byte(text))
		if err != nil {
			return
		}
		for _, g := range graphs {
			to, _ := Partition(g)
			if err := to.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

// What is partitioned already, and what has no shardings, stays.
func TestLeftAlone(t *testing.T) {
	for _, text := range []string{
		"HloModule m, num_partitions=4\nENTRY e_spmd {\n a = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}\n ROOT n = f32[64,32] negate(a)\n}",
		"HloModule m, num_partitions=4, is_scheduled=true\nENTRY e {\n a = f32[64,32] parameter(0), sharding={devices=[4,1]<=[4]}\n ROOT n = f32[64,32] negate(a)\n}",
		"HloModule m, num_partitions=4\n" + add + "ENTRY e {\n a = f32[64,32] parameter(0), sharding={devices=[1,4]<=[4]}\n ROOT r = f32[64,32] all-reduce(a), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add\n}",
		"HloModule m, num_partitions=4\nENTRY e {\n a = f32[64,32] parameter(0), sharding={replicated}\n ROOT n = f32[64,32] negate(a)\n}",
		"HloModule m, num_partitions=4\nENTRY e {\n a = f32[64,32] parameter(0)\n ROOT n = f32[64,32] negate(a)\n}",
	} {
		g := read(t, text)
		if to, note := Partition(g); to != g || note != nil {
			t.Errorf("%s\n%v", text, note)
		}
	}
}

// Shardings that cannot be followed give the whole module, and say so.
func TestWhole(t *testing.T) {
	for _, c := range []struct{ attr, want string }{
		{`sharding={{devices=[4,1]<=[4]}, {tiles=[4,1]}}`, "all 4 devices' work on one core: the module is not partitioned (sharding {tiles=[4,1]} is not understood)"},
		{`frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}`, "all 4 devices' work on one core: the module is not partitioned (mesh @mesh is not defined)"},
		{`sharding={devices=[4,1]0,3,1,1}`, "all 4 devices' work on one core: the module is not partitioned (sharding {devices=[4,1]0,3,1,1}: the shardings do not cut the devices along common axes)"},
	} {
		g := read(t, "HloModule m, num_partitions=4\nENTRY e {\n a = f32[64,32] parameter(0), "+c.attr+"\n ROOT n = f32[64,32] negate(a)\n}")
		if to, note := Partition(g); to != g || note == nil || note.Text != c.want {
			t.Errorf("%s: %v", c.attr, note)
		}
	}
}

// Training steps of real models: one device of eight has an eighth of the
// FLOPs, but for what their shardings leave whole.
func TestRealModules(t *testing.T) {
	for _, file := range []string{
		"ROCm__xla__llama3_8b__module_0099.jit_train_step.before_optimizations.txt.gz",
		"ROCm__xla__gemma3_4b__module_0096.jit_train_step.before_optimizations.txt.gz",
	} {
		b, err := os.ReadFile(datadir.Path(t, "hlo_text", file))
		if err != nil {
			t.Fatal(err)
		}
		src, err := format.FromBytes(file, b)
		if err != nil {
			t.Fatal(err)
		}
		text, err := src.ReadAll(1 << 30)
		if err != nil {
			t.Fatal(err)
		}
		g := read(t, string(text))
		g.DeriveTripCounts()
		to, note := Partition(g)
		if note == nil || note.Code != components.NotePartitioned {
			t.Errorf("%s: %v", file, note)
			continue
		}
		all, one := g.Totals(1).FLOPs, to.Totals(1).FLOPs
		t.Logf("%s: %s; %.4f of %d FLOPs", file, note.Text, float64(one)/float64(all), all)
		if r := float64(one) * 8 / float64(all); r < 0.999 || r > 1.1 {
			t.Errorf("%s: one device has %.3f of an eighth", file, r)
		}
	}
}
