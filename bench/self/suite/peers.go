//go:build unix

package suite

import (
	"bufio"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perfsim/bench/self/kernel"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/psim"
)

// Peer is another simulator on the same graph.
type Peer struct {
	Name   string
	Absent string // why there are no figures, "" where there are
	N      int
	// SameAnswer says that it found the same end of the last instruction.
	SameAnswer bool
	// Ratios are its CPU time to ours, whole processes, ascending: one a round.
	Ratios []float64
}

//go:embed cpp/simgrid.cpp
var simgridSource []byte

// errAbsent says that a peer is not installed.
var errAbsent = errors.New("not installed here")

// peers compares whole processes on one graph of instructions that keep
// their lane until their end, which all simulators can express.
func (b *bench) peers() error {
	for _, p := range []struct {
		name  string
		most  int // largest size that ends within the time of a benchmark
		start func(dir string, m *components.Module) (func() ([]string, error), error)
		clock func(out []byte) (uint64, error)
	}{
		// SimGrid's time grows with the square of the number of activities in
		// the version Debian has.
		{"SimGrid", 10_000, b.simgrid, clockOfSimGrid},
		{"LogGOPSim", 10_000_000, b.schedule("LogGOPSim"), lastNumber},
		{"ATLAHS", 10_000_000, b.schedule("ATLAHS"), lastNumber},
		{"Akita", 10_000_000, b.akita, lastNumber},
	} {
		for _, n := range b.opt.Sizes {
			if n > p.most {
				break
			}
			m := kernel.DAG(dag(n))
			asReplay(m)
			peer := Peer{Name: p.name, N: n}
			command, err := p.start(b.opt.Dir, m)
			switch {
			case errors.Is(err, errAbsent):
				peer.Absent = err.Error()
			case err != nil:
				return fmt.Errorf("%s: %w", p.name, err)
			default:
				if err := b.pair(&peer, m, command, p.clock); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
			b.r.Peers = append(b.r.Peers, peer)
			if peer.Absent != "" {
				break
			}
		}
	}
	absent := "not installed here"
	if _, err := exec.LookPath("AstraSim_Analytical_Congestion_Unaware"); err == nil {
		absent = "installed, but it places one compute resource only, so that the graph cannot be given to it"
	}
	b.r.Peers = append(b.r.Peers, Peer{Name: "ASTRA-sim", Absent: absent})
	return nil
}

// program finds a program of a peer: in the folder of peers, else on PATH.
func (b *bench) program(name string) (string, error) {
	if b.opt.Peers != "" {
		if path, err := exec.LookPath(filepath.Join(b.opt.Peers, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: no %s in --peers or on PATH (bench/self/peers.sh builds it)", errAbsent, name)
	}
	return path, nil
}

// asReplay makes the module one whose instructions bring their durations.
func asReplay(m *components.Module) {
	n := m.Instr.Len()
	copy(m.Instr.MeasuredDur.Resize(n), m.Instr.Latency.Slice())
	m.Instr.Issue.Drop()
	m.Instr.Latency.Drop()
}

// pair lets perfsim and the peer take turns.
func (b *bench) pair(peer *Peer, m *components.Module, command func() ([]string, error), clock func([]byte) (uint64, error)) error {
	path := filepath.Join(b.opt.Dir, "peer.psim")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	if err := psim.Write(b.ctx, f, m, format.Options{Jobs: 2}); err != nil {
		return err
	}
	return b.rounds(func() error {
		ours, out, err := b.perfsim("run", "-q", "-j", "1", "--model", "replay", "--json", path)
		if err != nil {
			return err
		}
		want, err := latency(out)
		if err != nil {
			return err
		}
		args, err := command()
		if err != nil {
			return err
		}
		theirs, out, err := b.process(nil, args...)
		if err != nil {
			return err
		}
		got, err := clock(out)
		if err != nil {
			return err
		}
		peer.SameAnswer = got == want
		b.addUsage("peer/"+peer.Name+": perfsim", peer.N, ours)
		b.addUsage("peer/"+peer.Name, peer.N, theirs)
		peer.Ratios = append(peer.Ratios, last(b.r.Find("peer/"+peer.Name+"/CPU", peer.N))/last(b.r.Find("peer/"+peer.Name+": perfsim/CPU", peer.N)))
		slices.Sort(peer.Ratios)
		return nil
	})
}

// last is the value taken last.
func last(s *Sample) float64 { return s.Values[len(s.Values)-1] }

// simgrid builds the adapter that feeds SimGrid the graph.
func (b *bench) simgrid(dir string, m *components.Module) (func() ([]string, error), error) {
	cxx, err := exec.LookPath("c++")
	if err != nil {
		return nil, fmt.Errorf("%w: no C++ compiler on PATH", errAbsent)
	}
	src, bin, graph := filepath.Join(dir, "simgrid.cpp"), filepath.Join(dir, "simgrid"), filepath.Join(dir, "simgrid.txt")
	if err := os.WriteFile(src, simgridSource, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(b.ctx, cxx, "-O2", "-std=c++17", "-o", bin, src, "-lsimgrid").CombinedOutput(); err != nil {
		if strings.Contains(string(out), "simgrid/s4u.hpp") || strings.Contains(string(out), "-lsimgrid") {
			return nil, fmt.Errorf("%w: its library is not there (Debian: libsimgrid-dev)", errAbsent)
		}
		return nil, fmt.Errorf("building its adapter: %w: %s", err, out)
	}
	if err := writeFile(graph, func(w *bufio.Writer) {
		fmt.Fprintln(w, m.Instr.Len(), m.Lanes.Len())
		for i := range m.Instr.Len() {
			row := m.Edges.Preds.Row(i)
			fmt.Fprint(w, m.Instr.Lane.At(i), " ", m.Instr.MeasuredDur.At(i), " ", len(row))
			for _, e := range row {
				fmt.Fprint(w, " ", e&ecs.TargetMask)
			}
			fmt.Fprintln(w)
		}
	}); err != nil {
		return nil, err
	}
	return func() ([]string, error) { return []string{bin, graph, "--log=root.thresh:error"}, nil }, nil
}

func clockOfSimGrid(out []byte) (uint64, error) {
	return strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
}

// schedule returns the adapter of a program that runs GOAL schedules: one rank
// whose compute streams are the lanes.
func (b *bench) schedule(name string) func(dir string, m *components.Module) (func() ([]string, error), error) {
	return func(dir string, m *components.Module) (func() ([]string, error), error) {
		sim, err := b.program(name)
		if err != nil {
			return nil, err
		}
		pack, err := b.program("txt2bin")
		if err != nil {
			return nil, err
		}
		text, bin := filepath.Join(dir, "graph.goal"), filepath.Join(dir, "graph.bin")
		if err := writeFile(text, func(w *bufio.Writer) { writeGOAL(w, m) }); err != nil {
			return nil, err
		}
		if out, err := exec.CommandContext(b.ctx, pack, "-i", text, "-o", bin).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("txt2bin: %w: %s", err, out)
		}
		return func() ([]string, error) { return []string{sim, "-f", bin}, nil }, nil
	}
}

// writeGOAL writes the graph as GOAL text. The language has no program order:
// every instruction requires the one before it on its lane.
func writeGOAL(w io.Writer, m *components.Module) {
	fmt.Fprintf(w, "num_ranks 1\n\nrank 0 {\n")
	last := make([]int, m.Lanes.Len())
	for i := range m.Instr.Len() {
		l := m.Instr.Lane.At(i)
		fmt.Fprintf(w, "l%d: calc %d cpu %d\n", i+1, m.Instr.MeasuredDur.At(i), l)
		before := last[l]
		for _, e := range m.Edges.Preds.Row(i) {
			p := int(e&ecs.TargetMask) + 1
			fmt.Fprintf(w, "l%d requires l%d\n", i+1, p)
			if p == before {
				before = 0
			}
		}
		if before > 0 {
			fmt.Fprintf(w, "l%d requires l%d\n", i+1, before)
		}
		last[l] = i + 1
	}
	fmt.Fprintf(w, "}\n")
}

// akita writes the graph for a harness of Akita, a library of discrete events:
// akita-dag FILE prints the end of the last instruction. The file has 32-bit
// numbers: instructions, lanes, where the producers of each instruction start
// (one more than there are instructions), the producers, the lanes, the
// durations in ns.
func (b *bench) akita(dir string, m *components.Module) (func() ([]string, error), error) {
	bin, err := b.program("akita-dag")
	if err != nil {
		return nil, err
	}
	graph := filepath.Join(dir, "graph.akita")
	if err := writeFile(graph, func(w *bufio.Writer) {
		number := func(v uint32) { w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(), v)) }
		n := m.Instr.Len()
		number(uint32(n))
		number(uint32(m.Lanes.Len()))
		for _, o := range m.Edges.Preds.Offsets() {
			number(o)
		}
		for _, e := range m.Edges.Preds.Words() {
			number(e & ecs.TargetMask)
		}
		for i := range n {
			number(uint32(m.Instr.Lane.At(i)))
		}
		for i := range n {
			number(m.Instr.MeasuredDur.At(i))
		}
	}); err != nil {
		return nil, err
	}
	return func() ([]string, error) { return []string{bin, graph}, nil }, nil
}

// lastNumber is the last number printed: the end of the only rank.
func lastNumber(out []byte) (uint64, error) {
	f := strings.FieldsFunc(string(out), func(r rune) bool { return r < '0' || r > '9' })
	if len(f) == 0 {
		return 0, errors.New("it printed no number")
	}
	return strconv.ParseUint(f[len(f)-1], 10, 64)
}

func writeFile(path string, fill func(w *bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fill(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
