package pttf

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/traces/catapult"
)

// Importer reads a package that holds one trace as that trace.
var Importer = format.Importer{
	Name:   "perf_sim_package",
	Sniff:  sniff,
	Module: read,
}

// sniff looks at the first header of a tar for a member that is a trace.
func sniff(head []byte) bool {
	if len(head) < 512 || string(head[257:262]) != "ustar" {
		return false
	}
	name, _, _ := strings.Cut(string(head[:100]), "\x00")
	return isTraceName(path.Base(name))
}

// maxTrace bounds the trace that is read from a package.
const maxTrace = 1 << 32

func read(ctx context.Context, src *format.Source, o format.Options) (*components.Module, error) {
	fail := func(err error) (*components.Module, error) { return nil, fmt.Errorf("%s: %w", src.Name, err) }
	r := tar.NewReader(src)
	var names []string
	var text []byte
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail(err)
		}
		if h.Typeflag != tar.TypeReg || !isTraceName(path.Base(h.Name)) {
			continue
		}
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") { // holes are read as zeros without end
				return fail(fmt.Errorf("member %q is sparse", h.Name))
			}
		}
		if names = append(names, h.Name); len(names) > 1 {
			continue
		}
		if h.Size > maxTrace {
			return fail(fmt.Errorf("member %q has %d bytes: extract it (perfsim unpack) and give that", h.Name, h.Size))
		}
		if err := format.Reserve(ctx, uint64(h.Size), "reading a trace of a package"); err != nil {
			return fail(err)
		}
		if text, err = io.ReadAll(r); err != nil {
			return fail(fmt.Errorf("member %q: %w", h.Name, err))
		}
	}
	if len(names) == 0 {
		return fail(errors.New("the package holds no trace that is a regular file"))
	}
	if len(names) > 1 {
		return fail(fmt.Errorf("%d traces, such as %q: extract one (perfsim unpack) and give that", len(names), names[0]))
	}
	trace, err := format.FromBytes(path.Base(names[0]), text)
	if err != nil {
		return fail(err)
	}
	defer trace.Close()
	m, err := catapult.Importer.Module(ctx, trace, o)
	if err != nil {
		return fail(err)
	}
	return m, nil
}
