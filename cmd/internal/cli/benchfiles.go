package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"perfsim/bench/modelrun"
	"perfsim/bench/record"
	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/io/traces/catapult"
	"perfsim/systems/tracklayout"
)

// files writes what a trial leaves in the results folder: the record, a trace
// of every phase, the list of intermediate results. It returns what was
// written.
func (f *benchFlags) files(ctx context.Context, o *modelrun.Outcome, rec *record.Record) ([]string, error) {
	a := &f.args
	if !a.SaveOutput && a.Trace == "none" && a.DumpIntermediate == "" {
		return nil, nil
	}
	id := f.id
	if id == "" {
		b := make([]byte, 3)
		if _, err := rand.Read(b); err != nil {
			return nil, err
		}
		id = hex.EncodeToString(b)[:5]
	}
	if err := os.MkdirAll(f.results, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(f.results, record.FileName(a.Model, a.Config, o.Model.InputSize, a.Device, o.Model.Batch, id))
	var written []string
	if a.Trace != "none" {
		for i := range o.Phases {
			to := strings.TrimSuffix(path, ".json") + "." + o.Phases[i].Name + ".trace.json"
			if err := f.trace(ctx, to, &o.Phases[i], o); err != nil {
				return written, err
			}
			written = append(written, to)
		}
	}
	if a.DumpIntermediate != "" {
		to := filepath.Join(f.results, "intermed_"+a.DumpTag+".log")
		if err := saveBytes(to, nil, f.intermediates(o)); err != nil {
			return written, err
		}
		written = append(written, to)
	}
	if a.SaveOutput {
		var all []*record.Record
		if b, err := os.ReadFile(path); err == nil { // an id of one's own: append, as the reference means to
			if all, err = record.Read(path, b); err != nil {
				return written, fmt.Errorf("%w; --id names another file", err)
			}
		}
		if err := saveBytes(path, nil, record.Append(nil, append(all, rec))); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// trace writes the run of a phase as a Chrome trace: its events, and with
// verbose what every one waited for.
func (f *benchFlags) trace(ctx context.Context, path string, ph *modelrun.Phase, o *modelrun.Outcome) error {
	verbose := f.args.Trace == "verbose"
	t, err := tracklayout.Make(ctx, ph.World, tracklayout.Options{Block: -1, Why: verbose})
	if err != nil {
		return err
	}
	about := [][2]string{{"tool", "perfsim"}, {"tool_version", version}, {"model", f.args.Model}, {"config", f.args.Config}, {"phase", ph.Name},
		{"machine", o.Machine}, {"clock", "simulated"}}
	e := format.Exporter{Module: func(ctx context.Context, w io.Writer, _ *components.Module, _ format.Options) error {
		_, err := catapult.WriteObject(ctx, w, t, catapult.ObjectOptions{NoFlows: !verbose, About: about})
		return err
	}}
	_, err = formats.Export(ctx, path, nil, e, ph.World.Module, format.Options{Jobs: f.jobs})
	return err
}

// intermediates lists the results that left the chip on request, for as many
// inputs as were asked for. The values that the reference writes are not
// computed here: elements and bytes are.
func (f *benchFlags) intermediates(o *modelrun.Outcome) []byte {
	var b strings.Builder
	bytes := o.ElementBytes
	for i := range o.Phases {
		ph := &o.Phases[i]
		inputs := 1
		if ph.Plan != nil {
			inputs = ph.Plan.Inputs
		}
		for n := range min(f.args.DumpCount, inputs) {
			for _, x := range ph.Dumped {
				sayf(&b, "intermed input %d: %s %s %s %d elements %.0f bytes\n", n, ph.Name, x.Kind, x.Name, x.Out, float64(x.Out)*bytes)
			}
		}
	}
	return []byte(b.String())
}
