package chakra

import (
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/io/internal/jsonscan"
)

// array is a tensor of an operator with its dimensions.
type array struct {
	tensor
	dims []int64
	item uint64 // bytes of an element
}

// arrays appends the tensors in a value, with the dimensions that the list of
// shapes has in the same place.
func arrays(to []array, v, shape jsonscan.Value, depth int, l *hostLists) []array {
	if v.Kind() != jsonscan.Array || depth > 4 {
		return to
	}
	if f, is := tensorFields(v); is {
		if t, ok := readTensor(&f); ok {
			lo := len(l.dims)
			for d := shape.Elements(); d.Ok(); d = d.Next() {
				n, _ := d.Value().Int64()
				l.dims = append(l.dims, max(n, 0))
			}
			return append(to, array{tensor: t, item: uint64OrZero(f[4]), dims: l.dims[lo:len(l.dims):len(l.dims)]})
		}
	}
	s := shape.Elements()
	for e := v.Elements(); e.Ok(); e = e.Next() {
		var sv jsonscan.Value
		if s.Ok() {
			sv, s = s.Value(), s.Next()
		}
		to = arrays(to, e.Value(), sv, depth+1, l)
	}
	return to
}

// hostWork gives a node of PyTorch's operator name the arithmetic operations
// and the bytes that its tensors say, for the roofline. Products, convolutions
// and attention count two operations a multiplication; all else is limited by
// its bytes: what it reads and what it writes. Views and allocations do none.
func hostWork(n *node, name string, in, out []array) {
	if len(in)+len(out) == 0 {
		n.noWork = n.noWork || strings.HasPrefix(name, "[") || strings.HasPrefix(name, "##")
		return
	}
	op, aten := strings.CutPrefix(name, "aten::")
	op = strings.TrimSuffix(op, "_")
	if aten && (strings.HasPrefix(op, "empty") || strings.HasPrefix(op, "new_empty") || op == "resize" || op == "set") || isView(in, out) {
		n.noWork = true
		return
	}
	n.work = operations(op, in, out)
	n.bytes = traffic(op, in, out)
	n.sized = n.work > 0 || n.bytes > 0
	n.dtype = components.NoDType
	for _, a := range slices.Concat(in, out) {
		if len(a.dims) >= 2 {
			if a.item >= 4 {
				n.dtype = components.Float32
			}
			break
		}
	}
}

// isView reports whether all outputs are new tensors on the storage of inputs.
func isView(in, out []array) bool {
	ids, storages := make(map[uint64]bool, len(in)), make(map[uint64]bool, len(in))
	for _, a := range in {
		ids[a.id], storages[a.storage] = true, true
	}
	for _, o := range out {
		if !storages[o.storage] || ids[o.id] {
			return false
		}
	}
	return len(out) > 0
}

// traffic is the number of bytes that an operator reads and writes, each tensor
// once; of a table that is looked up only what is taken.
func traffic(op string, in, out []array) (bytes uint64) {
	add := func(n uint64) { bytes = min(bytes+min(n, maxSize), maxSize) }
	for _, o := range out {
		add(o.bytes)
	}
	switch op {
	case "embedding", "index_select", "gather", "index", "take":
		for _, o := range out {
			add(o.bytes)
		}
		for _, a := range in[min(1, len(in)):] {
			add(a.bytes)
		}
		return bytes
	}
	seen := make(map[uint64]bool, len(in))
	for _, a := range in {
		if !seen[a.id] {
			seen[a.id] = true
			add(a.bytes)
		}
	}
	return bytes
}

// operations counts those of products; 0 for operators without.
func operations(op string, in, out []array) uint64 {
	var m []array // matrices and more
	for _, a := range in {
		if len(a.dims) >= 1 {
			m = append(m, a)
		}
	}
	times := func(k int64, dims ...[]int64) uint64 {
		for _, d := range dims {
			for _, n := range d {
				k = opgraph.MulSize(k, n)
			}
		}
		return uint64(max(k, 0))
	}
	last := func(a array) int64 { return a.dims[len(a.dims)-1] }
	forward := strings.TrimSuffix(op, "_backward")
	switch forward {
	case "mm", "bmm", "_int_mm", "mv", "dot", "vdot", "matmul", "linear", "addmm", "baddbmm", "addbmm", "addmv", "_addmm_activation":
		first := 0
		if strings.Contains(op, "add") { // a bias or addend comes first
			first = 1
		}
		if len(m) < first+2 {
			return 0
		}
		a, b := m[first], m[first+1]
		switch {
		case len(b.dims) == 1:
			return times(2, a.dims)
		case op == "linear": // the weight is [outputs, inputs]
			return times(2*b.dims[0], a.dims)
		case len(b.dims) > len(a.dims): // the batch is the second's
			return times(2*last(b)*a.dims[max(len(a.dims)-2, 0)], b.dims[:len(b.dims)-1])
		}
		return times(2*last(b), a.dims)
	case "convolution", "_convolution", "cudnn_convolution", "miopen_convolution", "mkldnn_convolution", "convolution_overrideable", "mps_convolution",
		"_slow_conv2d_forward", "_slow_conv2d", "thnn_conv2d", "slow_conv3d_forward", "_conv_depthwise2d", "conv_depthwise3d", "miopen_depthwise_convolution",
		"conv1d", "conv2d", "conv3d", "cudnn_convolution_add_relu", "cudnn_convolution_relu", "cudnn_convolution_transpose", "miopen_convolution_transpose":
		if forward != op { // of a backward pass: gradient of the output, input, weight
			if len(m) < 3 || len(m[0].dims) < 3 || len(m[2].dims) != len(m[0].dims) {
				return 0
			}
			return times(4, convolved(m[1], m[2], m[0])...)
		}
		if len(m) < 2 || len(out) == 0 || len(m[1].dims) != len(m[0].dims) || len(out[0].dims) != len(m[0].dims) || len(m[0].dims) < 3 {
			return 0
		}
		return times(2, convolved(m[0], m[1], out[0])...)
	}
	if strings.Contains(op, "attention") {
		k := int64(4)
		if forward != op || strings.HasSuffix(op, "backward") {
			k = 10
			m = m[min(1, len(m)):] // the gradient of the output comes first
		}
		if len(m) < 3 || len(m[0].dims) != 4 || len(m[1].dims) != 4 {
			return 0
		}
		keys := m[1].dims[2] // [batch, heads, sequence, size]
		if strings.HasPrefix(op, "_flash_attention") || strings.HasPrefix(op, "_efficient_attention") {
			keys = m[1].dims[1] // [batch, sequence, heads, size]
		}
		return times(k*keys, m[0].dims)
	}
	return 0
}

// convolved lists factors whose product is the multiplications of a
// convolution: every result takes the weights of one output channel; of a
// transposed one, whose weight is [inputs, outputs, …], every input those of one
// input channel.
func convolved(in, weight, out array) [][]int64 {
	if weight.dims[0] == in.dims[1] && weight.dims[0] != out.dims[1] {
		return [][]int64{in.dims, weight.dims[1:]}
	}
	return [][]int64{out.dims, weight.dims[1:]}
}
