package goal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/ecs"
	"perfsim/io/internal/readtest"
)

func readText(text string) (*components.Module, error) { return readtest.Text(read, "x", text) }

func list(m *components.Module) string {
	var b strings.Builder
	for i := range m.Instr.Len() {
		fmt.Fprintf(&b, "%s | %s %s | %d |", m.LaneName(m.Instr.Lane.At(i)), m.OpcodeName(m.Instr.Opcode.At(i)), m.InstrName(components.InstrID(i)), m.Instr.MeasuredDur.At(i))
		for _, w := range m.Edges.Preds.Row(i) {
			fmt.Fprintf(&b, " %c:%d", components.KindOfClass(uint8(w >> ecs.ClassShift)).String()[0], w&ecs.TargetMask)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// By hand: forward references, comments, options, both ranks exchanging a
// message with the receive only started before the send (which would be a
// deadlock if it had to be over).
func TestExchange(t *testing.T) {
	m, err := readText(`// two ranks
num_ranks 2
rank 0 { /* exchange */
 l2: send 8b to 1 tag 5 cpu 0 nic 1
 l2 irequires l1
 l1: recv 8b from 1
 l3: calc 100 cpu 2
 l3 requires l1 l3 requires l2
}
rank 1 {
 tag: recv 8b from 0 tag 5
 a: send 8b to 0
 a irequires tag
 calc 7
}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `rank 0 recv | Post r0.l1 | 0 |
rank 1 recv | Post r1.tag | 0 |
rank 1 cpu | calc r1.op5 | 7 |
rank 0 send 1 | CollectiveSend r0.l2 | 1 | O:0
rank 1 send | CollectiveSend r1.a | 1 | O:1
rank 1 recv | CollectiveRecv r1.tag | 1 | F:3 O:1
rank 0 recv | CollectiveRecv r0.l1 | 1 | F:4 O:0
rank 0 cpu 2 | calc r0.l3 | 100 | F:3 F:6
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if readtest.Codes(m) != "estimated-communication=2 receive-time=2 irequires=2" {
		t.Errorf("notes %s", readtest.Codes(m))
	}
}

// Messages of one channel arrive in order; wildcards take what is left.
func TestMatching(t *testing.T) {
	m, err := readText(`num_ranks 3
rank 0 { send 1b to 2 tag 1 send 2b to 2 tag 1 send 3b to 2 tag 7 }
rank 1 { send 4b to 2 tag 7 send 5b to 0 }
rank 2 { a: recv 9b from -1 tag -1 b: recv 1b from 0 tag 1 c: recv 2b from 0 tag 1 d: recv 4b from -1 tag 7 e: recv 1b from 1 tag 99 }`)
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]uint64{}
	for i := range m.Instr.Len() {
		if m.Instr.Opcode.At(i) != components.OpcodeCollectiveRecv {
			continue
		}
		for _, w := range m.Edges.Preds.Row(i) {
			size[m.InstrName(components.InstrID(i))] += m.Instr.DMABytes.At(int(w & ecs.TargetMask))
		}
	}
	want := map[string]uint64{"r2.a": 3, "r2.b": 1, "r2.c": 2, "r2.d": 4}
	if fmt.Sprint(size) != fmt.Sprint(want) {
		t.Errorf("received %v, want %v", size, want)
	}
	if got := readtest.Codes(m); got != "wildcard-receive=2 unmatched-receive=1 unmatched-send=1 estimated-communication=5 receive-time=5" {
		t.Errorf("notes %s", got)
	}
	if !strings.HasSuffix(m.Notes[1].Text, "the first: 4:109 in rank 2") {
		t.Errorf("note %q", m.Notes[1].Text)
	}
}

func TestBad(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "x:1:1: the text ends where 'num_ranks' should be",
		"num_ranks x":           `x:1:11: num_ranks: "x" is not a whole number`,
		"num_ranks 0":           "x:1:11: num_ranks: 0 is not between 1 and",
		"num_ranks 1":           "x: the schedule has no operations",
		"num_ranks 1 rank 1 {":  "x:1:18: rank: 1 is not between 0 and 0",
		"num_ranks 1\nrank 0 {": "x:2:9: the text ends where '}' should be",
		"num_ranks 1 rank 0 { calc 1 } rank 0 { }":                                "x:1:36: rank 0 was at 1:18 already",
		"num_ranks 1 rank 0 { a: calc 1 a: calc 2 }":                              "x:1:32: label a is there twice",
		"num_ranks 1 rank 0 { a: calc 1\n b requires a }":                         `x:2:2: label "b" is of no operation`,
		"num_ranks 1 rank 0 { a: calc 1\n a requires b }":                         `x:2:13: label "b" is of no operation`,
		"num_ranks 1 rank 0 { a: calc 1 a requires a }":                           "x:1:32: label a requires itself",
		"num_ranks 1 rank 0 { a: jump 1 }":                                        `x:1:25: "jump" where send, recv or calc should be`,
		"num_ranks 1 rank 0 { send 1b from 0 }":                                   `x:1:30: "from" where 'to' should be`,
		"num_ranks 1 rank 0 { send 1b to -1 }":                                    "x:1:33: rank: -1 is not between 0 and 0",
		"num_ranks 1 rank 0 { calc 1.5 }":                                         `x:1:27: calc: "1.5" is not a whole number`,
		"num_ranks 1 rank 0 { calc -1 }":                                          "x:1:27: calc: -1 is not between",
		"num_ranks 1 /* rank":                                                     "x:1:13: a comment is not closed",
		"num_ranks 1 rank 0 { " + strings.Repeat("a", 2000):                       "x:1:22: a word is longer than 1024 bytes",
		"num_ranks 1\nrank 0 { a: calc 1\nb: calc 1\na requires b b requires a }": "x:2:10: operations wait for one another in a cycle: rank 0 2:10 <- rank 0 3:1 <- rank 0 2:10",
	} {
		_, err := readText(in)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %s", in, err, want)
		}
	}
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]bool{"num_ranks 3": true, " // a\n/* b */\n num_ranks": true, "// a": false, "/* num_ranks": false, "rank 0": false, "": false} {
		if sniff([]byte(in)) != want {
			t.Errorf("%q: %v", in, !want)
		}
	}
}

