package systems

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/psim"
	"perfsim/systems/nki"
	"perfsim/systems/stream"
)

// Streaming says how a snapshot is streamed.
type Streaming struct {
	Window int // rows that are placed at a time, at least 1
	// Planned, where not nil, is called with what the stream will hold before it
	// places anything.
	Planned func(stream.Plan)
}

// TooLarge returns the error with which the prediction of the snapshot at path
// would end for want of memory; nil where it would not, or the file is no
// snapshot.
func TooLarge(ctx context.Context, path string) error {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil // a pipe must not be opened twice
	}
	src, err := psim.OpenRows(ctx, path, 1, false, func(string) bool { return false })
	if err != nil {
		return nil // reading it says why
	}
	defer src.Close()
	const small = 16 << 20 // all that is not counted here
	bytes := small + uint64(src.Rows("instr.opcode"))*bytesPlaced
	for _, c := range src.Columns() {
		if !strings.HasPrefix(c.Name, "operands.") {
			bytes += uint64(c.Bytes)
		}
	}
	return format.Reserve(ctx, bytes, path)
}

// Stream is Simulate for a snapshot that need not fit in memory. The figures are
// those of Simulate. The error is a *stream.Refusal where the module can be
// predicted in memory only.
func Stream(ctx context.Context, r Request, o Streaming) (*Result, error) {
	began := time.Now()
	src, err := psim.OpenRows(ctx, r.Path, r.Jobs, !r.NoVerify, stream.Whole)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	m, err := src.Module(stream.Whole)
	if err != nil {
		return nil, err
	}
	if m.Format == nki.Format || m.Attribute(components.AttributeNoDependencies) != "" {
		return nil, &stream.Refusal{Reason: fmt.Sprintf("the module (%s) needs its access patterns, and with them the whole module in memory", m.Format)}
	}
	w := newWorld(m)
	if w.Machine, err = r.MachineOf(m); err != nil {
		return nil, err
	}
	if w.Config, err = r.configOf(m, w.Machine, r.Jobs); err != nil {
		return nil, err
	}
	w.Log = r.Log
	res := &Result{World: w, Input: src.Name, ReadTime: time.Since(began)}
	streamed, err := stream.Run(ctx, &w.World, src, stream.Options{Window: o.Window, Jobs: w.Config.Jobs, Planned: o.Planned,
		Stage: func(name string, total int64) func(int64) { return r.stage(name, total, false) }})
	if err != nil {
		return nil, err
	}
	if err := beyond(w); err != nil {
		return nil, err
	}
	w.Summary = streamed.Summary.Summary(&w.World)
	res.work, res.Timings = streamed.Work.Figures(&w.World), streamed.Timings
	passes, err := pick(r.pipeline())
	if err != nil {
		return nil, RequestError{err}
	}
	for _, p := range passes {
		if p.Name == "perf_sim" || p.Name == "perf_sim_at_end" {
			w.estimate(p)
		}
	}
	res.Time = time.Since(began)
	return res, nil
}
