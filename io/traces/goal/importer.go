package goal

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Importer reads GOAL text.
var Importer = format.Importer{
	Name:   "goal",
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

// read reads the text form.
func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	p := newParser(moduleName(src.Name, ".goal"), src)
	return finish(src.Name, p.s, p.parse(ctx))
}

// moduleName is the name of a file without folder and endings.
func moduleName(file, ending string) string {
	name := path.Base(file)
	for _, suffix := range []string{".gz", ".zst", ending} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// finish makes the module of a schedule that was read, and names the file in
// errors.
func finish(file string, s *schedule, err error) (*components.Module, error) {
	if err == nil {
		s.b.M.Attributes = append(s.b.M.Attributes, components.Attribute{Key: "trace.num_ranks", Value: strconv.Itoa(s.ranks)})
		var m *components.Module
		if m, err = s.module(); err == nil {
			return m, nil
		}
	}
	if strings.HasPrefix(err.Error(), file) {
		return nil, err
	}
	return nil, fmt.Errorf("%s:%w", file, err)
}
