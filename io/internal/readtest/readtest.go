// Package readtest is shared by the tests of several readers.
package readtest

import (
	"context"
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
)

// Reader is the reading function of an importer.
type Reader func(context.Context, *format.Source, format.Options) (*components.Module, error)

// Text has a reader read text as the file called name.
func Text(read Reader, name, text string) (*components.Module, error) {
	src, err := format.FromBytes(name, []byte(text))
	if err != nil {
		return nil, err
	}
	return read(context.Background(), src, format.Options{Jobs: 1})
}

// Codes lists the notes of a module as "code=count", in their order.
func Codes(m *components.Module) string {
	var out []string
	for _, n := range m.Notes {
		out = append(out, fmt.Sprintf("%s=%d", n.Code, n.Count))
	}
	return strings.Join(out, " ")
}
