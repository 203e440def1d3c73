package gen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
)

func read(t testing.TB, b []byte, jobs int) *components.Module {
	t.Helper()
	src, err := format.FromBytes("generated.bir.json", b)
	if err != nil {
		t.Fatal(err)
	}
	m, err := birjson.Read(context.Background(), src, format.Options{Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A generated module goes through BIR JSON unchanged.
func TestThroughBIRJSON(t *testing.T) {
	for _, o := range []Options{
		Default(20_000),
		{Seed: 3, Instructions: 5000, FanIn: 5, Locality: 9, Far: 0.3, Anti: 0.5, Mix: Mix{PE: 1, DMA: 1, Collective: 1, DVE: 1}, PSUM: 1, Blocks: 4, Loops: 3, Body: 20, Trips: 5, Nested: true},
		{Seed: 4, Instructions: 3000, Mix: Mix{PE: 1, DMA: 1, DVE: 1}, Operands: true, Buffers: 50},
	} {
		m := module(t, o)
		var text bytes.Buffer
		if err := birjson.Write(context.Background(), &text, m, format.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, jobs := range []int{1, 2} {
			again := read(t, text.Bytes(), jobs)
			for i, c := range m.Columns() {
				d := again.Columns()[i]
				if s, ok := c.(*ecs.Column[ecs.Symbol]); ok {
					for r, sym := range s.Slice() {
						if a, b := m.Symbols.String(sym), again.Symbols.String(d.(*ecs.Column[ecs.Symbol]).Get(r)); a != b {
							t.Fatalf("column %s, row %d: %q, read again %q", c.Name(), r, a, b)
						}
					}
					continue
				}
				if strings.HasPrefix(c.Name(), "symbols.") {
					continue
				}
				if m.Operands.Len() > 0 && (c.Name() == "instr.elems" || c.Name() == "instr.out_elems") {
					continue // derived by the reader
				}
				if string(c.Raw()) != string(d.Raw()) {
					t.Errorf("column %s: %d rows, read again %d, or they differ", c.Name(), c.Len(), d.Len())
				}
			}
			if m.Edges.Declared != again.Edges.Declared || fmt.Sprint(m.Attributes) != fmt.Sprint(again.Attributes) {
				t.Errorf("declared %v, read again %v; attributes %v, %v", m.Edges.Declared, again.Edges.Declared, m.Attributes, again.Attributes)
			}
		}
	}
}

// BenchmarkBIRJSON reads and writes modules without and with operands: MB/s of
// text, instructions/s, text bytes and heap bytes per instruction.
func BenchmarkBIRJSON(b *testing.B) {
	for _, operands := range []bool{false, true} {
		o := Default(200_000)
		o.Operands = operands
		name := "bare"
		if operands {
			name = "operands"
		}
		m := module(b, o)
		n := float64(m.Instr.Len())
		var text bytes.Buffer
		if err := birjson.Write(context.Background(), &text, m, format.Options{}); err != nil {
			b.Fatal(err)
		}
		rate := func(b *testing.B, cpu float64) {
			cpu = cpuSeconds() - cpu
			b.ReportMetric(float64(text.Len())*float64(b.N)/cpu/1e6, "MB/cpu-s")
			b.SetBytes(int64(text.Len()))
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds()/1e6, "Minstr/s")
			b.ReportMetric(float64(text.Len())/n, "text-B/instr")
		}
		b.Run("write/"+name, func(b *testing.B) {
			cpu := cpuSeconds()
			for b.Loop() {
				if err := birjson.Write(context.Background(), io.Discard, m, format.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			rate(b, cpu)
		})
		for _, jobs := range []int{1, 2} {
			b.Run(fmt.Sprintf("read/%s/jobs=%d", name, jobs), func(b *testing.B) {
				var again *components.Module
				cpu := cpuSeconds()
				for b.Loop() {
					again = read(b, text.Bytes(), jobs)
				}
				rate(b, cpu)
				b.ReportMetric(float64(again.Bytes())/n, "module-B/instr")
			})
		}
	}
}
