package proto

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// A message with a field of every wire type, a repeated one packed and not.
func TestScan(t *testing.T) {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "name")
	b = protowire.AppendFixed32(protowire.AppendTag(b, 3, protowire.Fixed32Type), 9)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), 1<<40)
	b = protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), 1)
	b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), []byte{2, 0x80, 1})
	var id int64
	var name string
	var small uint32
	var large uint64
	var list []int64
	text := func(b []byte) string { return string(b) }
	if err := Scan(b, text, 1, &id, 2, &name, 3, &small, 4, &large, 5, &list); err != nil {
		t.Fatal(err)
	}
	if id != 7 || name != "name" || small != 9 || large != 1<<40 || !slices.Equal(list, []int64{1, 2, 128}) {
		t.Error(id, name, small, large, list)
	}
	// Cut in the text of field 2: the error is at its tag, what there is is kept.
	f := Of(b[:6])
	if !f.Next() || f.Uint != 7 || f.Next() || f.Err == nil || len(f.Err.At) != 4 || f.Num != 2 || string(f.Data) != "na" {
		t.Errorf("%+v", f)
	}
	if err := Scan([]byte{5<<3 | 2, 1, 0x80}, text, 5, &list); err == nil || err.Msg != "bad number in a packed list" {
		t.Error(err)
	}
	if f := Of([]byte{1<<3 | 3}); f.Next() || f.Err == nil {
		t.Error("a group was read")
	}
}
