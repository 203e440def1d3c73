package accuracy

import (
	"context"
	"math"
	"path/filepath"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/profile"
	"perfsim/systems/calibrated"
	"perfsim/systems/fit"
)

const classProfiles = "profiles, leave one out"

// profileJobs predicts the kernel time of each profile with constants fitted
// to the others; profiles of the same program (another run of it) are left out
// with it. A single profile is predicted with the machine's constants.
func profileJobs(ctx context.Context, paths []string, opt *Options) ([]job, error) {
	var modules []*components.Module
	var kept []string
	for _, p := range paths {
		src, err := format.Open(ctx, p, nil)
		if err != nil {
			return nil, err
		}
		m, err := profile.Importer.Module(ctx, src, format.Options{Jobs: max(opt.Jobs, 1)})
		src.Close()
		if err != nil {
			return nil, err
		}
		m.Name, _, _ = strings.Cut(filepath.Base(p), ".")
		if m.HasMeasurement() {
			modules, kept = append(modules, m), append(kept, p)
		}
	}
	paths = kept
	var out []job
	for k, m := range modules {
		mach := opt.Machine
		if mach == "" {
			mach = "trn2"
		}
		it := Item{Class: classProfiles, Name: m.Name, Machine: mach, Quantity: "kernel time", Source: paths[k], path: paths[k]}
		out = append(out, job{it, func(ctx context.Context, i *Item) error {
			base, err := machine.Load(mach)
			if err != nil {
				return err
			}
			var others []*components.Module
			for _, o := range modules {
				if o != m && !sameProgram(o, m) {
					others = append(others, o)
				}
			}
			if len(others) > 0 {
				f, err := fit.Run(ctx, others, fit.Forget(base))
				if err != nil {
					return err
				}
				base = f.Machine
			}
			s, err := fit.Judge(ctx, m, base, calibrated.Options{Phase: fit.MedianPhase})
			if err != nil {
				return err
			}
			i.Measured = s.KernelNS
			lo, hi := math.Inf(1), 0.0
			const phases = 24
			for k := range phases {
				x, err := fit.Judge(ctx, m, base, calibrated.Options{Phase: window(base) * float64(k) / phases})
				if err != nil {
					return err
				}
				lo, hi = min(lo, x.Predicted), max(hi, x.Predicted)
			}
			i.set(s.Predicted, lo, hi)
			return nil
		}})
	}
	return out, nil
}

func window(m *machine.Machine) float64 {
	v, _ := m.Calibrated.Constant("governor.window_ns")
	return v
}

// sameProgram recognises two runs of one program: the same instructions in the
// same order.
func sameProgram(a, b *components.Module) bool {
	if a.Instr.Len() != b.Instr.Len() {
		return false
	}
	for i := range a.Instr.Len() {
		if a.OpcodeName(a.Instr.Opcode.At(i)) != b.OpcodeName(b.Instr.Opcode.At(i)) || a.Instr.Elems.At(i) != b.Instr.Elems.At(i) ||
			a.Instr.DType.At(i) != b.Instr.DType.At(i) {
			return false
		}
	}
	return true
}
