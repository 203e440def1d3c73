package models

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// Options say what is built.
type Options struct {
	Batch int              // samples per run of a graph, at least 1; 0 takes the model's own
	Elem  opgraph.ElemType // of weights and activations; 0 is bf16
	Task  string           // "na" where empty
	// Tokens is how many tokens a text model generates for a sample; 0 takes
	// the task's.
	Tokens int64
	// Size replaces the side of the square input image; 0 is the
	// configuration's own.
	Size int64
}

// Phase is one graph of a model and how often it runs for a batch.
type Phase struct {
	Name  string // "forward", or "encoder", "decoder_first", "decoder"
	Graph *opgraph.Graph
	Runs  int64
	// Fold says that all samples of a batch are rows of one product (a decoder
	// that makes one token of each): they do not follow one another.
	Fold bool
	// Weights are the trained parameters of the entry, by path.
	Weights map[string]opgraph.OpID
}

// Model is a built model: what a device runs for one batch of samples.
type Model struct {
	Name, Config, Task string
	Batch              int
	// InputSize is how the reference benchmark names the shape of one sample:
	// "3x224x224", a sequence length, or "NA".
	InputSize string
	Samples   int64 // in the task's data set; 0: as many as the batch
	Tokens    int64 // generated for a sample, 0 for models that generate none
	Phases    []Phase
}

// Family is one line of the list of models.
type Family struct {
	Name    string
	Configs []string
	build   func(b *building) error
}

// building is a model under construction.
type building struct {
	Model
	opt Options
}

// Families lists every model in the order of the reference benchmark.
func Families() []Family {
	return []Family{
		{"bert", []string{"tiny", "base", "large"}, buildBERT},
		{"deit", []string{"base", "small"}, buildDeiT},
		{"falcon", []string{"7b", "7b-instruct"}, buildFalcon},
		{"flant5", []string{"small", "base", "large"}, buildT5},
		{"flant5_past_cache_enc_dec", []string{"small", "base", "large"}, buildT5},
		{"hrnet", []string{"w18", "v2_w18", "v2_w30", "v2_w32", "v2_w40", "v2_w44", "v2_w48", "v2_w64"}, buildHRNet},
		{"inception_v4", []string{"224"}, buildVision},
		{"mobilenetv1", []string{"192", "224"}, buildVision},
		{"mobilenetv2", []string{"224", "160", "96"}, buildVision},
		{"mobilenetv2_timm", []string{"1"}, buildVision},
		{"mobilenetv3", []string{"sm", "lg"}, buildVision},
		{"open_pose", []string{"2d", "3d"}, buildVision},
		{"resnet", []string{"resnet18", "resnet50"}, buildVision},
		{"stable_diffusion", []string{"v1-4"}, buildDiffusion},
		{"t5", []string{"small", "base", "large"}, buildT5},
		{"t5_past_cache_enc_dec", []string{"small", "base", "large"}, buildT5},
		{"unet", []string{"256"}, buildVision},
		{"vit", []string{"base", "large"}, buildViT},
		{"vovnet_v1", []string{"27s", "39", "57"}, buildVision},
		{"vovnet_v2", []string{"19", "39", "99"}, buildVision},
		{"whisper", []string{"tiny", "base", "small", "medium", "large"}, buildWhisper},
		{"whisper_enc_dec", []string{"tiny", "base", "small", "medium", "large"}, buildWhisper},
		{"yolo_v5", []string{"s"}, buildVision},
	}
}

// Find returns the family and configuration. config may be empty where a
// family has one only. The errors say what there is.
func Find(name, config string) (Family, string, error) {
	var names []string
	for _, f := range Families() {
		names = append(names, f.Name)
		if f.Name != name {
			continue
		}
		if config == "" {
			if len(f.Configs) > 1 {
				return f, "", fmt.Errorf("model %s has more than one configuration, choose one: %s", name, strings.Join(f.Configs, ", "))
			}
			return f, f.Configs[0], nil
		}
		if !slices.Contains(f.Configs, config) {
			return f, "", fmt.Errorf("model %s has no configuration %q, there are: %s", name, config, strings.Join(f.Configs, ", "))
		}
		return f, config, nil
	}
	return Family{}, "", fmt.Errorf("there is no model %q, there are: %s", name, strings.Join(names, ", "))
}

