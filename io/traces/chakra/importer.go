package chakra

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/internal/timeline"
)

// Importer reads Chakra execution traces in the three forms.
var Importer = format.Importer{
	Name:   "chakra",
	Sniff:  func(head []byte) bool { return form(head) != unknown },
	Module: read,
}

type shape uint8

const (
	unknown    shape = iota
	protobuf         // length-delimited messages
	feederJSON       // {"workload_graph": […]}
	hostJSON         // {"schema": …, "nodes": […]}
)

// form returns the form of an input that begins with head.
func form(head []byte) shape {
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) > 0 && text[0] == '{' {
		switch {
		case bytes.Contains(text, []byte(`"workload_graph"`)):
			return feederJSON
		case bytes.Contains(text, []byte(`"schema"`)) && bytes.Contains(text, []byte(`"nodes"`)):
			return hostJSON
		}
	}
	if sniffWire(head) {
		return protobuf
	}
	return unknown
}

func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	name := path.Base(src.Name)
	for _, suffix := range []string{".gz", ".zst", ".json", ".et"} {
		name = strings.TrimSuffix(name, suffix)
	}
	g := &graph{b: timeline.New(name, "chakra"), row: map[uint64]int{}}
	var err error
	kind := unknown
	src.Recognise(func(head []byte) bool { kind = form(head); return kind != unknown })
	switch kind {
	case feederJSON:
		err = g.readFeeder(ctx, src)
	case hostJSON:
		err = g.readHost(ctx, src)
	case protobuf:
		err = g.readWire(ctx, src)
	default:
		err = errors.New("neither a Chakra trace (protobuf, or JSON with workload_graph) nor a PyTorch execution trace (JSON with schema and nodes)")
	}
	if err == nil {
		var m *components.Module
		if m, err = g.module(); err == nil {
			return m, nil
		}
	}
	if strings.HasPrefix(err.Error(), src.Name) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", src.Name, err)
}
