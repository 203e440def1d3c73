package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Spec is the request of a user: the lists whose product is predicted.
type Spec struct {
	// Inputs are paths and patterns of paths.
	Inputs []string `yaml:"inputs"`
	// Manifest is a file that lists more of them, one a line; lines that begin
	// with # are comments.
	Manifest string `yaml:"manifest"`
	// Machines are names and description files. Where there are none, every
	// input is predicted on the machine that it was made for.
	Machines []string `yaml:"machines"`
	Models   []string `yaml:"models"`
	// Options are flags of run that change a prediction: NAME=VALUE, several
	// with spaces between, each entry one choice.
	Options []string `yaml:"options"`
	// WhatIf are assignments as of whatif: NAME=VALUE with one or several values,
	// several with spaces between. Entries add up, the assignments of one entry
	// multiply.
	WhatIf []string `yaml:"whatif"`
	// Output is the table's path, Files a folder for files of every case.
	Output string `yaml:"output"`
	Files  string `yaml:"files"`
}

// Read reads a specification in YAML. Unknown keys are errors, with their line.
func Read(name string, r io.Reader) (*Spec, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostSpec+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(text) > mostSpec {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, mostSpec)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var s Spec
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", name, strings.NewReplacer("yaml: unmarshal errors:\n  ", "", "yaml: ", "", "in type sweep.Spec",
			"among the keys of a sweep (inputs, manifest, machines, models, options, whatif, output, files)").Replace(err.Error()))
	}
	if err := d.Decode(new(Spec)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document", name)
	}
	return &s, nil
}

// mostSpec bounds a specification and a manifest, in bytes.
const mostSpec = 64 << 20

// words splits at spaces outside quotes.
func words(s string) []string {
	var out []string
	var quote rune
	at := -1
	for k, c := range s {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.ContainsRune(s[k+1:], c):
			quote = c
		case c == ' ' || c == '\t' || c == '\n':
			if at >= 0 {
				out = append(out, s[at:k])
			}
			at = -1
			continue
		}
		if at < 0 {
			at = k
		}
	}
	if at >= 0 {
		out = append(out, s[at:])
	}
	return out
}
