package goal

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Importer reads GOAL text.
var Importer = format.Importer{
	Name:   "goal",
	Title:  "GOAL schedule (LogGOPSim text)",
	Sniff:  sniff,
	Module: read,
}

// sniff looks for num_ranks behind comments and white space.
func sniff(head []byte) bool {
	for {
		head = bytes.TrimLeft(head, " \t\r\n")
		end := ""
		switch {
		case bytes.HasPrefix(head, []byte("//")):
			end = "\n"
		case bytes.HasPrefix(head, []byte("/*")):
			end = "*/"
		default:
			return bytes.HasPrefix(head, []byte("num_ranks"))
		}
		i := bytes.Index(head[2:], []byte(end))
		if i < 0 {
			return false
		}
		head = head[2+i+len(end):]
	}
}

func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	name := path.Base(src.Name)
	for _, suffix := range []string{".gz", ".zst", ".goal"} {
		name = strings.TrimSuffix(name, suffix)
	}
	p := newParser(src)
	err := p.parse(ctx)
	if err == nil {
		var m *components.Module
		if m, err = p.s.module(name); err == nil {
			return m, nil
		}
	}
	if strings.HasPrefix(err.Error(), src.Name) {
		return nil, err
	}
	return nil, fmt.Errorf("%s:%w", src.Name, err)
}
