package birjson

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"perfsim/io/format"
)

// fuzzRead reads input on one goroutine and on two: the same module or the
// same error, and what is read can be written and read again.
func fuzzRead(t *testing.T, b []byte) {
	read := func(jobs int) (string, error) {
		src, err := format.FromBytes("fuzz", b)
		if err != nil {
			return "", err
		}
		m, err := Read(t.Context(), src, format.Options{Jobs: jobs})
		if err != nil {
			return "", err
		}
		_, text, err := rewrite(m, 1)
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v\n%s", err, text)
		}
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Fatalf("what is written is no JSON:\n%q", text)
		}
		return text, nil
	}
	one, err1 := read(1)
	two, err2 := read(2)
	if (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
		t.Fatalf("one goroutine: %v\ntwo: %v", err1, err2)
	}
	if one != two {
		t.Fatalf("two goroutines read something else:\n%s\n%s", one, two)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte(appendixA))
	f.Add([]byte("\xef\xbb\xbf" + appendixA))
	files, _ := filepath.Glob("../../../examples/*.bir.json")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 8<<10 {
			f.Add(b)
		}
	}
	for _, s := range []string{
		one(`{"opcode":"Loop","name":"L","LoopAxis":{"lb":0,"ub":4,"stride":1},"blocks":[{"name":"x","instructions":[{"opcode":"NoOp","name":"a","dependencies":["L"]}]}]}`),
		one(`{"opcode":"Call","target":"f"},{"opcode":"DMATrigger","dma_blocks":["d"],"sync_info":{"on_wait":[{"id":1,"wait_value":2}]}}`),
		one(`{"opcode":"NoOp","name":"a","dependencies":[["b",3]]},{"opcode":"NoOp","name":"b","loop_carried_dependencies":[["a","Anti",[1]]]}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<16 {
			fuzzRead(t, b)
		}
	})
}

func FuzzCBOR(f *testing.F) {
	var doc any
	f.Add(toCBOR(f, appendixA, &doc))
	f.Add([]byte("\xbf\x69functions\x9f\xa2\x64name\x61f\x66blocks\x81\xa1\x6cinstructions\x81\xa1\x66opcode\x64NoOp\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 1<<16 && isCBOR(b) {
			fuzzRead(t, b)
		}
	})
}

// Damaged files: bytes changed, dropped, doubled and moved at random, with
// pieces that mean something among them.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	loop, err := os.ReadFile("../../../examples/loop.bir.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	whole := [][]byte{[]byte(appendixA), loop, toCBOR(t, appendixA, &doc), toCBOR(t, string(loop), &doc)}
	pieces := []string{"{", "}", "[", "]", ",", ":", `"`, `\`, "null", "-1", "1e9", "1e300", `"blocks":[`, `"I-0"`, `"instructions"`, "\x00", "\xff", "\x9f", "\xbf", "\x7b", "nan",
		"99999999999999999999", `"dependencies":["I-1"],`, `"ap":[[1,4294967296]],`, `"opcode":"Loop",`, `"perfsim":{"lane":9,"elems":3},`}
	n := 1200
	if testing.Short() {
		n = 400
	}
	for i := range n {
		b := append([]byte(nil), whole[i%len(whole)]...)
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(b))
			to := min(len(b), at+rng.IntN(40))
			switch rng.IntN(5) {
			case 0:
				b[at] = byte(rng.IntN(256))
			case 1:
				b = append(b[:at], b[to:]...)
			case 2:
				p := pieces[rng.IntN(len(pieces))]
				b = append(b[:at], append([]byte(p), b[at:]...)...)
			case 3:
				b = append(b[:to], append([]byte(string(b[at:to])), b[to:]...)...)
			case 4:
				b[at], b[len(b)-1-at] = b[len(b)-1-at], b[at]
			}
			if len(b) == 0 {
				b = []byte("{")
			}
		}
		fuzzRead(t, b)
	}
}
