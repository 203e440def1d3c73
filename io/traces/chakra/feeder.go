package chakra

import (
	"context"
	"fmt"

	"github.com/valyala/fastjson"

	"perfsim/io/format"
	"perfsim/io/internal/jsonarray"
)

// each walks over the elements of the array under key, with positions in
// errors.
func (g *graph) each(ctx context.Context, src *format.Source, key string, elem func(v *fastjson.Value, off int64) error, rest func(string, []byte) error) error {
	var p fastjson.Parser
	n := 0
	return jsonarray.New(src).Each(key, func(text []byte, off int64) error {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := jsonarray.Parse(&p, text, off)
		if err == nil && v.Type() != fastjson.TypeObject {
			err = fmt.Errorf("a node is an object, not %s", v.Type())
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
	return g.each(ctx, src, "workload_graph", func(v *fastjson.Value, off int64) error {
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
		cpu := v.GetBool("is_cpu_op") || v.GetInt("is_cpu_op") != 0
		n.sized = n.work > 0 || tensor > 0
		g.size(&n, cpu, tensor)
		return g.add(n, string(v.GetStringBytes("Name")), string(v.GetStringBytes("op_type")), cpu,
			comm, commSize, micros, data, ctrl)
	}, nil)
}

// commType returns the kind of a collective, which is a number or a name.
func commType(v *fastjson.Value) (collective, error) {
	if x := v.Get("comm_type"); x != nil && x.Type() == fastjson.TypeString {
		return collectiveOf(string(x.GetStringBytes())), nil
	} else if x == nil || x.Type() == fastjson.TypeNull {
		return 0, nil
	}
	n, err := number(v, "comm_type", true)
	return numbered(n), err
}

// number returns a whole number from 0 on, 0 where it is absent or null.
func number(v *fastjson.Value, key string, required bool) (uint64, error) {
	x := v.Get(key)
	if x == nil || x.Type() == fastjson.TypeNull {
		if required {
			return 0, fmt.Errorf("%s is missing", key)
		}
		return 0, nil
	}
	n, err := x.Uint64()
	if err != nil {
		return 0, fmt.Errorf("%s: %.60s is not a whole number from 0 on", key, x.MarshalTo(nil))
	}
	return n, nil
}

func idList(v *fastjson.Value, key string, to []uint64) ([]uint64, error) {
	x := v.Get(key)
	if x == nil || x.Type() == fastjson.TypeNull {
		return to, nil
	}
	list, err := x.Array()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	for _, e := range list {
		id, err := e.Uint64()
		if err != nil {
			return nil, fmt.Errorf("%s: %.60s is not a node's id", key, e.MarshalTo(nil))
		}
		to = append(to, id)
	}
	return to, nil
}
