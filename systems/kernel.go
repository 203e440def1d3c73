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

// lowerKernel records a kernel, or reads its record, and turns the record into
// a module.
func (l *Loaded) lowerKernel(ctx context.Context, r *Reading, src *format.Source, imp format.Importer, opt format.Options) error {
	s := &l.settings
	opt.Kernel.Machine = cmp.Or(s.Machine, defaultMachine)
	if mach, err := loadMachine(opt.Kernel.Machine); err == nil {
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
	mach, err := loadMachine(cmp.Or(s.Machine, rec.Machine, defaultMachine))
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

// KernelReport are the figures of a kernel that a module of any other kind
// does not have, or has under other names.
type KernelReport struct {
	Source      string `json:"source,omitempty"`
	HBMRead     uint64 `json:"hbm_read_bytes"`
	HBMWritten  uint64 `json:"hbm_written_bytes"`
	SBUFPeak    uint64 `json:"sbuf_peak_bytes"` // of a partition
	PSUMPeak    uint64 `json:"psum_peak_bytes"`
	SpilledData uint64 `json:"spill_bytes"` // that did not fit, in all partitions
	Matmuls     uint64 `json:"matmuls"`     // transposes left out
	FLOPs       uint64 `json:"flops"`       // of them
	// MFU is FLOPs over what the PE arrays of the cores in use can do in the
	// latency at 16 bits.
	MFU float64 `json:"mfu"`
}

// kernelReport sums a kernel's module up; nil for other modules.
func kernelReport(w *World) *KernelReport {
	m := w.Module
	if m.Format != nki.Format {
		return nil
	}
	number := func(key string) uint64 {
		n, err := strconv.ParseUint(m.Attribute(key), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	k := &KernelReport{Source: m.Attribute("nki.file"), SBUFPeak: number("nki.sbuf_peak_bytes"), PSUMPeak: number("nki.psum_peak_bytes"),
		SpilledData: number("nki.spill_bytes")}
	in := &m.Instr
	for i, op := range in.Opcode.Slice() {
		flags := in.Flags.At(i)
		switch {
		case op.IsDMA():
			if flags&components.FlagSrcDRAM != 0 {
				k.HBMRead += in.DMABytes.Get(i)
			}
			if flags&components.FlagDstDRAM != 0 {
				k.HBMWritten += in.DMABytes.Get(i)
			}
		case op.IsMatmul() && flags&components.FlagTranspose == 0:
			k.Matmuls++
			k.FLOPs += 2 * uint64(in.Parts.At(i)) * uint64(in.OutElems.Get(i)) * stationary(m, i)
		}
	}
	cores := uint64(m.Lanes.Len() / components.LanesPerCore)
	// 128 by 128 cells, a product and a sum each, a column a cycle.
	peak := 2 * 128 * 128 * float64(w.Machine.Clock.PEArray) / 100 * float64(max(cores, 1))
	if lat := float64(w.Latency(components.RunA)); lat > 0 && peak > 0 {
		k.MFU = float64(k.FLOPs) / (lat * peak)
	}
	return k
}

// stationary is the columns of the stationary tensor of a matmul: the elements
// per partition of its second input.
func stationary(m *components.Module, i int) uint64 {
	lo, hi := m.Operands.Range(components.InstrID(i))
	n := 0
	for r := lo; r < hi; r++ {
		if m.Operands.Role.At(r) != components.RoleIn {
			continue
		}
		if n++; n == 2 {
			return m.Operands.At(r).Elems()
		}
	}
	return 0
}
