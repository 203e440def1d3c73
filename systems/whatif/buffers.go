package whatif

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/index"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// buffers gives every buffer n copies, or where p.fit is set as many of them
// as there is room for.
func (p *plan) buffers(ctx context.Context, n int) error {
	m := p.w.Module
	t, err := antidep.Buffers(ctx, m, index.AntiEdges(p.w), 1)
	if err != nil {
		return err
	}
	mem := p.w.Machine.Memory
	size := func(k components.Memory) uint64 {
		if k == components.MemPSUM {
			return uint64(mem.PSUMBanks) * uint64(mem.PSUMBankBytes)
		}
		return uint64(mem.SBUFBytes)
	}
	room := antidep.NewRoom(m, t)
	copies := room.Copies(n)
	if p.fit != nil {
		worth, err := p.fit()
		if err != nil {
			return err
		}
		all := copies
		copies = room.Fit(n, order(t, worth), size)
		p.notes = append(p.notes, fitted(n, all, copies))
	}
	antidep.MoreBuffers(p.w, t, copies)
	p.needs = room.Need(copies, size)
	if p.fit != nil {
		return nil
	}
	var lacks, holds []string
	for _, x := range p.needs {
		of := x.Memory
		if x.Core > 0 {
			of += " of core " + strconv.Itoa(int(x.Core))
		}
		if x.Bytes > x.Has {
			lacks = append(lacks, fmt.Sprintf("%s per partition of %s at %s (%s has %s)", kib(x.Bytes), of, m.InstrName(x.At), p.w.Machine.Name, kib(x.Has)))
			continue
		}
		holds = append(holds, fmt.Sprintf("%s of %s per partition of %s", kib(x.Bytes), kib(x.Has), of))
	}
	switch {
	case len(lacks) > 0:
		p.tooMuch = true
		p.notes = append(p.notes, fmt.Sprintf("buffers=%d does not fit: it needs %s", n, strings.Join(lacks, " and ")))
	case len(holds) > 0:
		p.notes = append(p.notes, fmt.Sprintf("buffers=%d takes %s", n, strings.Join(holds, " and ")))
	}
	return nil
}

// kib writes bytes for people.
func kib(v uint64) string {
	return strconv.FormatFloat(math.Round(float64(v)/1024*10)/10, 'f', -1, 64) + " KiB"
}

// fitted says what of the copies asked for there is room for.
func fitted(n int, all, copies []int) string {
	var whole, some, none int
	for b, want := range all {
		switch {
		case want == 1:
		case copies[b] == want:
			whole++
		case copies[b] > 1:
			some++
		default:
			none++
		}
	}
	return fmt.Sprintf("what fits of buffers=%d: of %d buffers with anti-dependencies %d get all copies they can use, %d fewer, %d none; those whose waits cost most come first",
		n, whole+some+none, whole, some, none)
}

// order lists the buffers of a table, those first that are worth most.
func order(t *antidep.Table, worth map[antidep.Buffer]int) []uint32 {
	rank := func(b uint32) int {
		if r, ok := worth[t.Buffers[b]]; ok {
			return r
		}
		return math.MaxInt
	}
	out := make([]uint32, len(t.Buffers))
	for k := range out {
		out[k] = uint32(k)
	}
	slices.SortStableFunc(out, func(a, b uint32) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// worthOf ranks the buffers of a placed world by what their anti-dependencies
// hold.
func worthOf(ctx context.Context, w *components.World, engine scenario.Engine) (map[antidep.Buffer]int, error) {
	rules := place.RulesFor(w)
	a, err := attribute.Bind(ctx, w, rules, components.RunA)
	if err != nil {
		return nil, err
	}
	paths, err := attribute.CriticalPath(ctx, w, rules, a, attribute.Options{Block: -1})
	if err != nil {
		return nil, err
	}
	t, err := antidep.Buffers(ctx, w.Module, index.AntiEdges(w), w.Config.Jobs)
	if err != nil {
		return nil, err
	}
	r, err := antidep.Make(ctx, w, engine, t, a, paths, antidep.Options{})
	if err != nil {
		return nil, err
	}
	rank := make(map[antidep.Buffer]int, len(r.Buffers))
	for k, c := range r.Buffers {
		rank[c.Buffer] = k
	}
	return rank, nil
}
