package netlist

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SoC is a chip as its descriptor gives it.
type SoC struct {
	Arch    string
	Rows    int // worker rows and columns, as netlists count them
	Cols    int
	Workers int
}

// ReadSoCFile reads a SoC descriptor.
func ReadSoCFile(path string) (*SoC, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := readSoC(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// readSoC reads a SoC descriptor: functional workers named "x-y" on the
// network, of which the distinct rows and columns are the grid.
func readSoC(r io.Reader) (s *SoC, err error) {
	b, err := slurp(r)
	if err != nil {
		return nil, err
	}
	root, err := parse(b)
	if err != nil {
		return nil, err
	}
	w := &walker{n: &Netlist{}}
	defer func() {
		if x := recover(); x != nil {
			if x != errBudget {
				panic(x)
			}
			s, err = nil, errBudget
		}
	}()
	s = &SoC{}
	var xs, ys []int
	w.entries(root, "the descriptor", func(key string, _, v *yaml.Node) {
		switch key {
		case "arch_name":
			s.Arch = strings.ToLower(v.Value)
		case "functional_workers":
			for _, c := range w.words(v, key) {
				a, b, ok := strings.Cut(c, "-")
				x, e1 := strconv.Atoi(a)
				y, e2 := strconv.Atoi(b)
				if !ok || e1 != nil || e2 != nil {
					w.problem(v, "worker %q is not x-y", c)
					continue
				}
				s.Workers++
				xs, ys = append(xs, x), append(ys, y)
			}
		}
	})
	if len(w.n.Problems) > 0 {
		p := w.n.Problems[0]
		return nil, fmt.Errorf("line %d:%d: %s", p.Line, p.Col, p.Text)
	}
	if s.Workers == 0 {
		return nil, fmt.Errorf("not a SoC descriptor: no functional_workers")
	}
	distinct := func(v []int) int { slices.Sort(v); return len(slices.Compact(v)) }
	s.Cols, s.Rows = distinct(xs), distinct(ys)
	return s, nil
}
