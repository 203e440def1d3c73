// Package format says what an importer and an exporter are and opens inputs:
// a file or standard input, gzip and zstd unwrapped by their magic numbers.
// A format is one package below io and one line in io/formats.
package format

import (
	"context"
	"io"

	"perfsim/components"
	"perfsim/components/nkirecord"
	"perfsim/components/opgraph"
)

// Importer reads one format. Exactly one of Module, Graph and Record is set.
type Importer struct {
	Name string // short and stable: "birjson"
	// Sniff reports whether an input that starts with head (up to SniffLen
	// bytes, unwrapped) is of this format. It must not look at file names.
	Sniff func(head []byte) bool
	// Module reads a program of engine instructions.
	Module func(ctx context.Context, src *Source, opt Options) (*components.Module, error)
	// Graph reads operator graphs, which the lowering turns into a program.
	Graph func(ctx context.Context, src *Source, opt Options) ([]*opgraph.Graph, error)
	// Record reads a recorded kernel, which systems/nki turns into a program.
	Record func(ctx context.Context, src *Source, opt Options) (*nkirecord.Record, error)
}

// Exporter writes one format.
type Exporter struct {
	Name   string
	Title  string
	Suffix string // of output files, with the dot: ".bir.json"
	Module func(ctx context.Context, w io.Writer, m *components.Module, opt Options) error
}

// Options are settings for reading and writing.
type Options struct {
	// Jobs is how many goroutines may work, at least 1; the result does not
	// depend on it.
	Jobs int
	// Progress, where not nil, is called with the bytes done so far.
	Progress func(bytes int64)
	// SkipOperands, where not nil, reports whether the caller needs no operands
	// of a module that was first read from the given format and has the given
	// attributes. They are most of a module: a reader may leave them out then.
	SkipOperands func(format string, attributes []components.Attribute) bool
	// Kernel says how a kernel source is called; other formats ignore it.
	Kernel KernelCall
	// NoVerify leaves out checksums that only say whether a file was damaged;
	// what keeps a bad file from doing harm is always checked.
	NoVerify bool
}

// KernelCall is how a kernel source is called.
type KernelCall struct {
	Function string    // "" for the only kernel of the file
	Args     []string  // "f32[128,512]", "1e-5", "name=value"
	Setup    string    // file.py:function that returns the arguments
	Grid     string    // launch grid, "2" or "4,2"
	Machine  string    // that the kernel is recorded for
	Seconds  float64   // time limit, 0 for the default
	Stderr   io.Writer // takes what the kernel prints; nil drops it

	// Execute says that the user named the file as Python (.py, or the format),
	// so that it may be executed. What a file holds is no permission.
	Execute bool
	// Executes, where not nil, is called before the file is executed.
	Executes func(path string)
}

// SniffLen is how many bytes of the unwrapped input a sniffer sees first. Where
// no sniffer knows them, all see more, up to MostSniffed: comments and metadata
// may stand before the part that decides.
const (
	SniffLen    = 4096
	MostSniffed = 64 << 20
)

type reserveKey struct{}

// WithReserve returns a context whose Reserve asks f: the bytes about to be
// taken and what for.
func WithReserve(ctx context.Context, f func(bytes uint64, work string) error) context.Context {
	return context.WithValue(ctx, reserveKey{}, f)
}

// Reserve fails where bytes more for the given work would pass the memory
// limit of ctx. Readers call it before they take memory for a size that the
// input claims.
func Reserve(ctx context.Context, bytes uint64, work string) error {
	if f, ok := ctx.Value(reserveKey{}).(func(uint64, string) error); ok {
		return f(bytes, work)
	}
	return nil
}

// Raw returns the writer below one that changes text for a terminal, and
// other writers as they are: formats write their bytes to it.
func Raw(w io.Writer) io.Writer {
	if t, ok := w.(interface{ Raw() io.Writer }); ok {
		return t.Raw()
	}
	return w
}
