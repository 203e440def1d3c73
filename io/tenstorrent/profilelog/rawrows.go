package profilelog

import (
	"fmt"

	"perfsim/components/zonelog"
)

// rawRiscs are the processors by the number that raw buffers carry.
var rawRiscs = [...]string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2"}

// RawRows turns decoded launches of one core into log rows, as the host
// writes them: launch by launch, guaranteed markers first. lane gives the
// place of a launch's core and processor. Names come from the source log; an
// id without one stays unnamed. With typed (V7 on) the timer id is written
// without its packet type.
func RawRows(runs []RawRun, y Layout, src *Sources, typed bool, lane func(r *RawRun) zonelog.ZoneLane, emit func(*Row) error) error {
	for i := range runs {
		r := &runs[i]
		row := Row{Lane: lane(r), Run: zonelog.LogRun{RunID: max(r.RunID, 0), HostID: r.HostID, TraceID: -1, TraceCounter: -1}}
		if r.Trace > 0 {
			row.Run.TraceCounter = int64(r.Trace)
		}
		for k := range r.Markers {
			m := &r.Markers[k]
			row.Timer, row.Time, row.Type = m.Timer, m.Time, m.Type
			if typed {
				row.Timer = m.ID
			}
			z, _ := src.Lookup(m.ID)
			row.Name, row.File, row.Line = z.Name, z.File, z.Line
			row.Data, row.Meta = 0, ""
			switch m.Type {
			case zonelog.MarkerTotal:
				row.Data = uint64(m.Sum)
			case zonelog.MarkerData:
				row.Data = m.Data[0]
				if m.ID == IDPerfCounter {
					p := DecodePerfCounter(m.Data[0])
					row.Meta = fmt.Sprintf(`{"counter type":%d,"ref cnt":%d,"value":%d}`, p.Type, p.Ref, p.Value)
				}
			case zonelog.MarkerData16:
				row.Data = m.Data[0]
				// What the words mean depends on the kernel; both are kept.
				row.Meta = fmt.Sprintf(`{"data_0":%d,"data_1":%d}`, m.Data[0], m.Data[1])
			}
			if err := emit(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

// RawLane is the lane of a launch for a dump that says nothing about where
// its cores are: the flat core id becomes x.
func RawLane(device int32) func(*RawRun) zonelog.ZoneLane {
	return func(r *RawRun) zonelog.ZoneLane {
		risc := fmt.Sprintf("RISC_%d", r.Risc)
		if r.Risc < len(rawRiscs) {
			risc = rawRiscs[r.Risc]
		}
		return zonelog.ZoneLane{Device: device, X: int32(r.Flat), Y: 0, Risc: risc, LogicalX: -1, LogicalY: -1}
	}
}
