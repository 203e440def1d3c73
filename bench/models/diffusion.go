package models

import (
	"fmt"
	"math"

	"perfsim/components/opgraph"
)

// diffusionUNet: the denoising network of Stable Diffusion 1.4 (Rombach et
// al., arXiv:2112.10752) on 64×64 latents with a prompt of 77 tokens. The
// sinusoids of the time step are an input.
func diffusionUNet(n *net) val {
	widths := []int64{320, 640, 1280, 1280}
	sample := n.feed("sample", n.elem, n.batch, 4, 64, 64)
	prompt := n.feed("encoder_hidden_states", n.elem, n.batch, 77, 768)
	t := n.feed("timestep_sinusoids", n.elem, n.batch, 320)
	t = n.linear("time/linear_2", n.activate(n.linear("time/linear_1", t, 1280, true), silu), 1280, true)
	t = n.activate(t, silu)

	x := n.conv("conv_in", sample, convOf{out: 320, k: 3, pad: 1, bias: true})
	skips := []val{x}
	for s, w := range widths {
		n.in(fmt.Sprintf("down%d", s), func() {
			for i := range 2 {
				x = n.resBlock(fmt.Sprintf("resnet%d", i), x, t, w)
				if s < 3 {
					x = n.spatialTransformer(fmt.Sprintf("attention%d", i), x, prompt)
				}
				skips = append(skips, x)
			}
			if s < 3 {
				x = n.conv("downsample", x, convOf{out: w, k: 3, stride: 2, pad: 1, bias: true})
				skips = append(skips, x)
			}
		})
	}
	n.in("mid", func() {
		x = n.resBlock("resnet0", x, t, 1280)
		x = n.spatialTransformer("attention", x, prompt)
		x = n.resBlock("resnet1", x, t, 1280)
	})
	for s := range 4 {
		w := widths[3-s]
		n.in(fmt.Sprintf("up%d", s), func() {
			for i := range 3 {
				x = n.concat(1, x, skips[len(skips)-1])
				skips = skips[:len(skips)-1]
				x = n.resBlock(fmt.Sprintf("resnet%d", i), x, t, w)
				if s > 0 {
					x = n.spatialTransformer(fmt.Sprintf("attention%d", i), x, prompt)
				}
			}
			if s < 3 {
				x = n.conv("upsample", n.upsample(x, 2), convOf{out: w, k: 3, pad: 1, bias: true})
			}
		})
	}
	return n.conv("conv_out", n.groupNorm("norm_out", x, silu), convOf{out: 4, k: 3, pad: 1, bias: true})
}

// resBlock is a residual block with the embedding of the time step added
// between its convolutions.
func (n *net) resBlock(name string, x, t val, out int64) val {
	n.in(name, func() {
		y := n.conv("conv1", n.groupNorm("norm1", x, silu), convOf{out: out, k: 3, pad: 1, bias: true})
		y = n.plus(y, n.bcast(n.linear("time", t, out, true), n.dims(y), 0, 1))
		y = n.conv("conv2", n.groupNorm("norm2", y, silu), convOf{out: out, k: 3, pad: 1, bias: true})
		if n.dim(x, 1) != out {
			x = n.conv("shortcut", x, convOf{out: out, k: 1, bias: true})
		}
		x = n.plus(x, y)
	})
	return x
}

// spatialTransformer attends over the places of x [N, C, H, W], then to the
// prompt, then has a gated MLP.
func (n *net) spatialTransformer(name string, x, prompt val) val {
	n.in(name, func() {
		d := append([]int64(nil), n.dims(x)...)
		c := d[1]
		y := n.conv("proj_in", n.groupNorm("norm", x, none), convOf{out: c, k: 1, bias: true})
		y = n.transpose(n.reshape(y, d[0], c, d[2]*d[3]), 0, 2, 1)
		attend := func(name string, h, keys val) val {
			var o val
			n.in(name, func() {
				q, k, v := n.linear("to_q", h, c, false), n.linear("to_k", keys, c, false), n.linear("to_v", keys, c, false)
				o = n.linear("to_out", n.attention(q, k, v, 8, 8, 1/math.Sqrt(float64(c/8)), -1), c, true)
			})
			return o
		}
		h := n.layerNorm("norm1", y)
		y = n.plus(y, attend("attn1", h, h))
		y = n.plus(y, attend("attn2", n.layerNorm("norm2", y), prompt))
		g := n.linear("ff/proj", n.layerNorm("norm3", y), 8*c, true)
		g = n.binary(opgraph.OpMultiply, n.slice(g, 2, 0, 4*c), n.activate(n.slice(g, 2, 4*c, 8*c), gelu))
		y = n.plus(y, n.linear("ff/out", g, c, true))
		y = n.reshape(n.transpose(y, 0, 2, 1), d...)
		x = n.plus(x, n.conv("proj_out", y, convOf{out: c, k: 1, bias: true}))
	})
	return x
}
