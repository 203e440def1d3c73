package perfetto

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/ecs"
)

// fields decodes one message into the values of its fields.
func fields(t *testing.T, b []byte) map[protowire.Number][]any {
	t.Helper()
	out := map[protowire.Number][]any{}
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			t.Fatal("damaged tag")
		}
		b = b[size:]
		switch typ {
		case protowire.VarintType:
			v, size := protowire.ConsumeVarint(b)
			out[n] = append(out[n], v)
			b = b[size:]
		case protowire.Fixed64Type:
			v, size := protowire.ConsumeFixed64(b)
			out[n] = append(out[n], v)
			b = b[size:]
		case protowire.BytesType:
			v, size := protowire.ConsumeBytes(b)
			out[n] = append(out[n], v)
			b = b[size:]
		default:
			t.Fatalf("field %d has wire type %d", n, typ)
		}
	}
	return out
}

// world makes a module of two lanes: a load of 100 ns, a use of 50 ns that
// waits for it, a wait of no length, a second load that overlaps the use.
func world() *components.World {
	m := components.NewModule("m\x00\xff", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(4)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 4)
	m.Functions.EndBlock.Set(f, 1)
	m.Instr.Name.Resize(4)
	m.Instr.Name.Set(0, m.Symbols.InternString("lo\x00ad\xff"))
	for i, x := range []struct {
		lane  uint16
		issue uint32
		lat   uint32
		end   uint64
	}{{components.LaneDMA, 60, 100, 100}, {components.LaneDVE, 50, 50, 150}, {components.LaneDVE, 0, 0, 150}, {components.LaneDMA, 60, 100, 160}} {
		m.Instr.Lane.Set(i, x.lane)
		m.Instr.Issue.Append(x.issue)
		m.Instr.Latency.Append(x.lat)
		_ = x.end
	}
	var edges components.EdgeSet
	edges.Add(1, 0, components.Flow)
	edges.Add(2, 1, components.Ordered)
	edges.Add(3, 0, components.Output)
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	for _, e := range []uint64{100, 150, 150, 160} {
		w.Events.Arrive.Append([2]uint64{e, e})
	}
	w.Blocks = []components.BlockResult{{Block: 0, Latency: [2]uint64{160, 160}}}
	return w
}

func TestWrite(t *testing.T) {
	w := world()
	tl := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
	tl.Series = []components.Series{{Name: "busy", Unit: "%", Time: []uint64{0, 155}, Value: []float64{12.5, 0}}}
	tl.Critical = ecs.NewBits(4)
	var out bytes.Buffer
	stats, err := Write(context.Background(), &out, tl, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if stats != (Stats{Slices: 4, Flows: 3, Counters: 2}) {
		t.Errorf("wrote %+v", stats)
	}
	type packet struct {
		at    uint64
		typ   uint64
		track uint64
	}
	var got []packet
	flowsOut, flowsIn := map[uint64]int{}, map[uint64]int{}
	interned := map[uint64]bool{}
	names, instructions := map[string]int{}, map[string]bool{} // names of slices, instructions in their arguments
	texts := map[uint64]string{}
	var descriptors int
	for n, p := range fields(t, out.Bytes())[tracePacket] {
		f := fields(t, p.([]byte))
		if d := f[packetDescriptor]; len(d) > 0 {
			descriptors++
			continue
		}
		e := fields(t, f[packetTrackEvent][0].([]byte))
		if len(f[packetInterned]) > 0 {
			for table, entries := range fields(t, f[packetInterned][0].([]byte)) {
				for _, x := range entries {
					id := fields(t, x.([]byte))[1][0].(uint64)
					interned[uint64(table)<<32|id] = true
					texts[uint64(table)<<32|id] = string(fields(t, x.([]byte))[2][0].([]byte))
				}
			}
		}
		if c := e[eventCategoryIID]; len(c) > 0 && !interned[internedCategories<<32|c[0].(uint64)] {
			t.Errorf("packet %d uses a category that is not there yet", n)
		}
		if n := e[eventNameIID]; len(n) > 0 {
			names[texts[internedNames<<32|n[0].(uint64)]]++
			for _, a := range e[eventAnnotation] {
				a := fields(t, a.([]byte))
				if texts[internedAnnotations<<32|a[annotationNameIID][0].(uint64)] == "instruction" {
					instructions[string(a[annotationString][0].([]byte))] = true
				}
			}
		}
		at := f[packetTimestamp][0].(uint64)
		got = append(got, packet{at, e[eventType][0].(uint64), e[eventTrack][0].(uint64)})
		for _, id := range e[eventFlows] {
			flowsOut[id.(uint64)]++
		}
		for _, id := range e[eventFlowsEnd] {
			if flowsOut[id.(uint64)] != 1 {
				t.Errorf("flow %d ends before it begins", id)
			}
			flowsIn[id.(uint64)]++
		}
		if e[eventType][0].(uint64) == typeCounter && at == 0 {
			if v := math.Float64frombits(e[eventDouble][0].(uint64)); v != 12.5 {
				t.Errorf("counter is %v", v)
			}
		}
	}
	if len(names) != 1 || names["Generic"] != 4 {
		t.Errorf("the slices are called %v, not by their opcodes", names)
	}
	if len(instructions) != 4 || !instructions["I-1"] || !instructions["lo\uFFFDad\uFFFD"] {
		t.Errorf("the slices are of instructions %v", instructions)
	}
	// A process, two lanes, a counter.
	if descriptors != 4 {
		t.Errorf("%d descriptors", descriptors)
	}
	dma, dve, c := laneTrack(0, components.LaneDMA), laneTrack(0, components.LaneDVE), counterTrack(0, 0)
	want := []packet{{0, typeCounter, c}, {0, typeBegin, dma}, {60, typeEnd, dma}, {60, typeBegin, dma}, {100, typeBegin, dve}, {150, typeEnd, dve},
		{150, typeBegin, dve}, {150, typeEnd, dve}, {155, typeCounter, c}, {160, typeEnd, dma}}
	if len(got) != len(want) {
		t.Fatalf("%d packets: %v", len(got), got)
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("packet %d is %v, want %v", k, got[k], want[k])
		}
	}
	if len(flowsOut) != 3 || len(flowsIn) != 3 {
		t.Errorf("flows %v and %v", flowsOut, flowsIn)
	}
	if bytes.Contains(out.Bytes(), []byte("lo\x00")) || bytes.Contains(out.Bytes(), []byte("ad\xff")) {
		t.Error("a name holds bytes that no viewer takes")
	}
	var again bytes.Buffer
	if _, err := Write(context.Background(), &again, tl, Options{}); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("the second time gives other bytes", err)
	}
	var less bytes.Buffer
	if stats, err := Write(context.Background(), &less, tl, Options{NoFlows: true}); err != nil || stats.Flows != 0 || less.Len() >= out.Len() {
		t.Errorf("without flows: %+v, %v", stats, err)
	}
}

func TestCancel(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	const n = 5000
	m.Instr.Grow(n)
	m.Instr.Issue.Resize(n)
	m.Instr.Latency.Resize(n)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, n)
	w := &components.World{Module: m, Events: components.NewEvents(), Blocks: []components.BlockResult{{}}}
	w.Events.Arrive.Resize(n)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	tl := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
	if _, err := Write(ctx, &bytes.Buffer{}, tl, Options{NoFlows: true}); !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled write ends with %v", err)
	}
}
