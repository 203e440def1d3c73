// Package csvtable writes the tables of a timeline as CSV files with a header
// line: the columns of the Parquet export, absent values empty.
package csvtable

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/io/internal/tracetable"
)

// File is one table with its name.
type File struct {
	Table string
	Write func(ctx context.Context, w io.Writer) error
}

// Files returns the tables of a timeline. With spreadsheet set, texts that a
// spreadsheet would take for a formula begin with an apostrophe.
func Files(t *components.Timeline, spreadsheet bool) []File {
	return []File{file(tracetable.Slices(t), spreadsheet), file(tracetable.Dependencies(t), spreadsheet), file(tracetable.Tracks(t), spreadsheet),
		file(tracetable.Counters(t), spreadsheet), file(tracetable.Metrics(t), spreadsheet), file(tracetable.Warnings(t), spreadsheet),
		file(tracetable.Schema(), spreadsheet)}
}

func file[R any](t tracetable.Table[R], spreadsheet bool) File {
	return File{t.Name, func(ctx context.Context, w io.Writer) error { return write(ctx, w, t, spreadsheet) }}
}

// inert returns s so that a spreadsheet shows it: cells that begin with one of
// these characters are formulas (OWASP, "CSV Injection").
func inert(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// cancelEvery is how many rows are written between two looks at the context.
const cancelEvery = 1 << 12

func write[R any](ctx context.Context, out io.Writer, t tracetable.Table[R], spreadsheet bool) error {
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
			if record[k] = ""; columns[k].Required || !v.Field(k).IsZero() {
				record[k] = Text(v.Field(k))
			}
			if spreadsheet && isText(v.Field(k)) {
				record[k] = inert(record[k])
			}
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

// isText reports whether v is a string or points to one.
func isText(v reflect.Value) bool {
	return v.Kind() == reflect.String || v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.String
}

// Text returns a value as a cell: a string, boolean, number or a pointer to one,
// "" for a nil pointer.
func Text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return Text(v.Elem())
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return number(v.Float())
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	}
	return strconv.FormatInt(v.Int(), 10)
}

// number writes the shortest digits that read back as x, with an exponent only
// where they would be long, as JSON has it: a count stays a count.
func number(x float64) string {
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.FormatFloat(x, 'e', -1, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
