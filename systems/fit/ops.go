package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perfsim/io/tenstorrent/profilelog"
)

// A roofline of each class of operators, fitted to a table of operators that a
// device ran (ops_perf_results*.csv): a launch overhead, bytes and
// multiply-adds per ns of a core. It predicts shapes that are not in the table.

// OpRoofline is the fit of one class: its operator, the layout and memory of
// its first input. The time of an operator is
//
//	Overhead + max(bytes / (cores × Bytes), multiply-adds / (cores × MACs))
type OpRoofline struct {
	Class    string  `json:"class"` // class of operators
	Rows     int     `json:"rows"`
	Shapes   int     `json:"shapes"`            // distinct; each counts once, with the median of its durations
	Overhead float64 `json:"overhead_ns"`       // fixed time of an operator
	Bytes    float64 `json:"bytes_per_ns_core"` // 0 where they do not matter
	MACs     float64 `json:"macs_per_ns_core"`  // 0 where they do not matter
	// HeldOut is the median error of predicting each shape from the others,
	// Ideal that of the vendor's model (PM IDEAL) where the table has it; NaN
	// becomes null.
	HeldOut *float64 `json:"held_out_error_percent"`
	Worst   *float64 `json:"held_out_worst_percent"` // largest error on shapes that the fit has not seen
	Ideal   *float64 `json:"vendor_ideal_error_percent"`
}

// shape is the work of one operator and its time.
type opShape struct {
	bytes, macs float64 // of one core
	ns, ideal   float64
}

// FromOps fits the operators of a table, the class with most rows first.
func FromOps(ctx context.Context, t *profilelog.OpsTable) ([]OpRoofline, error) {
	type group struct {
		rows   int
		shapes map[string][]opShape
	}
	groups := map[string]*group{}
	for i := range t.Ops {
		o := &t.Ops[i]
		if !(o.Kernel > 0) || o.Cores < 1 {
			continue
		}
		class := strings.Join(slices.DeleteFunc([]string{o.Code, t.Cell(i, "INPUT_0_LAYOUT"), memoryKind(t.Cell(i, "INPUT_0_MEMORY"))}, func(s string) bool { return s == "" }), " ")
		s := opShape{ns: o.Kernel}
		s.ideal, _ = strconv.ParseFloat(t.Cell(i, "PM IDEAL [ns]"), 64)
		key, in0, out0 := fmt.Sprint(o.Cores), float64(0), float64(0)
		for _, side := range []string{"INPUT", "OUTPUT"} {
			for k := range 8 {
				prefix := fmt.Sprintf("%s_%d_", side, k)
				dims, n := tensorOf(t, i, prefix)
				if n == 0 {
					break
				}
				d := t.Cell(i, prefix+"DATATYPE")
				key += " " + fmt.Sprint(dims, d, t.Cell(i, prefix+"MEMORY"))
				s.bytes += n * elementBytes(d)
				switch {
				case side == "INPUT" && k == 0:
					in0 = n
				case side == "OUTPUT" && k == 0:
					out0 = dims[3]
				}
			}
		}
		if s.bytes == 0 {
			continue
		}
		if strings.Contains(strings.ToLower(o.Code), "matmul") { // rows × inner × columns
			s.macs = in0 * out0
		}
		s.bytes, s.macs = s.bytes/float64(o.Cores), s.macs/float64(o.Cores)
		g := groups[class]
		if g == nil {
			g = &group{shapes: map[string][]opShape{}}
			groups[class] = g
		}
		g.rows++
		g.shapes[key] = append(g.shapes[key], s)
	}
	if len(groups) == 0 {
		return nil, errors.New("the table has no operator with a kernel duration, cores and shapes")
	}
	var out []OpRoofline
	for class, g := range groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var list []opShape
		for _, same := range g.shapes {
			slices.SortFunc(same, func(a, b opShape) int { return cmp.Compare(a.ns, b.ns) })
			list = append(list, same[len(same)/2])
		}
		slices.SortFunc(list, func(a, b opShape) int {
			return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.macs, b.macs), cmp.Compare(a.ns, b.ns), cmp.Compare(a.ideal, b.ideal))
		})
		r := rooflineOf(list)
		r.Class, r.Rows, r.Shapes = class, g.rows, len(list)
		r.judge(list)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b OpRoofline) int { return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Class, b.Class)) })
	return out, nil
}

