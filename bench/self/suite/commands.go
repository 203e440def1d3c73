//go:build unix

package suite

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"perfsim/bench/self/kernel"
)

// commandMost bounds what the commands behind run are measured on: some write
// several hundred bytes an instruction.
const commandMost = 1_000_000

// commands takes whole processes of the commands behind run.
func (b *bench) commands() error {
	return b.sizes("commands", commandMost, func(n int) error {
		path, err := b.snapshot(n)
		if err != nil {
			return err
		}
		out := filepath.Join(b.opt.Dir, "out")
		goal := filepath.Join(b.opt.Dir, strconv.Itoa(n)+".goal")
		m := kernel.DAG(dag(n))
		asReplay(m)
		if err := writeFile(goal, func(w *bufio.Writer) { writeGOAL(w, m) }); err != nil {
			return err
		}
		defer os.Remove(goal)
		return b.rounds(func() error {
			for _, c := range []struct {
				name string
				most int // instructions, 0 for commandMost
				args []string
			}{
				{"calibrated model", 0, []string{"run", "-q", "--model", "calibrated", path}},
				{"from GOAL text", 0, []string{"run", "-q", goal}},
				{"whatif, 2 points", 0, []string{"whatif", "-q", path, "pe.clock=0.5x,2x"}},
				{"whatif, 12 points", 0, []string{"whatif", "-q", path, "pe.clock=0.5x,0.6x,0.7x,0.8x,0.9x,1.1x,1.2x,1.3x,1.4x,1.6x,1.8x,2x"}},
				{"whatif --elasticity", 10_000, []string{"whatif", "-q", "--elasticity", path}},
				{"export, Perfetto", 0, []string{"export", "-q", path, out + ".pftrace"}},
				{"export, Chrome JSON", 0, []string{"export", "-q", path, out + ".json"}},
				{"export, Parquet", 0, []string{"export", "-q", path, out + string(filepath.Separator)}},
				{"view -o", 0, []string{"view", "-o", out + ".html", path}},
			} {
				if c.most > 0 && n > c.most {
					continue
				}
				u, _, err := b.perfsim(c.args...)
				if err != nil {
					return err
				}
				b.addUsage("command/"+c.name, n, u)
				for _, p := range []string{out, out + ".pftrace", out + ".json", out + ".html"} {
					if err := os.RemoveAll(p); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// commandTable shows what commands measured.
func (r *Results) commandTable(p *printer) {
	p.heading("Other commands", "Whole processes on the same generated modules, all cores. The GOAL text is the graph of the other simulators.")
	r.usageTable(p, "command/", "command")
	few, many := r.largest("command/whatif, 2 points/CPU"), r.largest("command/whatif, 12 points/CPU")
	if few != nil && many != nil && few.N == many.N {
		p.line("- whatif: %s ms of CPU a point at %s instructions.", number((many.Best()-few.Best())/10*1e3), thousands(few.N))
	}
}

// Upward finds a file or folder: its path from the working folder or from one
// above it, fs.ErrNotExist where there is none.
func Upward(path string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		found := filepath.Join(dir, path)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fs.ErrNotExist
		}
		dir = up
	}
}
