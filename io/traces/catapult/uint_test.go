package catapult

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"perfsim/components"
)

func TestAppendUint(t *testing.T) {
	check := func(v uint64) {
		for _, have := range [][]byte{nil, []byte("x"), make([]byte, 3, 64)} {
			got := appendUint(bytes.Clone(have), v)
			if want := strconv.AppendUint(bytes.Clone(have), v, 10); !bytes.Equal(got, want) {
				t.Fatalf("%d behind %q became %q", v, have, got)
			}
		}
	}
	for p := uint64(1); p < 1e19; p *= 10 {
		check(p - 1)
		check(p)
		check(p + 1)
	}
	check(math.MaxUint64)
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		check(r.Uint64() >> r.IntN(64))
	}
}

// The bytes do not depend on how many goroutines render, across the sizes of
// pieces.
func TestSameOnAnyCores(t *testing.T) {
	w := sample()
	m := w.Module
	const n = 5 * pieceRows
	first := m.Instr.Len()
	m.Instr.Grow(n)
	for _, c := range []interface{ Resize(int) []uint32 }{&m.Instr.Issue, &m.Instr.Latency} {
		c.Resize(first + n)
	}
	w.Events.Arrive.Resize(first + n)
	for i := first; i < first+n; i++ {
		m.Instr.Lane.Set(i, uint16(1+i%3))
		m.Instr.Latency.Set(i, 5)
		w.Events.Arrive.Set(i, [2]uint64{uint64(10 * i), uint64(9 * i)})
		m.Edges.Preds.AppendRow([]uint32{uint32(i - 1)})
	}
	m.Blocks.End.Set(0, uint32(first+n))
	for _, graph := range []bool{false, true} {
		var one bytes.Buffer
		if err := Write(context.Background(), &one, w, 0, components.RunB, graph, 1); err != nil {
			t.Fatal(err)
		}
		for _, jobs := range []int{2, 5} {
			var many bytes.Buffer
			if err := Write(context.Background(), &many, w, 0, components.RunB, graph, jobs); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(one.Bytes(), many.Bytes()) {
				t.Errorf("graph %v: %d goroutines write other bytes than one", graph, jobs)
			}
		}
	}
}
