package sweep

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems"
	"perfsim/systems/whatif"
)

// Plan is the product of a specification with all that names a case. A worker
// elsewhere gets it as JSON.
type Plan struct {
	Engine   string    `json:"engine"`   // version of what predicts
	Inputs   []Input   `json:"inputs"`   // files of the sweep
	Machines []Machine `json:"machines"` // machines of the sweep
	Models   []string  `json:"models"`   // "" for the input's own
	Options  []string  `json:"options"`  // NAME=VALUE, spaces between
	Changes  []string  `json:"changes"`  // as Options; the first is ""

	settings [][]whatif.Setting
}

// Input is a file to predict.
type Input struct {
	Name   string `json:"name"`   // as the user named it
	SHA256 string `json:"sha256"` // digest of the input's bytes
}

// Check fails where the file at path is not the input.
func (in Input) Check(ctx context.Context, path string) error {
	sum, err := digest(ctx, path)
	if err == nil && sum != in.SHA256 {
		err = fmt.Errorf("%s is not the file that the sweep names: its SHA-256 is %s, not %s", path, sum, in.SHA256)
	}
	return err
}

// Machine is a machine to predict on.
type Machine struct {
	Name string `json:"name"` // as the user named it; "" for the input's own
	// Text is the description of a file; "" for machines that perfsim has.
	Text   string `json:"text,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// mostCases bounds a plan.
const mostCases = 10_000_000

// Case is one prediction.
type Case struct {
	Number                                  int // from 0 on, in the order of the table
	ID                                      string
	Input, Machine, Model, Options, Changes int // places in the plan's lists
}

// NewPlan expands a specification. Paths that are not absolute are from dir
// on; resolve checks the options.
func NewPlan(ctx context.Context, s *Spec, dir, engine string, resolve Resolver) (*Plan, error) {
	p := &Plan{Engine: engine, Models: orDefault(s.Models), Options: orDefault(s.Options)}
	names, err := inputs(s, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sum, err := digest(ctx, name)
		if err != nil {
			return nil, err
		}
		p.Inputs = append(p.Inputs, Input{name, sum})
	}
	for _, name := range orDefault(s.Machines) {
		m := Machine{Name: name}
		if name != "" {
			if _, err := systems.LoadMachine(name); err != nil && dir != "" && !filepath.IsAbs(name) {
				if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
					m.Name = filepath.Join(dir, name)
				}
			}
			if _, err := systems.LoadMachine(m.Name); err != nil {
				return nil, err
			}
			text, err := machine.Text(m.Name)
			if err != nil {
				return nil, err
			}
			m.SHA256 = hexSum(text)
			if !builtin(m.Name) {
				m.Text = string(text)
			}
		}
		p.Machines = append(p.Machines, m)
	}
	for _, m := range p.Models {
		if _, err := components.ParseModel(m); err != nil {
			return nil, systems.RequestError{Err: fmt.Errorf("model %w", err)}
		}
	}
	for k, o := range p.Options {
		p.Options[k] = strings.Join(words(o), " ")
		if _, err := resolve(words(o)); err != nil {
			return nil, err
		}
	}
	if err := p.changes(s.WhatIf); err != nil {
		return nil, err
	}
	p.Models, p.Options = unique(p.Models), unique(p.Options)
	return p, p.checkSize()
}

// checkSize refuses products that are too large.
func (p *Plan) checkSize() error {
	n := 1
	for _, k := range []int{len(p.Inputs), len(p.Machines), len(p.Models), len(p.Options), len(p.Changes)} {
		if n *= k; n > mostCases {
			return fmt.Errorf("the sweep has more than %d cases", mostCases)
		}
	}
	return nil
}

// builtin reports whether perfsim has the machine.
func builtin(name string) bool {
	return slices.ContainsFunc(machine.Names(), func(n string) bool {
		m, err := machine.Load(n)
		return err == nil && (n == name || m.Name == name || slices.Contains(m.Aliases, name))
	})
}

func orDefault(list []string) []string {
	if len(list) == 0 {
		return []string{""}
	}
	return slices.Clone(list)
}

// unique drops what came before.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		twice := seen[s]
		seen[s] = true
		return twice
	})
}

// changes fills Changes and settings: first the unchanged case.
func (p *Plan) changes(list []string) error {
	p.Changes, p.settings = []string{""}, [][]whatif.Setting{nil}
	seen := map[string]bool{"": true}
	for _, text := range list {
		points, err := pointsOf(text)
		if err != nil {
			return systems.RequestError{Err: err}
		}
		for _, point := range points {
			var parts []string
			for _, s := range point {
				parts = append(parts, s.Name+"="+s.Text)
			}
			if t := strings.Join(parts, " "); !seen[t] {
				seen[t] = true
				p.Changes, p.settings = append(p.Changes, t), append(p.settings, point)
			}
		}
	}
	return nil
}

// pointsOf returns the combinations of one entry of WhatIf.
func pointsOf(text string) ([][]whatif.Setting, error) {
	var assigned []whatif.Assignment
	for _, w := range words(text) {
		a, err := whatif.Parse(w)
		if err != nil {
			return nil, err
		}
		assigned = append(assigned, a)
	}
	if len(assigned) == 0 {
		return nil, errors.New("an entry of whatif is empty; the unchanged case is there anyway")
	}
	return whatif.Points(assigned)
}

// Len returns the number of cases.
func (p *Plan) Len() int {
	return len(p.Inputs) * len(p.Machines) * len(p.Models) * len(p.Options) * len(p.Changes)
}

// Case returns case n, 0 ≤ n < Len: inputs outermost, changes innermost, so
// that neighbours share the most work.
func (p *Plan) Case(n int) Case {
	c := Case{Number: n}
	n, c.Changes = n/len(p.Changes), n%len(p.Changes)
	n, c.Options = n/len(p.Options), n%len(p.Options)
	n, c.Model = n/len(p.Models), n%len(p.Models)
	c.Input, c.Machine = n/len(p.Machines), n%len(p.Machines)
	in, m := &p.Inputs[c.Input], &p.Machines[c.Machine]
	// The name without its folder is part of it: some formats call a module by it.
	c.ID = hexSum([]byte(strings.Join([]string{"perfsim case 1", p.Engine, in.SHA256, filepath.Base(in.Name), m.SHA256,
		p.Models[c.Model], p.Options[c.Options], p.Changes[c.Changes]}, "\n")))[:32]
	return c
}

// group is equal for the cases of one module on one machine.
func (p *Plan) group(c *Case) int { return c.Number / len(p.Changes) }

// Digest names the whole plan by its content.
func (p *Plan) Digest() string {
	h := sha256.New()
	for _, list := range [][]string{{"perfsim plan 1", p.Engine}, p.Models, p.Options, p.Changes} {
		fmt.Fprintf(h, "%d\n%s\n", len(list), strings.Join(list, "\n"))
	}
	for _, in := range p.Inputs {
		fmt.Fprintf(h, "input %s %s\n", in.SHA256, in.Name)
	}
	for _, m := range p.Machines {
		fmt.Fprintf(h, "machine %s %s\n", m.SHA256, m.Name)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// digest returns the SHA-256 of an input's file.
func digest(ctx context.Context, name string) (string, error) {
	path, _ := systems.InputFile(name)
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file; the inputs of a sweep are read more than once", path)
	}
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// inputs lists the files of a specification, in its order, those of a pattern
// by name, each once.
func inputs(s *Spec, dir string) ([]string, error) {
	patterns := slices.Clone(s.Inputs)
	if s.Manifest != "" {
		more, err := manifest(within(dir, s.Manifest))
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, more...)
	}
	var out []string
	for _, p := range patterns {
		p = within(dir, p)
		file, rest := systems.InputFile(p)
		if _, err := os.Stat(file); err == nil || !strings.ContainsAny(file, "*?[") {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("input %s does not exist", file)
			}
			out = append(out, p)
			continue
		}
		found, err := filepath.Glob(file)
		if err != nil {
			return nil, fmt.Errorf("input pattern %s: %w", file, err)
		}
		slices.Sort(found)
		n := len(out)
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
				out = append(out, f+rest)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("input pattern %s matches no file", file)
		}
	}
	if len(out) == 0 {
		return nil, systems.RequestError{Err: errors.New("the sweep has no inputs: name some with --input, or inputs or manifest in the specification")}
	}
	return unique(out), nil
}

func within(dir, path string) string {
	if dir == "" || dir == "." || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// manifest reads a list of paths and patterns.
func manifest(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(text) > mostSpec {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, mostSpec)
	}
	var out []string
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if line := strings.TrimSpace(in.Text()); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
