package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
)

var ctx = context.Background()

func world(t testing.TB, seed uint64) *components.World {
	t.Helper()
	m := randmod.Module(rand.New(rand.NewPCG(41, seed)), randmod.Options{Streams: 4, Most: 80, Blocks: true, Nested: true})
	for i := range m.Instr.Len() {
		m.Instr.Name.Append(m.Symbols.InternString(fmt.Sprintf("I-%d", i)))
		m.Instr.Source.Append(m.Symbols.InternString(fmt.Sprintf("kernel.py:%d", i%5)))
	}
	mach, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1, Loops: components.Once}, Events: components.NewEvents()}
	if err := cost.Fill(ctx, w); err != nil {
		t.Fatal(err)
	}
	if err := place.Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	return w
}

func rows(t testing.TB, w *components.World, text string, edges bool) []uint32 {
	t.Helper()
	q, err := Compile(text, edges)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r, err := q.Run(ctx, w)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var out []uint32
	for b := range r.Set.Batches() {
		out = append(out, b...)
	}
	if len(out) != r.Len() {
		t.Fatalf("%s: %d rows, Len %d", text, len(out), r.Len())
	}
	return out
}

// slowTerm answers a term for one row the plain way.
func slowTerm(e *engine, t termNode, i uint32) bool {
	f := find(e.known, t.field)
	if f.flag != nil {
		return f.flag(e, i)
	}
	if f.number != nil {
		v, ok := f.number(e, i)
		var want []float64
		for _, s := range t.values {
			x, _ := number(s)
			want = append(want, x)
		}
		return ok && compare(v, t.op, want)
	}
	got := e.valueOf(f)(i)
	any := false
	for _, v := range t.values {
		switch {
		case strings.HasSuffix(t.op, "~"):
			any = any || strings.Contains(strings.ToLower(got), strings.ToLower(v))
		case f.index != nil:
			any = any || strings.EqualFold(got, v)
		default:
			any = any || got == v
		}
	}
	return any != strings.HasPrefix(t.op, "!")
}

func slow(e *engine, n node, d Domain, id uint32) bool {
	switch n := n.(type) {
	case andNode:
		return slow(e, n.a, d, id) && slow(e, n.b, d, id)
	case orNode:
		return slow(e, n.a, d, id) || slow(e, n.b, d, id)
	case notNode:
		return !slow(e, n.a, d, id)
	}
	t := n.(termNode)
	if d == Edges && !find(e.known, t.field).edge {
		if t.from {
			return slowTerm(e, t, e.producer(id))
		}
		return slowTerm(e, t, e.consumer(id))
	}
	return slowTerm(e, t, id)
}

