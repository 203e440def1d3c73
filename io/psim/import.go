package psim

import (
	"context"
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Importer reads snapshots: the wanted columns side by side where the input is
// a plain file, one after the other where it is compressed or a pipe.
var Importer = format.Importer{Name: "psim", Sniff: sniff, Module: load}

// load is the importer: columns, their checksums, the module's check.
func load(ctx context.Context, src *format.Source, opt format.Options) (*components.Module, error) {
	var s *Snapshot
	var err error
	want := func(string) bool { return true }
	choose := func(h *header) func(string) bool {
		if opt.SkipOperands != nil && opt.SkipOperands(h.format, h.attributes) {
			want = func(name string) bool { return !strings.HasPrefix(name, "operands.") }
		}
		return want
	}
	if src.Path != "" && src.Size >= 0 {
		s, err = open(ctx, src.Path, opt.Jobs, choose)
	} else {
		s, err = read(src.Name, src, choose)
	}
	if err != nil {
		return nil, err
	}
	if !opt.NoVerify {
		if err := s.Verify(ctx, opt.Jobs, want, opt.Progress); err != nil {
			return nil, err
		}
	}
	m, err := s.Module(want)
	if err != nil {
		return nil, err
	}
	if err := m.CheckJobs(ctx, opt.Jobs); err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return m, nil
}
