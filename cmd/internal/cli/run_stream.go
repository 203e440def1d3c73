package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/psim"
	"perfsim/systems"
	"perfsim/systems/stream"
)

// streamFlags are how `run` places a snapshot that does not fit in memory.
type streamFlags struct {
	always bool
	window countValue
}

// leastWindow keeps what is read at a time from becoming a few bytes.
const leastWindow = 1024

// inMemory are the flags of `run` whose work needs the whole module.
var inMemory = [...]string{"output", "package-only", "dump-after", "pass", "skip-pass", "start-pass", "policy", "rebuild-deps",
	"device-profile", "dprint", "trace-self"}

func (f *streamFlags) add(c *cobra.Command) {
	f.window = 4_000_000
	c.Flags().BoolVar(&f.always, "stream", false, "place a snapshot in a stream, whatever its size; one that does not fit in memory is without it")
	c.Flags().Var(&f.window, "window", "rows of a stream that are read at a time; two such windows are in memory, each at about 40 bytes a row and 4 a dependency")
}

func (f *streamFlags) check(c *cobra.Command, in *inputFlags, args []string) error {
	if f.window < leastWindow {
		return usagef("--window %d is not at least %d rows", f.window, leastWindow)
	}
	if !f.always {
		return nil
	}
	for _, name := range inMemory {
		if c.Flags().Changed(name) {
			return usagef("--%s needs the whole module in memory, which --stream does without", name)
		}
	}
	if in.format != "" && in.format != psim.Exporter.Name {
		return usagef("--stream places snapshots (.psim), not %s", in.format)
	}
	for _, a := range args {
		if a == "-" {
			return usagef("--stream reads a snapshot twice: it needs a file, not standard input")
		}
	}
	return nil
}

// run predicts the input in a stream where the flag asks for it or memory does;
// else the report is nil.
func (f *streamFlags) run(c *cobra.Command, in *inputFlags, input string, r systems.Request, timings bool, p *progress) (*systems.Report, error) {
	if !f.always {
		for _, name := range inMemory {
			if c.Flags().Changed(name) {
				return nil, nil
			}
		}
		if in.format != "" && in.format != psim.Exporter.Name {
			return nil, nil
		}
		tooLarge := systems.TooLarge(c.Context(), input)
		if tooLarge == nil {
			return nil, nil
		}
		io.WriteString(c.ErrOrStderr(), wrapLine(fmt.Sprintf("perfsim: %v: it is placed in a stream (--stream)", tooLarge)))
	}
	r.Reading, r.Settings = in.reading(c, input, p), in.settings
	res, err := systems.Stream(c.Context(), r, systems.Streaming{Window: int(f.window), Planned: func(plan stream.Plan) {
		p.finish()
		io.WriteString(c.ErrOrStderr(), wrapLine(fmt.Sprintf("perfsim: %s of up to %s rows; %s of %s dependencies reach beyond them, to %s rows whose times are kept; at most %s of memory",
			countOf(plan.Windows, "window"), humanize.Comma(int64(plan.Window)), humanize.Comma(int64(plan.Far)), humanize.Comma(int64(plan.Edges)),
			humanize.Comma(int64(plan.Kept)), humanize.IBytes(plan.Bytes))))
	}})
	p.finish()
	var refusal *stream.Refusal
	if errors.As(err, &refusal) {
		if f.always {
			return nil, usagef("--stream: %v", refusal)
		}
		io.WriteString(c.ErrOrStderr(), wrapLine(fmt.Sprintf("perfsim: not in a stream: %v", refusal)))
		return nil, nil
	}
	if err == nil {
		err = in.refuseGraphFlags(&systems.Loaded{Module: res.World.Module, Input: input})
	}
	if err != nil {
		return nil, in.explainError(err)
	}
	res.Input = input
	rep, err := res.RunReport(c.Context())
	if err == nil && timings {
		rep.Timings = res.SystemTimes()
	}
	return rep, err
}
