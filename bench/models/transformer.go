package models

import (
	"fmt"
	"math"

	"perfsim/components/opgraph"
)

// layerName names a repeated layer.
func layerName(i int) string { return fmt.Sprintf("layer%d", i) }

// selfAttention projects x to queries, keys and values with biases, attends
// and projects back.
func (n *net) selfAttention(name string, x val, heads int64, mask val) val {
	n.in(name, func() {
		d := n.dim(x, -1)
		q, k, v := n.linear("query", x, d, true), n.linear("key", x, d, true), n.linear("value", x, d, true)
		x = n.linear("output", n.attention(q, k, v, heads, heads, 1/math.Sqrt(float64(d/heads)), mask), d, true)
	})
	return x
}

// mlp is two linear layers with a GELU between.
func (n *net) mlp(x val, hidden int64) val {
	n.in("mlp", func() {
		d := n.dim(x, -1)
		x = n.linear("out", n.activate(n.linear("in", x, hidden, true), gelu), d, true)
	})
	return x
}

// first returns the first position of x [N, S, D] as [N, D].
func (n *net) first(x val) val {
	return n.reshape(n.slice(x, 1, 0, 1), n.dim(x, 0), n.dim(x, 2))
}

// positions adds the first rows of a learned table [rows, D] to x [N, S, D].
func (n *net) positions(name string, x val, rows int64) val {
	t := n.weight(name, rows, n.dim(x, 2))
	if rows > n.dim(x, 1) {
		t = n.slice(t, 0, 0, n.dim(x, 1))
	}
	return n.plus(x, n.bcast(t, n.dims(x), 1, 2))
}

// bert: Devlin et al., arXiv:1810.04805, the encoder with its pooler.
func bert(n *net, layers int, width, seq int64) []val {
	ids := n.feed("input_ids", opgraph.ElemS32, n.batch, seq)
	mask := n.feed("attention_mask", n.elem, n.batch, seq)
	kinds := n.feed("token_type_ids", opgraph.ElemS32, n.batch, seq)
	var x val
	n.in("embeddings", func() {
		x = n.embed(n.weight("word", 30522, width), ids)
		x = n.plus(x, n.embed(n.weight("type", 2, width), kinds))
		x = n.layerNorm("norm", n.positions("position", x, 512))
	})
	bias := n.scalar(opgraph.OpMultiply, n.scalar(opgraph.OpAdd, mask, -1), 10000)
	for i := range layers {
		n.in(layerName(i), func() {
			x = n.layerNorm("norm1", n.plus(x, n.selfAttention("attention", x, width/64, bias)))
			x = n.layerNorm("norm2", n.plus(x, n.mlp(x, 4*width)))
		})
	}
	return []val{x, n.activate(n.linear("pooler", n.first(x), width, true), tanh)}
}

// viT: Dosovitskiy et al., arXiv:2010.11929, 16×16 patches of 224×224 images.
func viT(n *net, layers int, width, heads int64) val {
	x := n.conv("patches", n.image(224), convOf{out: width, k: 16, stride: 16, bias: true})
	x = n.transpose(n.reshape(x, n.batch, width, 196), 0, 2, 1)
	x = n.concat(1, n.bcast(n.weight("cls", 1, width), []int64{n.batch, 1, width}, 1, 2), x)
	x = n.positions("position", x, 197)
	for i := range layers {
		n.in(layerName(i), func() {
			x = n.plus(x, n.selfAttention("attention", n.layerNorm("norm1", x), heads, -1))
			x = n.plus(x, n.mlp(n.layerNorm("norm2", x), 4*width))
		})
	}
	return n.linear("classifier", n.first(n.layerNorm("norm", x)), 1000, true)
}

// t5Size is a configuration of T5.
type t5Size struct {
	width, ff, heads int64
	layers           int
	gated            bool // Flan-T5: gated GELU, an output layer of its own
}

const (
	t5Vocab = 32128
	t5Head  = 64
	tile    = 32 // positions the cached decoders of the reference step by
)

// t5Attention is attention without biases and scaling. keys is what keys and
// values are projected from; with cached they are given.
func (n *net) t5Attention(name string, x, keys val, s t5Size, bias val, cached []val) (out, k, v val) {
	n.in(name, func() {
		inner := s.heads * t5Head
		q := n.linear("q", x, inner, false)
		if keys >= 0 {
			k, v = n.linear("k", keys, inner, false), n.linear("v", keys, inner, false)
		}
		fullK, fullV := k, v
		switch {
		case len(cached) == 2 && keys >= 0:
			fullK, fullV = n.concat(1, cached[0], k), n.concat(1, cached[1], v)
		case len(cached) == 2:
			fullK, fullV = cached[0], cached[1]
		}
		out = n.linear("o", n.attention(q, fullK, fullV, s.heads, s.heads, 0, bias), s.width, false)
	})
	return out, k, v
}

