// Package parquetout writes the tables of a timeline as Parquet files, for DuckDB, pandas, Polars
// and Spark. Pages are of version 1 and compressed with zstd at its fastest level, row groups
// hold 131,072 rows, and the file's key-value metadata hold the schema version, the tool, the
// machine and the model.
package parquetout

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"perfsim/components"
	"perfsim/io/internal/tracetable"
)

// rowsPerGroup is the size of a row group: large enough for columns to
// compress, small enough to be read in parallel.
const rowsPerGroup = 1 << 17

// batch is how many rows go to the writer at a time.
const batch = 1024

// Names are the sets of table and column names.
const (
	Perfetto = "perfetto" // slice, dependency, track, counter, …
	Neuron   = "neuron"   // Instruction, Flow, Summary: the Neuron profiler's files
)

// File is one table with the name of the file that a folder of tables gives
// it.
type File struct {
	Table string
	Write func(ctx context.Context, w io.Writer) error
}

// Files returns the tables of a timeline under one set of names.
func Files(t *components.Timeline, names, version string) ([]File, error) {
	about := tracetable.About(t, version)
	switch names {
	case Perfetto:
		return []File{file(tracetable.Slices(t), about), file(tracetable.Dependencies(t), about), file(tracetable.Tracks(t), about),
			file(tracetable.Counters(t), about), file(tracetable.Metrics(t), about), file(tracetable.Warnings(t), about), file(tracetable.Schema(), about)}, nil
	case Neuron:
		return []File{file(tracetable.Instructions(t), about), file(tracetable.Flows(t), about), file(tracetable.Summary(t), about),
			file(rename(tracetable.AboutTable(t, version), "Metadata"), about)}, nil
	}
	return nil, fmt.Errorf("names %q are not %s or %s", names, Perfetto, Neuron)
}

func rename[R any](t tracetable.Table[R], name string) tracetable.Table[R] {
	t.Name = name
	return t
}

func file[R any](t tracetable.Table[R], about []tracetable.Metadata) File {
	return File{t.Name, func(ctx context.Context, w io.Writer) error { return write(ctx, w, t, about) }}
}

func write[R any](ctx context.Context, out io.Writer, t tracetable.Table[R], about []tracetable.Metadata) error {
	options := []parquet.WriterOption{parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.DataPageVersion(1),
		parquet.DataPageStatistics(false), // the bounds are in the column index
		parquet.CreatedBy("perfsim", version(about), "")}
	for _, f := range parquet.SchemaOf(new(R)).Fields() {
		if f.Encoding() != nil && f.Encoding().Encoding() == format.RLEDictionary {
			options = append(options, parquet.SkipPageBounds(f.Name())) // a page has nearly all texts there are
		}
	}
	for _, m := range about {
		options = append(options, parquet.KeyValueMetadata(m.Key, m.Value))
	}
	w := parquet.NewGenericWriter[R](out, options...)
	rows := make([]R, 0, batch)
	var kept values
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := w.Write(rows)
		rows = rows[:0]
		kept.reset()
		return err
	}
	err := t.Each(func(r *R) error {
		rows = append(rows, *r)
		kept.keep(&rows[len(rows)-1])
		if len(rows) == batch {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	return w.Close()
}

func version(about []tracetable.Metadata) string {
	k := slices.IndexFunc(about, func(m tracetable.Metadata) bool { return m.Key == "tool_version" })
	if k < 0 {
		return ""
	}
	return about[k].Value
}

// values are the optional values of the rows of a batch, which the table reuses
// from row to row.
type values struct {
	numbers []int64
	flags   []bool
}

func (v *values) reset() { v.numbers, v.flags = v.numbers[:0], v.flags[:0] }

// keep gives a row values of its own until reset.
func (v *values) keep(row any) {
	number := func(p **int64) {
		if *p != nil {
			v.numbers = append(v.numbers, **p)
			*p = &v.numbers[len(v.numbers)-1] // stays, wherever the list grows to
		}
	}
	switch x := row.(type) {
	case *tracetable.Slice:
		for _, p := range []**int64{&x.ParentID, &x.IssueNS, &x.Bytes, &x.HeldBy, &x.SlackNS} {
			number(p)
		}
		if x.IsCritical != nil {
			v.flags = append(v.flags, *x.IsCritical)
			x.IsCritical = &v.flags[len(v.flags)-1]
		}
	case *tracetable.Instruction:
		for _, p := range []**int64{&x.PC, &x.RawBirID, &x.CompilerPC} {
			number(p)
		}
	}
}
