package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perfsim/components"
)

// Lost records.
//
// An engine's program counter counts up by one but for branches. Where it
// skips without a branch, the profile lost the records between. One that lies
// alone between two that are there gets a stand-in: the instruction that stands
// between like neighbours elsewhere on the engine, with its cost and its
// semaphore operations. A wait for a counter that only grows asks for as much
// more than the wait before it as there; steps of the runtime's barriers are
// the same every time. Longer gaps are counted only. The runtime's part before
// the kernel is the same on all cores, so an engine that begins behind its twin
// on another core has lost what is between.

// gap is where records are missing: between rows a and b of one engine.
type gap struct {
	a, b  uint32
	count uint32
}

// fillGaps finds lost records, adds stand-ins and writes the headline.
func (a *assembler) fillGaps() {
	n := len(a.rows)
	order := make([]uint32, 0, n)
	for i := range a.rows {
		if !a.rows[i].strict { // reached by a branch, at the end
			order = append(order, uint32(i))
		}
	}
	key := func(i uint32) uint32 { return group(uint32(a.coreNum[a.rows[i].core]), a.rows[i].engine) }
	slices.SortFunc(order, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(key(x), key(y)), cmp.Compare(a.rows[x].pc, a.rows[y].pc), cmp.Compare(x, y))
	})
	var gaps []gap
	for k := 1; k < len(order); k++ {
		x, y := &a.rows[order[k-1]], &a.rows[order[k]]
		if key(order[k-1]) == key(order[k]) && x.pc > 0 && y.pc > x.pc+1 && !a.jumps(x) {
			gaps = append(gaps, gap{uint32(k - 1), uint32(k), y.pc - x.pc - 1})
		}
	}
	lost, inferred := a.lostFirst(order), 0
	if len(gaps) == 0 && len(lost) == 0 {
		return
	}
	for _, g := range gaps {
		x := order[g.a]
		lost[profilerName(a.rows[x].engine)] += int(g.count)
		if g.count != 1 {
			continue
		}
		if t, ok := a.template(order, g, key); ok {
			a.standIn(order, g.a, t, key)
			inferred++
		}
	}
	var parts []string
	total := 0
	for e := range components.NumEngines {
		name := profilerName(e)
		if c := lost[name]; c > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, c))
			total += c
			delete(lost, name)
		}
	}
	noun := "records"
	if total == 1 {
		noun = "record"
	}
	a.m.Note(components.NoteInferred, fmt.Sprintf("the profile lost %d %s (%s: gaps of the program counter), %d inferred from like places: the kernel time is not known exactly",
		total, noun, strings.Join(parts, ", "), inferred), total)
}

// mostLostFirst is how many records an engine may begin behind its twin for
// them to be lost.
const mostLostFirst = 4

// lostFirst counts, by engine, the records that are missing before the first
// one: as many as the program counter of the engine on another core is ahead.
func (a *assembler) lostFirst(order []uint32) map[string]int {
	type place struct {
		core   uint32
		engine components.Engine
	}
	first := map[place]uint32{}
	least := map[components.Engine]uint32{}
	for _, i := range order {
		r := &a.rows[i]
		if r.pc == 0 {
			continue
		}
		p := place{uint32(a.coreNum[r.core]), r.engine}
		if pc, ok := first[p]; !ok || r.pc < pc {
			first[p] = r.pc
		}
		if pc, ok := least[r.engine]; !ok || r.pc < pc {
			least[r.engine] = r.pc
		}
	}
	lost := map[string]int{}
	for p, pc := range first {
		if d := pc - least[p.engine]; d > 0 && d <= mostLostFirst {
			lost[profilerName(p.engine)] += int(d)
		}
	}
	return lost
}

// jumps reports whether the program counter may skip behind a row.
func (a *assembler) jumps(r *row) bool {
	if r.branch != 0 {
		return true
	}
	op := strings.ToUpper(a.m.OpcodeName(r.opcode))
	for _, word := range []string{"BRANCH", "JUMP", "CALL", "RET", "HALT", "LOOP"} {
		if strings.Contains(op, word) {
			return true
		}
	}
	return false
}