func (n *net) t5FF(x val, s t5Size) val {
	n.in("ff", func() {
		if s.gated {
			x = n.times(n.activate(n.linear("wi_0", x, s.ff, false), geluTanh), n.linear("wi_1", x, s.ff, false))
		} else {
			x = n.activate(n.linear("wi", x, s.ff, false), relu)
		}
		x = n.linear("wo", x, s.width, false)
	})
	return x
}

// relative returns the bias of the relative positions [H, Sq, Sk], looked up
// in a table of 32 buckets; which bucket a pair falls in is an input.
func (n *net) relative(side string, s t5Size, q, k int64) val {
	buckets := n.feed(side+"_buckets", opgraph.ElemS32, q, k)
	table := n.tied(side+"/relative_attention_bias", 32, s.heads)
	return n.transpose(n.embed(table, buckets), 2, 0, 1)
}

// t5Encoder: Raffel et al., arXiv:1910.10683.
func t5Encoder(n *net, s t5Size, seq int64) val {
	ids := n.feed("input_ids", opgraph.ElemS32, n.batch, seq)
	x := n.embed(n.tied("shared", t5Vocab, s.width), ids)
	n.in("encoder", func() {
		bias := n.relative("encoder", s, seq, seq)
		for i := range s.layers {
			n.in(layerName(i), func() {
				h := n.rmsNorm("norm1", x)
				a, _, _ := n.t5Attention("self", h, h, s, bias, nil)
				x = n.plus(x, a)
				x = n.plus(x, n.t5FF(n.rmsNorm("norm2", x), s))
			})
		}
		x = n.rmsNorm("norm", x)
	})
	return x
}

// t5Decoder runs the decoder over q positions. past is the number of cached
// positions before them; crossCached takes the keys and values of the
// encoder's result from a cache. The outputs are the logits and, with a
// cache, the new keys and values.
func t5Decoder(n *net, s t5Size, q, past, source int64, crossCached bool) []val {
	ids := n.feed("decoder_input_ids", opgraph.ElemS32, n.batch, q)
	var enc val = -1
	if !crossCached {
		enc = n.feed("encoder_last_hidden_state", n.elem, n.batch, source, s.width)
	}
	shared := n.tied("shared", t5Vocab, s.width)
	x := n.embed(shared, ids)
	var outs []val
	n.in("decoder", func() {
		bias := n.relative("decoder", s, q, past+q)
		for i := range s.layers {
			n.in(layerName(i), func() {
				var cache, cross []val
				if past > 0 {
					cache = n.cachePair("self", past, s.heads*t5Head)
				}
				h := n.rmsNorm("norm1", x)
				a, k, v := n.t5Attention("self", h, h, s, bias, cache)
				if past > 0 {
					outs = append(outs, k, v)
				}
				x = n.plus(x, a)
				h = n.rmsNorm("norm2", x)
				if crossCached {
					cross = n.cachePair("cross", source, s.heads*t5Head)
				}
				a, k, v = n.t5Attention("cross", h, enc, s, -1, cross)
				if past > 0 && !crossCached {
					outs = append(outs, k, v)
				}
				x = n.plus(x, a)
				x = n.plus(x, n.t5FF(n.rmsNorm("norm3", x), s))
			})
		}
		x = n.rmsNorm("norm", x)
	})
	head := shared
	if s.gated {
		head = n.tied("lm_head/weight", t5Vocab, s.width)
	} else {
		x = n.scalar(opgraph.OpMultiply, x, 1/math.Sqrt(float64(s.width)))
	}
	return append([]val{n.matmulT(x, head)}, outs...)
}

// cachePair feeds cached keys and values [N, past, width].
func (n *net) cachePair(name string, past, width int64) []val {
	p := n.path("past_" + name)
	return []val{n.feed(p+"_k", n.elem, n.batch, past, width), n.feed(p+"_v", n.elem, n.batch, past, width)}
}

// whisperSize is a configuration of Whisper.
type whisperSize struct {
	width, heads int64
	layers       int
}

const (
	whisperVocab  = 51865
	whisperFrames = 3000
	whisperSource = 1500
	whisperMax    = 448
)

// whisperAttention has biases on all projections but the keys'.
func (n *net) whisperAttention(name string, x, keys val, s whisperSize, bias val, cached []val) (out, k, v val) {
	n.in(name, func() {
		q := n.linear("q_proj", x, s.width, true)
		if keys >= 0 {
			k, v = n.linear("k_proj", keys, s.width, false), n.linear("v_proj", keys, s.width, true)
		}
		fullK, fullV := k, v
		switch {
		case len(cached) == 2 && keys >= 0:
			fullK, fullV = n.concat(1, cached[0], k), n.concat(1, cached[1], v)
		case len(cached) == 2:
			fullK, fullV = cached[0], cached[1]
		}
		out = n.linear("out_proj", n.attention(q, fullK, fullV, s.heads, s.heads, 1/math.Sqrt(float64(s.width/s.heads)), bias), s.width, true)
	})
	return out, k, v
}

