// Package page works out what the page of perfsim view shows of a simulated
// module. Package web serves and draws it.
package page

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dustin/go-humanize"

	"perfsim/cmd/internal/units"
	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems"
	"perfsim/systems/attribute"
	"perfsim/systems/summary"
)

// Module turns a simulated module into what the page shows. What only some
// parts of the page need is worked out when it is first asked for.
type Module struct {
	ctx    context.Context // of the command
	res    *systems.Result
	w      *components.World
	blocks []int // top-level blocks, most time over all runs first
	first  int   // of blocks, the one that is shown at first
	times  *components.Executions

	rowBusy func() []uint64 // summary.RowBusy
	why     func() (*reasons, error)
	known   atomic.Pointer[reasons] // what why returned, nil before
	viewers sync.Map                // *viewer by index of blocks
}

// reasons are the causes of the starts of run A.
type reasons struct {
	attr     *components.Attribution
	slack    []uint64
	critical ecs.Bits
	paths    []*attribute.Path
}

// New makes the page of a simulated module. block is the top-level block that is
// shown first, by name (function/block or block); "" is the one with most time.
// A name that no block has is the only error.
func New(ctx context.Context, res *systems.Result, block string) (*Module, error) {
	w := &res.World.World
	m := w.Module
	p := &Module{ctx: ctx, res: res, w: w, blocks: m.TopBlocks(), times: components.NewExecutions(m, w.Config.Loops)}
	slices.SortStableFunc(p.blocks, func(a, b int) int { return cmp.Compare(p.total(b), p.total(a)) })
	if block != "" {
		p.first = slices.IndexFunc(p.blocks, func(b int) bool { return block == p.blockName(b) || block == m.BlockName(b) })
		if p.first < 0 {
			return nil, fmt.Errorf("no top-level block is called %q", block)
		}
	}
	p.rowBusy = sync.OnceValue(func() []uint64 { return summary.RowBusy(w) })
	p.why = sync.OnceValues(func() (*reasons, error) {
		r, err := p.reasons(ctx)
		p.known.Store(r)
		return r, err
	})
	return p, nil
}

func (p *Module) reasons(ctx context.Context) (*reasons, error) {
	var r reasons
	var err error
	if r.attr, err = p.res.Why(ctx, components.RunA); err != nil {
		return nil, err
	}
	if r.slack, err = p.res.Slack(ctx); err != nil {
		return nil, err
	}
	paths, err := p.res.Paths(ctx)
	if err != nil {
		return nil, err
	}
	r.paths = paths
	r.critical = ecs.NewBits(p.w.Module.Instr.Len())
	for _, path := range paths {
		for _, i := range path.Steps {
			r.critical.Set(uint32(i))
		}
	}
	return &r, nil
}

func (p *Module) blockName(b int) string {
	m := p.w.Module
	return m.FunctionName(int(m.Blocks.Function.At(b))) + "/" + m.BlockName(b)
}

func (p *Module) runs(b int) uint64 {
	return p.w.Module.Functions.Runs.At(int(p.w.Module.Blocks.Function.At(b)))
}

// total returns the time of a top-level block in all runs of its function, run
// A, in ns.
func (p *Module) total(b int) uint64 {
	return ecs.MulSat(p.w.BlockLatency(p.w.Blocks[b], components.RunA), p.runs(b))
}

