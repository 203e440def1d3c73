package models

// Figure is a published count and how near ours has to be.
type Figure struct {
	Value  float64
	Within float64 // largest relative difference; 0 is exact
	Source string
	// Note says what the figure counts otherwise, "" where it counts as
	// Params and MACs do.
	Note string
	// Size is the side of the image the figure is for, 0 for the
	// configuration's own.
	Size int64
	// NoNorm tells that scales and shifts of normalisations are left out.
	NoNorm bool
	// NoAttention tells that the products inside attention are left out.
	NoAttention bool
}

// PublishedParams returns the published number of parameters of a
// configuration, PublishedMACs the multiply-accumulates of one sample; ok is
// false where none is published.
func PublishedParams(name, config string) (Figure, bool) {
	f, ok := publishedParams()[name+"/"+config]
	return f, ok
}

// PublishedMACs is described at PublishedParams.
func PublishedMACs(name, config string) (Figure, bool) {
	f, ok := publishedMACs()[name+"/"+config]
	return f, ok
}

const (
	hubBERT     = "parameter counts of the Hugging Face checkpoints (BertModel)"
	hubCount    = "parameter counts of the Hugging Face checkpoints (safetensors metadata)"
	torchvision = "torchvision.models, table of pretrained weights (num_params, GFLOPS)"
	timmTable   = "timm, results/benchmark tables and model cards (Params, GMACs)"
	pytorchcv   = "pytorchcv: weight counts asserted in its model files; its README's table of params and FLOPs"
	slimV1      = "TensorFlow models, research/slim/nets/mobilenet_v1.md"
	slimV2      = "TensorFlow models, research/slim/nets/mobilenet/README.md"
)

func publishedParams() map[string]Figure {
	exact := func(v float64, src string) Figure { return Figure{Value: v, Source: src} }
	near := func(v float64, src string) Figure { return Figure{Value: v, Within: 0.01, Source: src} }
	m := map[string]Figure{
		"bert/tiny":  exact(4_385_920, hubBERT),
		"bert/base":  exact(109_482_240, hubBERT),
		"bert/large": exact(335_141_888, hubBERT),
		"deit/base":  exact(86_567_656, timmTable+"; arXiv:2012.12877 table 1: 86M"),
		"deit/small": exact(22_050_664, timmTable+"; arXiv:2012.12877 table 1: 22M"),
		"falcon/7b": {Value: 7_217_189_760 - 65024*4544, Source: hubCount + ": 7,217,189,760",
			Note: "the checkpoint counts the output layer again, which is tied to the embeddings (65024×4544)"},

		"hrnet/w18":    exact(15_597_464, pytorchcv),
		"hrnet/v2_w18": exact(21_299_004, pytorchcv),
		"hrnet/v2_w30": exact(37_712_220, pytorchcv),
		"hrnet/v2_w32": exact(41_232_680, pytorchcv),
		"hrnet/v2_w40": exact(57_557_160, pytorchcv),
		"hrnet/v2_w44": exact(67_064_984, pytorchcv),
		"hrnet/v2_w48": exact(77_469_864, pytorchcv),
		"hrnet/v2_w64": exact(128_059_944, pytorchcv),

		"inception_v4/224":   exact(42_679_816, pytorchcv),
		"mobilenetv1/192":    near(2.59e6, slimV1),
		"mobilenetv1/224":    near(4.24e6, slimV1),
		"mobilenetv2/224":    {Value: 3_504_872 + 1281, Source: torchvision, Note: "and one background class: 1281 parameters"},
		"mobilenetv2/160":    {Value: 2.61e6, Within: 0.01, Source: slimV2, NoNorm: true, Note: "counts no normalisation"},
		"mobilenetv2/96":     {Value: 1.66e6, Within: 0.01, Source: slimV2, NoNorm: true, Note: "counts no normalisation"},
		"mobilenetv2_timm/1": exact(3_504_872, torchvision),
		"mobilenetv3/sm":     exact(2_542_856, torchvision),
		"mobilenetv3/lg":     exact(5_483_032, torchvision),
		"open_pose/2d":       exact(4_091_698, pytorchcv),
		"open_pose/3d":       exact(5_085_983, pytorchcv),
		"resnet/resnet18":    exact(11_689_512, torchvision),
		"resnet/resnet50":    exact(25_557_032, torchvision),

		"stable_diffusion/v1-4": exact(859_520_964, "diffusers, UNet2DConditionModel of CompVis/stable-diffusion-v1-4"),
		"unet/256":              exact(7_763_041, "mateuszbuda/brain-segmentation-pytorch, 32 first features"),
		"vit/base":              exact(86_567_656, torchvision),
		"vit/large":             exact(304_326_632, torchvision),
		"vovnet_v1/27s":         exact(3_525_736, pytorchcv),
		"vovnet_v1/39":          exact(22_600_296, pytorchcv),
		"vovnet_v1/57":          exact(36_640_296, pytorchcv),
		"vovnet_v2/19":          near(6.54e6, timmTable),
		"vovnet_v2/39":          near(24.57e6, timmTable),
		"vovnet_v2/99":          near(63.2e6, timmTable),
		"yolo_v5/s":             exact(7_235_389, "ultralytics/yolov5 6.x, summary of yolov5s before its layers are fused"),
	}
	m["falcon/7b-instruct"] = m["falcon/7b"]
	for c, v := range map[string][2]float64{"small": {60_506_624, 76_961_152}, "base": {222_903_552, 247_577_856}, "large": {737_668_096, 783_150_080}} {
		m["t5/"+c], m["flant5/"+c] = exact(v[0], hubCount), exact(v[1], hubCount)
		m["t5_past_cache_enc_dec/"+c], m["flant5_past_cache_enc_dec/"+c] = m["t5/"+c], m["flant5/"+c]
	}
	for c, v := range map[string]float64{"tiny": 37_760_640, "base": 72_593_920, "small": 241_734_912, "medium": 763_857_920, "large": 1_543_304_960} {
		m["whisper/"+c] = exact(v, hubCount)
		m["whisper_enc_dec/"+c] = m["whisper/"+c]
	}
	return m
}

