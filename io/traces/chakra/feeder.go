package chakra

import (
	"context"
	"fmt"

	"perfsim/io/format"
	"perfsim/io/internal/jsonarray"
	"perfsim/io/internal/jsonscan"
)

// each walks over the elements of the array under key, with positions in
// errors.
func (g *graph) each(ctx context.Context, src *format.Source, key string, elem func(v jsonscan.Value, off int64) error, rest func(string, []byte) error) error {
	n := 0
	return jsonarray.New(src).Each(key, func(v jsonscan.Value, off int64) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var err error
		if v.Kind() != jsonscan.Object {
			err = fmt.Errorf("a node is an object, not %s", v.Kind())
		}
		if err == nil {
			if err = elem(v, off); err != nil && g.leaveOut(off, err) {
				return nil
			}
		}
		if err != nil {
			return fmt.Errorf("byte %d: %w", off, err)
		}
		return nil
	}, rest)
}

// readFeeder reads the JSON flavour of Chakra's feeder.
func (g *graph) readFeeder(ctx context.Context, src *format.Source) error {
	var data, ctrl []uint64
	return g.each(ctx, src, "workload_graph", func(v jsonscan.Value, off int64) error {
		n := node{offset: off}
		var err error
		if n.id, err = number(v, "Id", true); err != nil {
			return err
		}
		var kind, micros, commSize, tensor uint64
		for _, f := range []struct {
			key string
			to  *uint64
		}{{"NodeType", &kind}, {"runtime", &micros}, {"comm_size", &commSize}, {"num_ops", &n.work}, {"tensor_size", &tensor}} {
			if *f.to, err = number(v, f.key, false); err != nil {
				return err
			}
		}
		n.kind = nodeType(kind)
		comm, err := commType(v)
		if err != nil {
			return err
		}
		if data, err = idList(v, "data_deps", data[:0]); err != nil {
			return err
		}
		ctrl = ctrl[:0]
		for _, key := range []string{"ctrlDeps", "ctrl_deps"} {
			if ctrl, err = idList(v, key, ctrl); err != nil {
				return err
			}
		}
		isCPU := v.Get("is_cpu_op")
		one, _ := isCPU.Int64()
		cpu := isCPU.Kind() == jsonscan.True || one != 0
		n.sized = n.work > 0 || tensor > 0
		g.size(&n, cpu, tensor)
		return g.add(n, string(v.Get("Name").Bytes()), string(v.Get("op_type").Bytes()), cpu,
			comm, commSize, micros, data, ctrl)
	}, nil)
}

// commType returns the kind of a collective, which is a number or a name.
func commType(v jsonscan.Value) (collective, error) {
	if x := v.Get("comm_type"); x.Kind() == jsonscan.String {
		return collectiveOf(string(x.Bytes())), nil
	} else if x.Kind() <= jsonscan.Null {
		return 0, nil
	}
	n, err := number(v, "comm_type", true)
	return numbered(n), err
}

// number returns a whole number from 0 on, 0 where it is absent or null.
func number(v jsonscan.Value, key string, required bool) (uint64, error) {
	return whole(v.Get(key), key, required)
}

// whole is number for the value itself.
func whole(x jsonscan.Value, key string, required bool) (uint64, error) {
	if x.Kind() <= jsonscan.Null {
		if required {
			return 0, fmt.Errorf("%s is missing", key)
		}
		return 0, nil
	}
	n, err := x.Uint64()
	if err != nil {
		return 0, fmt.Errorf("%s: %.60s is not a whole number from 0 on", key, x.AppendTo(nil))
	}
	return n, nil
}

func idList(v jsonscan.Value, key string, to []uint64) ([]uint64, error) {
	x := v.Get(key)
	if x.Kind() <= jsonscan.Null {
		return to, nil
	}
	if x.Kind() != jsonscan.Array {
		return nil, fmt.Errorf("%s: value doesn't contain array; it contains %s", key, x.Kind())
	}
	for l := x.Elements(); l.Ok(); l = l.Next() {
		e := l.Value()
		id, err := e.Uint64()
		if err != nil {
			return nil, fmt.Errorf("%s: %.60s is not a node's id", key, e.AppendTo(nil))
		}
		to = append(to, id)
	}
	return to, nil
}
