package place

import (
	"context"
	"math"
	"slices"
	"sync"
	"unsafe"

	"perfsim/components"
	"perfsim/ecs"
)

// Variant is a world with less in it: dependencies of some classes left out, or
// some rows that take next to no time.
type Variant struct {
	Drop uint8 // classes of dependencies that are left out, a bit each
	// Pick sets bit in the rows from lo on that take less time; nil for none.
	Pick func(lo int, hit []uint8, bit uint8)
	// Least is the most that the latency of these rows is then, in ns; they do not
	// keep their lane.
	Least uint32
}

// Times of variants have 32 bits: one behind mostVariantNS is too long, and as
// rows take less than mostRowNS it shows before any wraps.
const (
	mostRowNS     = 1 << 28
	mostVariantNS = math.MaxUint32 - mostRowNS
)

// hasVariants reports whether Variants can predict a world: what triggers and
// collectives take follows from more than their costs, loops that count their
// trips are placed in another order, and long times do not fit.
func hasVariants(w *components.World) bool {
	m := w.Module
	if w.Config.Model == components.Calibrated || slices.ContainsFunc(m.Instr.Flags.Slice(), func(f components.Flags) bool {
		return f&(components.FlagTrigger|components.FlagCollective) != 0
	}) {
		return false
	}
	for _, b := range m.TopBlocks() {
		if w.Config.Loops == components.Trips && components.Repeats(m, b) || w.Blocks[b].Latency[components.RunA] > mostVariantNS {
			return false
		}
	}
	latency := m.Instr.Latency.Slice()
	for i, is := range m.Instr.Issue.Slice() {
		if is > latency[i] || latency[i] >= mostRowNS {
			return false
		}
	}
	return true
}

// Variants predicts a placed world with each variant in turn, and returns the
// latency of run A of each, nil where it cannot. Eight are placed in one walk
// over the rows, which costs about what a placement of both runs does, and no
// column of costs is copied.
func Variants(ctx context.Context, w *components.World, rules Rules, list []Variant) ([]uint64, error) {
	if len(list) == 0 || !hasVariants(w) {
		return nil, nil
	}
	return variantsOf(ctx, w, rules, list, hasFast())
}

