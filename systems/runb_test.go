package systems

import (
	"context"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/io/format"
)

// A copy of 300 ns, one that waits for its semaphore, and one that waits for
// the second one's.
const semaphores = `{"instruction":[
{"id":1,"timestamp":100,"duration":300,"label":"Vector","opcode":"COPY","operands":"src=fp32@0x2000800[1,1,1,1][256,1,1,1] dst=fp32@0x100[1,1,1,1][256,1,1,1] S[5] (Vector)++@complete","pc":1,"compiler_pc":1,"subgraph":"sg00"},
{"id":2,"timestamp":500,"duration":400,"label":"Scalar","opcode":"COPY","operands":"S[5] (Vector)>=1 src=fp32@0x100[1,1,1,1][256,1,1,1] dst=fp32@0x900[1,1,1,1][256,1,1,1] S[6] (Scalar)++@complete","pc":1,"compiler_pc":1,"subgraph":"sg00","predecessors":[{"id":1,"type":"FLOW_DEPENDENCE"}]},
{"id":3,"timestamp":950,"duration":300,"label":"Vector","opcode":"COPY","operands":"S[6] (Scalar)>=1 src=fp32@0x2000800[1,1,1,1][256,1,1,1] dst=fp32@0x100[1,1,1,1][256,1,1,1]","pc":2,"compiler_pc":2,"subgraph":"sg00","predecessors":[{"id":2,"type":"ANTI_DEPENDENCE"}]}]}`

func loadSemaphores(t *testing.T) *components.Module {
	t.Helper()
	src, err := format.FromBytes("p.json", []byte(semaphores))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Load(context.Background(), &Reading{Source: src}, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return l.Module
}

// Run B goes by dependencies where they stand for the semaphores, and is
// absent with its reason where they do not: here because they were taken away.
func TestRunBOfSemaphores(t *testing.T) {
	simulate := func(m *components.Module) *Result {
		r, err := Simulate(context.Background(), Request{Reading: Reading{Module: m}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	near := simulate(loadSemaphores(t))
	if s := near.Summary(); !s.LatencyB.Known() || s.LatencyB >= s.LatencyA || s.NoRunB != "" {
		t.Errorf("run A takes %d ns, run B %d (%q)", s.LatencyA, s.LatencyB, s.NoRunB)
	}
	m := loadSemaphores(t)
	var none components.EdgeSet
	m.Edges = components.NewModule("", "").Edges
	if err := m.Link(&none); err != nil {
		t.Fatal(err)
	}
	far := simulate(m).Summary()
	if far.LatencyB.Known() || far.AntiCost.Known() || !strings.Contains(far.NoRunB, "semaphores") {
		t.Errorf("run B takes %d ns, anti-dependencies cost %d (%q), want neither", far.LatencyB, far.AntiCost, far.NoRunB)
	}
	if far.LatencyA != near.Summary().LatencyA {
		t.Errorf("run A takes %d ns by semaphores, %d by dependencies", far.LatencyA, near.Summary().LatencyA)
	}
}
