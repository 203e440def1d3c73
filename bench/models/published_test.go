package models

// figure is a published count and how near ours has to be.
type figure struct {
	Value  float64
	Within float64 // largest relative difference; 0 is exact
	Source string  // name and address
	// Unconfirmed says that the value was not found in a copy of the source;
	// a closed form in the tests then checks the count too.
	Unconfirmed bool
	// Note says what the figure counts otherwise, "" where it counts as
	// Params and MACs do.
	Note string
	// Size is the side of the image the figure is for, 0 for the
	// configuration's own.
	Size int64
	// NoNorm says that scales and shifts of normalisations are left out.
	NoNorm bool
	// NoAttention says that the products inside attention are left out.
	NoAttention bool
}

// published returns the published figure of a configuration; ok is false where
// there is none.
func published(figures map[string]figure, name, config string) (figure, bool) {
	f, ok := figures[name+"/"+config]
	return f, ok
}

// Sources were read in 2026. Where a repository is named, the path is in it.
const (
	kerasBERT    = "KerasHub presets, params: github.com/keras-team/keras-hub, keras_hub/src/models/bert/bert_presets.py"
	kerasWhisper = "KerasHub presets, params: github.com/keras-team/keras-hub, keras_hub/src/models/whisper/whisper_presets.py"
	hubT5        = "number of parameters of the checkpoints huggingface.co/google-t5/t5-{small,base,large}"
	hubFlanT5    = "number of parameters of the checkpoints huggingface.co/google/flan-t5-{small,base,large}; the same as T5 v1.1"
	hubFalcon    = "safetensors metadata of huggingface.co/tiiuae/falcon-7b: 7,217,189,760"
	torchvision  = "torchvision weights, num_params and _ops: github.com/pytorch/vision, torchvision/models/{resnet,mobilenetv2,mobilenetv3,vision_transformer}.py"
	timmTable    = "timm, param_count and infer_gmacs: github.com/huggingface/pytorch-image-models, results/benchmark-infer-amp-nchw-pt240-cu124-rtx3090.csv (2024)"
	pytorchcv    = "pytorchcv, weight_count asserted in the models and the table of its README: github.com/osmr/imgclsmob, pytorch/pytorchcv/models and pytorch/README.md"
	slimV1       = "TensorFlow models: github.com/tensorflow/models, research/slim/nets/mobilenet_v1.md"
	slimV2       = "TensorFlow models: github.com/tensorflow/models, research/slim/nets/mobilenet/README.md"
)

