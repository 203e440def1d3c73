package place

import (
	"context"
	"slices"
	"sync"

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

// HasVariants tells whether Variants can predict a world: what triggers and
// collectives take follows from more than their costs, and loops that count
// their trips are placed in another order.
func HasVariants(w *components.World) bool {
	m := w.Module
	if w.Config.Model == components.Calibrated || slices.ContainsFunc(m.Instr.Flags.Slice(), func(f components.Flags) bool {
		return f&(components.FlagTrigger|components.FlagCollective) != 0
	}) {
		return false
	}
	return w.Config.Loops != components.Trips || !slices.ContainsFunc(m.TopBlocks(), func(b int) bool { return components.Repeats(m, b) })
}

// Variants predicts a world with each variant in turn, and returns the latency
// of run A of each. Four are placed in one walk over the rows, which costs about
// what a placement of both runs does, and no column of costs is copied.
func Variants(ctx context.Context, w *components.World, rules Rules, list []Variant) ([]uint64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]uint64, len(list))
	jobs := w.Config.Jobs
	if w.Module.Instr.Len() > variantRows { // the times of four take more than all tables
		jobs = 1
	}
	sites := rules.sites(w.Module)
	g, ctx := ecs.NewGroup(ctx, jobs)
	free := sync.Pool{New: func() any { return newVariants(w, sites) }}
	for at := 0; at < len(list); at += variantsAtOnce {
		g.Go(func() error {
			v := free.Get().(*variants)
			defer free.Put(v)
			return v.place(ctx, list[at:min(at+variantsAtOnce, len(list))], out[at:])
		})
	}
	return out, g.Wait()
}

const (
	variantsAtOnce = 4
	// variantRows is up to how many rows several walks run side by side.
	variantRows = 1 << 22
)

// four has a time of each variant of a walk, in ns.
type four = [variantsAtOnce]uint64

// variants is a walk over the rows of a module that places some variants.
type variants struct {
	w     *components.World
	sites *sites

	arrive ecs.Column[four]
	hit    ecs.Column[uint8] // by row: the variants in which it takes less time
	slots  []four
	last   four
	least  [variantsAtOnce]uint64
	// keep is all ones where a variant honours the dependencies of a class;
	// drops tells that one leaves some out.
	keep  [components.NumClasses]four
	drops bool
}

func newVariants(w *components.World, s *sites) *variants {
	return &variants{w: w, sites: s, arrive: ecs.NewColumn[four]("arrive"), hit: ecs.NewColumn[uint8]("hit"), slots: make([]four, Slots(w.Module.Lanes.Len()).Len())}
}

// place places up to four variants and leaves their latencies in out.
func (v *variants) place(ctx context.Context, list []Variant, out []uint64) error {
	m := v.w.Module
	n := m.Instr.Len()
	clear(v.hit.Resize(n))
	v.arrive.Scratch(n)
	v.drops = false
	for k := range v.least {
		for class := range v.keep {
			v.keep[class][k] = ^uint64(0)
			if k < len(list) && list[k].Drop>>class&1 != 0 {
				v.keep[class][k], v.drops = 0, true
			}
		}
	}
	for k, x := range list {
		v.least[k] = uint64(x.Least)
		if x.Pick != nil {
			for lo := 0; lo < n; lo += pickRows {
				x.Pick(lo, v.hit.View(lo, min(lo+pickRows, n)), 1<<k)
			}
		}
	}
	blocks := make([][]components.BlockResult, len(list))
	for _, b := range m.TopBlocks() {
		clear(v.slots)
		v.last = four{}
		first, end := m.Blocks.First.At(b), m.Blocks.End.At(b)
		for lo := first; lo < end; lo += cancelEvery {
			if err := ctx.Err(); err != nil {
				return err
			}
			v.rows(lo, min(lo+cancelEvery, end))
		}
		for k := range blocks {
			t := pair{v.last[k], v.last[k]}
			blocks[k] = append(blocks[k], components.BlockResult{Block: b, Latency: t, LatencyTrips: t})
		}
	}
	for k := range blocks {
		w := *v.w
		w.Blocks = blocks[k]
		out[k] = w.Latency(components.RunA)
	}
	return nil
}

// pickRows is how many rows are asked for at a time.
const pickRows = 1 << 12

