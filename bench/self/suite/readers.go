//go:build unix

package suite

import (
	"fmt"
	"path/filepath"

	"perfsim/bench/self/gen"
	"perfsim/io/format"
	"perfsim/io/formats"
)

// readerFiles are files of real users below the folder of data that readers are
// measured on beside the synthetic inputs.
var readerFiles = []struct{ name, path string }{
	{"HLO text", "hlo_text/openxla__xla__hlo_mixtral_8x7b_bf16_2x8.hlo.gz"},
	{"StableHLO text", "stablehlo/GleasonK__stablehlo-exports__pt_bert.mlir"},
	{"Kineto", "kineto/facebookresearch__HolisticTraceAnalysis__negative_queue_length_rank0.json.gz"},
	{"Catapult", "chrome_variety/catapult-project__catapult__thread_time_visualisation.json.gz"},
	{"Neuron profile", "neuron-profiles/trn2_attn_baseline_bf16_s1024.profile.json.gz"},
	{"PyTorch execution trace", "pytorch_et/facebookresearch__param__resnet_2gpu_et_1.1.0.json.gz"},
}

const (
	readerBytes = 64 << 20 // how much one figure reads at least
	readerText  = 8 << 20  // bytes of a synthetic input
)

// readers takes the speed of readers on one goroutine, text unwrapped before: of
// every kind on a synthetic input, of some on a real file too.
func (b *bench) readers() error {
	for _, t := range gen.Texts() {
		text, err := t.Make(readerText)
		if err == nil {
			err = b.reader(t.Name, text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	for _, f := range readerFiles {
		path := filepath.Join(b.opt.Data, f.path)
		src, err := format.Open(b.ctx, path, nil)
		if err != nil {
			b.note("reading %s: %s is not in the folder of data (--data)", f.name, f.path)
			continue
		}
		text, err := src.ReadAll(1 << 30)
		src.Close()
		if err == nil {
			err = b.reader(f.name+", real file", text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// reader takes the speed of the reader of one text.
func (b *bench) reader(name string, text []byte) error {
	repeat := max(1, readerBytes/len(text))
	return b.rounds(func() error {
		ns, err := repeated(repeat, func() error { return b.read(text) })
		b.r.add("reader/"+name, len(text), "MB/s", float64(len(text))/ns*1e3)
		return err
	})
}

// read reads a text of any format.
func (b *bench) read(text []byte) error {
	src, err := format.FromBytes("bench", text)
	if err != nil {
		return err
	}
	imp, err := formats.Find(src, "")
	if err != nil {
		return err
	}
	opt := format.Options{Jobs: 1}
	if imp.Graph != nil {
		_, err = imp.Graph(b.ctx, src, opt)
	} else {
		_, err = imp.Module(b.ctx, src, opt)
	}
	return err
}

// readerTable shows what readers measured.
func (r *Results) readerTable(p *printer) {
	var rows [][]string
	for _, n := range r.names("reader/") {
		s := r.largest("reader/" + n)
		rows = append(rows, []string{n, number(float64(s.N) / 1e6), number(s.Best()), number(s.Median())})
	}
	if len(rows) == 0 {
		return
	}
	p.line("")
	p.line("Readers on one core, from text in memory to a graph or module; synthetic inputs, and files of real users where named:")
	p.line("")
	p.table([]string{"reader", "MB", "best, MB/s", "median"}, rows)
}
