package hlo

import (
	"github.com/valyala/fastjson"

	"perfsim/components/opgraph"
)

// finish completes a graph that either reader made: take the facts out of
// backend configurations, check the graph, derive trip counts.
func finish(g *opgraph.Graph) error {
	var parser fastjson.Parser
	for op := range opgraph.OpID(g.NumOps()) {
		switch g.Ops.Kind[op] {
		case opgraph.OpWhile:
			if n, ok := knownTripCount(&parser, g.AttrStr(op, opgraph.AttrBackendConfig)); ok {
				g.SetInt(op, opgraph.AttrTripKnown, n)
			}
		case opgraph.OpCustomCall:
			gemmDims(&parser, g, op)
		}
	}
	if err := g.Check(); err != nil {
		return err
	}
	g.DeriveTripCounts()
	return nil
}

// knownTripCount reads {"known_trip_count":{"n":"25"}} out of the
// configuration of a while. Anything else than a count is no count.
func knownTripCount(parser *fastjson.Parser, config string) (int64, bool) {
	if config == "" {
		return 0, false
	}
	v, err := parser.Parse(config)
	if err != nil {
		return 0, false
	}
	n := v.Get("known_trip_count")
	if n == nil {
		return 0, false
	}
	if n.Type() == fastjson.TypeObject {
		n = n.Get("n")
	}
	return jsonInt(n)
}

// jsonInt reads an integer that JSON holds as a number or, as protobuf's
// 64-bit integers, as a string.
func jsonInt(v *fastjson.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	if v.Type() == fastjson.TypeString {
		s := string(v.GetStringBytes())
		c := scanner{s: s}
		n, ok := c.int()
		return n, ok && c.pos == len(s) && n >= 0
	}
	n, err := v.Int64()
	return n, err == nil && n >= 0
}

// gemmDims takes the dimension numbers of a matrix product that a GPU
// compiler made a custom-call, so that its work is counted.
func gemmDims(parser *fastjson.Parser, g *opgraph.Graph, op opgraph.OpID) {
	switch g.AttrStr(op, opgraph.AttrCustomCallTarget) {
	case "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8":
	default:
		return
	}
	v, err := parser.Parse(g.AttrStr(op, opgraph.AttrBackendConfig))
	if err != nil || len(g.Operands(op)) < 2 {
		return
	}
	if inner := v.Get("gemm_backend_config"); inner != nil {
		v = inner
	}
	v = v.Get("dot_dimension_numbers")
	if v == nil {
		return
	}
	rank := func(i int) int64 { return int64(g.Shapes.Rank(g.OperandShape(g.Operands(op)[i]))) }
	list := func(key string, rank int64) (out []int64, ok bool) {
		for _, e := range v.GetArray(key) {
			n, ok := jsonInt(e)
			if !ok || n >= rank {
				return nil, false
			}
			out = append(out, n)
		}
		return out, true
	}
	var d opgraph.DotDims
	var ok [4]bool
	d.LHSContract, ok[0] = list("lhs_contracting_dimensions", rank(0))
	d.RHSContract, ok[1] = list("rhs_contracting_dimensions", rank(1))
	d.LHSBatch, ok[2] = list("lhs_batch_dimensions", rank(0))
	d.RHSBatch, ok[3] = list("rhs_batch_dimensions", rank(1))
	if ok == [4]bool{true, true, true, true} {
		g.SetDot(op, d)
	}
}
