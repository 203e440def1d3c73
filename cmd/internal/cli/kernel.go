package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perfsim/io/neuron/nki"
	"perfsim/systems"
	lowering "perfsim/systems/nki"
)

// addKernel adds the flags that are about kernel sources and their records.
func (f *inputFlags) addKernel(c *cobra.Command) {
	fl := c.Flags()
	before := map[string]bool{}
	fl.VisitAll(func(x *pflag.Flag) { before[x.Name] = true })
	k := &f.settings.Kernel
	f.settings.Lowering = lowering.DefaultOptions()
	o := &f.settings.Lowering
	fl.StringArrayVar(&k.Args, "arg", nil, "kernels: an argument, in order or as NAME=VALUE: 'f32[128,4096]', 1e-5, nl.bfloat16; may be repeated")
	fl.StringVar(&k.Setup, "setup", "", "kernels: FILE.py:FUNCTION that returns the arguments")
	fl.StringVar(&k.Grid, "grid", "", "kernels: launch grid, 2 or 4,2")
	fl.Float64Var(&k.Seconds, "timeout", nki.DefaultSeconds, "kernels: seconds of processor time that the Python code may take")
	fl.IntVar((*int)(&o.Policy), "kernel-order", int(o.Policy), "kernels: order of the instructions: 3 by the time-aware scheduler, 2 by a list scheduler, 0 as written, -1 as the kernel's API has it")
	fl.BoolVar(&o.DynamicDMA, "dynamic-dma", false, "kernels: the device generates the descriptors of all transfers")
	fl.BoolVar(&o.StaticDMA, "static-dma", false, "kernels: descriptors are made before the run (compiled with --disable-dge)")
	fl.VisitAll(func(x *pflag.Flag) {
		if !before[x.Name] {
			f.kernelFlags = append(f.kernelFlags, x.Name)
		}
	})
}

// refuseKernelFlags fails where flags about kernels were given and the input
// is none.
func (f *inputFlags) refuseKernelFlags(l *systems.Loaded) error {
	if l.Module == nil || l.Module.Format == lowering.Format {
		return nil
	}
	for _, name := range f.kernelFlags {
		if f.command.Flags().Changed(name) {
			return usagef("--%s is for NKI kernels, and %s is none (%s)", name, l.Input, l.Module.Format)
		}
	}
	return nil
}

// sayExecutes returns what says, before a kernel source runs, that it does.
func (f *inputFlags) sayExecutes(c *cobra.Command) func(path string) {
	return func(path string) {
		if !f.quiet {
			sayf(c.ErrOrStderr(), "perfsim: executing %s with python3 to record the kernel\n", path)
		}
	}
}
