package gen

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
)

// BenchmarkCBOR reads the module of BenchmarkBIRJSON's operands as CBOR.
func BenchmarkCBOR(b *testing.B) {
	o := Default(50_000)
	o.Operands = true
	m := module(b, o)
	var text bytes.Buffer
	if err := birjson.Write(context.Background(), &text, m, format.Options{}); err != nil {
		b.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(text.Bytes(), &doc); err != nil {
		b.Fatal(err)
	}
	binary, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := binary.Marshal(doc)
	if err != nil {
		b.Fatal(err)
	}
	text.Reset()
	doc = nil
	cpu := cpuSeconds()
	for b.Loop() {
		if again := read(b, raw, 1); again.Instr.Len() != m.Instr.Len() {
			b.Fatal("another module")
		}
	}
	b.SetBytes(int64(len(raw)))
	b.ReportMetric(float64(len(raw))*float64(b.N)/(cpuSeconds()-cpu)/1e6, "MB/cpu-s")
	b.ReportMetric(float64(m.Instr.Len())*float64(b.N)/(cpuSeconds()-cpu)/1e6, "Minstr/cpu-s")
	b.ReportMetric(float64(len(raw))/float64(m.Instr.Len()), "B/instr")
}
