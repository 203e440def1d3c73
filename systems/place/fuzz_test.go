package place

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/psim"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

// A snapshot whose columns hold anything is either refused by the module's
// check or simulated: it cannot make the placement panic, hang or leave its
// arrays.
func FuzzSnapshot(f *testing.F) {
	mach, err := machine.Load("trn2")
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(3) {
		m := randmod.Module(rand.New(rand.NewPCG(9, seed)), randmod.Options{Streams: 2, Blocks: true, Nested: true})
		var b bytes.Buffer
		if err := psim.Write(context.Background(), &b, m, format.Options{Jobs: 1}); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) { readAndPlace(b, mach) })
}

// readAndPlace simulates the module in b where its check lets it through, and
// reports whether it did.
func readAndPlace(b []byte, mach *machine.Machine) bool {
	src, err := format.FromBytes("damaged", b)
	if err != nil {
		return false
	}
	m, err := psim.Importer.Module(context.Background(), src, format.Options{Jobs: 1, NoVerify: true})
	if err != nil {
		return false
	}
	for _, model := range []components.Model{cost.Reference, cost.Replay} {
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: model, Jobs: 2}, Events: components.NewEvents()}
		if cost.Fill(context.Background(), w) != nil {
			continue
		}
		if Run(context.Background(), w) == nil {
			w.Latency(components.RunA)
		}
	}
	return true
}

// The same with damage aimed at the columns, which the fuzzer finds slowly.
func TestDamagedColumns(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "whole.psim")
	passed := 0
	const tries = 1000
	for seed := range uint64(tries) {
		r := rand.New(rand.NewPCG(9, seed))
		m := randmod.Module(r, randmod.Options{Streams: 2, Blocks: true, Nested: true})
		var b bytes.Buffer
		if err := psim.Write(context.Background(), &b, m, format.Options{Jobs: 1}); err != nil {
			t.Fatal(err)
		}
		raw := b.Bytes()
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := psim.Open(context.Background(), path, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(4) {
			c := s.Columns()[r.IntN(len(s.Columns()))]
			raw[c.Offset+r.Int64N(c.Bytes)] = byte(r.Uint32())
		}
		if readAndPlace(raw, mach) {
			passed++
		}
	}
	if passed < tries/10 || passed > tries*9/10 {
		t.Errorf("%d of %d damaged modules passed the check: the damage does not try it", passed, tries)
	}
}
