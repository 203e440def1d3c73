package module

import (
	"context"
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Importer reads snapshots: mapped where the input is a plain file, from a
// stream where it is compressed or a pipe.
var Importer = format.Importer{Name: "psim", Title: "perfsim snapshot", Sniff: sniff, Module: load}

// load is the importer: columns, their checksums, the module's check. The
// mapping of a file lasts as long as the process, because a column does not
// keep it alive; programs that open many use Open and Close.
func load(ctx context.Context, src *format.Source, opt format.Options) (*components.Module, error) {
	var want func(string) bool
	if opt.SkipOperands {
		want = func(name string) bool { return !strings.HasPrefix(name, "operands.") }
	}
	var s *Snapshot
	var err error
	if src.Path != "" && src.Size >= 0 {
		if s, err = Open(src.Path); err == nil {
			err = s.populate(want)
		}
	} else {
		s, err = Read(src.Name, src, want)
	}
	if err != nil {
		return nil, err
	}
	if !opt.NoVerify {
		all := want
		if all == nil {
			all = func(string) bool { return true } // gaps are no concern of a reader
		}
		if err := s.Verify(ctx, opt.Jobs, all, opt.Progress); err != nil {
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
