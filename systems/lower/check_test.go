package lower_test

import (
	"context"
	"path/filepath"
	"testing"

	"perfsim/systems/lower"
	"perfsim/systems/lower/check"
)

// No tile of a real module is used before its load or after another took its
// place, and everything that must stay in order is.
func TestRealFilesCheck(t *testing.T) {
	mach := loadMachine(t, "trn2")
	for _, path := range files(t, "hlo_text", "hlo_scheduled", "hlo_neuron", "hlo_proto") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, g := range readAll(t, path) {
				opt := lower.DefaultOptions()
				opt.Operands = true
				res, err := lower.Lower(context.Background(), g, mach, opt)
				if err != nil {
					t.Fatal(err)
				}
				r, err := check.Module(res.Module)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d accesses, %d pairs in order, %d across blocks", r.Accesses, r.Ordered, r.Skipped)
				if err := r.Err(res.Module); err != nil {
					t.Error(err)
					for _, p := range r.Problems[:min(len(r.Problems), 4)] {
						t.Logf("row %d %s: %s", p.Instr, res.Module.Symbols.String(res.Module.Instr.HLO.At(int(p.Instr))), p.Text)
					}
				}
			}
		})
	}
}
