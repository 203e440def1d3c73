// Package resulttable writes rows of results as CSV, JSON lines or Parquet. A
// row is a struct; the json tags of its fields name the columns, and pointers
// are values that may be absent: empty in CSV, null in the others.
package resulttable

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"

	"perfsim/io/csvtable"
)

// Format is a kind of file.
type Format string

// The formats.
const (
	CSV       Format = "csv"
	JSONLines Format = "jsonl"
	Parquet   Format = "parquet"
)

// FormatOf returns the format that the ending of a path names; a table may end
// in .gz besides where the format is text.
func FormatOf(path string) (Format, error) {
	base := strings.TrimSuffix(path, ".gz")
	for _, f := range []Format{CSV, JSONLines, Parquet} {
		if strings.HasSuffix(base, "."+string(f)) && (base == path || f != Parquet) {
			return f, nil
		}
	}
	return "", fmt.Errorf("%s: a table ends in .csv, .jsonl or .parquet, the first two with .gz behind where they are to be compressed", path)
}

// Write writes rows to w. The bytes depend on the rows alone.
func Write[R any](w io.Writer, f Format, rows iter.Seq[R]) error {
	switch f {
	case CSV:
		return writeCSV(w, rows)
	case JSONLines:
		return writeJSON(w, rows)
	}
	return writeParquet(w, rows)
}

func writeJSON[R any](w io.Writer, rows iter.Seq[R]) error {
	out := bufio.NewWriterSize(w, 1<<16)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return out.Flush()
}

func writeCSV[R any](w io.Writer, rows iter.Seq[R]) error {
	out := csv.NewWriter(w)
	names := columns[R]()
	if err := out.Write(names); err != nil {
		return err
	}
	record := make([]string, len(names))
	for r := range rows {
		v := reflect.ValueOf(r)
		for k := range record {
			record[k] = csvtable.Text(v.Field(k))
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// columns returns the names of the columns of a row.
func columns[R any]() []string {
	t := reflect.TypeFor[R]()
	names := make([]string, t.NumField())
	for k := range names {
		names[k], _, _ = strings.Cut(t.Field(k).Tag.Get("json"), ",")
	}
	return names
}

// rowsPerGroup is how many rows a row group of Parquet has.
const rowsPerGroup = 1 << 17

func writeParquet[R any](w io.Writer, rows iter.Seq[R]) error {
	out := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.DataPageVersion(1), parquet.CreatedBy("perfsim", "", ""))
	batch := make([]R, 0, 1024)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	for r := range rows {
		if batch = append(batch, r); len(batch) == cap(batch) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}
