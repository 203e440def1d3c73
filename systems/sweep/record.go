package sweep

import (
	"encoding/json"
	"errors"
	"fmt"

	"perfsim/io/journal"
	"perfsim/io/workq"
)

// Record has the results of cases by their ID. A result counts when it is on
// the disk.
type Record struct {
	j    *journal.Journal
	have map[string]json.RawMessage
	fail map[string]bool // whose result is an error
}

// entry is a line of the record; the first line is a header.
type recordLine struct {
	Version int             `json:"perfsim_sweep,omitempty"` // version of the file's format
	ID      string          `json:"id,omitempty"`            // digest of the case: input, machine, options, engine
	Row     json.RawMessage `json:"row,omitempty"`
}

// recordVersion is the version of the lines.
const recordVersion = 1

// OpenRecord opens or begins the record at path, which this process alone may
// use until Close.
func OpenRecord(path string) (*Record, error) {
	r := &Record{have: map[string]json.RawMessage{}, fail: map[string]bool{}}
	lines := 0
	j, err := journal.Open(path, func(line []byte) error {
		var l recordLine
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("not a line of a sweep's record: %w", err)
		}
		if lines++; lines == 1 {
			if l.Version != recordVersion {
				return errors.New("not the record of a sweep of this version of perfsim; name another output")
			}
			return nil
		}
		return r.add(l.ID, l.Row)
	})
	if err != nil {
		return nil, err
	}
	r.j = j
	if lines == 0 {
		head, err := json.Marshal(recordLine{Version: recordVersion})
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}
		j.Append(head)
	}
	return r, nil
}

// add takes a result up; a later one of the same case replaces it.
func (r *Record) add(id string, row json.RawMessage) error {
	var head struct {
		Error *string `json:"error"` // why the case failed
	}
	if err := json.Unmarshal(row, &head); err != nil {
		return fmt.Errorf("the result of case %q: %w", id, err)
	}
	r.have[id] = row
	if head.Error != nil {
		r.fail[id] = true
	} else {
		delete(r.fail, id)
	}
	return nil
}

// Take keeps results and returns when they are on the disk.
func (r *Record) Take(list []workq.Result) error {
	for _, x := range list {
		body := x.Body
		if x.Dead != "" {
			row := caseRow{Error: &x.Dead}
			var err error
			if body, err = row.encode(); err != nil {
				return err
			}
		}
		if err := r.add(x.ID, body); err != nil {
			return err
		}
		line, err := json.Marshal(recordLine{ID: x.ID, Row: body})
		if err != nil {
			return err
		}
		r.j.Append(line)
	}
	return r.j.Sync()
}

// Close closes the record.
func (r *Record) Close() error { return r.j.Close() }

// row returns the row of a case of a plan, where it has a result.
func (r *Record) row(p *Plan, c Case) (row caseRow, ok bool, err error) {
	raw, ok := r.have[c.ID]
	if !ok {
		return row, false, nil
	}
	if err := json.Unmarshal(raw, &row); err != nil {
		return row, false, fmt.Errorf("the result of case %s: %w", c.ID, err)
	}
	row.unmark(p, c)
	row.asked(p, c)
	return row, true, nil
}
