package spmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// devicesOf returns how many devices the program of a module is for, at least 1,
// and whether its shapes are those of one device already. A module that states
// shardings only is for their devices and not cut yet.
func devicesOf(g *opgraph.Graph) (n int64, cut bool) {
	if pending(g) {
		p, err := newPlan(g)
		if err == nil && p.ax.devices > 1 {
			return p.ax.devices, false
		}
		return max(p.ax.devices, 1), false
	}
	n = max(g.Partitions, g.Replicas, 1)
	joined := int64(1)
	for op := range opgraph.OpID(g.NumOps()) {
		if !g.Ops.Kind[op].IsCollective() {
			continue
		}
		if r, ok := g.ReplicaGroups(op); ok && r.Size() > 0 {
			joined = max(joined, opgraph.MulSize(r.Size(), max(r.Count(), 1)))
		}
	}
	if joined == 1 && n > 1 && g.Partitions > 1 {
		return n, true
	}
	return max(n, joined), joined > 1 || g.Replicas > 1
}

// CoresError is the error of a number of cores that a module cannot be given.
type CoresError struct{ text string }

func (e *CoresError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &CoresError{fmt.Sprintf(format, args...)} }

// Cores returns one core's share of g on n cores, and a note about it. A module
// of several devices runs on as many; of one that is not cut yet, 1 is all of
// them on one core. Another module is cut along the given dimensions, NAME.I of
// parameters of the entry, or, where none is given, along its batch.
func Cores(g *opgraph.Graph, n int64, cuts []string) (*opgraph.Graph, *components.Note, error) {
	devices, done := devicesOf(g)
	switch {
	case devices > 1 && len(cuts) > 0:
		return nil, nil, refuse("--cut: the module is for %d devices and says itself how they share it", devices)
	case n == devices && devices > 1:
		if done {
			return g, nil, nil
		}
		out, note := Partition(g)
		if note != nil && note.Code == components.NoteAllDevices {
			return nil, nil, refuse("the module's shardings for %d devices cannot be followed: %s", devices, note.Text)
		}
		return out, note, nil
	case devices > 1 && done:
		return nil, nil, refuse("the module is one device's program of %d: its collectives fix that number (cores=%d)", devices, devices)
	case devices > 1 && n != 1:
		return nil, nil, refuse("the module's shardings are for %d devices: cores is 1 or %d", devices, devices)
	case n == 1:
		if devices > 1 {
			return g, &components.Note{Code: components.NoteAllDevices, Count: 1, Text: fmt.Sprintf("all %d devices' work on one core, as asked for", devices)}, nil
		}
		return g, nil, nil
	}
	to, err := annotate(g, n, cuts)
	if err != nil {
		return nil, nil, err
	}
	out, note := Partition(to.g)
	if note == nil || note.Code == components.NoteAllDevices {
		why := "nothing of it is cut"
		if note != nil {
			why = note.Text
		}
		return nil, nil, refuse("the module cannot be cut along %s: %s", strings.Join(to.along, ", "), why)
	}
	const most = 4
	along := to.along
	if n := len(along) - most; n > 0 {
		along = append(slices.Clone(along[:most]), fmt.Sprintf("%d more", n))
	}
	note.Text = strings.Replace(note.Text, "cut by the module's shardings", "cut along "+strings.Join(along, ", "), 1)
	return out, note, nil
}

// annotated is a copy of a graph with shardings of its parameters.
type annotated struct {
	g     *opgraph.Graph
	along []string
}

// annotate copies g and cuts parameters into n along the given dimensions.
func annotate(g *opgraph.Graph, n int64, cuts []string) (*annotated, error) {
	params := g.Params(g.Entry, nil)
	dims := map[opgraph.OpID]int{}
	if len(cuts) == 0 {
		found, training, err := batch(g, params, n)
		if err != nil {
			return nil, err
		}
		if !training {
			return leastJoined(g, n, params, found), nil
		}
		dims = found
	}
	for _, cut := range cuts {
		at := strings.LastIndexByte(cut, '.')
		k, err := strconv.Atoi(cut[at+1:])
		if at <= 0 || err != nil {
			return nil, refuse("--cut %s is not NAME.I, a dimension of a parameter", cut)
		}
		i := slices.IndexFunc(params, func(op opgraph.OpID) bool { return g.OpText(op) == cut[:at] })
		if i < 0 {
			return nil, refuse("--cut %s: no parameter has this name; there are %s", cut, names(g, params))
		}
		s := g.Ops.Shape[params[i]]
		switch {
		case g.Shapes.IsTuple(s) || k < 0 || k >= g.Shapes.Rank(s):
			return nil, refuse("--cut %s: the parameter has no dimension %d", cut, k)
		case g.Shapes.Dims(s)[k]%n != 0:
			return nil, refuse("--cut %s: a dimension of %d is not cut into %d equal parts", cut, g.Shapes.Dims(s)[k], n)
		}
		dims[params[i]] = k
	}
	return with(g, n, params, dims), nil
}