// variantsOf is Variants for a world that has them; assembly reports whether it
// may be used.
func variantsOf(ctx context.Context, w *components.World, rules Rules, list []Variant, assembly bool) ([]uint64, error) {
	out := make([]uint64, len(list))
	jobs := w.Config.Jobs
	if w.Module.Instr.Len() > variantRows { // the times of eight take more than most tables
		jobs = 1
	}
	sites := rules.sites(w.Module)
	g, ctx := ecs.NewGroup(ctx, jobs)
	free := sync.Pool{New: func() any { return newVariants(w, sites, assembly) }}
	for at := 0; at < len(list); at += variantsAtOnce {
		g.Go(func() error {
			v := free.Get().(*variants)
			defer free.Put(v)
			return v.place(ctx, list[at:min(at+variantsAtOnce, len(list))], out[at:])
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if slices.Contains(out, math.MaxUint64) {
		return nil, nil
	}
	return out, nil
}

const (
	variantsAtOnce = 8
	// variantRows is up to how many rows several walks run side by side.
	variantRows = 1 << 22
)

// eight has a time of each variant of a walk, in ns.
type eight = [variantsAtOnce]uint32

// variants is a walk over the rows of a module that places some variants.
type variants struct {
	w        *components.World
	sites    *sites
	assembly bool
	walk     variantWalk

	arrive ecs.Column[eight]
	hit    ecs.Column[uint8] // by row: the variants in which it takes less time
	slots  []eight
}

// variantWalk is what the assembly takes.
type variantWalk struct {
	off, words *uint32
	arrive     *eight
	site       *uint16
	sites      *siteSlots
	issue      *uint32
	latency    *uint32
	hit        *uint8
	slots      *eight
	expand     *[256]eight // all ones for the bits that are set
	last       eight
	least      eight
	// keep is all ones where a variant honours the dependencies of a class.
	keep [components.NumClasses]eight
}

func newVariants(w *components.World, s *sites, assembly bool) *variants {
	v := &variants{w: w, sites: s, arrive: ecs.NewColumn[eight]("arrive"), hit: ecs.NewColumn[uint8]("hit"), slots: make([]eight, Slots(w.Module.Lanes.Len()).Len())}
	v.assembly = assembly && w.Module.Edges.Preds.Rows() == w.Module.Instr.Len() && w.Module.Edges.Preds.Len() > 0
	v.walk.expand = new([256]eight)
	for bits := range v.walk.expand {
		for k := range variantsAtOnce {
			v.walk.expand[bits][k] = -uint32(bits >> k & 1)
		}
	}
	return v
}

// place places up to eight variants and leaves their latencies in out, the
// largest number there is where times got too long.
func (v *variants) place(ctx context.Context, list []Variant, out []uint64) error {
	m := v.w.Module
	n := m.Instr.Len()
	clear(v.hit.Resize(n))
	v.arrive.Scratch(n)
	x := &v.walk
	for k := range x.least {
		for class := range x.keep {
			x.keep[class][k] = ^uint32(0)
			if k < len(list) && list[k].Drop>>class&1 != 0 {
				x.keep[class][k] = 0
			}
		}
	}
	for k, y := range list {
		x.least[k] = y.Least
		if y.Pick != nil {
			for lo := 0; lo < n; lo += pickRows {
				y.Pick(lo, v.hit.View(lo, min(lo+pickRows, n)), 1<<k)
			}
		}
	}
	if v.assembly {
		in, edges := &m.Instr, &m.Edges.Preds
		x.off, x.words, x.arrive, x.site, x.sites = first(edges.Offsets()), first(edges.Words()), first(v.arrive.Slice()), first(v.sites.of.Slice()), first(v.sites.list)
		x.issue, x.latency, x.hit, x.slots = first(in.Issue.Slice()), first(in.Latency.Slice()), first(v.hit.Slice()), first(v.slots)
	}
	blocks := make([][]components.BlockResult, len(list))
	long := false
	for _, b := range m.TopBlocks() {
		clear(v.slots)
		x.last = eight{}
		first, end := m.Blocks.First.At(b), m.Blocks.End.At(b)
		for lo := first; lo < end; lo += cancelEvery {
			if err := ctx.Err(); err != nil {
				return err
			}
			v.rows(lo, min(lo+cancelEvery, end))
		}
		for k := range blocks {
			t := pair{uint64(x.last[k]), uint64(x.last[k])}
			long = long || t[0] > mostVariantNS
			blocks[k] = append(blocks[k], components.BlockResult{Block: b, Latency: t, LatencyTrips: t})
		}
	}
	for k := range blocks {
		w := *v.w
		w.Blocks = blocks[k]
		if out[k] = w.Latency(components.RunA); long {
			out[k] = math.MaxUint64
		}
	}
	return nil
}

// pickRows is how many rows are asked for at a time.
const pickRows = 1 << 12

// rows places rows lo to hi. The assembly stops at loops and ordered edges.
func (v *variants) rows(lo, hi uint32) {
	for i := lo; i < hi; i++ {
		if v.assembly {
			if i = walkVariants(&v.walk, i, hi); i == hi {
				return
			}
		}
		v.row(i)
	}
}

// row places row i, loops passed over.
func (v *variants) row(i uint32) {
	m, x := v.w.Module, &v.walk
	site := &v.sites.list[v.sites.of.At(int(i))]
	arrive := v.arrive.Slice()
	if site.loop != 0 {
		arrive[i] = eight{}
		return
	}
	var t eight
	for _, w := range m.Edges.Preds.Row(int(i)) {
		p, class := w&ecs.TargetMask, w>>ecs.ClassShift
		a := arrive[p]
		if class == uint32(components.ClassOrdered) {
			a = v.left(p)
		}
		for k := range t {
			t[k] = max(t[k], a[k]&x.keep[class][k])
		}
	}
	for _, s := range site.waits[:site.numWaits] {
		for k, free := range v.slots[s/eightSize] {
			t[k] = max(t[k], free)
		}
	}
	is, d := m.Instr.Issue.At(int(i)), m.Instr.Latency.At(int(i))
	next, end, works := t, t, eight{}
	for k := range t {
		issue, latency := is, d
		if v.hit.At(int(i))>>k&1 != 0 {
			issue, latency = 0, min(d, x.least[k])
		}
		next[k] += issue
		end[k] += latency
		works[k] = latency
		x.last[k] = max(x.last[k], end[k])
	}
	arrive[i], v.slots[site.lane/eightSize] = end, next
	for _, s := range site.takes[:site.numTakes] {
		slot, from := &v.slots[s/eightSize], &next
		if s&takeAtEnd != 0 {
			from = &end
		}
		for k := range slot {
			if works[k] > 0 {
				slot[k] = from[k]
			}
		}
	}
}

// left returns when row p leaves its lane.
func (v *variants) left(p uint32) eight {
	in := &v.w.Module.Instr
	a, d, h := v.arrive.At(int(p)), in.Latency.At(int(p)), v.hit.At(int(p))
	for k := range a {
		if h>>k&1 != 0 {
			a[k] -= min(d, v.walk.least[k])
		} else {
			a[k] -= d - in.Issue.At(int(p))
		}
	}
	return a
}

// sites tells by row what it waits for and takes; many rows share a site.
type sites struct {
	of   ecs.Column[uint16]
	list []siteSlots
}

// siteSlots are the slots of a site, in bytes from the first on.
type siteSlots struct {
	loop, lane         uint32 // whether it has no event
	numWaits, numTakes uint32
	waits              [16]uint32
	takes              [12]uint32 // besides the lane, of rows that work; see takeAtEnd
}

const (
	eightSize = uint32(unsafe.Sizeof(eight{}))
	takeAtEnd = 1 // a slot is free when the row ends
)

// sites returns the sites of the rows of m.
func (r *Rules) sites(m *components.Module) *sites {
	in := &m.Instr
	lane, flags, banks := in.Lane.Slice(), in.Flags.Slice(), in.Banks.Slice()
	uses := r.Resources(m)
	out := &sites{of: ecs.NewColumn[uint16]("site")}
	of := out.of.Scratch(len(flags))
	type key struct {
		lane, banks uint16
		flags       components.Flags
	}
	known := map[key]uint16{}
	var recent [256]struct {
		key
		site uint16
		ok   bool
	}
	for i, f := range flags {
		k := key{lane[i], banks[i], f & (components.FlagLoop | components.FlagBarrier | components.FlagDstPSUM)}
		near := &recent[(uint32(k.lane)*0x85ebca77^uint32(k.banks)*0x9e3779b1^uint32(k.flags)*0xc2b2ae35)>>24]
		if near.key != k || !near.ok {
			n, ok := known[k]
			if !ok {
				n = uint16(len(out.list))
				known[k] = n
				out.list = append(out.list, uses.siteOf(uint32(i), uint32(f&components.FlagLoop)))
			}
			near.key, near.site, near.ok = k, n, true
		}
		of[i] = near.site
	}
	return out
}

// siteOf returns the slots of row i; loop is not 0 where it is a loop.
func (x *Resources) siteOf(i, loop uint32) siteSlots {
	lane := x.slots.Lane(x.m.Instr.Lane.At(int(i)))
	s := siteSlots{loop: loop, lane: uint32(lane) * eightSize}
	for _, w := range x.Waits(i) {
		s.waits[s.numWaits] = uint32(w.Slot) * eightSize
		s.numWaits++
	}
	for _, t := range x.MayTake(i) {
		if t.Slot == lane {
			continue
		}
		s.takes[s.numTakes] = uint32(t.Slot) * eightSize
		if t.AtEnd {
			s.takes[s.numTakes] |= takeAtEnd
		}
		s.numTakes++
	}
	return s
}