// whisperEncoder: Radford et al., arXiv:2212.04356, table 1.
func whisperEncoder(n *net, s whisperSize) val {
	x := n.feed("input_features", n.elem, n.batch, 80, whisperFrames)
	n.in("encoder", func() {
		x = n.conv1d("conv1", x, s.width, 3, 1, 1, gelu)
		x = n.conv1d("conv2", x, s.width, 3, 2, 1, gelu)
		x = n.positions("embed_positions", n.transpose(x, 0, 2, 1), whisperSource)
		for i := range s.layers {
			n.in(layerName(i), func() {
				h := n.layerNorm("norm1", x)
				a, _, _ := n.whisperAttention("self", h, h, s, -1, nil)
				x = n.plus(x, a)
				x = n.plus(x, n.mlp(n.layerNorm("norm2", x), 4*s.width))
			})
		}
		x = n.layerNorm("norm", x)
	})
	return x
}

// whisperDecoder is t5Decoder for Whisper; the mask of the self-attention is
// an input [N, past+q].
func whisperDecoder(n *net, s whisperSize, q, past int64, crossCached bool) []val {
	ids := n.feed("decoder_input_ids", opgraph.ElemS32, n.batch, q)
	mask := n.feed("decoder_attention_bias", n.elem, n.batch, past+q)
	var enc val = -1
	if !crossCached {
		enc = n.feed("encoder_last_hidden_state", n.elem, n.batch, whisperSource, s.width)
	}
	tokens := n.tied("decoder/embed_tokens", whisperVocab, s.width)
	x := n.embed(tokens, ids)
	var outs []val
	n.in("decoder", func() {
		x = n.positions("embed_positions", x, whisperMax)
		for i := range s.layers {
			n.in(layerName(i), func() {
				var cache, cross []val
				if past > 0 {
					cache = n.cachePair("self", past, s.width)
				}
				h := n.layerNorm("norm1", x)
				a, k, v := n.whisperAttention("self", h, h, s, mask, cache)
				if past > 0 {
					outs = append(outs, k, v)
				}
				x = n.plus(x, a)
				h = n.layerNorm("norm2", x)
				if crossCached {
					cross = n.cachePair("cross", whisperSource, s.width)
				}
				a, k, v = n.whisperAttention("cross", h, enc, s, -1, cross)
				if past > 0 && !crossCached {
					outs = append(outs, k, v)
				}
				x = n.plus(x, a)
				x = n.plus(x, n.mlp(n.layerNorm("norm3", x), 4*s.width))
			})
		}
		x = n.layerNorm("norm", x)
	})
	return append([]val{n.matmulT(x, tokens)}, outs...)
}

// rotate applies rotary positions to x [N, S, H·64]: x·cos + rot(x)·sin, with
// cos and sin [S, 64] as inputs.
func (n *net) rotate(x, cos, sin val) val {
	d := append([]int64(nil), n.dims(x)...)
	y := n.reshape(x, d[0], d[1], d[2]/64, 64)
	half := n.concat(3, n.unary(opgraph.OpNegate, n.slice(y, 3, 32, 64)), n.slice(y, 3, 0, 32))
	a := n.times(y, n.bcast(cos, n.dims(y), 1, 3))
	b := n.times(half, n.bcast(sin, n.dims(y), 1, 3))
	return n.reshape(n.plus(a, b), d...)
}

// falcon7b: Almazrouei et al., arXiv:2311.16867: one token of every row of
// the batch with a cache of past positions; multi-query attention and MLP in
// parallel, no biases, tied output layer.
func falcon7b(n *net, past int64) []val {
	const width, heads, head, vocab = 4544, 71, 64, 65024
	ids := n.feed("input_ids", opgraph.ElemS32, n.batch, 1)
	mask := n.feed("attention_bias", n.elem, n.batch, past+1)
	cos, sin := n.feed("cos", n.elem, 1, head), n.feed("sin", n.elem, 1, head)
	table := n.weight("word_embeddings", vocab, width)
	x := n.embed(table, ids)
	var outs []val
	for i := range 32 {
		n.in(layerName(i), func() {
			h := n.layerNorm("input_layernorm", x)
			var a val
			n.in("attention", func() {
				qkv := n.linear("query_key_value", h, (heads+2)*head, false)
				q := n.rotate(n.slice(qkv, 2, 0, heads*head), cos, sin)
				k := n.rotate(n.slice(qkv, 2, heads*head, (heads+1)*head), cos, sin)
				v := n.slice(qkv, 2, (heads+1)*head, (heads+2)*head)
				outs = append(outs, k, v)
				cache := n.cachePair("self", past, head)
				a = n.attention(q, n.concat(1, cache[0], k), n.concat(1, cache[1], v), heads, 1, 1.0/8, mask)
				a = n.linear("dense", a, width, false)
			})
			m := n.linear("dense_4h_to_h", n.activate(n.linear("dense_h_to_4h", h, 4*width, false), gelu), width, false)
			x = n.plus(x, n.plus(a, m))
		})
	}
	return append([]val{n.matmulT(n.layerNorm("ln_f", x), table)}, outs...)
}
