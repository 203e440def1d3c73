// Package descfile has what all kinds of machine descriptions share: how the
// embedded ones are listed and how their YAML is read.
package descfile

import (
	"bytes"
	"embed"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names returns the names of the descriptions in files, sorted.
func Names(files embed.FS) []string {
	entries, _ := files.ReadDir(".") // an embedded folder cannot fail to list
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(out)
	return out
}

// Decode reads YAML into the struct that into points to. A field it does not
// have is an error. Of several errors the first is reported: it is the one to
// mend.
func Decode(b []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if all := (*yaml.TypeError)(nil); errors.As(err, &all) && len(all.Errors) > 0 {
		return errors.New(all.Errors[0])
	}
	return err
}
