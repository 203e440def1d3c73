package spmd

import (
	"strings"
	"testing"
)

// mlp is two products with a function between, x of 64 rows.
const mlp = `HloModule mlp
ENTRY e {
  x = f32[64,32]{1,0} parameter(0)
  w1 = f32[32,128]{1,0} parameter(1)
  w2 = f32[128,32]{1,0} parameter(2)
  h = f32[64,128]{1,0} dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[64,128]{1,0} tanh(h)
  ROOT y = f32[64,32]{1,0} dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`

// step is a step of gradient descent: w comes back updated, the batch is that
// of x and y.
const step = `HloModule step
` + add + `
ENTRY e {
  w = f32[32,16]{1,0} parameter(0)
  x = f32[64,32]{1,0} parameter(1)
  y = f32[64,16]{1,0} parameter(2)
  v = f32[32,16]{1,0} parameter(3)
  p = f32[64,16]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[64,16]{1,0} subtract(p, y)
  g = f32[32,16]{1,0} dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  m = f32[32,16]{1,0} add(v, g)
  u = f32[32,16]{1,0} subtract(w, m)
  ROOT r = (f32[32,16]{1,0}, f32[32,16]{1,0}) tuple(u, m)
}
`

const own = `HloModule own
ENTRY e {
  x = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  ROOT t = f32[64,32]{1,0} tanh(x)
}
`

const joined = `HloModule joined, num_partitions=4
` + add + `
ENTRY e_spmd {
  x = f32[64,32]{1,0} parameter(0)
  ROOT r = f32[64,32]{1,0} all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add, channel_id=1, use_global_device_ids=true
}
`

// TestCores gives modules to cores: what is left of the work of each, by hand.
func TestCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		n          int64
		cuts       []string
		want, note string
	}{
		{"the batch", mlp, 4, nil, "parameter f32[16,32]; parameter f32[32,128]; parameter f32[128,32]; dot f32[16,128]; tanh f32[16,128]; dot f32[16,32]", "one of 4 devices, cut along x.0"},
		{"the batch, where a weight is as long", strings.ReplaceAll(mlp, "64", "32"), 4, nil, "parameter f32[8,32]; parameter f32[32,128]; parameter f32[128,32]; dot f32[8,128]; tanh f32[8,128]; dot f32[8,32]", "one of 4 devices, cut along x.0"},
		{"columns, then rows: one sum", mlp, 4, []string{"w1.1", "w2.0"},
			"parameter f32[64,32]; parameter f32[32,32]; parameter f32[32,32]; dot f32[64,32]; tanh f32[64,32]; dot f32[64,32]; all-reduce f32[64,32] over [0 1 2 3]",
			"one of 4 devices, cut along w1.1, w2.0; inserted 1 all-reduce"},
		{"one core", mlp, 1, nil, "parameter f32[64,32]; parameter f32[32,128]; parameter f32[128,32]; dot f32[64,128]; tanh f32[64,128]; dot f32[64,32]", ""},
		{"a training step: gradients are summed", step, 2, nil,
			"parameter f32[32,16]; parameter f32[32,32]; parameter f32[32,16]; parameter f32[32,16]; dot f32[32,16]; subtract f32[32,16]; dot f32[32,16]; all-reduce f32[32,16] over [0 1]; add f32[32,16]; subtract f32[32,16]",
			"one of 2 devices, cut along x.0, y.0; inserted 1 all-reduce"},
		{"its own shardings", own, 4, nil, "parameter f32[16,32]; tanh f32[16,32]", "cut by the module's shardings"},
		{"its own shardings, one core", own, 1, nil, "parameter f32[64,32]; tanh f32[64,32]", "all 4 devices' work on one core"},
		{"one device's program", joined, 4, nil, "parameter f32[64,32]; all-reduce f32[64,32] over [0 1 2 3]", ""},
	} {
		g, note, err := Cores(read(t, c.text), c.n, c.cuts)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := g.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		text := ""
		if note != nil {
			text = note.Text
		}
		if got := work(g, g.Entry); got != c.want || !strings.Contains(text, c.note) || note == nil && c.note != "" {
			t.Errorf("%s:\n%s\nwant\n%s\nnote %q, want %q", c.name, got, c.want, text, c.note)
		}
	}
	for _, c := range []struct {
		name, text string
		n          int64
		cuts       []string
		want       string
	}{
		{"no equal parts", mlp, 5, nil, "no batch that 5 divides"},
		{"no such parameter", mlp, 4, []string{"q.0"}, "no parameter has this name; there are x, w1, w2"},
		{"no such dimension", mlp, 4, []string{"x.2"}, "has no dimension 2"},
		{"no equal parts of a dimension", mlp, 5, []string{"x.0"}, "a dimension of 64 is not cut into 5 equal parts"},
		{"no dimension", mlp, 4, []string{"x"}, "is not NAME.I"},
		{"other devices than its shardings have", own, 8, nil, "shardings are for 4 devices: cores is 1 or 4"},
		{"cut twice", own, 4, []string{"x.0"}, "says itself how they share it"},
		{"other devices than its collectives join", joined, 1, nil, "one device's program of 4"},
	} {
		if _, _, err := Cores(read(t, c.text), c.n, c.cuts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
