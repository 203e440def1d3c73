package profile

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Importer reads the JSON export of the Neuron profiler.
var Importer = format.Importer{
	Name:   "neuronprofile",
	Sniff:  sniff,
	Module: module,
}

// sniff looks for a top-level key of the export whose value is a list. Keys
// that other formats may have too must show a second sign.
func sniff(head []byte) bool {
	s := newScanner(bytes.NewReader(head))
	if s.Expect('{', "") != nil {
		return false
	}
	for range 64 {
		key, err := s.Key("")
		if err != nil {
			return false
		}
		if _, read := sections[key]; s.Peek() == '[' && (read || derived[key]) {
			rest := head[min(int(s.Offset()), len(head)):]
			if sign, ambiguous := signs[key]; !ambiguous || slices.ContainsFunc(sign, func(t string) bool { return bytes.Contains(rest, []byte(t)) }) {
				return true
			}
		}
		if s.Skip("") != nil {
			return false
		}
		if more, err := s.More('}', ""); err != nil || !more {
			return false
		}
	}
	return false
}

// signs must follow the keys that do not decide alone.
var signs = map[string][]string{
	"metadata":    {`"ntff_version"`, `"pe_clock_freq"`, `"first_hw_timestamp"`},
	"summary":     {`"total_time"`, `"instruction_count"`, `"neuroncore_cycle_count"`},
	"warnings":    {`"instruction"`, `"neuron`, `"ntff`, "NEFF", "NEURON"},
	"dma":         {`"dma_engine"`, `"dma_queue"`, `"queue_type"`},
	"instruction": {`"opcode"`, `"operands"`, `"bir_id"`, `"subgraph"`, `"timestamp"`},
	"model_info":  {`"nc_idx"`, `"neuroncore_cycle_count"`},
	"terminology": {`"dma_`, `"hbm_`, `"mfu_`, `_engine_`},
}

func module(ctx context.Context, src *format.Source, opt format.Options) (*components.Module, error) {
	if opt.Progress != nil {
		src.OnProgress(opt.Progress)
	}
	a := newAssembler(baseName(src.Name))
	skipped, err := read(ctx, src, max(opt.Jobs, 1), a.commit)
	if err != nil {
		return nil, wrap(src, err)
	}
	a.noteSkipped(skipped)
	m, err := a.finish(ctx)
	if err != nil {
		return nil, wrap(src, err)
	}
	hint(m)
	return m, nil
}

// noteSkipped names the sections that were left out: an attribute for those
// that every export has and that follow from the others, a note for each other.
func (a *assembler) noteSkipped(list []skipped) {
	var names []string
	for _, s := range list {
		if derived[s.name] {
			names = append(names, s.name)
			continue
		}
		a.m.Note("unknown-section", "section "+s.name+" is none that perfsim knows; its elements were skipped", s.count)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		a.m.Attributes = append(a.m.Attributes, components.Attribute{Key: "sections_not_read", Value: strings.Join(names, " ")})
	}
}

// baseName makes a module name of a file name: trn2_attn.profile.json.gz is
// trn2_attn.
func baseName(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".profile"} {
		name = strings.TrimSuffix(name, suffix)
	}
	if name == "" || name == "." || name == "standard input" {
		return "profile"
	}
	return name
}
