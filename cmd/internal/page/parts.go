package page

import (
	"cmp"
	"fmt"
	"slices"

	"perfsim/cmd/internal/web"
	"perfsim/components"
)

// Bounds of the parts of a lane.
const (
	mostPartEvents = 200_000 // lanes with more events have no parts
	mostParts      = 24
)

// wholeEvent is an event as long as it takes: a transfer in flight, an
// instruction to its result.
type wholeEvent struct {
	start, end uint64
	id         uint32
	queue      uint16
}

// whole returns, by row, the events before they are cut, of rows some of whose
// events overlap or use several queues; nil for others. transfers are when data
// moves, where the model says so.
func (v *viewer) whole(rows []web.Row, transfers []components.Transfer) [][]wholeEvent {
	out := make([][]wholeEvent, len(rows))
	moves := map[uint32]components.Transfer{}
	for _, t := range transfers {
		if r := uint32(t.Row); r >= v.first && r < v.end {
			moves[r-v.first] = t
		}
	}
	for n := range rows {
		r := &rows[n]
		if len(r.Start) > mostPartEvents {
			continue
		}
		list := make([]wholeEvent, 0, len(r.Start))
		for k := range r.Start {
			e := wholeEvent{start: r.Start[k], end: r.End[k], id: r.ID[k], queue: v.m.Instr.Queue.Get(int(v.first + r.ID[k]))}
			if t, ok := moves[e.id]; ok && v.m.Lanes.Engine.At(int(v.lanes[n])) == components.DMA {
				e.start, e.end = t.Begin, t.End
			}
			list = append(list, e)
		}
		slices.SortStableFunc(list, func(a, b wholeEvent) int { return cmp.Compare(a.start, b.start) })
		for k := 1; k < len(list); k++ {
			if list[k].start < list[k-1].end || list[k].queue != list[0].queue {
				out[n] = list
				break
			}
		}
	}
	return out
}

// parts returns the rows that unfold lanes: one for each DMA queue, or as many
// as there are events at a time, with whole events.
func (v *viewer) parts(rows []web.Row, whole [][]wholeEvent) []web.Row {
	var out []web.Row
	for n, list := range whole {
		type key struct {
			queue uint16
			slot  int
		}
		var keys []key
		at := map[key]int{}
		var mine []web.Row
		for _, e := range list {
			for slot := 0; ; slot++ {
				k := key{e.queue, slot}
				r, ok := at[k]
				if !ok {
					if len(mine) == mostParts {
						break // beyond what a person can follow
					}
					r = len(mine)
					at[k], keys = r, append(keys, k)
					mine = append(mine, web.Row{Parent: n + 1})
				}
				row := &mine[r]
				if last := len(row.End) - 1; last >= 0 && row.End[last] > e.start {
					continue
				}
				v.addEvent(row, v.first+e.id, e.start, e.end)
				break
			}
		}
		for r, k := range keys {
			name := rows[n].Name
			if k.queue > 0 {
				name = v.m.Symbols.String(v.m.Queues.Name.At(int(k.queue - 1)))
			}
			mine[r].Name = fmt.Sprintf("%s ·%d", name, k.slot+1)
			for i := range mine[r].Start {
				mine[r].Busy += mine[r].End[i] - mine[r].Start[i]
			}
		}
		order := make([]int, len(keys))
		for r := range order {
			order[r] = r
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(keys[a].queue, keys[b].queue), cmp.Compare(keys[a].slot, keys[b].slot))
		})
		for _, r := range order {
			out = append(out, mine[r])
		}
	}
	return out
}
