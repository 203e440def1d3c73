//go:build unix

package suite

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"perfsim/bench/self/gen"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/io/psim"
	"perfsim/io/traces/catapult"
	"perfsim/systems/cost"
	"perfsim/systems/index"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// snapshot returns the path of the snapshot of n generated instructions,
// written at the first call.
func (b *bench) snapshot(n int) (string, error) {
	path := filepath.Join(b.opt.Dir, strconv.Itoa(n)+".psim")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	m, err := gen.Module(b.ctx, gen.Default(n))
	if err != nil {
		return "", err
	}
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := psim.Write(b.ctx, f, m, format.Options{Jobs: 2}); err != nil {
		return "", err
	}
	return path, f.Close()
}

// traceMost bounds what is written as text: a record has some 500 bytes.
const traceMost = 1_000_000

// systems takes the CPU time of each system on one goroutine.
func (b *bench) systems() error {
	mach, err := machine.Load("trn2")
	if err != nil {
		return err
	}
	return b.sizes("systems", 1<<30, func(n int) error {
		path, err := b.snapshot(n)
		if err != nil {
			return err
		}
		repeat := max(1, 1_000_000/n)
		return b.rounds(func() error {
			var s *psim.Snapshot
			var m *components.Module
			w := &components.World{Machine: mach, Events: components.NewEvents(), Config: components.Config{Model: cost.Reference, Jobs: 1}}
			for _, step := range []struct {
				name string // "" is not measured
				run  func() error
			}{
				{"open snapshot", func() (err error) { s, err = psim.Open(b.ctx, path, 1, nil); return err }},
				{"check checksums", func() error { return s.Verify(b.ctx, 1, nil, nil) }},
				{"", func() (err error) { m, err = s.Module(nil); w.Module = m; return err }},
				{"check tables", func() error { return m.CheckJobs(b.ctx, 1) }},
				{"cost, fresh memory", func() error {
					if m.Instr.Issue.Len() > 0 {
						m.Instr.Issue.Drop()
						m.Instr.Latency.Drop()
					}
					return cost.Fill(b.ctx, w)
				}},
				{"cost", func() error { return cost.Fill(b.ctx, w) }},
				{"place, fresh memory", func() error { w.Events.Arrive.Drop(); return place.Run(b.ctx, w) }},
				{"place", func() error { return place.Run(b.ctx, w) }},
				{"summary", func() error { summary.Make(w); return nil }},
				{"index (on demand)", func() error { w.ByLane, w.ByOpcode, w.ByClass = nil, nil, nil; return index.Build(b.ctx, w) }},
			} {
				if step.name == "" {
					if err := step.run(); err != nil {
						return err
					}
					continue
				}
				ns, err := repeated(repeat, step.run)
				if err != nil {
					return err
				}
				b.r.add("system/"+step.name, n, "ns/instr", ns/float64(n))
			}
			b.r.add("bytes/module", n, "bytes/instr", float64(m.Bytes())/float64(n))
			b.r.add("bytes/events", n, "bytes/instr", float64(w.Events.Arrive.Bytes()+w.Events.Dur.Bytes())/float64(n))
			b.r.add("bytes/edges per instruction", n, "edges", float64(m.Edges.Preds.Len())/float64(n))
			if n > traceMost {
				return nil
			}
			return b.text(n, w)
		})
	})
}

// text takes the speed of what is written and read as text.
func (b *bench) text(n int, w *components.World) error {
	for _, graph := range []bool{false, true} {
		name := "text/trace"
		if graph {
			name = "text/trace with arrows"
		}
		var out counter
		ns, err := timed(func() error { return catapult.Write(b.ctx, &out, w, 0, components.RunA, graph, 1) })
		if err != nil {
			return err
		}
		b.r.add(name, n, "MB/s", float64(out)/ns*1e3)
		b.r.add(name+" per instruction", n, "ns/instr", ns/float64(n))
	}
	if n > traceMost/10 {
		return nil
	}
	var buf bytes.Buffer
	ns, err := timed(func() error { return birjson.Exporter.Module(b.ctx, &buf, w.Module, format.Options{Jobs: 1}) })
	if err != nil {
		return err
	}
	b.r.add("text/write BIR JSON", n, "MB/s", float64(buf.Len())/ns*1e3)
	src, err := format.FromBytes("bench", buf.Bytes())
	if err != nil {
		return err
	}
	if ns, err = timed(func() error { _, err := birjson.Importer.Module(b.ctx, src, format.Options{Jobs: 1}); return err }); err != nil {
		return err
	}
	b.r.add("text/read BIR JSON", n, "MB/s", float64(buf.Len())/ns*1e3)
	return nil
}

// counter counts bytes and drops them.
type counter int64

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
