package hlo

import (
	"context"

	"perfsim/components/opgraph"
	"perfsim/io/format"
)

// TextImporter reads HLO text.
var TextImporter = format.Importer{
	Name: "hlo", Sniff: Sniff,
	Graph: func(_ context.Context, src *format.Source, _ format.Options) ([]*opgraph.Graph, error) {
		b, err := src.ReadAll(maxText)
		if err != nil {
			return nil, err
		}
		return ReadText(src.Name, b)
	},
}

// ProtoImporter reads HloProto, bare HloModuleProto and HloSnapshot.
var ProtoImporter = format.Importer{
	Name: "hloproto", Sniff: SniffProto,
	Graph: func(_ context.Context, src *format.Source, _ format.Options) ([]*opgraph.Graph, error) {
		b, err := src.ReadAll(maxText)
		if err != nil {
			return nil, err
		}
		return ReadProto(src.Name, b)
	},
}