// rows places rows lo to hi, loops passed over.
func (v *variants) rows(lo, hi uint32) {
	in := &v.w.Module.Instr
	off, words := v.w.Module.Edges.Preds.Offsets(), v.w.Module.Edges.Preds.Words()
	issue, latency, at := in.Issue.Slice(), in.Latency.Slice(), v.sites.of.Slice()
	arrive, hit, slots := v.arrive.Slice(), v.hit.Slice(), v.slots
	issue, latency, at, hit, arrive = issue[:hi], latency[:hi], at[:hi], hit[:hi], arrive[:len(at)]
	l0, l1, l2, l3 := v.last[0], v.last[1], v.last[2], v.last[3]
	for i := lo; i < hi; i++ {
		site := &v.sites.list[at[i]]
		if site.loop {
			arrive[i] = four{}
			continue
		}
		// Times in variables of their own: the compiler keeps arrays in memory.
		var t0, t1, t2, t3 uint64
		if len(off) > 0 {
			for _, w := range words[off[i]:off[i+1]] {
				a := &arrive[w&ecs.TargetMask]
				class := w >> ecs.ClassShift
				if class == uint32(components.ClassOrdered) || v.drops {
					x := v.released(w&ecs.TargetMask, class)
					a = &x
				}
				t0, t1, t2, t3 = max(t0, a[0]), max(t1, a[1]), max(t2, a[2]), max(t3, a[3])
			}
		}
		for _, w := range site.waits {
			s := &slots[w.Slot]
			t0, t1, t2, t3 = max(t0, s[0]), max(t1, s[1]), max(t2, s[2]), max(t3, s[3])
		}
		is, d := uint64(issue[i]), uint64(latency[i])
		next, end := &slots[site.lane], &arrive[i]
		*next, *end = four{t0 + is, t1 + is, t2 + is, t3 + is}, four{t0 + d, t1 + d, t2 + d, t3 + d}
		works := uint8(0)
		if d > 0 {
			works = all
		}
		if h := hit[i]; h != 0 {
			start := four{t0, t1, t2, t3}
			for k := range start {
				if h>>k&1 != 0 {
					less := min(d, v.least[k])
					next[k], end[k] = start[k], start[k]+less
					if less == 0 {
						works &^= 1 << k
					}
				}
			}
		}
		l0, l1, l2, l3 = max(l0, end[0]), max(l1, end[1]), max(l2, end[2]), max(l3, end[3])
		for _, t := range site.takes {
			from := next
			if t.AtEnd {
				from = end
			}
			if works == all {
				slots[t.Slot] = *from
			} else {
				takeSome(&slots[t.Slot], from, works)
			}
		}
	}
	v.last = four{l0, l1, l2, l3}
}

// all are the bits of all variants.
const all = 1<<variantsAtOnce - 1

// takeSome has a slot taken in those variants in which a row works.
func takeSome(slot, at *four, works uint8) {
	for k := range slot {
		if works>>k&1 != 0 {
			slot[k] = at[k]
		}
	}
}

// released returns when a dependency of a class on producer p lets go, 0 where
// a variant leaves it out.
func (v *variants) released(p, class uint32) four {
	a := v.arrive.At(int(p))
	if class == uint32(components.ClassOrdered) { // when it leaves its lane
		in := &v.w.Module.Instr
		d, h := in.Latency.At(int(p)), v.hit.At(int(p))
		early := uint64(d - in.Issue.At(int(p)))
		for k := range a {
			if h>>k&1 != 0 {
				a[k] -= min(uint64(d), v.least[k])
			} else {
				a[k] -= early
			}
		}
	}
	for k := range a {
		a[k] &= v.keep[class][k]
	}
	return a
}

// sites tells by row what it waits for and takes; many rows share a site.
type sites struct {
	of   ecs.Column[uint16]
	list []siteSlots
}

// siteSlots are the slots of a site.
type siteSlots struct {
	loop  bool // it has no event
	lane  Slot
	waits []Wait
	takes []Take // besides the lane, of rows that work
}

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
				x := siteSlots{loop: f&components.FlagLoop != 0, lane: uses.slots.Lane(k.lane), waits: slices.Clone(uses.Waits(uint32(i)))}
				for _, t := range uses.MayTake(uint32(i)) {
					if t.Slot != x.lane {
						x.takes = append(x.takes, t)
					}
				}
				out.list = append(out.list, x)
			}
			near.key, near.site, near.ok = k, n, true
		}
		of[i] = near.site
	}
	return out
}