func TestQueriesEqualTheSlowWay(t *testing.T) {
	terms := []string{"engine=PE", "engine!=DMA", "engine=PE,dve", "engine~o", "lane=Pool", "lane!~nc1", "opcode=Matmult", "opcode!=Matmult,Drain", "opcode~DMA",
		"name=I-3", "name~1", "source=kernel.py:2", "source!~:3", "cause=flow", "cause!=lane,start", "row<10", "row>=5", "start>100", "end<=5us", "dur=0", "dur>1us",
		"issue!=0", "slack=0", "slack>10", "preds>1", "parts<64", "critical", "transpose", "collective", "loop", "block=body", "dtype=float32", "delay=0"}
	edgeTerms := []string{"kind=anti", "kind=flow,output", "kind!=ordered", "cross", "binding", "hop", "gap>0", "gap<1us", "distance<3", "from.engine=DMA", "producer.critical",
		"from.opcode~act", "from.row<8", "to.engine=DVE", "consumer.slack=0"}
	n := proptest.Cases(1_000)
	for seed := range uint64(n) {
		w := world(t, seed)
		r := rand.New(rand.NewPCG(42, seed))
		var gen func(depth int, edges bool) string
		gen = func(depth int, edges bool) string {
			switch {
			case depth == 0 || r.IntN(4) == 0:
				if edges && r.IntN(2) == 0 {
					return edgeTerms[r.IntN(len(edgeTerms))]
				}
				return terms[r.IntN(len(terms))]
			case r.IntN(4) == 0:
				return []string{"!", "not ", "! "}[r.IntN(3)] + "(" + gen(depth-1, edges) + ")"
			}
			op := []string{"&", "&&", " and ", "|", " || ", " or "}[r.IntN(6)]
			return "(" + gen(depth-1, edges) + op + gen(depth-1, edges) + ")"
		}
		edges := seed%2 == 0
		text := gen(3, edges)
		q, err := Compile(text, edges)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		res, err := q.Run(ctx, w)
		if err != nil {
			if strings.Contains(err.Error(), "no such") { // an opcode the module lacks
				continue
			}
			t.Fatalf("%s: %v", text, err)
		}
		for id := range uint32(res.e.size(q.Domain)) {
			if got, want := res.Set.Contains(id), slow(res.e, q.root, q.Domain, id); got != want {
				t.Fatalf("seed %d, %s: row %d is in the answer: %v, should be: %v", seed, text, id, got, want)
			}
		}
		if err := res.Each(5, func(row *Row) error {
			if row.Name == "" || q.Domain == Edges && (row.From == "" || row.Kind == "") {
				return fmt.Errorf("row %+v lacks a name", row)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		by := []string{"opcode", "engine", "source", "critical"}[r.IntN(4)]
		groups, err := res.GroupBy(by)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, g := range groups {
			sum += g.Count
		}
		if sum != res.Len() {
			t.Fatalf("%s by %s: groups have %d rows of %d", text, by, sum, res.Len())
		}
	}
}

func TestDomains(t *testing.T) {
	w := world(t, 2)
	for _, c := range []struct {
		text  string
		edges bool
		want  Domain
	}{{"engine=PE", false, Instructions}, {"engine=PE", true, Edges}, {"kind=flow", false, Edges}, {"from.engine=PE", false, Edges}, {"", false, Instructions}, {"", true, Edges}} {
		q, err := Compile(c.text, c.edges)
		if err != nil || q.Domain != c.want {
			t.Errorf("%q: %v, %v", c.text, q, err)
		}
	}
	if got := len(rows(t, w, "", false)); got != w.Module.Instr.Len() {
		t.Errorf("the empty query gives %d instructions", got)
	}
	if got := len(rows(t, w, "", true)); got != w.Module.Edges.Preds.Len() {
		t.Errorf("the empty query gives %d edges", got)
	}
	anti := 0
	for _, word := range w.Module.Edges.Preds.Words() {
		if uint8(word>>ecs.ClassShift) == components.ClassAnti {
			anti++
		}
	}
	if got := len(rows(t, w, "kind=anti", false)); got != anti {
		t.Errorf("%d anti-dependencies, want %d", got, anti)
	}
}

func TestErrorsShowThePlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"engine=", "a value was expected"},
		{"=PE", "a field was expected"},
		{"(engine=PE", "a ) is missing"},
		{"engine=PE)", "& or | or the end"},
		{"engine=PE opcode=X", "& or | or the end"},
		{"colour=red", `no field "colour"`},
		{"critical=1", "true or not"},
		{"engine", "needs a value"},
		{"engine<PE", "is text"},
		{"dur~3", "is a number"},
		{"dur>fast", `"fast" is not a number`},
		{"dur>1,2", "takes one value"},
		{"name~/(/", "missing closing"},
		{"from.kind=flow", "belongs to the edge"},
		{`name="x`, "closing"},
		{strings.Repeat("(", 1000), "nested"},
		{strings.Repeat("\x9f", 48) + "=", "query: the bytes here are not UTF-8\n  \uFFFD…\n  ^"},
		{"opcode=é�\xe2\x82", "query: the bytes here are not UTF-8\n  opcode=é��\n           ^"},
		{"name=" + strings.Repeat("é", 30) + " x", "…" + strings.Repeat("é", 19) + " x\n" + strings.Repeat(" ", 2+1+20) + "^"},
		{strings.Repeat("!", 1000) + "critical", "nested"},
	} {
		_, err := Compile(c.text, false)
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("%.20q: error %q", c.text, err)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20s: error %v, want one with %q", c.text, err, c.want)
		} else if !strings.Contains(err.Error(), "^") {
			t.Errorf("%.20s: error does not show the place: %v", c.text, err)
		}
	}
	q, err := Compile("opcode=Nothing", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Run(ctx, world(t, 1)); err == nil || !strings.Contains(err.Error(), "no such opcode") {
		t.Errorf("unknown opcode: %v", err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"kind=anti & engine=PE & cross", "!(a|b)", `name~"x y"`, "dur>1us", "from.row<3 or not critical", "name~/a(/", "\xff=\xfe"} {
		f.Add(s)
	}
	w := world(f, 1)
	f.Fuzz(func(t *testing.T, s string) {
		q, err := Compile(s, false)
		if err != nil {
			if s := err.Error(); s == "" || !utf8.ValidString(s) {
				t.Fatalf("error %q", s)
			}
			return
		}
		if r, err := q.Run(ctx, w); err == nil && r.Len() > r.e.size(q.Domain) {
			t.Fatalf("%q gives %d rows", s, r.Len())
		}
	})
}
