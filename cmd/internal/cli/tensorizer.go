package cli

import (
	"fmt"
	"path/filepath"

	"perfsim/io/neuron/metricstore"
	"perfsim/systems"
)

// mergeTensorizer takes over the metrics that the compiler's front end left
// beside the input, before the passes add theirs, as the documented driver
// does. Standard input has nothing beside it, and without a folder to write to
// no metrics are written.
func mergeTensorizer(w *systems.World, input string) error {
	if w.Out.Dir == "" || input == "" || input == "-" {
		return nil
	}
	rep, found, err := w.Metrics.MergeTensorizer(filepath.Dir(input), metricstore.ReadOptions{DefaultName: w.Module.Name})
	if err != nil {
		return err
	}
	if found {
		w.Module.Note("tensorizer-metrics", fmt.Sprintf("metrics of %s beside the input are in the metric store", metricstore.TensorizerFile), rep.Entries)
	}
	return nil
}
