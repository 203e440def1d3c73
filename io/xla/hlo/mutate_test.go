package hlo

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// tokens splits a text for mutation: strings, words, numbers, white space and
// single bytes.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[\w.-]+|\s+|(?s:.)`)

// spice is what the grammar cares about and a text may not have.
var spice = []string{
	"\xfe", "\"\xff\\376\\\"\"", "é", "\x00", "{", "}", "(", ")", "[", "]", "%", "=", ",", "#0", "/*", "*/", "//", "\n// -----\n", "\"", "\\", "'",
	"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "nan", "-inf", "1e309", "0x1p-3",
	"?", "<=", "<=[", "]T(1,0)", "T(", ":", "{1,0:T(8,128)S(1)}", "f32[]", "s4[2,3]", "token[]", "b(f32[2])", "(f32[2], s32[])", "pred[]",
	"ROOT", "ENTRY", "HloModule", "FileNames", "StackFrames", "mesh['x'=2]", "{}", "{{0,1},{2,3}}", "{...}", "true",
	"parameter", "constant", "dot-start", "dot-done", "async-start", "fusion", "while", "conditional", "tuple", "get-tuple-element", "custom-call", "frob",
	", index=1", ", metadata={op_name=\"x\"}", ", to_apply=f", ", calls={ ROOT a = f32[] constant(1) }", ", control-predecessors={a}", ", backend_config={\"a\":1}",
	", sharding={replicated}", ", dimensions={0}", ", window={size=3 pad=1_1}", ", dim_labels=b0f_0io->b0f", ", k=2", ", is_stable=true", ", zz=1",
}

// mutate changes a text at a few tokens.
func mutate(r *rand.Rand, list, pool []string) string {
	t := append([]string(nil), list...)
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(t)), r.IntN(len(t))
		switch r.IntN(7) {
		case 0:
			t[i] = ""
		case 1:
			t[i] += t[i]
		case 2:
			t[i], t[j] = t[j], t[i]
		case 3:
			t[i] = pool[r.IntN(len(pool))]
		case 4:
			t[i] = spice[r.IntN(len(spice))]
		case 5:
			t[i] += spice[r.IntN(len(spice))]
		case 6: // a run of tokens moves or is cut
			n := min(r.IntN(12), len(t)-i)
			if r.IntN(2) == 0 {
				t[j] += strings.Join(t[i:i+n], "")
			} else {
				clear(t[i : i+n])
			}
		}
	}
	return strings.Join(t, "")
}

// checkText is what any text must satisfy: an error has a place, a graph
// passes and survives writing.
func checkText(t *testing.T, text string) (read bool) {
	t.Helper()
	defer mustEnd([]byte(text))()
	graphs, err := ReadText("t", []byte(text))
	if err != nil {
		if e, ok := err.(*Error); !ok || e.Line < 1 || e.Col < 1 {
			t.Errorf("error without a place: %v\n%q", err, text)
		}
		return false
	}
	for _, g := range graphs {
		if err := g.Check(); err != nil {
			t.Errorf("a graph that was read does not pass: %v\n%q", err, text)
		}
		g.Totals(1)
		roundTrip(t, "t", g)
		if t.Failed() {
			t.Fatalf("%q", text)
		}
	}
	return true
}

// TestMutations changes good texts token by token, which goes deeper into the
// grammar than changing bytes does.
func TestMutations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var lists [][]string
	var pool []string
	for _, text := range seedTexts() {
		list := tokens.FindAllString(text, -1)
		lists = append(lists, list)
		pool = append(pool, list...)
	}
	read := 0
	const n = 4000
	for range n {
		if checkText(t, mutate(r, lists[r.IntN(len(lists))], pool)) {
			read++
		}
	}
	// Most are mistakes; a good part must get as far as a graph.
	if read < n/20 || read > n*9/10 {
		t.Errorf("%d of %d texts read: the mutations are too weak or too strong", read, n)
	}
}
