package stablehlo

import (
	"context"

	"perfsim/components/opgraph"
	"perfsim/io/format"
)

// maxText bounds the input: MLIR is text of models, not of their weights.
const maxText = 1 << 30

// Importer reads StableHLO in MLIR text.
var Importer = format.Importer{
	Name: "stablehlo", Sniff: Sniff,
	Graph: func(_ context.Context, src *format.Source, _ format.Options) ([]*opgraph.Graph, error) {
		b, err := src.ReadAll(maxText)
		if err != nil {
			return nil, err
		}
		return Read(src.Name, b)
	},
}
