// Package formats lists every format perfsim reads and writes: the one place
// where a new one is registered.
package formats

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/io/neuron/nki"
	"perfsim/io/neuron/profile"
	"perfsim/io/neuron/pttf"
	"perfsim/io/psim"
	"perfsim/io/tenstorrent/profilelog"
	"perfsim/io/traces/catapult"
	"perfsim/io/traces/chakra"
	"perfsim/io/traces/goal"
	"perfsim/io/traces/kineto"
	"perfsim/io/xla/hlo"
	"perfsim/io/xla/stablehlo"
	"perfsim/io/xla/xplane"
)

// importers are tried in this order; the first whose sniffer says yes reads
// the input, so the more particular ones come first.
func importers() []format.Importer {
	return []format.Importer{
		psim.Importer,
		nki.Importer,
		nki.SourceImporter,
		birjson.Importer,
		profile.Importer,
		catapult.Importer,
		pttf.Importer,
		kineto.Importer,
		xplane.Importer,
		chakra.Importer,
		goal.Importer,
		goal.BinaryImporter,
		hlo.TextImporter,
		hlo.ProtoImporter,
		stablehlo.Importer,
		profilelog.Importer,
	}
}

// Exporters lists what can be written.
func Exporters() []format.Exporter {
	return []format.Exporter{
		psim.Exporter,
		birjson.Exporter,
	}
}

// Find returns the importer for the source: the one called name, or where
// name is "" the first that recognises the input.
func Find(src *format.Source, name string) (format.Importer, error) {
	all := importers()
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
		if name == f.Name {
			return f, nil
		}
	}
	if name != "" {
		return format.Importer{}, fmt.Errorf("format %q is not one of %s", name, strings.Join(known, ", "))
	}
	at := -1
	if src.Recognise(func(head []byte) bool {
		at = slices.IndexFunc(all, func(f format.Importer) bool { return f.Sniff(head) })
		return at >= 0 || elsewhere(src.Name, src.Packed, head) != ""
	}) && at >= 0 {
		return all[at], nil
	}
	if err := src.Err(); err != nil {
		return format.Importer{}, err
	}
	if len(src.Head()) == 0 {
		return format.Importer{}, fmt.Errorf("%s: empty input", src.Name)
	}
	if advice := elsewhere(src.Name, src.Packed, src.Head()); advice != "" {
		return format.Importer{}, fmt.Errorf("%s: %s", src.Name, advice)
	}
	if err := archiveError(src); err != nil {
		return format.Importer{}, err
	}
	return format.Importer{}, fmt.Errorf("%s: none of the known formats (%s); --format names one", src.Name, strings.Join(known, ", "))
}