// leastJoined cuts those of the parameters found whose parts need the fewest
// collectives: all, or one of them. A weight may by chance be as long as the
// batch.
func leastJoined(g *opgraph.Graph, n int64, params []opgraph.OpID, found map[opgraph.OpID]int) *annotated {
	best := with(g, n, params, found)
	least := best.collectives()
	for _, op := range params {
		if _, ok := found[op]; !ok || least == 0 || len(found) == 1 {
			continue
		}
		one := with(g, n, params, map[opgraph.OpID]int{op: 0})
		if k := one.collectives(); k < least {
			best, least = one, k
		}
	}
	return best
}

// collectives counts those of one device's share.
func (a *annotated) collectives() int {
	g, note := Partition(a.g)
	if note == nil || note.Code == components.NoteAllDevices {
		return 1 << 30
	}
	k := 0
	for op := range opgraph.OpID(g.NumOps()) {
		if g.Ops.Kind[op].IsCollective() {
			k++
		}
	}
	return k
}

// with returns a copy of g whose parameters are cut into n along dims.
func with(g *opgraph.Graph, n int64, params []opgraph.OpID, dims map[opgraph.OpID]int) *annotated {
	r := opgraph.NewRewriter(g)
	for c := range opgraph.CompID(g.NumComps()) {
		r.Begin(c)
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			r.Copy(op)
		}
		r.End(c)
	}
	out := &annotated{g: r.To}
	out.g.Partitions = n
	for _, op := range params {
		k, ok := dims[op]
		if !ok {
			continue
		}
		tiles := slices.Repeat([]string{"1"}, g.Shapes.Rank(g.Ops.Shape[op]))
		tiles[k] = strconv.FormatInt(n, 10)
		out.g.SetAttrStr(r.At(op), opgraph.AttrSharding, fmt.Sprintf("{devices=[%s]<=[%d]}", strings.Join(tiles, ","), n))
		out.along = append(out.along, fmt.Sprintf("%s.%d", g.OpText(op), k))
	}
	return out
}

func names(g *opgraph.Graph, params []opgraph.OpID) string {
	const most = 8
	var list []string
	for i, op := range params {
		if i == most {
			list = append(list, "…")
			break
		}
		list = append(list, g.OpText(op))
	}
	return strings.Join(list, ", ")
}

// batch finds the dimension of a data-parallel cut. Parameters that a result
// has the shape of may be state that the module updates, such as weights. Where
// half of them are, as in a training step, the batch is the leading dimension
// that most of the others have; else it is that of the first result.
func batch(g *opgraph.Graph, params []opgraph.OpID, n int64) (found map[opgraph.OpID]int, training bool, err error) {
	t := &g.Shapes
	type shape struct {
		elem opgraph.ElemType
		dims string
	}
	of := func(s opgraph.ShapeID) shape { return shape{t.Elem(s), fmt.Sprint(t.Dims(s))} }
	results := map[shape]int{}
	first := int64(0)
	for _, s := range arrays(t, g.Ops.Shape[g.Comps.Root[g.Entry]], nil) {
		if t.Rank(s) > 0 {
			results[of(s)]++
			if first == 0 {
				first = t.Dims(s)[0]
			}
		}
	}
	state := 0
	var data []opgraph.OpID
	for _, op := range params {
		s := g.Ops.Shape[op]
		switch {
		case t.IsTuple(s) || t.Rank(s) == 0:
		case results[of(s)] > 0:
			results[of(s)]--
			state++
		default:
			data = append(data, op)
		}
	}
	size := first
	training = len(data) > 0 && 2*state >= len(params)
	if training {
		count := map[int64]int{}
		for _, op := range data {
			count[t.Dims(g.Ops.Shape[op])[0]]++
		}
		sizes := slices.SortedFunc(maps.Keys(count), func(a, b int64) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(b, a)) })
		sizes = slices.DeleteFunc(sizes, func(v int64) bool { return v%n != 0 })
		size = 0
		if len(sizes) > 0 {
			size = sizes[0]
		}
	} else {
		data = params
	}
	out := map[opgraph.OpID]int{}
	for _, op := range data {
		if s := g.Ops.Shape[op]; !t.IsTuple(s) && t.Rank(s) > 0 && t.Dims(s)[0] == size && size > 0 && size%n == 0 {
			out[op] = 0
		}
	}
	if len(out) == 0 {
		return nil, false, refuse("no batch that %d divides is found in the module's parameters; name the dimensions to cut with --cut NAME.I (parameters: %s)", n, names(g, params))
	}
	return out, training, nil
}