// Program describes the module with the figures of run.
func (p *Module) Program() *web.Program {
	m := p.w.Module
	rep := p.res.Report()
	out := &web.Program{Title: m.Name, First: p.first, Open: func(n int) (*web.Dataset, error) { return p.viewer(n).dataset(), nil }}
	fact := func(name, value string) { out.Facts = append(out.Facts, web.Fact{Name: name, Value: value}) }
	if rep.Machine != nil {
		fact("machine", *rep.Machine+", "+rep.Model+" model")
	} else {
		fact("machine", "none: replayed")
	}
	fact("instructions", humanize.Comma(int64(rep.Instructions)))
	if rep.LatencyA.Known() {
		fact("latency", units.Nanos(uint64(rep.LatencyA))+units.PhaseRange(rep.Range))
	} else {
		fact("latency", "not known")
	}
	if rep.LatencyB.Known() {
		fact("without anti-dependencies", units.Nanos(uint64(rep.LatencyB)))
	}
	if rep.Measured != nil {
		text := units.Nanos(*rep.Measured)
		if rep.ErrorPercent != nil {
			text += fmt.Sprintf(" (prediction %+.1f %%)", *rep.ErrorPercent)
		}
		fact("measured", text)
	}
	if rep.Recorded != nil {
		fact("simulated, as recorded", units.Nanos(*rep.Recorded))
	}
	if f := rep.Work; f != nil && f.Predicted != nil {
		if u := f.Predicted.MFU; u != nil {
			fact("MFU", fmt.Sprintf("%.1f %%", 100**u))
		}
		if u := f.Predicted.MBU; u != nil {
			fact("MBU", fmt.Sprintf("%.1f %%", 100**u))
		}
	}
	if m.Operands.Len() == 0 { // else to follow the memories would delay the page
		if heads, err := p.res.MemoryPeaks(p.ctx); err == nil {
			for _, h := range heads {
				if h.Absent == "" && !h.Fits {
					fact(h.Name, fmt.Sprintf("at most %s of %s: does not fit", humanize.IBytes(h.Peak), humanize.IBytes(h.Size)))
				}
			}
		}
	}
	out.Memory = p.memory
	for _, b := range p.blocks {
		out.Blocks = append(out.Blocks, web.Block{Name: p.blockName(b), Runs: p.runs(b), NS: p.w.BlockLatency(p.w.Blocks[b], components.RunA),
			Total: min(p.total(b), math.MaxInt64), Events: int(m.Blocks.End.At(b) - m.Blocks.First.At(b))})
	}
	return out
}

func (p *Module) viewer(n int) *viewer {
	v, ok := p.viewers.Load(n)
	if !ok {
		v, _ = p.viewers.LoadOrStore(n, newViewer(p, p.blocks[n]))
	}
	return v.(*viewer)
}

// Static gathers what the page as one file needs of the events of a block.
func (p *Module) Static(block int, ids []uint32) (web.Static, error) {
	return p.viewer(block).static(ids), nil
}

// mostTensors bounds the tensors listed of one memory.
const mostTensors = 100

// memory returns the peaks of the memories: with their tensors where the module
// has access patterns and is short enough to follow, as run prints them
// otherwise.
func (p *Module) memory() ([]web.Memory, error) {
	heads, err := p.res.MemoryPeaks(p.ctx)
	if err != nil {
		return nil, err
	}
	var out []web.Memory
	known := false
	for _, h := range heads {
		known = known || h.Absent == "" && !h.AtMost
		out = append(out, web.Memory{Name: h.Name, Size: h.Size, Peak: h.Peak, AtMost: h.AtMost, Absent: h.Absent, Tensors: []web.Tensor{}})
	}
	if !known {
		return out, nil
	}
	r, err := p.res.Memory(p.ctx)
	if err != nil {
		return nil, err
	}
	out = out[:0]
	for _, s := range r.Spaces {
		name := s.Name
		if s.Core > 0 {
			name = fmt.Sprintf("nc%d.%s", s.Core, s.Name)
		}
		m := web.Memory{Name: name, Unit: s.Unit, Size: s.Size, Peak: s.Peak, At: s.At, Absent: s.Absent, Tensors: []web.Tensor{}}
		for n, t := range s.Tensors {
			if n == mostTensors {
				m.Left = len(s.Tensors) - n
				break
			}
			m.Tensors = append(m.Tensors, web.Tensor{Name: t.Name, Bytes: t.Bytes, From: t.From, To: t.To, Kind: t.Kind, Operator: cmp.Or(t.Operator, t.Source)})
		}
		out = append(out, m)
	}
	return out, nil
}