// OptionError is a wrong value of Options: the asker's mistake, not the
// builder's.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

func (e *OptionError) Unwrap() error { return e.Err }

func badOption(format string, args ...any) error { return &OptionError{fmt.Errorf(format, args...)} }

// Build builds a model. Errors of Options are an *OptionError.
func Build(name, config string, opt Options) (*Model, error) {
	f, config, err := Find(name, config)
	for _, u := range unlisted() {
		if u.Name == name {
			f, config, err = u, u.Configs[0], nil
		}
	}
	if err != nil {
		return nil, err
	}
	if opt.Elem == 0 {
		opt.Elem = opgraph.ElemBF16
	}
	if opt.Task == "" {
		opt.Task = "na"
	}
	if opt.Batch < 0 || opt.Batch > 1<<20 {
		return nil, badOption("model %s: microbatch %d is not between 1 and %d", name, opt.Batch, 1<<20)
	}
	if opt.Tokens < 0 || opt.Tokens > 1<<20 {
		return nil, badOption("model %s: %d tokens are not between 1 and %d", name, opt.Tokens, 1<<20)
	}
	b := &building{Model: Model{Name: name, Config: config, Task: opt.Task, Batch: opt.Batch}, opt: opt}
	if err := f.build(b); err != nil {
		return nil, fmt.Errorf("model %s %s: %w", name, config, err)
	}
	return &b.Model, nil
}

// settle sets the batch where none was asked for.
func (b *building) settle(own int) {
	if b.Batch == 0 {
		b.Batch = own
	}
	b.opt.Batch = b.Batch
}

// task checks the task and returns the size of its data set, 0 for "na".
func (b *building) task(sizes map[string]int64) error {
	if b.Task == "na" {
		return nil
	}
	n, ok := sizes[b.Task]
	if !ok {
		known := []string{"na"}
		for t := range sizes {
			known = append(known, t)
		}
		slices.Sort(known)
		return badOption("there is no task %q, there are: %s", b.Task, strings.Join(known, ", "))
	}
	b.Samples = n
	return nil
}

// phase builds one graph.
func (b *building) phase(name string, runs int64, f func(n *net) []val) error {
	if runs == 0 {
		return nil
	}
	n := newNet(b.Name+"_"+b.Config+"_"+name, b.opt)
	outs := f(n)
	g, err := n.emit(outs...)
	if err != nil {
		return err
	}
	p := Phase{Name: name, Graph: g, Runs: runs, Weights: map[string]opgraph.OpID{}}
	for op := g.Comps.First[g.Entry]; op < g.Comps.End[g.Entry]; op++ {
		if g.Ops.Kind[op] == opgraph.OpParameter {
			path := g.Text(g.Ops.OpName[op])
			if _, ok := n.named[path]; ok {
				p.Weights[path] = op
			}
		}
	}
	b.Phases = append(b.Phases, p)
	return nil
}