func publishedParams() map[string]figure {
	exact := func(v float64, src string) figure { return figure{Value: v, Source: src} }
	near := func(v float64, src string) figure { return figure{Value: v, Within: 0.01, Source: src} }
	m := map[string]figure{
		"bert/tiny":  exact(4_385_920, kerasBERT),
		"bert/base":  exact(109_482_240, kerasBERT),
		"bert/large": exact(335_141_888, kerasBERT),
		"deit/base":  exact(86_567_656, torchvision+": vit_b_16, the same network"),
		"deit/small": exact(22_050_664, timmTable+": deit_small_patch16_224, 22.05M; users of timm print 22,050,664"),
		"falcon/7b": {Value: 7_217_189_760 - 65024*4544, Source: hubFalcon,
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

		"stable_diffusion/v1-4": exact(859_520_964, "number of parameters of the U-Net of huggingface.co/CompVis/stable-diffusion-v1-4, as many repositories print it"),
		"unet/256":              exact(7_763_041, "number of parameters of github.com/mateuszbuda/brain-segmentation-pytorch (32 first features, one output), as users of it print it"),
		"vit/base":              exact(86_567_656, torchvision),
		"vit/large":             exact(304_326_632, torchvision),
		"vovnet_v1/27s":         exact(3_525_736, pytorchcv),
		"vovnet_v1/39":          exact(22_600_296, pytorchcv),
		"vovnet_v1/57":          exact(36_640_296, pytorchcv),
		"vovnet_v2/19":          near(6.54e6, timmTable+": ese_vovnet19b_dw"),
		"vovnet_v2/39":          near(24.57e6, timmTable+": ese_vovnet39b"),
		"vovnet_v2/99":          near(63.2e6, timmTable+": ese_vovnet99b"),
		"yolo_v5/s":             exact(7_235_389, "github.com/ultralytics/yolov5 6.1 and later, model summary of yolov5s before fusing: 214 layers, 7235389 parameters, 16.6 GFLOPs"),
	}
	m["falcon/7b-instruct"] = m["falcon/7b"]
	for c, v := range map[string][2]float64{"small": {60_506_624, 76_961_152}, "base": {222_903_552, 247_577_856}, "large": {737_668_096, 783_150_080}} {
		m["t5/"+c], m["flant5/"+c] = exact(v[0], hubT5), exact(v[1], hubFlanT5)
		m["t5_past_cache_enc_dec/"+c], m["flant5_past_cache_enc_dec/"+c] = m["t5/"+c], m["flant5/"+c]
	}
	for c, v := range map[string]float64{"tiny": 37_760_640, "base": 72_593_920, "small": 241_734_912, "medium": 763_857_920, "large": 1_543_304_960} {
		m["whisper/"+c] = exact(v, kerasWhisper+": whisper_"+c+"_multi")
		m["whisper_enc_dec/"+c] = m["whisper/"+c]
	}
	return m
}

func publishedMACs() map[string]figure {
	near := func(v float64, src string) figure { return figure{Value: v, Within: 0.01, Source: src} }
	return map[string]figure{
		"bert/base":  {Value: 22.5e9 / 2, Within: 0.01, Source: "TinyBERT, arXiv:1909.10351 (2019): 22.5B FLOPs, 128 tokens", Unconfirmed: true},
		"deit/base":  near(17.564e9, torchvision+": vit_b_16, the same network"),
		"deit/small": near(4.61e9, timmTable+": deit_small_patch16_224"),

		"hrnet/w18":    near(2618.84e6, pytorchcv),
		"hrnet/v2_w18": near(4323.07e6, pytorchcv),
		"hrnet/v2_w30": near(8156.82e6, pytorchcv),
		"hrnet/v2_w32": near(8974.04e6, pytorchcv),
		"hrnet/v2_w40": near(12752.26e6, pytorchcv),
		"hrnet/v2_w44": near(14946.96e6, pytorchcv),
		"hrnet/v2_w48": near(17345.39e6, pytorchcv),
		"hrnet/v2_w64": near(28976.42e6, pytorchcv),

		"inception_v4/224": {Value: 12304.93e6, Within: 0.01, Source: pytorchcv, Size: 299, Note: "for images of 299×299"},
		"mobilenetv1/192": {Value: 325e6, Within: 0.01, Source: "MobileNets, arXiv:1704.04861 (2017), table 6: 0.75 MobileNet-224", Size: 224,
			Note: "for images of 224×224; the TensorFlow models page has 317M there and 233M at 192, which do not follow from the layers"},
		"mobilenetv1/224":    near(569e6, slimV1),
		"mobilenetv2/224":    near(300e6, slimV2),
		"mobilenetv2/160":    near(107e6, slimV2),
		"mobilenetv2/96":     {Value: 11.5e6, Within: 0.5 / 11.5, Source: slimV2, Note: "the table cuts to whole millions: 11"},
		"mobilenetv2_timm/1": near(0.301e9, torchvision),
		"mobilenetv3/sm":     near(0.057e9, torchvision),
		"mobilenetv3/lg":     near(0.217e9, torchvision),
		"resnet/resnet18":    near(1.814e9, torchvision),
		"resnet/resnet50":    near(4.089e9, torchvision),
		"stable_diffusion/v1-4": {Value: 100 * 338.75e9, Within: 0.01, Source: "BK-SDM, arXiv:2305.15798 (2023): 339 GMACs a run", Unconfirmed: true, NoAttention: true,
			Note: "100 runs; counts layers only, not the products inside attention"},
		"vit/base":     near(17.564e9, torchvision),
		"vit/large":    near(61.555e9, torchvision),
		"vovnet_v1/39": near(7086.16e6, pytorchcv),
		"vovnet_v1/57": near(8943.09e6, pytorchcv),
		"vovnet_v2/19": near(1.34e9, timmTable+": ese_vovnet19b_dw"),
		"vovnet_v2/39": near(7.09e9, timmTable+": ese_vovnet39b"),
		"vovnet_v2/99": near(16.51e9, timmTable+": ese_vovnet99b"),
		"yolo_v5/s":    {Value: 16.5e9 / 2, Within: 0.01, Source: "github.com/ultralytics/yolov5 6.1 and later, README.md: 16.5 GFLOPs (the summary before fusing says 16.6)", Size: 640, Note: "for images of 640×640"},
	}
}