// syncsOf returns the semaphore operations of a row.
func (a *assembler) syncsOf(i uint32) []syncRow {
	lo := uint32(0)
	if i > 0 {
		lo = a.rows[i-1].syncEnd
	}
	return a.syncs[lo:a.rows[i].syncEnd]
}

// alike is how much two instructions are alike: 0 where their opcodes differ,
// more where they wait for and raise the same.
func (a *assembler) alike(x, y uint32) int {
	if a.rows[x].opcode != a.rows[y].opcode {
		return 0
	}
	s, t := a.syncsOf(x), a.syncsOf(y)
	if len(s) != len(t) {
		return 1
	}
	for i := range s {
		if s[i].op != t[i].op || s[i].space != t[i].space || s[i].id != t[i].id || s[i].op == components.WaitEQ && s[i].value != t[i].value {
			return 2
		}
	}
	return 4
}

// template returns the place, in order, of the instruction whose neighbours
// are most like those of the gap, the nearest one of several.
func (a *assembler) template(order []uint32, g gap, key func(uint32) uint32) (int, bool) {
	engine := key(order[g.a])
	best, score, distance := -1, 0, 0
	for k := 1; k+1 < len(order); k++ {
		x, y, z := order[k-1], order[k], order[k+1]
		if key(x) != engine || key(z) != engine || uint32(k) == g.a || uint32(k) == g.b || a.rows[y].pc != a.rows[x].pc+1 || a.rows[z].pc != a.rows[y].pc+1 || a.jumps(&a.rows[y]) {
			continue
		}
		l, r := a.alike(x, order[g.a]), a.alike(z, order[g.b])
		if l == 0 || r == 0 {
			continue
		}
		d := k - int(g.a)
		if d < 0 {
			d = -d
		}
		if l+r > score || l+r == score && d < distance {
			best, score, distance = k, l+r, d
		}
	}
	return best, best >= 0
}

// standIn adds a row behind place at in order that does what the row in place
// t does.
func (a *assembler) standIn(order []uint32, at uint32, t int, key func(uint32) uint32) {
	before, like := order[at], order[t]
	r := a.rows[like]
	b := &a.rows[before]
	r.pc, r.core, r.start, r.dur, r.wait = b.pc+1, b.core, b.start+uint64(b.dur), 0, 0
	r.hasID, r.id, r.name, r.text, r.hlo, r.source, r.compilerPC = false, 0, 0, 0, 0, 0, 0
	for _, s := range slices.Clone(a.syncsOf(like)) {
		if s.op == components.WaitGE {
			there, ok1 := a.lastWait(order, t, s, key)
			here, ok2 := a.lastWait(order, int(at)+1, s, key)
			if ok1 && ok2 {
				s.value = max(here+s.value-there, 0)
			}
			if next, ok := a.nextWait(order, int(at), s, key); ok {
				s.value = min(s.value, next)
			}
		}
		a.syncs = append(a.syncs, s)
	}
	r.apEnd, r.syncEnd = uint32(len(a.aps)), uint32(len(a.syncs))
	a.rows = append(a.rows, r)
	a.predOff = append(a.predOff, uint32(len(a.preds)))
}

// lastWait returns what the engine of place k waited for last, before k, on
// the semaphore of s.
func (a *assembler) lastWait(order []uint32, k int, s syncRow, key func(uint32) uint32) (int64, bool) {
	engine := key(order[k])
	for i := k - 1; i >= 0 && key(order[i]) == engine; i-- {
		for _, x := range a.syncsOf(order[i]) {
			if x.op == s.op && x.space == s.space && x.id == s.id {
				return x.value, true
			}
		}
	}
	return 0, false
}

// nextWait returns what the engine waits for next, behind place k.
func (a *assembler) nextWait(order []uint32, k int, s syncRow, key func(uint32) uint32) (int64, bool) {
	engine := key(order[k])
	for i := k + 1; i < len(order) && key(order[i]) == engine; i++ {
		for _, x := range a.syncsOf(order[i]) {
			if x.op == s.op && x.space == s.space && x.id == s.id {
				return x.value, true
			}
		}
	}
	return 0, false
}
