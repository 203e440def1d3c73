package chakra

import (
	"testing"

	"perfsim/components"
)

func tensorOf(id, storage, item uint64, dims ...int64) array {
	n := uint64(1)
	for _, d := range dims {
		n *= uint64(d)
	}
	return array{tensor: tensor{id, storage, n * item}, dims: dims, item: item}
}

// Operations and bytes by hand.
func TestHostWork(t *testing.T) {
	x := func(id uint64, dims ...int64) array { return tensorOf(id, id, 2, dims...) }
	for _, c := range []struct {
		name        string
		in, out     []array
		work, bytes uint64
		none        bool
	}{
		{"aten::mm", []array{x(1, 64, 32), x(2, 32, 16)}, []array{x(3, 64, 16)}, 2 * 64 * 32 * 16, 2 * (64*32 + 32*16 + 64*16), false},
		{"aten::addmm", []array{x(9, 16), x(1, 64, 32), x(2, 32, 16)}, []array{x(3, 64, 16)}, 2 * 64 * 32 * 16, 2 * (16 + 64*32 + 32*16 + 64*16), false},
		{"aten::bmm", []array{x(1, 4, 64, 32), x(2, 4, 32, 16)}, []array{x(3, 4, 64, 16)}, 2 * 4 * 64 * 32 * 16, 2 * 4 * (64*32 + 32*16 + 64*16), false},
		{"aten::linear", []array{x(1, 4, 64, 32), x(2, 16, 32), x(9, 16)}, []array{x(3, 4, 64, 16)}, 2 * 4 * 64 * 32 * 16, 2 * (4*64*32 + 16*32 + 16 + 4*64*16), false},
		// 8 images of 3 channels, 16 filters of 3x3: 27 products a result.
		{"aten::cudnn_convolution", []array{x(1, 8, 3, 32, 32), x(2, 16, 3, 3, 3)}, []array{x(3, 8, 16, 30, 30)}, 2 * 27 * 8 * 16 * 30 * 30, 2 * (8*3*32*32 + 16*27 + 8*16*30*30), false},
		{"aten::convolution_backward", []array{x(4, 8, 16, 30, 30), x(1, 8, 3, 32, 32), x(2, 16, 3, 3, 3)}, []array{x(5, 8, 3, 32, 32), x(6, 16, 3, 3, 3)},
			4 * 27 * 8 * 16 * 30 * 30, 2 * (8*16*30*30 + 2*8*3*32*32 + 2*16*27), false},
		{"aten::_scaled_dot_product_flash_attention", []array{x(1, 2, 8, 128, 64), x(2, 2, 8, 256, 64), x(3, 2, 8, 256, 64)}, []array{x(4, 2, 8, 128, 64)},
			4 * 2 * 8 * 128 * 256 * 64, 2 * 2 * 8 * 64 * (2*128 + 2*256), false},
		{"aten::add_", []array{x(1, 64, 32), x(2, 64, 32)}, []array{x(1, 64, 32)}, 0, 2 * 3 * 64 * 32, false},
		{"aten::embedding", []array{x(1, 50000, 64), tensorOf(2, 2, 8, 10)}, []array{x(3, 10, 64)}, 0, 2*2*10*64 + 80, false},
		{"aten::transpose", []array{x(1, 64, 32)}, []array{tensorOf(3, 1, 2, 32, 64)}, 0, 0, true},
		{"aten::empty", nil, []array{x(3, 32, 64)}, 0, 0, true},
		{"[pytorch|profiler|x]", nil, nil, 0, 0, true},
		{"aten::item", nil, nil, 0, 0, false},
	} {
		var n node
		hostWork(&n, c.name, c.in, c.out)
		if n.work != c.work || n.bytes != c.bytes || n.noWork != c.none || n.sized != (c.work+c.bytes > 0) {
			t.Errorf("%s: %d operations, %d bytes, none %v; want %d, %d, %v", c.name, n.work, n.bytes, n.noWork, c.work, c.bytes, c.none)
		}
	}
	var n node
	hostWork(&n, "aten::mm", []array{tensorOf(1, 1, 4, 8, 8), tensorOf(2, 2, 4, 8, 8)}, []array{tensorOf(3, 3, 4, 8, 8)})
	if n.dtype != components.Float32 {
		t.Errorf("operands of 4 bytes are %v", n.dtype)
	}
}
