package neff

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
)

// msg builds a protobuf message by hand, field after field.
type msg []byte

func (m msg) num(field protowire.Number, v uint64) msg {
	return protowire.AppendVarint(protowire.AppendTag(m, field, protowire.VarintType), v)
}

func (m msg) str(field protowire.Number, s string) msg {
	return protowire.AppendString(protowire.AppendTag(m, field, protowire.BytesType), s)
}

func (m msg) sub(field protowire.Number, b msg) msg { return m.str(field, string(b)) }

func (m msg) packed(field protowire.Number, vs ...uint64) msg {
	var b msg
	for _, v := range vs {
		b = protowire.AppendVarint(b, v)
	}
	return m.sub(field, b)
}

func sampleDebug() []byte {
	return msg{}.
		str(1, "backend").
		str(2, "debug_info_penguin.dbg").
		sub(3, msg{}.num(1, 7).str(2, "I-7").packed(3, 1, 300).packed(4, 5, 6).packed(5, 4).num(6, 1).
														sub(7, msg{}.str(1, "dma_queue").str(2, "q0")).num(8, 2).packed(9, 4, 2).packed(10, 1)).
		sub(3, msg{}.num(1, 8).str(2, "I-8").num(4, 7).num(4, 9).num(9, 3).num(9, 4).num(6, 2)). // unpacked lists
		sub(3, msg{}.num(1, 9).packed(4, 7).packed(9, 1, 2).
			sub(7, msg{}.str(1, "src_file_idx").str(2, "1")).
			sub(7, msg{}.str(1, "src_line_num").str(2, "42")).num(99, 1)).
		num(4, 1).
		str(5, "k0.py").str(5, "k1.py").
		sub(6, msg{}.str(1, "a.py").str(1, "b.py").str(2, "main").
			sub(3, msg{}.num(1, 2).num(2, 1).num(3, 17)).
			sub(4, msg{}.num(1, 9)).sub(4, msg{}.num(1, 1).num(2, 1))).
		str(7, "kern").
		num(50, 1)
}

func TestDebugInfo(t *testing.T) {
	d, err := ReadDebugInfo(ctx, bytes.NewReader(sampleDebug()), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []DebugInstruction{
		{ID: 7, Name: "I-7", Parents: []uint64{1, 300}, Dataflow: []Dependency{{5, components.Flow}, {6, components.Anti}},
			Scheduling: []Dependency{{4, components.Ordered}}, Type: RegularInstruction, Attrs: []Attr{{"dma_queue", "q0"}}, StackFrame: 2},
		{ID: 8, Name: "I-8", Dataflow: []Dependency{{7, components.Output}, {9, components.Flow}}, Type: SpillInstruction},
		{ID: 9, Dataflow: []Dependency{{7, components.Ordered}}, Attrs: []Attr{{"src_file_idx", "1"}, {"src_line_num", "42"}}},
	}
	if diff := cmp.Diff(want, d.Instructions); diff != "" {
		t.Error(diff)
	}
	if d.Description != "backend" || d.Parent != "debug_info_penguin.dbg" || d.Engine != components.PE ||
		d.NumInstructions != 3 || d.UnknownFields != 2 || d.Mismatched != 1 {
		t.Errorf("%+v", d)
	}
	for i, want := range []string{"b.py:17", "", "k1.py:42"} {
		s, ok := d.Source(&d.Instructions[i])
		if ok != (want != "") || ok && s.String() != want {
			t.Errorf("instruction %d: %v %v", i, s, ok)
		}
	}
	if s, _ := d.Source(&d.Instructions[0]); s.Function != "main" {
		t.Error(s)
	}
	if v, ok := d.Instructions[0].Attr("dma_queue"); !ok || v != "q0" {
		t.Error(v)
	}
	// A frame whose location does not exist is no source.
	d.Instructions[0].StackFrame = 1
	if s, ok := d.Source(&d.Instructions[0]); ok {
		t.Error(s)
	}
	// Streaming sees the same, one after the other.
	var names []string
	d2, err := ReadDebugInfo(ctx, bytes.NewReader(sampleDebug()), func(in *DebugInstruction) error {
		names = append(names, in.Name)
		if w := want[len(names)-1]; in.ID != w.ID || !slices.Equal(in.Dataflow, w.Dataflow) || !slices.Equal(in.Parents, w.Parents) || !slices.Equal(in.Attrs, w.Attrs) {
			t.Errorf("streamed %+v, want %+v", *in, w)
		}
		return nil
	})
	if err != nil || strings.Join(names, " ") != "I-7 I-8 " || len(d2.Instructions) != 0 || d2.NumInstructions != 3 {
		t.Error(names, err)
	}
	stop := errors.New("stop")
	if _, err := ReadDebugInfo(ctx, bytes.NewReader(sampleDebug()), func(*DebugInstruction) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestDebugInfoEngines(t *testing.T) {
	for v, want := range []components.Engine{components.Unassigned, components.PE, components.Activation, components.Pool,
		components.DMA, components.DVE, components.SP, components.Unassigned} {
		d, err := ReadDebugInfo(ctx, bytes.NewReader(msg{}.num(4, uint64(v))), nil)
		if err != nil || d.Engine != want {
			t.Error(v, d, err)
		}
	}
}

func TestDebugInfoErrors(t *testing.T) {
	whole := sampleDebug()
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"cut", whole[:20], "byte 9: cut short: a field of 22 bytes"},
		{"cut in a tag", append(bytes.Clone(whole), 0x80), "cut short in a number"},
		{"number too long", bytes.Repeat([]byte{0xff}, 20), "overflows"},
		{"field zero", []byte{0, 0}, "field number 0"},
		{"group", []byte{0x0b}, "wire type 3"},
		{"size that lies", append(protowire.AppendTag(nil, 3, protowire.BytesType), 0xff, 0xff, 0xff, 0x7f), "cut short"},
		{"size that lies much", protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.BytesType), 1<<60), "larger than"},
		{"text", []byte("{\"debug\": 1}"), "debug info, byte"},
		{"broken instruction", msg{}.str(3, "\x0a\xff"), "instruction 0"},
		{"broken list", msg{}.sub(3, msg{}.str(4, "\x80")), "instruction 0"},
		{"broken frames", msg{}.str(6, "\x1a\x05"), "stack frames"},
	} {
		if _, err := ReadDebugInfo(ctx, bytes.NewReader(c.data), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// FuzzDebugInfo: no bytes make the reader panic, and collecting sees what
// streaming sees.
func FuzzDebugInfo(f *testing.F) {
	f.Add(sampleDebug())
	f.Add([]byte{0x1a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		d, err := ReadDebugInfo(ctx, bytes.NewReader(data), func(*DebugInstruction) error { n++; return nil })
		e, err2 := ReadDebugInfo(ctx, bytes.NewReader(data), nil)
		if (err == nil) != (err2 == nil) {
			t.Fatal(err, err2)
		}
		if err != nil {
			return
		}
		if n != len(e.Instructions) || d.Mismatched != e.Mismatched || d.UnknownFields != e.UnknownFields {
			t.Fatal(n, len(e.Instructions))
		}
		for i := range e.Instructions {
			e.Source(&e.Instructions[i])
		}
	})
}
