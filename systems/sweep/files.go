package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"perfsim/io/formats"
	"perfsim/systems"
)

// caseReport is a report without the time that perfsim itself took, so that a
// case has the same file from any worker.
type caseReport struct {
	*systems.Report
	ReadSeconds *float64 `json:"read_seconds,omitempty"`
	Seconds     *float64 `json:"seconds,omitempty"`
	Rate        *float64 `json:"instructions_per_second,omitempty"`
}

// reportName is the file of a case's report, written after its traces.
const reportName = "report.json"

// hasFiles reports whether a case has its files in the folder dir.
func hasFiles(dir string, c Case) bool {
	_, err := os.Stat(filepath.Join(dir, c.ID, reportName))
	return err == nil
}

// writeFiles writes report.json and the traces of a case to its folder, which
// has the case's ID as its name.
func writeFiles(ctx context.Context, dir string, c Case, r *systems.Result, rep *systems.Report) error {
	dir = filepath.Join(dir, c.ID)
	if err := r.WriteTraces(ctx, dir); err != nil {
		return fmt.Errorf("files of the case: %w", err)
	}
	return formats.Save(filepath.Join(dir, reportName), nil, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(caseReport{Report: rep})
	})
}
