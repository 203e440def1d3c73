package systems

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"perfsim/components"
	"perfsim/io/format"
	kernels "perfsim/io/neuron/nki"
	"perfsim/systems/nki"
)

// kernelPath takes the function off kernel.py:function where no file has the
// whole name.
func kernelPath(path string) (file, function string, source bool) {
	file, function, source = kernels.IsSource(path)
	if function != "" {
		if _, err := os.Stat(path); err == nil {
			return path, "", false
		}
	}
	return file, function, source
}

// lowerKernel records a kernel, or reads its record, and turns the record into
// a module.
func (l *Loaded) lowerKernel(ctx context.Context, r *Reading, src *format.Source, imp format.Importer, opt format.Options) error {
	s := &l.settings
	opt.Kernel.Machine = cmp.Or(s.Machine, defaultMachine)
	if mach, err := LoadMachine(opt.Kernel.Machine); err == nil {
		opt.Kernel.Machine = mach.Name
	}
	if imp.Name == kernels.SourceImporter.Name {
		r.stage("recording", 0, false)
	}
	rec, err := imp.Record(ctx, src, opt)
	if usage, ok := errors.AsType[*kernels.UsageError](err); ok {
		return RequestError{usage}
	}
	if err != nil {
		return err
	}
	mach, err := LoadMachine(cmp.Or(s.Machine, rec.Machine, defaultMachine))
	if err != nil {
		return err
	}
	lowering := s.Lowering
	if lowering.MaxInstructions == 0 {
		lowering = nki.DefaultOptions()
	}
	lowering.Jobs = max(r.Jobs, 1)
	r.stage("lowering", int64(rec.Recorded()), false)
	if l.Module, err = nki.Lower(ctx, rec, mach, lowering); err != nil {
		return fmt.Errorf("%s: %w", l.Input, err)
	}
	if len(mach.Calibrated.Ops) > 0 {
		l.Module.SetAttribute(modelAttribute, components.Calibrated.String())
	}
	return nil
}
