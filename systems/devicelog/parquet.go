package devicelog

import (
	"context"
	"io"

	"github.com/parquet-go/parquet-go"

	"perfsim/components/zonelog"
)

// The tables have the columns of the CSV files, with null for what a log or a
// grouping does not have.

type zoneRow struct {
	Device       int32    `parquet:"device"`
	X            int32    `parquet:"core_x"`
	Y            int32    `parquet:"core_y"`
	Processor    string   `parquet:"processor,dict"`
	Zone         string   `parquet:"zone,dict"`
	File         string   `parquet:"file,dict"`
	Line         int32    `parquet:"line"`
	Depth        int32    `parquet:"depth"`
	RunID        *int64   `parquet:"run_id,optional"`
	HostID       *int64   `parquet:"run_host_id,optional"`
	TraceID      *int64   `parquet:"trace_id,optional"`
	TraceCounter *int64   `parquet:"trace_id_counter,optional"`
	Session      int32    `parquet:"session"`
	Start        int64    `parquet:"start_cycle,delta"`
	Duration     int64    `parquet:"duration_cycles"`
	DurationNS   *float64 `parquet:"duration_ns,optional"`
	LogLine      int64    `parquet:"log_line"`
}

// parquetOptions are those of perfsim's other tables: pages of version 1,
// zstd, row groups of 131,072 rows.
func parquetOptions(table string, l *zonelog.DeviceLog) []parquet.WriterOption {
	o := []parquet.WriterOption{parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1 << 17), parquet.DataPageVersion(1),
		parquet.CreatedBy("perfsim", "", ""), parquet.KeyValueMetadata("table", table)}
	if l != nil && len(l.Sessions) > 0 {
		o = append(o, parquet.KeyValueMetadata("log_version", l.Sessions[0].Version), parquet.KeyValueMetadata("arch", l.Sessions[0].Arch))
	}
	return o
}

// WriteZonesParquet writes every zone as a Parquet table, by processor and
// start.
func WriteZonesParquet(ctx context.Context, out io.Writer, l *zonelog.DeviceLog) error {
	w := parquet.NewGenericWriter[zoneRow](out, parquetOptions("zone", l)...)
	// What optional cells point to lives as long as their batch.
	const batch = 1024
	rows := make([]zoneRow, 0, batch)
	ids := make([][4]int64, batch)
	ns := make([]float64, batch)
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := w.Write(rows)
		rows = rows[:0]
		return err
	}
	for lane := range l.Lanes {
		ln := &l.Lanes[lane]
		for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
			mark := l.Zones.Begin[z]
			k, r := &l.Keys[l.Key(z)], &l.Runs[l.Run[mark]]
			n := len(rows)
			row := zoneRow{Device: ln.Device, X: ln.X, Y: ln.Y, Processor: ln.Risc, Zone: l.ZoneName(l.Key(z)), File: k.File, Line: int32(k.Line),
				Depth: int32(l.Zones.Depth[z]), Session: int32(r.Session), Start: int64(l.Start(z)), Duration: int64(l.Dur(z)), LogLine: int64(l.Line(int(mark)))}
			ids[n] = [4]int64{r.RunID, r.HostID, r.TraceID, r.TraceCounter}
			for i, p := range []**int64{&row.RunID, &row.HostID, &row.TraceID, &row.TraceCounter} {
				if ids[n][i] >= 0 {
					*p = &ids[n][i]
				}
			}
			if f := l.Freq(l.Run[mark]); f > 0 {
				ns[n] = nanoseconds(float64(l.Dur(z)), f)
				row.DurationNS = &ns[n]
			}
			if rows = append(rows, row); len(rows) == batch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return w.Close()
}