// Operations, requirements and messages are as many as the words of the file
// say.
func TestFiles(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(datadir.Path(t, "goal"), "*.goal"))
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := readText(string(b))
		if err != nil {
			t.Fatal(err)
		}
		count := func(word string) int { return len(regexp.MustCompile(`\b`+word+`\b`).FindAll(b, -1)) }
		if want := count("send") + count("recv") + count("calc"); m.Instr.Len() != want {
			t.Errorf("%s: %d operations, want %d", path, m.Instr.Len(), want)
		}
		// Every receive of this file has its send.
		if want := count("requires") + count("recv"); m.Edges.Counts()[components.Flow] != uint64(want) {
			t.Errorf("%s: %d dependencies, want %d", path, m.Edges.Counts()[components.Flow], want)
		}
		t.Logf("%s: %d operations, notes %s", filepath.Base(path), m.Instr.Len(), readtest.Codes(m))
	}
}

func FuzzRead(f *testing.F) {
	f.Add("num_ranks 2 rank 0 { a: send 1b to 1 tag 3 nic 1 } rank 1 { b: recv 1b from -1 tag -1 c: calc 9 c requires b c irequires b }")
	f.Add("num_ranks 1 // x\nrank 0 { calc 9999999999 }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := readText(text)
		if err == nil && m.Instr.Len() == 0 {
			t.Error("an empty module")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x:") {
			t.Errorf("error without a place: %v", err)
		}
	})
}

// Words, comments and options lie across the ends of the reader's buffer at
// every distance; a label may come before its operation; two ranks have labels
// of the same name.
func TestLongText(t *testing.T) {
	const n = 30_000 // about three buffers
	var b strings.Builder
	b.WriteString("num_ranks 2\n")
	for rank := range 2 {
		fmt.Fprintf(&b, "rank %d {\n", rank)
		for i := range n {
			fmt.Fprintf(&b, "l%d requires l%d%s\n", i+1, i, []string{"", " // a comment", " /* one\nmore */"}[i%3])
			fmt.Fprintf(&b, "l%d: calc %d cpu %d\n", i, i%7, i%3)
		}
		fmt.Fprintf(&b, "l%d: calc 1\n}\n", n)
	}
	m, err := readText(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Instr.Len(); got != 2*(n+1) {
		t.Fatalf("%d operations, want %d", got, 2*(n+1))
	}
	for i := range m.Instr.Len() {
		var rank, label int
		if _, err := fmt.Sscanf(m.InstrName(components.InstrID(i)), "r%d.l%d", &rank, &label); err != nil {
			t.Fatal(err)
		}
		row := m.Edges.Preds.Row(i)
		if label == 0 {
			if len(row) != 0 {
				t.Fatalf("r%d.l0 has %d dependencies", rank, len(row))
			}
			continue
		}
		if want := fmt.Sprintf("r%d.l%d", rank, label-1); len(row) != 1 || m.InstrName(components.InstrID(row[0]&ecs.TargetMask)) != want {
			t.Fatalf("r%d.l%d does not depend on %s alone", rank, label, want)
		}
	}
}