func publishedMACs() map[string]Figure {
	near := func(v float64, src string) Figure { return Figure{Value: v, Within: 0.01, Source: src} }
	return map[string]Figure{
		"bert/base":  {Value: 22.5e9 / 2, Within: 0.01, Source: "TinyBERT, arXiv:1909.10351 table 1: 22.5B FLOPs, 128 tokens"},
		"deit/base":  near(17.564e9, torchvision+" (vit_b_16, the same network)"),
		"deit/small": near(4.6e9, "DeiT, arXiv:2012.12877 and timm: 4.6 GMACs"),

		"hrnet/w18":    near(2618.84e6, pytorchcv),
		"hrnet/v2_w18": near(4323.07e6, pytorchcv),
		"hrnet/v2_w30": near(8156.82e6, pytorchcv),
		"hrnet/v2_w32": near(8974.04e6, pytorchcv),
		"hrnet/v2_w40": near(12752.26e6, pytorchcv),
		"hrnet/v2_w44": near(14946.96e6, pytorchcv),
		"hrnet/v2_w48": near(17345.39e6, pytorchcv),
		"hrnet/v2_w64": near(28976.42e6, pytorchcv),

		"inception_v4/224":   {Value: 12304.93e6, Within: 0.01, Source: pytorchcv, Size: 299, Note: "for images of 299×299"},
		"mobilenetv1/192":    near(239e6, slimV1),
		"mobilenetv1/224":    near(569e6, slimV1),
		"mobilenetv2/224":    near(300e6, slimV2),
		"mobilenetv2/160":    near(107e6, slimV2),
		"mobilenetv2/96":     {Value: 11.5e6, Within: 0.5 / 11.5, Source: slimV2, Note: "the table cuts to whole millions: 11"},
		"mobilenetv2_timm/1": near(0.301e9, torchvision),
		"mobilenetv3/sm":     near(0.057e9, torchvision),
		"mobilenetv3/lg":     near(0.217e9, torchvision),
		"resnet/resnet18":    near(1.814e9, torchvision),
		"resnet/resnet50":    near(4.089e9, torchvision),
		"stable_diffusion/v1-4": {Value: 100 * 338.75e9, Within: 0.01, Source: "BK-SDM, arXiv:2305.15798: 339 GMACs a step", NoAttention: true,
			Note: "100 runs; counts layers only, not the products inside attention"},
		"vit/base":     near(17.564e9, torchvision),
		"vit/large":    near(61.555e9, torchvision),
		"vovnet_v1/39": near(7086.16e6, pytorchcv),
		"vovnet_v1/57": near(8943.09e6, pytorchcv),
		"vovnet_v2/19": near(1.34e9, timmTable),
		"vovnet_v2/39": near(7.09e9, timmTable),
		"vovnet_v2/99": near(16.51e9, timmTable),
		"yolo_v5/s":    {Value: 16.5e9 / 2, Within: 0.01, Source: "ultralytics/yolov5: 16.5 GFLOPs", Size: 640, Note: "for images of 640×640"},
	}
}
