package systems

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	kernels "perfsim/io/neuron/nki"
	"perfsim/systems/nki"
)

// kernelPath takes the function off kernel.py:function, or name:function where
// the format is that of kernel sources, where no file has the whole name. It
// reports whether the user named the input as Python, by name or by format.
func kernelPath(path, format string) (file, function string, source bool) {
	switch format {
	case "":
		file, function, source = kernels.IsSource(path)
	case kernels.SourceImporter.Name:
		file, source = path, true
		if i := strings.LastIndexByte(path, ':'); i > 0 {
			file, function = path[:i], path[i+1:]
		}
	default:
		return path, "", false
	}
	if function != "" {
		if _, err := os.Stat(path); err == nil {
			return path, "", format != ""
		}
	}
	return file, function, source
}

// InputFile returns the file of an input that a user names: the path, or what
// is before the function of a kernel, kernel.py:function, with the rest.
func InputFile(path string) (file, rest string) {
	file, _, _ = kernelPath(path, "")
	return file, path[len(file):]
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
	var mach *machine.Machine
	if s.Machine != "" {
		mach, err = LoadMachine(s.Machine)
	} else {
		mach, err = machine.Embedded(cmp.Or(rec.Machine, defaultMachine))
	}
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
	l.Module.FillMACs()
	if len(mach.Calibrated.Ops) > 0 {
		l.Module.SetAttribute(modelAttribute, components.Calibrated.String())
	}
	return nil
}

// KernelReport are the figures of a kernel that a module of any other kind
// does not have.
type KernelReport struct {
	Source      string `json:"source,omitempty"` // file:line of the kernel
	SpilledData uint64 `json:"spill_bytes"`      // that did not fit, in all partitions
}

// kernelReport returns the figures of a kernel's module; nil for other modules.
func kernelReport(w *World) *KernelReport {
	m := w.Module
	if m.Format != nki.Format {
		return nil
	}
	spilled, err := strconv.ParseUint(m.Attribute("nki.spill_bytes"), 10, 64)
	if err != nil {
		spilled = 0
	}
	return &KernelReport{Source: m.Attribute("nki.file"), SpilledData: spilled}
}