func buildVision(b *building) error {
	tasks := map[string]int64{"image_classification": 1000}
	size, own := int64(224), 32
	var f func(n *net) []val
	one := func(g func(n *net) val) func(n *net) []val { return func(n *net) []val { return []val{g(n)} } }
	switch b.Name + "/" + b.Config {
	case "inception_v4/224":
		f = one(func(n *net) val { return inceptionV4(n, size) })
	case "mobilenetv1/192":
		size = 192
		f = one(func(n *net) val { return mobileNetV1(n, size, 0.75) })
	case "mobilenetv1/224":
		f = one(func(n *net) val { return mobileNetV1(n, size, 1) })
	case "mobilenetv2/224":
		f = one(func(n *net) val { return mobileNetV2(n, size, 1, true) })
	case "mobilenetv2/160":
		size = 160
		f = one(func(n *net) val { return mobileNetV2(n, size, 0.75, true) })
	case "mobilenetv2/96":
		size = 96
		f = one(func(n *net) val { return mobileNetV2(n, size, 0.35, true) })
	case "mobilenetv2_timm/1":
		tasks = nil
		f = one(func(n *net) val { return mobileNetV2(n, size, 1, false) })
	case "mobilenetv3/sm":
		f = one(func(n *net) val { return mobileNetV3(n, v3Small, 576, 1024) })
	case "mobilenetv3/lg":
		f = one(func(n *net) val { return mobileNetV3(n, v3Large, 960, 1280) })
	case "open_pose/2d", "open_pose/3d":
		tasks = map[string]int64{"pose_estimation": 128}
		f = one(func(n *net) val { return openPose(n, size, b.Config == "3d") })
	case "resnet/resnet18":
		own = 64
		f = one(func(n *net) val { return resNet(n, []int{2, 2, 2, 2}, false) })
	case "resnet/resnet50":
		own = 64
		f = one(func(n *net) val { return resNet(n, []int{3, 4, 6, 3}, true) })
	case "unet/256":
		tasks = map[string]int64{"segmentation": 240}
		size = 256
		f = one(func(n *net) val { return uNet(n, size) })
	case "vovnet_v1/27s":
		f = one(func(n *net) val { return voVNet(n, []int{1, 1, 1, 1}, true) })
	case "vovnet_v1/39":
		f = one(func(n *net) val { return voVNet(n, []int{1, 1, 2, 2}, false) })
	case "vovnet_v1/57":
		f = one(func(n *net) val { return voVNet(n, []int{1, 1, 4, 3}, false) })
	case "vovnet_v2/19":
		f = one(func(n *net) val { return voVNetV2(n, []int{1, 1, 1, 1}, 3, true) })
	case "vovnet_v2/39":
		f = one(func(n *net) val { return voVNetV2(n, []int{1, 1, 2, 2}, 5, false) })
	case "vovnet_v2/99":
		f = one(func(n *net) val { return voVNetV2(n, []int{1, 3, 9, 3}, 5, false) })
	case "yolo_v5/s":
		tasks = map[string]int64{"object_detection": 1024}
		size = 320
		f = func(n *net) []val { return yoloV5(n, size) }
	}
	if b.opt.Size != 0 {
		size = b.opt.Size
	}
	b.settle(own)
	b.InputSize = fmt.Sprintf("3x%dx%d", size, size)
	if err := b.task(tasks); err != nil {
		return err
	}
	return b.phase("forward", 1, f)
}

func buildHRNet(b *building) error {
	b.settle(32)
	b.InputSize = "3x224x224"
	if err := b.task(map[string]int64{"image_classification": 1000}); err != nil {
		return err
	}
	width, units, modules := int64(18), 4, [3]int{1, 4, 3}
	if b.Config == "w18" { // hrnet_w18_small_v2
		units, modules = 2, [3]int{1, 3, 2}
	} else if _, err := fmt.Sscanf(b.Config, "v2_w%d", &width); err != nil {
		return err
	}
	return b.phase("forward", 1, func(n *net) []val { return []val{hrNet(n, width, units, modules)} })
}

func buildBERT(b *building) error {
	type size struct {
		layers     int
		width, seq int64
		batch      int
	}
	s := map[string]size{"tiny": {2, 128, 128, 512}, "base": {12, 768, 128, 128}, "large": {24, 1024, 384, 128}}[b.Config]
	b.settle(s.batch)
	b.InputSize = fmt.Sprint(s.seq)
	if err := b.task(map[string]int64{"text_classification": 872, "keyword_extraction": 1024}); err != nil {
		return err
	}
	return b.phase("forward", 1, func(n *net) []val { return bert(n, s.layers, s.width, s.seq) })
}

func buildViT(b *building) error {
	if b.Config == "large" {
		return buildTransformerImage(b, 24, 1024, 16)
	}
	return buildTransformerImage(b, 12, 768, 12)
}

func buildDeiT(b *building) error {
	if b.Config == "small" {
		return buildTransformerImage(b, 12, 384, 6)
	}
	return buildTransformerImage(b, 12, 768, 12)
}

func buildTransformerImage(b *building, layers int, width, heads int64) error {
	b.settle(32)
	b.InputSize = "3x224x224"
	if err := b.task(map[string]int64{"image_classification": 1000}); err != nil {
		return err
	}
	return b.phase("forward", 1, func(n *net) []val { return []val{viT(n, layers, width, heads)} })
}

