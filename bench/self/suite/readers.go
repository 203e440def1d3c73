//go:build unix

package suite

import (
	"fmt"
	"path/filepath"

	"perfsim/io/format"
	"perfsim/io/formats"
)

// readerFiles are what the readers are measured on: files of real users below
// the folder of data.
var readerFiles = []struct{ name, path string }{
	{"HLO text", "hlo_text/openxla__xla__hlo_mixtral_8x7b_bf16_2x8.hlo.gz"},
	{"StableHLO text", "stablehlo/GleasonK__stablehlo-exports__pt_bert.mlir"},
	{"Kineto", "kineto/facebookresearch__HolisticTraceAnalysis__negative_queue_length_rank0.json.gz"},
	{"Catapult", "chrome_variety/catapult-project__catapult__thread_time_visualisation.json.gz"},
	{"Neuron profile", "neuron-profiles/trn2_attn_baseline_bf16_s1024.profile.json.gz"},
}

// readerBytes is how much text one figure reads at least.
const readerBytes = 64 << 20

// readers takes the speed of readers on one goroutine, text unwrapped before.
func (b *bench) readers() error {
	for _, f := range readerFiles {
		path := filepath.Join(b.opt.Data, f.path)
		src, err := format.Open(b.ctx, path, nil)
		if err != nil {
			b.note("reading %s: %s is not in the folder of data (--data)", f.name, f.path)
			continue
		}
		text, err := src.ReadAll(1 << 30)
		src.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		repeat := max(1, readerBytes/len(text))
		err = b.rounds(func() error {
			ns, err := repeated(repeat, func() error { return b.read(text) })
			b.r.add("reader/"+f.name, len(text), "MB/s", float64(len(text))/ns*1e3)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
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
	p.line("Files of real users, from text in memory to a graph or module:")
	p.line("")
	p.table([]string{"reader", "MB", "best, MB/s", "median"}, rows)
}
