package lower_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/components/machine"
	"perfsim/components/opgraph"
	"perfsim/io/xla/hlo"
	"perfsim/systems/lower"
)

// Every module of the corpus of compiler tests that can be read is lowered,
// conserved and checked; odd shapes, opcodes and layouts are what it is for.
func TestCorpus(t *testing.T) {
	mach := loadMachine(t, "trn2")
	file, err := os.Open(datadir.Path(t, "hlo_corpus", "openxla__xla__embedded_test_modules.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	modules, bad := 0, 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		graphs, err := hlo.ReadText(h.Name, b)
		if err != nil {
			continue
		}
		for _, g := range graphs {
			if g.Check() != nil {
				continue
			}
			modules++
			if err := one(g, mach); err != nil {
				if strings.Contains(err.Error(), "without a size") {
					continue // refused: a user has to give sizes
				}
				if bad++; bad <= 20 {
					t.Errorf("%s, module %s: %v", h.Name, g.Text(g.Name), err)
				}
			}
		}
	}
	t.Logf("%d modules, %d bad", modules, bad)
}

// one lowers and checks a graph; a panic is an error too.
func one(g *opgraph.Graph, mach *machine.Machine) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	g.DeriveTripCounts()
	opt := lower.DefaultOptions()
	opt.Operands = true
	opt.MaxInstructions = 200_000
	res, err := lower.Lower(context.Background(), g, mach, opt)
	if err != nil {
		return err
	}
	if err := res.Report.Conserved(); err != nil {
		return err
	}
	r, err := checkModule(res.Module)
	if err != nil {
		return err
	}
	return r.Err(res.Module)
}
