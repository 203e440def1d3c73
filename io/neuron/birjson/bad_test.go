package birjson

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"perfsim/io/format"
)

// one makes a module of one block with the given instructions.
func one(instructions string) string {
	return "{\"version\":2,\"arch\":\"gen3\",\n\"functions\":[{\"name\":\"f\",\n\"blocks\":[{\"name\":\"b\",\"instructions\":[\n" + instructions + "]}]}]}"
}

func TestBadInput(t *testing.T) {
	nested := strings.Repeat("[", 100_000)
	loops := strings.Repeat(`{"opcode":"Loop","blocks":[{"instructions":[`, 500)
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "test.bir.json:1:1: the input is empty"},
		{"spaces", " \n ", "test.bir.json:2:2: the input is empty"},
		{"no object", "[1]", `test.bir.json:1:1: the module: expected '{', found '['`},
		{"empty module", "{}", `module "test" has no instructions`},
		{"empty function", `{"functions":[{"name":"f"}]}`, "has no instructions"},
		{"no functions", `{"version":2,"functions":[]}`, "has no instructions"},
		{"version", `{"version":3}`, "test.bir.json:1:12: version 3: check the version of bir json file - should be 1 (old) or 2 (new)"},
		{"truncated in a string", appendixA[:1200], "the input ends inside an instruction (in a string)"},
		{"truncated between", one(`{"opcode":"NoOp","name":"a"},`)[:100], "the input ends inside"},
		{"trailing", one(`{"opcode":"NoOp","name":"a"}`) + "x", `:4:35: something follows the module: 'x'`},
		{"unknown name", one(`{"opcode":"NoOp","name":"a"},` + "\n" + `{"opcode":"NoOp","name":"b","dependencies":["zz"]}`), `:5:1: instruction b depends on "zz", which is not in the function`},
		{"self", one(`{"opcode":"NoOp","name":"a","dependencies":["a"]}`), ":4:1: instruction a depends on itself"},
		{"cycle", one(`{"opcode":"NoOp","name":"a","dependencies":["b"]},{"opcode":"NoOp","name":"b","dependencies":[["a","Anti"]]}`), ":4:1: dependency cycle: a -> b -> a"},
		{"twice", one(`{"opcode":"NoOp","name":"a"},` + "\n" + `{"opcode":"NoOp","name":"a"}`), ":5:1: two instructions of one function are called a"},
		{"twice numbered", one(`{"opcode":"NoOp","name":"I-1"},{"opcode":"NoOp","name":"I-1"}`), "two instructions of one function are called I-1"},
		{"twice numbered, late", one(`{"opcode":"NoOp","name":"I-0"},{"opcode":"NoOp","name":"I-0"}`), "two instructions of one function are called I-0"},
		{"engine", one(`{"opcode":"NoOp","name":"a","engine":"Warp"}`), `:4:1: instruction a: engine: "Warp" is no engine of the machine`},
		{"no opcode", one(`{"name":"a"}`), "instruction a: it has no opcode"},
		{"kind", one(`{"opcode":"NoOp","name":"a"},{"opcode":"NoOp","name":"b","dependencies":[["a","Sideways"]]}`), `dependencies: unknown kind "Sideways"`},
		{"kind number", one(`{"opcode":"NoOp","name":"a"},{"opcode":"NoOp","name":"b","dependencies":[["a",5]]}`), "dependencies: kind 5 is outside 0 to 4"},
		{"count", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1,128],[1,1000000000000000000]]}]}`), "instruction a: outs[0]: ap: count 1000000000000000000 is outside 0 to 1099511627776"},
		{"product", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1,1000000000],[1,1000000000]]}]}`), "more than 1125899906842624 elements"},
		{"negative count", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1,-1]]}]}`), "count -1 is outside"},
		{"nan", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1,"nan"]]}]}`), "nan is not a finite number"},
		{"bare nan", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1,nan]]}]}`), "nan is not a finite number"},
		{"infinite step", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[["inf",1]]}]}`), "inf is not a finite number"},
		{"overflow", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1e400,1]]}]}`), "1e400 is too large"},
		{"fraction", one(`{"opcode":"Memset","name":"a","outs":[{"kind":"physical_ap","ap":[[1.5,1]]}]}`), "1.5 is not a whole number"},
		{"bad number in a key we only keep", one(`{"opcode":"Memset","name":"a","weird":{"x":[01]}}`), "weird: 01 is not a number as JSON has them"},
		{"negative time", one(`{"opcode":"NoOp","name":"a","scheduled_start":-5}`), "scheduled_start: -5 is outside 0"},
		{"malformed in a loop", one(`{"opcode":"Loop","name":"L","LoopAxis":{"lb":0,"ub":4,"stride":1},"blocks":[],"x":` + strings.Repeat(`{"a":[`, 60) + `"b" 1` + strings.Repeat(`]}`, 60) + `}`),
			"malformed JSON: invalid character '1' after array element"},
		{"malformed", one(`{"opcode":"NoOp","name":"a"},` + "\n{\n" + `"opcode":"NoOp","name" "a"}`), ":6:24: malformed JSON: invalid character '\"' after object key"},
		{"wrong bracket", one(`{"opcode":"NoOp","name":"a"]`), `:4:28: an instruction: ']' closes nothing that is open`},
		{"not an object", one(`7`), ":4:1: an instruction is an object, not something that starts with '7'"},
		{"deep", one(`{"opcode":"NoOp","x":` + nested), "nested more than 200 levels deep"},
		{"deep at the top", nested, "expected '{'"},
		{"deep attribute", `{"attributes":` + nested, "nested more than 200 levels deep"},
		{"deep loops", one(loops), "loops are nested more than 64 levels deep"},
		{"endless loop", one(`{"opcode":"Loop","name":"L","LoopAxis":{"lb":0,"ub":4,"stride":0},"blocks":[]}`), "a loop with stride 0 never ends"},
		{"huge loop", one(`{"opcode":"Loop","name":"L","LoopAxis":{"lb":0,"ub":1000000000000000000,"stride":1},"blocks":[]}`), "loop bound ub: 1000000000000000000 is outside"},
		{"two functions", `{"functions":[{"name":"f","blocks":[{"instructions":[{"opcode":"NoOp"}]}]},{"name":"f"}]}`, ":1:76: two functions are called f"},
		{"address", `{"functions":[{"allocations":[{"name":"s","memorylocations":[{"name":"x","type":"SB","addr":-4}]}]}]}`, "allocation s: memorylocations: x: addr: -4 is outside"},
		{"partitions", `{"functions":[{"allocations":[{"name":"s","memorylocations":[{"name":"x","type":"SB","dims":[1000000,4]}]}]}]}`, "1000000 partitions"},
		{"bytes", `{"functions":[{"allocations":[{"name":"s","memorylocations":[{"name":"x","type":"DRAM","dims":[1000000000,1000000000]}]}]}]}`, "larger than"},
		{"memory type", `{"functions":[{"allocations":[{"name":"s","memorylocations":[{"name":"x","type":24}]}]}]}`, "24 is not one memory type"},
	} {
		for _, jobs := range []int{1, 2} {
			start := time.Now()
			m, err := readText(t, c.text, jobs)
			switch {
			case err == nil:
				t.Errorf("%s: read %d instructions", c.name, m.Instr.Len())
			case !strings.Contains(err.Error(), c.want):
				t.Errorf("%s:\n got %s\nwant %s", c.name, err, c.want)
			case strings.Contains(err.Error(), "\n"):
				t.Errorf("%s: more than one line: %s", c.name, err)
			case !strings.HasPrefix(err.Error(), "test.bir.json:"):
				t.Errorf("%s: does not name the file: %s", c.name, err)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%s took %s", c.name, d)
			}
		}
	}
}

// Every prefix of a good file is an error that says so, never a panic.
func TestTruncated(t *testing.T) {
	var doc any
	binary := toCBOR(t, appendixA, &doc)
	for _, whole := range [][]byte{[]byte(appendixA), binary} {
		for n := 0; n < len(whole); n += 1 + n/200 {
			src, err := format.FromBytes("x", whole[:n])
			if err != nil {
				t.Fatal(err)
			}
			_, err = Read(t.Context(), src, format.Options{Jobs: 1 + n%2})
			if err == nil {
				t.Fatalf("%d of %d bytes were read without an error", n, len(whole))
			}
			if msg := err.Error(); n > 0 && !strings.Contains(msg, "ends inside") && !strings.Contains(msg, "the input is empty") {
				t.Fatalf("%d of %d bytes: %s", n, len(whole), msg)
			}
		}
	}
}

func TestBadCBOR(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"count", append([]byte("\xa1\x69functions\x9b"), bytes.Repeat([]byte{0x7f}, 8)...), "x: byte 20: the input ends inside the module"},
		{"length", append([]byte("\xa1\x7b"), bytes.Repeat([]byte{0x7f}, 8)...), "a text of 9187201950435737471 bytes is longer than"},
		{"claimed text", []byte("\xa1\x7a\x03\xff\xff\xffabc"), "the input ends inside a text"},
		{"deep", append([]byte("\xa1\x61a"), bytes.Repeat([]byte{0x81}, 100_000)...), "nested more than 200 levels deep"},
		{"reserved", []byte("\xa1\x61a\x1c"), "malformed CBOR: additional information 28"},
		{"break", []byte("\xa1\xff"), "a break outside"},
		{"number key", []byte("\xa1\x01\x01"), "a key that is no text"},
		{"trailing", []byte("\xa0\x00"), "something follows the module"},
		{"negative", []byte("\xa1\x61a\x3b\xff\xff\xff\xff\xff\xff\xff\xff"), "too small a number"},
		{"empty", []byte("\xa0"), "no instructions"},
	} {
		src, err := format.FromBytes("x", c.in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Read(t.Context(), src, format.Options{Jobs: 2}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// toCBOR encodes JSON text as CBOR with a library that is not the reader's.
func toCBOR(t testing.TB, text string, doc *any) []byte {
	t.Helper()
	if err := unmarshalOrdered(text, doc); err != nil {
		t.Fatal(err)
	}
	b, err := cbor.Marshal(*doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A gzip file that is cut off or damaged is told as such, with the place.
func TestDamagedGzip(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(strings.Repeat(" \n", 5000) + appendixA))
	w.Close()
	whole := z.Bytes()
	for name, b := range map[string][]byte{"cut": whole[:len(whole)-40], "damaged": append(append(append([]byte(nil), whole[:len(whole)-60]...), 0xff, 0xff, 0xff), whole[len(whole)-57:]...)} {
		src, err := format.FromBytes("m.json.gz", b)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Read(t.Context(), src, format.Options{Jobs: 2})
		if err == nil || !strings.HasPrefix(err.Error(), "m.json.gz:5") || strings.Count(err.Error(), "m.json.gz") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reading stops when the context ends, and says so.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	path := dir + "/m.bir.json"
	if err := os.WriteFile(path, []byte(appendixA), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := format.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := Read(ctx, src, format.Options{Jobs: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
