package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/ecs/proptest"
)

// One input has one answer: latency of both runs and busy time of every
// engine are the same for all commands that print them, for a file and its
// conversions, with and without -o, on any number of goroutines.
func TestCommandsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inputs, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no examples", err)
	}
	modules := 4
	if proptest.Long() {
		modules = 200
	}
	for k := range modules {
		path := filepath.Join(dir, fmt.Sprintf("m%d.psim", k))
		args := []string{"gen", "-n", "120", "--seed", fmt.Sprint(k), "--blocks", fmt.Sprint(1 + k%3), path}
		if k%2 == 1 {
			args = append(args, "--operands") // comes without dependency lists
		}
		if k%4 >= 2 {
			args = append(args, "--loops", "2", "--nested", "--body", "8")
		}
		perfsim(t, args...)
		inputs = append(inputs, path)
	}
	for k, input := range inputs {
		for _, loops := range []string{"once", "trips"} {
			agree(t, dir, fmt.Sprint(k, loops), input, loops)
		}
	}
}

// The same of real files. Of those above 20 kB, and of kernels, which Python
// has to run, only in the long form.
func TestCommandsAgreeOnRealFiles(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(sharedData); err != nil {
		t.Skip("../shared/data is absent")
	}
	most := int64(20_000)
	if proptest.Long() {
		most = 3_000_000
	}
	n := 0
	err := filepath.WalkDir(sharedData, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > most || !proptest.Long() && filepath.Ext(path) == ".py" {
			return err
		}
		var out, errs bytes.Buffer
		if Main([]string{"run", "--json", path}, strings.NewReader(""), &out, &errs) != exitOK {
			return nil
		}
		var a answer
		decode(t, out.String(), &a)
		if a.A == 0 || len(a.Engines) == 0 || a.Instructions > 300_000 {
			return nil // a trace of millions of instructions fills the disk
		}
		n++
		dir := t.TempDir()
		defer os.RemoveAll(dir)
		for _, loops := range []string{"once", "trips"} {
			agree(t, dir, fmt.Sprint("r", n, loops), path, loops)
		}
		return t.Context().Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 5 {
		t.Errorf("only %d real files simulate", n)
	}
	t.Logf("%d real files", n)
}

// agree holds all commands to the answer of run for one input. Its outputs are
// named id in dir.
func agree(t *testing.T, dir, id, input, loops string) {
	t.Helper()
	ask := func(args ...string) answer {
		t.Helper()
		var a answer
		decode(t, perfsim(t, append(args, "--loops", loops)...), &a)
		return a
	}
	want := ask("run", "--json", input)
	if want.A == 0 || len(want.Engines) == 0 {
		t.Fatalf("%s: %+v", input, want)
	}
	same := func(got answer, what string) {
		t.Helper()
		if got.A != want.A || !equalOrAbsent(got.B, want.B) || got.Instructions != 0 && got.Instructions != want.Instructions {
			t.Errorf("%s, %s: %s has %d ns, run %d", input, loops, what, got.A, want.A)
		}
		if got.Work != nil && !got.Work.equal(want.Work) {
			t.Errorf("%s, %s: %s has the work %+v, run %+v", input, loops, what, *got.Work, want.Work)
		}
		if len(got.Engines) == 0 {
			return
		}
		busy := map[string]uint64{}
		for _, e := range got.Engines {
			busy[e.Name] = e.Busy
		}
		for _, e := range want.Engines {
			if busy[e.Name] != e.Busy {
				t.Errorf("%s, %s: %s has %s busy %d ns, run %d", input, loops, what, e.Name, busy[e.Name], e.Busy)
			}
		}
	}
	same(ask("run", "--json", "-j", "1", input), "run -j 1")
	same(ask("run", "--json", "-j", "4", input), "run -j 4")
	same(ask("run", "--json", "-o", filepath.Join(dir, "o"+id), input), "run -o")
	same(ask("explain", "--json", input), "explain")
	var w struct{ Base answer }
	decode(t, perfsim(t, "whatif", "--json", "--loops", loops, input, "latency."+want.Engines[0].Name+"=2x"), &w)
	same(w.Base, "whatif")
	for _, suffix := range []string{".psim", ".bir.json"} {
		other := filepath.Join(dir, "c"+id+suffix)
		perfsim(t, "convert", input, other)
		same(ask("run", "--json", other), "run of "+suffix)
		if suffix == ".bir.json" {
			toCBOR(t, other, other+".cbor")
			same(ask("run", "--json", other+".cbor"), "run of CBOR")
		}
	}
	agreeTables(t, input, loops, want)
}

func equalOrAbsent(a, b *uint64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
