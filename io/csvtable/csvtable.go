// Package csvtable writes the tables of a timeline as CSV files with a header
// line: the columns of the Parquet export, absent values empty.
package csvtable

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"perfsim/components"
	"perfsim/io/internal/tracetable"
)

// File is one table with its name.
type File struct {
	Table string
	Write func(ctx context.Context, w io.Writer) error
}

// Files returns the tables of a timeline.
func Files(t *components.Timeline) []File {
	return []File{file(tracetable.Slices(t)), file(tracetable.Dependencies(t)), file(tracetable.Tracks(t)), file(tracetable.Counters(t)),
		file(tracetable.Metrics(t)), file(tracetable.Warnings(t)), file(tracetable.Schema())}
}

func file[R any](t tracetable.Table[R]) File {
	return File{t.Name, func(ctx context.Context, w io.Writer) error { return write(ctx, w, t) }}
}

// cancelEvery is how many rows are written between two looks at the context.
const cancelEvery = 1 << 12

func write[R any](ctx context.Context, out io.Writer, t tracetable.Table[R]) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	w := csv.NewWriter(buffered)
	columns := tracetable.Columns[R](t.Name)
	record := make([]string, len(columns))
	for k, c := range columns {
		record[k] = c.Name
	}
	if err := w.Write(record); err != nil {
		return err
	}
	rows := 0
	err := t.Each(func(r *R) error {
		if rows++; rows%cancelEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		v := reflect.ValueOf(r).Elem()
		for k := range record {
			record[k] = text(v.Field(k))
		}
		return w.Write(record)
	})
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return buffered.Flush()
}

func text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return text(v.Elem())
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return strconv.FormatInt(v.Int(), 10)
}
