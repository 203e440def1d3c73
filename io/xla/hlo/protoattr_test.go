package hlo

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components/opgraph"
)

// instrOf encodes a module of one instruction with more fields appended.
func instrOf(opcode string, elem uint64, fields []byte) []byte {
	in := protoField(protoField(protoField(nil, 1, []byte("a")), 2, []byte(opcode)), 3, protoInt(nil, 2, elem))
	in = append(protoInt(in, 35, 1), fields...)
	comp := protoInt(protoInt(protoField(protoField(nil, 1, []byte("e")), 2, in), 5, 1), 6, 1)
	return protoInt(protoField(protoField(protoField(nil, 1, []byte("m")), 2, []byte("e")), 3, comp), 6, 1)
}

// TestProtoConstants: a scalar is a number of its type, whichever field of the
// literal holds it, or none.
func TestProtoConstants(t *testing.T) {
	fixed64 := func(num protowire.Number, v float64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), math.Float64bits(v))
	}
	u16 := func(num protowire.Number, v uint16) []byte {
		return protoField(nil, num, binary.LittleEndian.AppendUint16(nil, v))
	}
	minus := func(v int64) uint64 { return uint64(-v) }
	for _, c := range []struct {
		elem    uint64 // PrimitiveType
		literal []byte
		want    string
	}{
		{1, protoInt(nil, 2, 5), "true"},
		{1, protoInt(nil, 2, 0), "false"},
		{2, protoInt(nil, 4, 300), "44"},            // s8: 300 - 256
		{2, protoInt(nil, 4, minus(1)), "-1"},       // s8
		{6, protoField(nil, 3, []byte{200}), "200"}, // u8
		{21, protoField(nil, 21, []byte{0x0f}), "-1"},
		{4, protoInt(nil, 4, 1<<32+3), "3"}, // s32
		{3, u16(17, 0xffff), "-1"},          // s16
		{9, protoInt(nil, 7, math.MaxUint64), "18446744073709551615"},
		{5, protoInt(nil, 5, 1<<63), "-9223372036854775808"},
		{11, fixed64(9, 0.1), "0.10000000149011612"}, // f32 in a field of doubles
		{16, u16(13, 0x3dcd), "0.10009765625"},       // bf16
		{10, u16(11, 0x3c00), "1"},                   // f16
		{11, protoInt(nil, 5, 7), elided},            // f32 in a field of integers
		{4, fixed64(9, 7), elided},                   // s32 in a field of doubles
	} {
		g, err := ReadProto("t", instrOf("constant", c.elem, protoField(nil, 8, c.literal)))
		if err != nil {
			t.Error(err)
			continue
		}
		if text := string(AppendText(nil, g[0])); !strings.Contains(text, " constant("+c.want+")\n") {
			t.Errorf("type %d, want constant(%s): %s", c.elem, c.want, text)
		}
		roundTrip(t, "constant", g[0])
	}
}

// TestProtoNumbers: what a proto can say and text cannot is brought to what
// text says, or refused.
func TestProtoNumbers(t *testing.T) {
	conv := func(v ...uint64) []byte { // kernel in, out; input batch, feature; output batch, feature
		var b []byte
		for i, num := range []protowire.Number{3, 4, 7, 8, 9, 10} {
			b = protoInt(b, num, v[i])
		}
		return protoField(nil, 16, b)
	}
	for _, c := range []struct {
		name   string
		fields []byte
		want   string // in the text, or the error
	}{
		{"a flag of 7", protoInt(nil, 60, 7), "custom-call(), is_stable=true\n"},
		{"the smallest number", protoField(nil, 14, protowire.AppendVarint(nil, 1<<63)), "dimensions={-9223372036854775808}\n"},
		{"key of a frontend attribute", protoField(nil, 68, protoField(nil, 1, protoField(protoField(nil, 1, []byte("a b}\xfe")), 2, []byte("\xff")))), `frontend_attributes={"a b}\376"="\377"}` + "\n"},
		{"labels", conv(1, 0, 0, 1, 1, 0), "dim_labels=bf_oi->fb\n"},
		{"no labels", protoField(nil, 16, nil), "custom-call()\n"},
		{"batch and feature the same", conv(1, 0, 1, 1, 0, 1), "convolution input dimension 1 is outside rank 2 or occurs twice"},
		{"outside", conv(2, 0, 0, 1, 0, 1), "convolution kernel dimension 2 is outside rank 2 or occurs twice"},
	} {
		g, err := ReadProto("t", instrOf("custom-call", 11, c.fields))
		if err != nil {
			if !strings.HasSuffix(err.Error(), ": "+c.want) {
				t.Errorf("%s: error %v, want %s", c.name, err, c.want)
			}
			continue
		}
		if text := string(AppendText(nil, g[0])); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s is not in\n%s", c.name, c.want, text)
		}
		roundTrip(t, c.name, g[0])
	}
}

// TestIntegers: all of 64 bits, and not more.
func TestIntegers(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"-9223372036854775808", "[-9223372036854775808]"}, {"9223372036854775807", "[9223372036854775807]"}, {"-0", "[0]"},
		{"9223372036854775808", "t:3:39: integer does not fit in 64 bits"}, {"-9223372036854775809", "t:3:39: integer does not fit in 64 bits"},
		{"99999999999999999999", "t:3:39: integer does not fit in 64 bits"}, {"-", `t:3:39: expected an integer, found "-"`},
	} {
		graphs, err := ReadText("t", []byte("HloModule m\nENTRY e {\n a = f32[] custom-call(), dimensions={"+c.in+"}\n}"))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(graphs[0].Ints(0, opgraph.AttrDimensions))
		}
		if got != c.want {
			t.Errorf("%s gives %s, want %s", c.in, got, c.want)
		}
	}
}
