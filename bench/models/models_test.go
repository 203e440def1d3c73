package models

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"perfsim/components/opgraph"
	"perfsim/io/xla/hlo"
)

func each(t *testing.T, f func(t *testing.T, name, config string)) {
	for _, fam := range Families() {
		for _, c := range fam.Configs {
			t.Run(fam.Name+"/"+c, func(t *testing.T) { f(t, fam.Name, c) })
		}
	}
}

func build(t *testing.T, name, config string, opt Options) *Model {
	t.Helper()
	m, err := Build(name, config, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func norms(m *Model) int64 {
	var n int64
	for _, p := range m.Phases {
		for path, op := range p.Weights {
			if strings.Contains(path, "/bn/") {
				n += p.Graph.Shapes.Count(p.Graph.Ops.Shape[op])
			}
		}
	}
	return n
}

// attentionMACs counts the products of two activations.
func attentionMACs(g *opgraph.Graph) int64 {
	var n int64
	for op := range opgraph.OpID(g.NumOps()) {
		if g.Ops.Kind[op] == opgraph.OpDot && len(g.Dot(op).LHSBatch) > 0 {
			n += g.FLOPs(op) / 2
		}
	}
	return n
}

func TestPublished(t *testing.T) {
	each(t, func(t *testing.T, name, config string) {
		check := func(what string, got int64, f figure) {
			if d := math.Abs(float64(got)-f.Value) / f.Value; d > f.Within {
				t.Errorf("%s: %d, published %.0f (%s): off by %.2f %%, more than %.2f %%", what, got, f.Value, f.Source, 100*d, 100*f.Within)
			}
		}
		f, ok := published(publishedParams(), name, config)
		if !ok {
			t.Fatal("no published number of parameters")
		}
		m := build(t, name, config, Options{Batch: 1})
		got := m.Params()
		if f.NoNorm {
			got -= norms(m)
		}
		check("parameters", got, f)
		if f, ok = published(publishedMACs(), name, config); ok {
			m = build(t, name, config, Options{Batch: 1, Size: f.Size})
			got := m.MACs()
			if f.NoAttention {
				got -= attentionMACs(m.Phases[0].Graph) * m.Phases[0].Runs
			}
			check("MACs", got, f)
		}
	})
}

// Where no count of multiply-accumulates is published, it follows from the
// published sizes in closed form: written out here apart from the builders.
func TestMACsInClosedForm(t *testing.T) {
	// One layer over s positions of width d: projections of q, k, v, o to an
	// inner width e, attention to k keys, an MLP with f hidden and n matrices.
	layer := func(s, d, e, k, f, n int64) int64 { return s*(4*d*e+n*d*f) + 2*s*k*e }
	bert := func(l, s, d int64) int64 { return l*layer(s, d, d, s, 4*d, 2) + d*d }
	t5 := func(d, f, h, l, n, enc, dec, keys, runs int64, fresh bool) (encoder, decoder int64) {
		e := 64 * h
		encoder = l * layer(enc, d, e, enc, f, n)
		// The decoder has cross-attention: q and o over its own positions, k and v
		// over the encoder's, unless those are cached.
		cross := dec*2*d*e + 2*dec*enc*e
		if fresh {
			cross += enc * 2 * d * e
		}
		return encoder, runs * (l*(layer(dec, d, e, keys, f, n)+cross) + dec*d*32128)
	}
	whisper := func(d, l, dec, keys int64, fresh bool) int64 {
		cross := dec*2*d*d + 2*dec*1500*d
		if fresh {
			cross += 1500 * 2 * d * d
		}
		return l*(layer(dec, d, d, keys, 4*d, 2)+cross) + dec*d*51865
	}
	sum := func(a, b int64) int64 { return a + b }
	want := map[string]int64{
		"bert/tiny":  bert(2, 128, 128),
		"bert/base":  bert(12, 128, 768),
		"bert/large": bert(24, 384, 1024),
		"t5/small":   sum(t5(512, 2048, 8, 6, 2, 32, 256, 256, 256, true)),
		"t5/base":    sum(t5(768, 3072, 12, 12, 2, 32, 256, 256, 256, true)),
		"t5/large":   sum(t5(1024, 4096, 16, 24, 2, 32, 256, 256, 256, true)),

		"flant5/small": sum(t5(512, 1024, 6, 8, 3, 32, 256, 256, 256, true)),
		"flant5/base":  sum(t5(768, 2048, 12, 12, 3, 32, 256, 256, 256, true)),
		"flant5/large": sum(t5(1024, 2816, 16, 24, 3, 32, 256, 256, 256, true)),
	}
	cached := func(d, f, h, l, n int64) int64 {
		enc, first := t5(d, f, h, l, n, 32, 32, 512, 1, true)
		_, rest := t5(d, f, h, l, n, 32, 32, 512, 255, false)
		return enc + first + rest
	}
	want["t5_past_cache_enc_dec/small"] = cached(512, 2048, 8, 6, 2)
	want["t5_past_cache_enc_dec/base"] = cached(768, 3072, 12, 12, 2)
	want["t5_past_cache_enc_dec/large"] = cached(1024, 4096, 16, 24, 2)
	want["flant5_past_cache_enc_dec/small"] = cached(512, 1024, 6, 8, 3)
	want["flant5_past_cache_enc_dec/base"] = cached(768, 2048, 12, 12, 3)
	want["flant5_past_cache_enc_dec/large"] = cached(1024, 2816, 16, 24, 3)
	// Falcon: 256 tokens, each all matrices (fused q, k, v of 71+2 heads) and
	// two products with 2048 cached positions.
	const d = 4544
	falcon := int64(256 * (32*(d*(73*64)+d*d+8*d*d+2*2048*71*64) + d*65024))
	want["falcon/7b"], want["falcon/7b-instruct"] = falcon, falcon
	for c, s := range map[string][2]int64{"tiny": {384, 4}, "base": {512, 6}, "small": {768, 12}, "medium": {1024, 24}, "large": {1280, 32}} {
		w, l := s[0], s[1]
		encoder := 3000*3*80*w + 1500*3*w*w + l*layer(1500, w, w, 1500, 4*w, 2)
		want["whisper/"+c] = encoder + 69*whisper(w, l, 96, 96, true)
		want["whisper_enc_dec/"+c] = encoder + whisper(w, l, 32, 448, true) + 68*whisper(w, l, 32, 448, false)
	}
	// U-Net of 256×256 with 32 first features: two 3×3 convolutions a level.
	unet := int64(256*256*9*(3*32+32*32)) + 256*256*32 // first level and last layer
	for i, side, f := 1, int64(128), int64(64); i < 5; i, side, f = i+1, side/2, f*2 {
		unet += side * side * 9 * (f/2*f + f*f)                   // down
		unet += side*side*f*f/2*4 + 4*side*side*9*(f*f/2+f/2*f/2) // transposed, up
	}
	want["unet/256"] = unet
	for k, w := range want {
		name, config, _ := strings.Cut(k, "/")
		if got := build(t, name, config, Options{Batch: 1}).MACs(); got != w {
			t.Errorf("%s: %d MACs, the closed form gives %d", k, got, w)
		}
	}
	// VoVNet-27-slim and OpenPose are of the blocks checked above and below.
	each(t, func(t *testing.T, name, config string) {
		if _, ok := published(publishedMACs(), name, config); !ok && want[name+"/"+config] == 0 && !byHand[name+"/"+config] {
			t.Errorf("nothing checks the MACs of %s %s", name, config)
		}
	})
}

// byHand are the configurations whose MACs TestMACsByHand works out.
var byHand = map[string]bool{"vovnet_v1/27s": true, "open_pose/2d": true, "open_pose/3d": true, "stable_diffusion/v1-4": true}

// Every figure names its source with an address, and one that was not found
// there is checked in another way.
func TestSources(t *testing.T) {
	address := regexp.MustCompile(`(github|huggingface)\.com?/[\w-]+/[\w.-]+|arXiv:\d{4}\.\d{5}`)
	each(t, func(t *testing.T, name, config string) {
		p, _ := published(publishedParams(), name, config)
		m, ok := published(publishedMACs(), name, config)
		for _, f := range []figure{p, m} {
			if f.Value != 0 && !address.MatchString(f.Source) {
				t.Errorf("source without an address: %q", f.Source)
			}
		}
		if p.Unconfirmed {
			t.Error("a number of parameters that is not confirmed")
		}
		if ok && m.Unconfirmed && !byHand[name+"/"+config] && name != "bert" { // TestMACsInClosedForm has BERT
			t.Error("multiply-accumulates that are neither confirmed nor worked out here")
		}
	})
}

// The U-Net of Stable Diffusion at 64×64 latents, 77 words of width 768: four
// levels of 320, 640, 1280 and 1280 channels, two residual blocks a level on
// the way down and three on the way up, with a transformer behind each at the
// first three levels, and two blocks and one transformer in the middle.
func TestDiffusionByHand(t *testing.T) {
	conv := func(side, in, out int64) int64 { return side * side * 9 * in * out }
	res := func(in, out, side int64) int64 {
		n := conv(side, in, out) + conv(side, out, out) + 1280*out
		if in != out {
			n += side * side * in * out
		}
		return n
	}
	var attention int64
	transformer := func(c, side int64) int64 {
		n := side * side
		a := 2*n*n*c + 2*n*77*c
		attention += a
		// In and out; q, k, v, o of itself; q, o and k, v of the words; a gated MLP.
		return a + 2*n*c*c + 4*n*c*c + 2*n*c*c + 2*77*768*c + n*c*8*c + n*4*c*c
	}
	total := conv(64, 4, 320) + conv(64, 320, 4) + 320*1280 + 1280*1280
	channels, sides := []int64{320, 640, 1280, 1280}, []int64{64, 32, 16, 8}
	at, skips := int64(320), []int64{320}
	block := func(in int64, level int) {
		total += res(in, channels[level], sides[level])
		if at = channels[level]; level < 3 {
			total += transformer(at, sides[level])
		}
	}
	for level := range 4 {
		for range 2 {
			block(at, level)
			skips = append(skips, at)
		}
		if level < 3 {
			total += conv(sides[level+1], at, at)
			skips = append(skips, at)
		}
	}
	total += 2*res(1280, 1280, 8) + transformer(1280, 8)
	for level := 3; level >= 0; level-- {
		for range 3 {
			block(at+skips[len(skips)-1], level)
			skips = skips[:len(skips)-1]
		}
		if level > 0 {
			total += conv(sides[level-1], at, at)
		}
	}
	m := build(t, "stable_diffusion", "v1-4", Options{Batch: 1})
	if got := m.MACs(); got != 100*total || total != 401_636_720_640 {
		t.Errorf("%d MACs, by hand 100 runs of %d", got, total)
	}
	if got := attentionMACs(m.Phases[0].Graph); got != attention {
		t.Errorf("%d MACs inside attention, by hand %d", got, attention)
	}
}

func TestMACsByHand(t *testing.T) {
	conv := func(side, k, in, out int64) int64 { return side * side * k * k * in * out }
	// VoVNet-27-slim: stem of 64, 64, 128; stages of 128, 256, 384, 512 with
	// five branches of 64, 80, 96, 112 at 56, 28, 14, 7.
	vov := conv(112, 3, 3, 64) + conv(112, 3, 64, 64) + conv(56, 3, 64, 128)
	in := int64(128)
	for i, side := range []int64{56, 28, 14, 7} {
		b, o := []int64{64, 80, 96, 112}[i], []int64{128, 256, 384, 512}[i]
		vov += conv(side, 3, in, b) + 4*conv(side, 3, b, b) + conv(side, 1, in+5*b, o)
		in = o
	}
	vov += 512 * 1000
	if got := build(t, "vovnet_v1", "27s", Options{Batch: 1}).MACs(); got != vov {
		t.Errorf("VoVNet-27-slim: %d MACs, by hand %d", got, vov)
	}
	// OpenPose at 224: MobileNet to 28×28, then everything at 28×28.
	dws := func(side, in, out int64) int64 { return side*side*9*in + conv(side, 1, in, out) }
	pose := conv(112, 3, 3, 32) + dws(112, 32, 64) + dws(56, 64, 128) + dws(56, 128, 128) + dws(28, 128, 256) + dws(28, 256, 256) +
		dws(28, 256, 512) + 5*dws(28, 512, 512)
	pose += conv(28, 1, 512, 128) + 3*dws(28, 128, 128) + conv(28, 3, 128, 128)
	pose += 3*conv(28, 3, 128, 128) + 2*conv(28, 1, 128, 512) + conv(28, 1, 512, 19) + conv(28, 1, 512, 38)
	refine := func(in int64) int64 { return conv(28, 1, in, 128) + 2*conv(28, 3, 128, 128) }
	pose += refine(185) + 4*refine(128) + 2*conv(28, 1, 128, 128) + conv(28, 1, 128, 19) + conv(28, 1, 128, 38)
	if got := build(t, "open_pose", "2d", Options{Batch: 1}).MACs(); got != pose {
		t.Errorf("OpenPose 2D: %d MACs, by hand %d", got, pose)
	}
	unit := func(in int64) int64 { return conv(28, 1, in, in/2) + conv(28, 3, in/2, in/2) + conv(28, 1, in/2, 128) }
	pose += unit(185) + conv(28, 1, 185, 128) + 4*unit(128) + 2*refine(128) + conv(28, 1, 128, 128) + conv(28, 1, 128, 57)
	if got := build(t, "open_pose", "3d", Options{Batch: 1}).MACs(); got != pose {
		t.Errorf("OpenPose 3D: %d MACs, by hand %d", got, pose)
	}
}

// The list is the seed's, to the byte.
func TestListIsTheSeeds(t *testing.T) {
	const path = "../../../shared/seeds/tenstorrent-profiler-benchmark.txt"
	seed, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the seed is not here: %v", err)
	}
	_, rest, ok := strings.Cut(string(seed), "Available models:\n")
	if !ok {
		t.Fatal("the seed has no listing")
	}
	var want []string
	for _, line := range strings.Split(rest, "\n") {
		if strings.HasPrefix(line, " -  ") {
			want = append(want, line)
		} else if len(want) > 0 {
			break
		}
	}
	var got []string
	for _, line := range strings.Split(List(), "\n") {
		if strings.HasPrefix(line, " -  ") {
			got = append(got, line)
		}
	}
	if len(want) != 23 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the list is\n%s\nthe seed's\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Every graph survives being written as HLO text and read back, at a batch of
// its own.
func TestHLORoundTrip(t *testing.T) {
	each(t, func(t *testing.T, name, config string) {
		for _, p := range append(build(t, name, config, Options{Batch: 2}).Phases, build(t, name, config, Options{Batch: 1, Elem: opgraph.ElemF16}).Phases...) {
			text := hlo.AppendText(nil, p.Graph)
			back, err := hlo.ReadText(name, text)
			if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			if len(back) != 1 {
				t.Fatalf("%s: %d modules", p.Name, len(back))
			}
			if again := hlo.AppendText(nil, back[0]); string(again) != string(text) {
				t.Errorf("%s: reads back as another graph", p.Name)
			}
			if a, b := p.Graph.Totals(1), back[0].Totals(1); a.FLOPs != b.FLOPs || a.ParameterBytes != b.ParameterBytes {
				t.Errorf("%s: totals %+v became %+v", p.Name, a, b)
			}
		}
	})
}

// The work of a batch is that of a sample times its size; parameters do not
// depend on it.
func TestBatchScales(t *testing.T) {
	for _, c := range [][2]string{{"resnet", "resnet50"}, {"bert", "tiny"}, {"t5_past_cache_enc_dec", "small"}, {"whisper", "tiny"}, {"falcon", "7b"}, {"yolo_v5", "s"}} {
		one, eight := build(t, c[0], c[1], Options{Batch: 1}), build(t, c[0], c[1], Options{Batch: 8})
		if one.Params() != eight.Params() || one.MACs() != eight.MACs() {
			t.Errorf("%s: params %d and %d, MACs a sample %d and %d", c[0], one.Params(), eight.Params(), one.MACs(), eight.MACs())
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, config string
		opt          Options
		want         string
	}{
		{"bertt", "", Options{}, "no model \"bertt\""},
		{"bert", "", Options{}, "more than one configuration"},
		{"bert", "huge", Options{}, "no configuration \"huge\""},
		{"bert", "tiny", Options{Task: "asr"}, "no task \"asr\""},
		{"bert", "tiny", Options{Batch: -1}, "microbatch -1"},
		{"whisper", "tiny", Options{Tokens: 500}, "448 positions"},
	} {
		_, err := Build(c.name, c.config, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v does not say %q", c.name, c.config, err, c.want)
		}
		// A wrong name is told apart from a wrong value.
		if bad := (*OptionError)(nil); errors.As(err, &bad) != (c.opt != Options{}) {
			t.Errorf("%s %s: error %v is an option error: %v", c.name, c.config, err, bad != nil)
		}
	}
	if m := build(t, "unet", "", Options{Batch: 1}); m.Config != "256" {
		t.Errorf("the only configuration of unet is %q", m.Config)
	}
}