// memoryKind is DRAM or L1 and how a tensor lies there: "DEV_1_DRAM_INTERLEAVED"
// is "DRAM_INTERLEAVED".
func memoryKind(s string) string {
	if rest, ok := strings.CutPrefix(s, "DEV_"); ok {
		if _, kind, ok := strings.Cut(rest, "_"); ok {
			return kind
		}
	}
	return s
}

// tensorOf returns the padded sizes W, Z, Y and X of a tensor and their product,
// 0 where there is none. Cells are "32[19]" (padded and logical) or "32".
func tensorOf(t *profilelog.OpsTable, i int, prefix string) (dims [4]float64, n float64) {
	n = 1
	for k, axis := range []string{"W", "Z", "Y", "X"} {
		text := cmp.Or(t.Cell(i, prefix+axis+"_PAD[LOGICAL]"), t.Cell(i, prefix+axis))
		text, _, _ = strings.Cut(text, "[")
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v > 0) || v > 1<<40 {
			return dims, 0
		}
		dims[k] = v
		n *= v
	}
	return dims, n
}

// elementBytes is the size of an element by the vendor's name of its type;
// block formats have an exponent for sixteen elements.
func elementBytes(d string) float64 {
	switch d {
	case "BFLOAT8_B":
		return 17.0 / 16
	case "BFLOAT4_B":
		return 9.0 / 16
	case "FLOAT32", "UINT32", "INT32":
		return 4
	case "UINT8":
		return 1
	}
	return 2
}

// time is the roofline's prediction for one shape.
func (r *OpRoofline) time(s *opShape) float64 {
	work := 0.0
	if r.Bytes > 0 {
		work = s.bytes / r.Bytes
	}
	if r.MACs > 0 {
		work = max(work, s.macs/r.MACs)
	}
	return r.Overhead + work
}

// rooflineOf minimises the sum of |log(predicted / measured)|, which weighs an
// error by its ratio, by shrinking steps of each parameter in turn.
func rooflineOf(list []opShape) OpRoofline {
	r := OpRoofline{Overhead: math.Inf(1)}
	var perByte, perMAC []float64
	for _, s := range list {
		r.Overhead = min(r.Overhead, s.ns/2)
		perByte = append(perByte, s.bytes/s.ns)
		if s.macs > 0 {
			perMAC = append(perMAC, s.macs/s.ns)
		}
	}
	r.Bytes = median(slices.Clone(perByte))
	params := []*float64{&r.Overhead, &r.Bytes}
	if len(perMAC) > 0 {
		r.MACs = slices.Max(perMAC)
		params = append(params, &r.MACs)
	}
	loss := func() float64 {
		sum := 0.0
		for k := range list {
			sum += math.Abs(math.Log(r.time(&list[k]) / list[k].ns))
		}
		return sum
	}
	best := loss()
	for step := 2.0; step > 1.002; step = math.Sqrt(step) {
		for again := true; again; {
			again = false
			for _, p := range params {
				for _, f := range []float64{step, 1 / step} {
					was := *p
					*p *= f
					if l := loss(); l < best-1e-9 {
						best, again = l, true
					} else {
						*p = was
					}
				}
			}
		}
	}
	// A rate that adds nothing to any shape is not known.
	var byBytes, byMACs float64
	for k := range list {
		byBytes = max(byBytes, list[k].bytes/r.Bytes/list[k].ns)
		if r.MACs > 0 {
			byMACs = max(byMACs, list[k].macs/r.MACs/list[k].ns)
		}
	}
	if byBytes < 0.001 {
		r.Bytes = 0
	}
	if byMACs < 0.001 {
		r.MACs = 0
	}
	return r
}

// judge predicts each shape from the others; it needs three.
func (r *OpRoofline) judge(list []opShape) {
	var held, ideal []float64
	for k := range list {
		s := &list[k]
		if s.ideal > 1 {
			ideal = append(ideal, 100*math.Abs(s.ideal/s.ns-1))
		}
		if len(list) >= 3 {
			x := rooflineOf(slices.Delete(slices.Clone(list), k, k+1))
			held = append(held, 100*math.Abs(x.time(s)/s.ns-1))
		}
	}
	if len(held) > 0 {
		m, w := median(slices.Clone(held)), slices.Max(held)
		r.HeldOut, r.Worst = &m, &w
	}
	if len(ideal) > 0 {
		m := median(ideal)
		r.Ideal = &m
	}
}
