package devicelog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// Dispatch cores send programs to the workers. Their kernels record a zone
// for every command and attach what it was: the program it was for
// (workers_runtime_id) and its type (dispatch_command_type).

// dispatchOp is the work of a dispatch core for one program.
type dispatchOp struct {
	core int
	id   int64
	rows []uint32 // markers, by time
}

// setDispatch finds the dispatched programs of the device and returns the log
// with the names of their commands.
func (ls *Launches) setDispatch(l *zonelog.DeviceLog, t *Topology, vendor bool, diags *zonelog.Diagnostics) {
	ops, names := findDispatch(l, t, ls.Device, vendor, diags)
	ls.dispatch, ls.dispatchLog = ops, withNames(l, names)
}

// dispatchCores lists the dispatch cores of a device by place.
func dispatchCores(l *zonelog.DeviceLog, t *Topology, dev int) []int {
	keys := make([]bool, len(l.Keys))
	some := false
	for k := range l.Keys {
		n := l.Keys[k].Name
		keys[k] = strings.Contains(n, "CQ-DISPATCH") || strings.Contains(n, "CQ-PREFETCH")
		some = some || keys[k]
	}
	if !some {
		return nil
	}
	var out []int
	for c := range t.Cores {
		if t.Cores[c].Device != dev {
			continue
		}
	lanes:
		for _, lane := range t.Cores[c].Lanes {
			if strings.Contains(l.Lanes[lane].Risc, "ERISC") {
				continue
			}
			for row := l.LaneOff[lane]; row < l.LaneOff[lane+1]; row++ {
				if keys[l.Defs[l.Def[row]].Key] {
					out = append(out, c)
					break lanes
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b int) int {
		x, y := &t.Cores[a], &t.Cores[b]
		return cmp.Or(cmp.Compare(x.X, y.X), cmp.Compare(x.Y, y.Y))
	})
	return out
}

// findDispatch finds the programs of the dispatch cores of a device, and what
// the markers of their commands are called: by the type of the command.
//
// With vendor, as its script does: every stretch of a processor from behind
// one zone end to the next is a command, whatever zones begin in it, its
// first and last marker get the type last seen, and the k-th program of BRISC
// belongs to the k-th of NCRISC, commands for no program counting as one. It
// fails where there are fewer of NCRISC.
//
// Otherwise a command is the zone that ends first behind its type, and the
// k-th go signal of NCRISC belongs to the k-th program of BRISC.
func findDispatch(l *zonelog.DeviceLog, t *Topology, dev int, vendor bool, diags *zonelog.Diagnostics) (ops []dispatchOp, names map[uint32]string) {
	cores := dispatchCores(l, t, dev)
	if len(cores) == 0 {
		return nil, nil
	}
	names = map[uint32]string{}
	for _, c := range cores {
		core := &t.Cores[c]
		var master, sub []dispatchOp
		for _, lane := range core.Lanes {
			switch l.Lanes[lane].Risc {
			case "BRISC":
				master = dispatchLane(l, lane, c, vendor, names)
			case "NCRISC":
				sub = dispatchLane(l, lane, c, vendor, names)
			default:
				if vendor && l.LaneOff[lane] < l.LaneOff[lane+1] {
					diags.Add(diagVendorFails, 1, l.Line(int(l.LaneOff[lane])), fmt.Sprintf("dispatch core %s has markers of %s", core.Name(), l.Lanes[lane].Risc))
				}
			}
		}
		if !vendor {
			master, sub = programs(master), programs(sub)
		}
		for k := range master {
			m := &master[k]
			if k < len(sub) {
				m.rows = append(m.rows, sub[k].rows...)
				slices.SortStableFunc(m.rows, func(a, b uint32) int { return cmp.Compare(l.Time[a], l.Time[b]) })
			} else if vendor && m.id > 0 {
				diags.Add(diagVendorFails, 1, l.Line(int(m.rows[0])), fmt.Sprintf("dispatch core %s has fewer go signals than programs", core.Name()))
			}
			if m.id > 0 {
				ops = append(ops, *m)
			}
		}
	}
	slices.SortStableFunc(ops, func(a, b dispatchOp) int { return cmp.Compare(l.Time[a.rows[0]], l.Time[b.rows[0]]) })
	return ops, names
}

// programs leaves out what was for no program.
func programs(ops []dispatchOp) []dispatchOp {
	return slices.DeleteFunc(ops, func(o dispatchOp) bool { return o.id <= 0 })
}

// dispatchLane groups the markers of one processor by program, in order of
// time.
func dispatchLane(l *zonelog.DeviceLog, lane, core int, vendor bool, names map[uint32]string) []dispatchOp {
	var ops []dispatchOp
	at := map[int64]int{}
	var id int64
	var command string
	var group []uint32
	finished := false
	begin := map[uint32]uint32{} // start of the zone that ends in a row
	if !vendor {
		for z := l.Zones.LaneOff[lane]; z < l.Zones.LaneOff[lane+1]; z++ {
			begin[l.Zones.End[z]] = l.Zones.Begin[z]
		}
	}
	for row := l.LaneOff[lane]; row < l.LaneOff[lane+1]; row++ {
		group = append(group, row)
		meta := l.Meta(int(row))
		if v, ok := metaField(meta, "workers_runtime_id"); ok {
			finished = false
			id, _ = strconv.ParseInt(v, 10, 64)
			if _, seen := at[id]; seen { // a trace that is replayed counts once
				id = 0
			}
		}
		if v, ok := metaField(meta, "dispatch_command_type"); ok {
			command = v
			if strings.Contains(v, "CQ_DISPATCH_NOTIFY_SUBORDINATE_GO_SIGNAL") {
				finished = true
			}
			if strings.Contains(v, "CQ_DISPATCH_CMD_SEND_GO_SIGNAL") {
				id++
			}
		}
		if l.Type(int(row)) != zonelog.MarkerEnd {
			continue
		}
		first := group[0]
		if !vendor {
			b, matched := begin[row]
			if command == "" || !matched {
				group = group[:0]
				continue
			}
			first = b
			group = append(group[:0], b, row)
		}
		names[first], names[row] = command, command
		k, ok := at[id]
		if !ok {
			k = len(ops)
			at[id] = k
			ops = append(ops, dispatchOp{core: core, id: id})
		}
		ops[k].rows = append(ops[k].rows, group...)
		group = group[:0]
		if finished {
			id = 0
		}
		if !vendor {
			command = ""
		}
	}
	slices.SortStableFunc(ops, func(a, b dispatchOp) int { return cmp.Compare(l.Time[a.rows[0]], l.Time[b.rows[0]]) })
	return ops
}

// metaField returns the value of a key in meta data, a JSON object that has
// semicolons for commas.
func metaField(meta, key string) (string, bool) {
	i := strings.Index(meta, key)
	if i < 1 {
		return "", false
	}
	rest := strings.TrimLeft(meta[i+len(key):], `"' `)
	rest, ok := strings.CutPrefix(rest, ":")
	if !ok {
		return "", false
	}
	rest = strings.TrimLeft(rest, " ")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		v, _, ok := strings.Cut(rest[1:], rest[:1])
		return v, ok
	}
	end := strings.IndexAny(rest, ",;} ")
	if end < 0 {
		return "", false
	}
	return rest[:end], true
}

// withNames returns a log in which some markers have other names. All other
// columns are shared.
func withNames(l *zonelog.DeviceLog, names map[uint32]string) *zonelog.DeviceLog {
	if len(names) == 0 {
		return l
	}
	out := *l
	out.Keys, out.Defs, out.Def = slices.Clone(l.Keys), slices.Clone(l.Defs), slices.Clone(l.Def)
	keys, defs := map[zonelog.ZoneKey]uint32{}, map[zonelog.ZoneDef]uint32{}
	rows := make([]uint32, 0, len(names))
	for row := range names {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		d := l.Defs[l.Def[row]]
		k := l.Keys[d.Key]
		k.Name = names[row]
		d.Key = internRow(keys, &out.Keys, k)
		out.Def[row] = internRow(defs, &out.Defs, d)
	}
	return &out
}

func internRow[T comparable](seen map[T]uint32, list *[]T, v T) uint32 {
	i, ok := seen[v]
	if !ok {
		i = uint32(len(*list))
		seen[v] = i
		*list = append(*list, v)
	}
	return i
}

// dispatch measures from the first to the last marker of a program on its
// dispatch core.
func dispatch(i int, ls *Launches, m *masks, r *Result) {
	l := ls.dispatchLog
	bit := uint32(1) << i
	for n := range ls.dispatch {
		op := &ls.dispatch[n]
		var d Duration
		have := false
		for _, row := range op.rows {
			if st, _ := m.at(l, l.LaneOfMarker(int(row)), int(row)); st&bit != 0 {
				d, have = Duration{Start: l.Time[row], StartRow: row, Launch: -1}, true
				break
			}
		}
		if !have {
			continue
		}
		for k := len(op.rows) - 1; k >= 0 && op.rows[k] != d.StartRow; k-- {
			row := op.rows[k]
			if _, en := m.at(l, l.LaneOfMarker(int(row)), int(row)); en&bit != 0 {
				d.End, d.EndRow, d.Cycles = l.Time[row], row, l.Time[row]-d.Start
				r.Series = append(r.Series, Series{Launch: -1, Core: -1, Dispatch: n + 1, Values: []Duration{d}})
				break
			}
		}
	}
}
