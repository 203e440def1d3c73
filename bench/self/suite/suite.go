//go:build unix

package suite

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// Options say what to measure.
type Options struct {
	Sizes  []int // instructions, ascending
	Rounds int   // how often each figure is taken
	// Budget is how long one part may take; larger sizes are left out when the
	// sizes before used it up, and the report says so.
	Budget time.Duration
	// Peers is where the programs of other simulators lie, "" for PATH only.
	Peers string
	// Data is the folder with files of real users.
	Data string
	// Dir is for temporary files, "" for the system's folder.
	Dir string
	// Command starts a process that is perfsim.
	Command []string
	Env     []string // added to the environment of Command
	Log     io.Writer
}

// Sample is one figure: of what, at which size, each time it was taken.
type Sample struct {
	Name   string
	N      int
	Unit   string // "ns/instr", "MB/s", "s", …
	Values []float64
}

// Best is the least disturbed value: the smallest time, the largest rate.
func (s *Sample) Best() float64 {
	if s.Unit == "MB/s" || s.Unit == "GB/s" {
		return slices.Max(s.Values)
	}
	return slices.Min(s.Values)
}

// Median is the middle value.
func (s *Sample) Median() float64 {
	v := slices.Sorted(slices.Values(s.Values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Results is everything that was measured.
type Results struct {
	Machine Machine
	Samples []*Sample
	Notes   []string // what was left out, and why
	Peers   []Peer
}

// add records a value.
func (r *Results) add(name string, n int, unit string, v float64) {
	s := r.Find(name, n)
	if s == nil {
		s = &Sample{Name: name, N: n, Unit: unit}
		r.Samples = append(r.Samples, s)
	}
	s.Values = append(s.Values, v)
}

// Find returns a sample, nil where there is none.
func (r *Results) Find(name string, n int) *Sample {
	for _, s := range r.Samples {
		if s.Name == name && s.N == n {
			return s
		}
	}
	return nil
}

// Exponent is the slope of log time over log size of a per-instruction
// figure plus one, by least squares over the sizes from from on; ok is false
// where there are fewer than two.
func (r *Results) Exponent(name string, from int) (slope float64, ok bool) {
	var x, y []float64
	for _, s := range r.Samples {
		if s.Name == name && s.N >= from {
			x = append(x, math.Log(float64(s.N)))
			y = append(y, math.Log(s.Best()*float64(s.N)))
		}
	}
	if len(x) < 2 {
		return 0, false
	}
	var mx, my, sxy, sxx float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	for i := range x {
		sxy += (x[i] - mx) * (y[i] - my)
		sxx += (x[i] - mx) * (x[i] - mx)
	}
	return sxy / sxx, true
}

// Run measures.
func Run(ctx context.Context, opt Options) (*Results, error) {
	dir, err := os.MkdirTemp(opt.Dir, "perfbench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	opt.Dir = dir
	r := &Results{}
	r.Machine = describe()
	b := &bench{ctx: ctx, opt: opt, r: r}
	for _, part := range []struct {
		name string
		run  func() error
	}{{"memory", b.memory}, {"kernel", b.kernel}, {"systems", b.systems}, {"readers", b.readers}, {"processes", b.processes}, {"commands", b.commands}, {"traces and text", b.outputs}, {"device logs", b.logs}, {"real modules", b.files}, {"peers", b.peers}} {
		b.logf("%s", part.name)
		b.until = time.Now().Add(opt.Budget)
		if err := part.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r, nil
}

// bench is a run under way.
type bench struct {
	ctx   context.Context
	opt   Options
	r     *Results
	until time.Time // of the part
}

func (b *bench) logf(format string, args ...any) {
	if b.opt.Log != nil {
		fmt.Fprintf(b.opt.Log, format+"\n", args...)
	}
}

// sizes calls run for each size up to most until the part's time is over.
func (b *bench) sizes(part string, most int, run func(n int) error) error {
	for _, n := range b.opt.Sizes {
		if n > most {
			continue
		}
		if time.Now().After(b.until) {
			b.r.Notes = append(b.r.Notes, fmt.Sprintf("%s at %s instructions and more: left out, the smaller sizes took the %s that one part may take", part, thousands(n), b.opt.Budget))
			return nil
		}
		b.logf("  %s instructions", thousands(n))
		if err := run(n); err != nil {
			return err
		}
	}
	return nil
}

// rounds calls run as often as figures are taken, less often where one call
// takes long.
func (b *bench) rounds(run func() error) error {
	for i := range b.opt.Rounds {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if i >= 2 && time.Now().After(b.until) {
			return nil
		}
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}