func buildDiffusion(b *building) error {
	b.settle(1)
	b.InputSize = "NA"
	if err := b.task(map[string]int64{"image_generation": 6}); err != nil {
		return err
	}
	// 50 steps, each with and without the prompt (classifier-free guidance).
	return b.phase("unet", 2*50, func(n *net) []val { return []val{diffusionUNet(n)} })
}

func buildFalcon(b *building) error {
	b.settle(32)
	b.InputSize = "NA"
	if err := b.task(map[string]int64{"hellaswag": 256, "text_summarization": 32, "alpacaeval": 128}); err != nil {
		return err
	}
	b.tokens(map[string]int64{"hellaswag": 1, "": 256})
	if err := b.phase("decoder", b.Tokens, func(n *net) []val { return falcon7b(n, 2047) }); err != nil {
		return err
	}
	b.Phases[0].Fold = true
	return nil
}

// tokens settles how many tokens a sample generates: what was asked for, or
// the task's, or the one under "".
func (b *building) tokens(byTask map[string]int64) {
	b.Tokens = b.opt.Tokens
	if b.Tokens == 0 {
		b.Tokens = byTask[b.Task]
	}
	if b.Tokens == 0 {
		b.Tokens = byTask[""]
	}
}

var t5Sizes = map[string]t5Size{
	"t5/small": {512, 2048, 8, 6, false}, "t5/base": {768, 3072, 12, 12, false}, "t5/large": {1024, 4096, 16, 24, false},
	"flant5/small": {512, 1024, 6, 8, true}, "flant5/base": {768, 2048, 12, 12, true}, "flant5/large": {1024, 2816, 16, 24, true},
}

func buildT5(b *building) error {
	family, cached := strings.CutSuffix(b.Name, "_past_cache_enc_dec")
	s := t5Sizes[family+"/"+b.Config]
	b.settle(1)
	b.InputSize = "NA"
	summaries, classes := int64(20), int64(872)
	if family == "flant5" {
		summaries, classes = 10, 100
	}
	if err := b.task(map[string]int64{"text_classification": classes, "text_summarization": summaries}); err != nil {
		return err
	}
	b.tokens(map[string]int64{"text_classification": 5, "text_summarization": 63, "": 256})
	source := int64(32)
	if b.Task == "text_summarization" {
		source = 64
	}
	if err := b.phase("encoder", 1, func(n *net) []val { return []val{t5Encoder(n, s, source)} }); err != nil {
		return err
	}
	if !cached { // every token runs the decoder over all positions
		return b.phase("decoder", b.Tokens, func(n *net) []val {
			return t5Decoder(n, s, ceil(b.Tokens, tile)*tile, 0, source, false)
		})
	}
	const past = 512 - tile
	if err := b.phase("decoder_first", 1, func(n *net) []val { return t5Decoder(n, s, tile, past, source, false) }); err != nil {
		return err
	}
	return b.phase("decoder", b.Tokens-1, func(n *net) []val { return t5Decoder(n, s, tile, past, source, true) })
}

var whisperSizes = map[string]whisperSize{
	"tiny": {384, 6, 4}, "base": {512, 8, 6}, "small": {768, 12, 12}, "medium": {1024, 16, 24}, "large": {1280, 20, 32},
}

func buildWhisper(b *building) error {
	s := whisperSizes[b.Config]
	b.settle(1)
	b.InputSize = "NA"
	if err := b.task(map[string]int64{"asr": 73}); err != nil {
		return err
	}
	b.tokens(map[string]int64{"asr": 256, "": 69})
	if b.Tokens > whisperMax {
		return badOption("%d tokens are more than the %d positions there are", b.Tokens, whisperMax)
	}
	if err := b.phase("encoder", 1, func(n *net) []val { return []val{whisperEncoder(n, s)} }); err != nil {
		return err
	}
	if b.Name == "whisper" {
		return b.phase("decoder", b.Tokens, func(n *net) []val {
			return whisperDecoder(n, s, ceil(b.Tokens, tile)*tile, 0, false)
		})
	}
	const past = whisperMax - tile
	if err := b.phase("decoder_first", 1, func(n *net) []val { return whisperDecoder(n, s, tile, past, false) }); err != nil {
		return err
	}
	return b.phase("decoder", b.Tokens-1, func(n *net) []val { return whisperDecoder(n, s, tile, past, true) })
}
