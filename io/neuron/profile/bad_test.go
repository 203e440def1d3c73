package profile

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"perfsim/components"
	"perfsim/io/format"
)

const good = `{"instruction":[
{"id":9007199254740993,"timestamp":10,"duration":5,"label":"Tensor","opcode":"NOP","operands":"","pc":1,"subgraph":"sg00"},
{"id":9007199254740992,"timestamp":20,"duration":5,"label":"Vector","opcode":"NOP","operands":"","pc":1,"subgraph":"sg00",
 "predecessors":[{"id":9007199254740993,"type":"FLOW_DEPENDENCE"}]}]}`

// TestNeighbourIDs has ids that are equal as floating-point numbers.
func TestNeighbourIDs(t *testing.T) {
	m, err := parse(t, "x", []byte(good), 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Instr.Ref.At(0) != 9007199254740993 || m.Instr.Ref.At(1) != 9007199254740992 || len(m.Edges.Preds.Row(1)) != 1 {
		t.Errorf("ids %d, edges %v", m.Instr.Ref.Slice(), m.Edges.Preds.Words())
	}
}

func TestBadInput(t *testing.T) {
	instr := func(fields string) string { return `{"instruction":[{"opcode":"NOP","label":"Sync",` + fields + `}]}` }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "bad: byte 0: the input ends inside the file"},
		{"white space", " \n ", "bad: byte 3: the input ends inside the file"},
		{"a list", "[]", `bad: byte 0: the file: expected '{', found '['`},
		{"no sections", "{}", `bad: no instructions: section "instruction" is missing or empty`},
		{"no instructions", `{"instruction":[],"dma":[]}`, `bad: no instructions`},
		{"cut in a string", good[:20], "bad: byte 20: the input ends inside an element (in a string)"},
		{"cut behind an element", good[:137], "bad: byte 137: the input ends inside"},
		{"cut at the end", good[:len(good)-1], "the input ends inside the file"},
		{"cut in a key", `{"instr`, "bad: byte 7: the input ends inside a key (in a string)"},
		{"cut behind a key", `{"instruction"`, "bad: byte 14: the input ends inside the file"},
		{"more behind it", good + "x", "'x' after the end of the object"},
		{"section of another type", `{"instruction":{}}`, "bad: byte 15: section instruction is not a list"},
		{"element of another type", `{"instruction":[5]}`, "bad: byte 16: instruction 0: a number where an object should be"},
		{"missing comma", `{"dma":[{} {}]}`, `bad: byte 11: section dma: expected ',' or ']', found '{'`},
		{"missing value", `{"dma":[,]}`, `bad: byte 8: an element: expected a value, found ','`},
		{"wrong bracket", `{"dma":[{"a":[}]}`, `bad: byte 14: an element: '}' closes nothing that is open`},
		{"wrong bracket in a skipped section", `{"other":[{"a":[}]}`, `bad: byte 16: an element: '}' closes nothing that is open`},
		{"bad element", `{"instruction":[{"opcode" "NOP"}]}`, "bad: byte 16: instruction 0: cannot parse JSON"},
		{"deep nesting", `{"instruction":[` + strings.Repeat(`{"a":[`, 100000), "an element: nested more than 128 levels deep"},
		{"deep nesting, skipped", `{"x":` + strings.Repeat(`[`, 100000), "an element: nested more than 128 levels deep"},
		{"no opcode", `{"instruction":[{"pc":1}]}`, "bad: byte 16: instruction 0: no opcode"},
		{"negative time", instr(`"timestamp":-5`), "bad: byte 16: instruction 0: timestamp is negative (-5)"},
		{"negative duration", instr(`"duration":-1`), "duration is negative (-1)"},
		{"NaN", instr(`"timestamp":NaN`), `timestamp is "NaN", not a whole number of 64 bits`},
		{"infinity", instr(`"duration":inf`), `duration is "inf", not a whole number`},
		{"fraction", instr(`"duration":1.5`), `duration is "1.5", not a whole number`},
		{"exponent", instr(`"duration":1e18`), `duration is "1e18", not a whole number`},
		{"absurd time", instr(`"timestamp":9223372036854775807`), "timestamp is 9223372036854775807, more than 1000000000000000"},
		{"more than 64 bits", instr(`"id":18446744073709551616`), `id is "18446744073709551616", not a whole number of 64 bits`},
		{"absurd pc", instr(`"pc":4294967295`), "pc is 4294967295, more than 4294967294"},
		{"time of another type", instr(`"timestamp":[1]`), "timestamp is of type array, not a number"},
		{"time in words", instr(`"timestamp":"soon"`), `timestamp is "soon", not a whole number`},
		{"predecessors of another type", instr(`"predecessors":5`), "predecessors is of type number, not a list"},
		{"predecessor without id", instr(`"predecessors":[{"type":"ORDERED"}]`), "predecessor 0 has no id"},
		{"predecessor of another type", instr(`"predecessors":[7]`), "predecessor 0 has no id"},
		{"depends on itself", instr(`"id":1,"pc":3,"predecessors":[{"id":1,"type":"ORDERED"}]`), "bad: byte 16: instruction NOP (SP pc 3) depends on itself"},
		{"absurd count", instr(`"operands":"src=fp32@0x10[1][1000000000000000000]"`), "operands: src has more than 2147483648 elements in a partition"},
		{"absurd operands", instr(`"operands":"` + strings.Repeat("x", maxOperands+1) + `"`), "operands of 65537 bytes, more than 65536"},
		{"duplicate id", `{"instruction":[{"opcode":"A","id":7,"bir_instruction_name":"x"},{"opcode":"B","id":7,"bir_instruction_name":"y"}]}`,
			`bad: byte 65: instruction B "y" has the id 7 of instruction A "x" at byte 16`},
		{"cycle", `{"instruction":[{"opcode":"A","id":1,"predecessors":[{"id":2,"type":"ORDERED"}]},{"opcode":"B","id":2,"predecessors":[{"id":3}]},{"opcode":"C","id":3,"predecessors":[{"id":1}]}]}`,
			"bad: byte 16: dependency cycle: instruction A -> instruction B -> instruction C -> instruction A"},
		{"clock rate", `{"ham":[{"timestamp":0,"duration":5,"k":9,"n":8}]}`, "bad: byte 8: ham 0: a clock rate of 9/8"},
		{"clock rate of nothing", `{"ham":[{}]}`, "bad: byte 8: ham 0: a clock rate of 0/0"},
		{"packet", `{"dma":[{"transfer_size":5000000000}]}`, "bad: byte 8: dma 0: transfer_size is 5000000000, more than 4294967295"},
		{"second packet", `{"dma":[{"timestamp":1},{"timestamp":-1}]}`, "bad: byte 24: dma 1: timestamp is negative (-1)"},
		{"attribute", `{"summary":[{"total_time":nan}]}`, `summary 0: total_time is "nan", not a number`},
		{"long attribute", `{"summary":[{"` + strings.Repeat("k", 3000) + `":nan}]}`, "bad: byte 12: summary 0: kkk"},
		{"lines in a key", `{"summary":[{"a\nb` + "\xff" + `":nan}]}`, "bad: byte 12: summary 0: a b\uFFFD is \"nan\", not a number"},
		{"long operand", instr(`"operands":"` + strings.Repeat("é", 3000) + `=fp32@0x10[1][1000000000000000000]"`), "operands: é"},
		{"long names", `{"instruction":[{"opcode":"` + strings.Repeat(`A\n`, 500) + `","id":7,"bir_instruction_name":"` + strings.Repeat("\\u0001", 500) + `"},{"opcode":"B","id":7}]}`,
			"instruction B has the id 7 of instruction A A A "},
		{"key", `{5:[]}`, `bad: byte 1: the file: expected a key, found '5'`},
		{"absurd key", `{"` + strings.Repeat("k", 5000) + `":[]}`, "bad: byte 5004: behind a key of 5000 bytes"},
		{"zero byte", "{\"a\":\x00}", `expected a value, found '\x00'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var first string
			for _, jobs := range []int{1, 3} {
				m, err := parse(t, "bad", []byte(c.text), jobs)
				if err == nil {
					t.Fatalf("accepted, %d instructions", m.Instr.Len())
				}
				got := err.Error()
				if !strings.Contains(got, c.want) || len(got) > 600 || strings.Contains(got, "\n") {
					t.Errorf("%d jobs: %s\nwant %s", jobs, got, c.want)
				}
				if first == "" {
					first = got
				} else if got != first {
					t.Errorf("%d jobs: %s\none job: %s", jobs, got, first)
				}
			}
		})
	}
}

// TestFirstError has an error early in an element and the end of the input
// later: the first in the file is reported.
func TestFirstError(t *testing.T) {
	_, err := parse(t, "bad", []byte(`{"dma":[{"timestamp":-1},{"timestamp":1`), 2)
	if err == nil || !strings.Contains(err.Error(), "byte 8: dma 0: timestamp is negative") {
		t.Errorf("%v", err)
	}
}

// TestTruncated cuts a real file at many places: always an error, with the
// place.
func TestTruncated(t *testing.T) {
	text := profileText(t, "trn2_attn_fused_fp32_s512")
	text = text[:len(text)-len("\n")-1] // also cuts what closes the object
	for cut := len(text); cut > 0; cut -= 1 + len(text)/23 {
		if _, err := parse(t, "cut", text[:cut], 2); err == nil || !strings.Contains(err.Error(), "cut: byte ") {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestTolerated(t *testing.T) {
	for _, c := range []struct{ name, text, note string }{
		{"unknown section", `{"future":[1,2,{"a":"]"}],` + good[1:], "section future is none that perfsim knows"},
		{"unknown section that is no list", `{"future":"x","more":5,` + good[1:], "section more is none that perfsim knows"},
		{"section twice", `{"instruction":[{"opcode":"NOP","label":"Sync","pc":9}],` + good[1:], ""},
		{"unknown engine", `{"instruction":[{"opcode":"NOP","label":"Quantum","pc":9}]}`, "engine Quantum is none that perfsim knows"},
		{"unknown edge type", `{"instruction":[{"opcode":"A","id":1,"pc":1},{"opcode":"B","id":2,"pc":2,"predecessors":[{"id":1,"type":"MAGIC"}]}]}`, "dependency type MAGIC"},
		{"no program counters", `{"instruction":[{"opcode":"A","timestamp":5},{"opcode":"B","timestamp":1}]}`, "instructions put in measured order"},
		{"long wait", `{"instruction":[{"opcode":"A","pc":1,"duration":9000000000}]}`, "duration of more than 4.29 s"},
		{"ids as text", `{"instruction":[{"opcode":"A","id":"1","pc":1},{"opcode":"B","id":"2","pc":2,"predecessors":[{"id":"1","type":"ORDERED"}]}]}`, ""},
		{"nulls", `{"instruction":[{"opcode":"A","id":null,"pc":1,"predecessors":null,"operands":null,"timestamp":null}]}`, ""},
	} {
		m, err := parse(t, "x", []byte(c.text), 2)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := c.note == ""
		for _, n := range m.Notes {
			found = found || strings.Contains(n.Text, c.note)
		}
		if !found {
			t.Errorf("%s: notes %v", c.name, m.Notes)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	src, err := format.FromBytes("x", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Importer.Module(ctx, src, format.Options{Jobs: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestReadError has an input that fails in the middle, and one that gives a
// byte at a time.
func TestReadError(t *testing.T) {
	for _, r := range []io.Reader{
		io.MultiReader(strings.NewReader(good[:100]), iotest.ErrReader(errors.New("disk on fire"))),
		iotest.OneByteReader(io.MultiReader(strings.NewReader(good[:100]), iotest.ErrReader(errors.New("disk on fire")))),
	} {
		src, err := format.Open(context.Background(), "-", r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Importer.Module(context.Background(), src, format.Options{Jobs: 1}); err == nil || err.Error() != "standard input: byte 100: the input cannot be read on: disk on fire" {
			t.Errorf("%v", err)
		}
	}
}

// TestLinear reads input that makes careless readers quadratic.
func TestLinear(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"escapes", `{"x":["` + strings.Repeat(`\\`, 1<<20) + `"],` + good[1:]},
		{"escapes, read", `{"summary":[{"a":"` + strings.Repeat(`\"`, 1<<20) + `"}],` + good[1:]},
		{"keys", `{` + strings.Repeat(`"k":1,`, 1<<18) + good[1:]},
		{"elements", `{"dma":[` + strings.Repeat(`{},`, 1<<16) + `{}],` + good[1:]},
		{"sections", `{` + strings.Repeat(`"dma":[{}],`, 1<<13) + good[1:]},
		{"engines", `{"instruction":[` + many(1<<12, func(i int) string { return `{"opcode":"A","pc":1,"label":"` + strings.Repeat("e", i%500) + `"}` }) + `]}`},
	} {
		start := time.Now()
		if _, err := parse(t, c.name, []byte(c.text), 2); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s took %v for %d bytes", c.name, d, len(c.text))
		}
	}
}

func many(n int, f func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(f(i))
	}
	return b.String()
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"instruction":[{"opcode":"MATMUL","label":"TensorMatrix","id":1,"pc":2,"timestamp":3,"duration":4,"subgraph":"sg01","bir_id":"sg0000:1","operands":"S[5] (Tensor)++@complete acc_flags=3 src=bfloat16@0x36ff8[1,0,0][512,1,1] dst=0x2000800[1,0,0][512,1,1] 128*128"},{"opcode":"DMA_DIRECT2D","label":"Sync","id":2,"pc":2,"operands":"semaphore=8 sem_increment=16 src_elem_size=4 dst_elem_size=4 src_pattern=[4,1][128,1] dst_pattern=[262144,1][128,1] src_table_index=0 dst_addr_imm=0x8020000377f8","predecessors":[{"id":1,"type":"ANTI_DEPENDENCE"}]}],"dma":[{"dma_engine":"64","dma_queue":"0","id":5}],"ham":[{"k":4,"n":8,"timestamp":1,"duration":2}],"semaphore_update":[{"id":"S[5] (Tensor)","value":1}],"dma_queues_info":[{"q_name":"qSyncDynamicHW","q_idx":0,"q_eng_idx":64}],"summary":[{"total_time":1e-5}],"x":{}}`))
	f.Add([]byte(`{"instruction":[{"opcode":"A","label":"Sync","id":1,"pc":1},{"opcode":"COMPARE_BRANCH","label":"Sync","id":2,"pc":2,"operands":"cmp_op=EQ label_id=4294967232"},{"opcode":"A","label":"Sync","id":3,"pc":1,"predecessors":[{"id":2,"type":"ORDERED"}]},{"opcode":"COMPARE_BRANCH","label":"Sync","id":4,"pc":2}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		sniff(text)
		m, err := parse(t, "fuzz", text, 1)
		if err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "fuzz: ") || len(s) > 2000 {
				t.Fatalf("error %q", s)
			}
			return
		}
		for i := range m.Instr.Len() {
			lo, hi := m.Operands.Range(components.InstrID(i))
			for r := lo; r < hi; r++ {
				m.Operands.At(r).Span()
			}
		}
	})
}

// TestNoTimes: instructions without times are a program, not one that took no
// time; one time is a measurement.
func TestNoTimes(t *testing.T) {
	for _, c := range []struct {
		text     string
		measured bool
	}{
		{`{"instruction":[{"opcode":"A","pc":1},{"opcode":"B","pc":2,"timestamp":0,"duration":0}]}`, false},
		{`{"instruction":[{"opcode":"A","pc":1},{"opcode":"B","pc":2,"timestamp":0,"duration":3}]}`, true},
	} {
		m, err := parse(t, "x", []byte(c.text), 2)
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(m.Notes, func(n components.Note) bool { return n.Code == "no-times" && n.Count == 2 })
		if m.HasMeasurement() != c.measured || noted == c.measured || m.Instr.Flags.At(0)&components.FlagMeasured != 0 != c.measured {
			t.Errorf("%s: measured %v, notes %v", c.text, m.HasMeasurement(), m.Notes)
		}
	}
}
